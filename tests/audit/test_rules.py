"""Each rule of an audit from both sides: what it finds, and what it lets pass."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.audit.audit import between
from dbdyno.audit.ledger import Severity
from dbdyno.audit.rules.cells import is_on_grid
from dbdyno.audit.tables import Publication, publication_of
from dbdyno.errors import UsageError
from support.publications import TOLD, found, publication, rates, table, words

YAML = "tables: [{system: A, threads: [8], values: {tps: [{text: %s}]}}]"


# Concurrency: 8 connections at 100/s are 80 ms each.


@pytest.mark.parametrize(
    ("tps", "mean", "severities"),
    [
        ("100.00", "80.0", []),
        ("100.00", "80.4", []),
        ("100.00", "80.5", ["note"]),  # as a product of means over several runs
        ("100.00", "82.5", ["contradiction"]),
        ("100.00", "77.6", []),
        ("100.00", "77.0", ["note"]),
        ("13000", "0.6", []),  # 0.6 ms may have been 0.55 to 0.65: 7.15 to 8.45 in flight
    ],
)
def test_throughput_and_mean_latency_are_held_against_the_connections(
    tps: str, mean: str, severities: list[str]
) -> None:
    asked = publication(table(threads=[8], values={"tps": [tps], "latency_ms_avg": [mean]}))
    assert [one.severity.value for one in found(asked, "concurrency")] == severities


def test_one_cell_that_alone_has_few_in_flight_is_a_misprint() -> None:
    ladder = {"threads": [8, 16, 32], "values": {"tps": ["100.0", "200.0", "400.0"]}}
    ladder["values"] |= {"latency_ms_avg": ["80.0", "8.0", "80.0"]}
    (entry,) = found(publication(table(**ladder)), "concurrency")
    assert entry.severity is Severity.CONTRADICTION
    assert "in this cell only" in entry.sentence
    assert entry.arithmetic == "200/s × 8.0 ms = 1.6 in flight, 1.59 to 1.61 with rounding"
    ladder["values"]["latency_ms_avg"] = ["80.0", "0.0", "80.0"]
    assert not found(publication(table(**ladder)), "concurrency"), "rounded to nothing"
    ladder["values"]["latency_ms_avg"] = ["8.0", "8.0", "8.0"]
    entries = found(publication(table(**ladder)), "concurrency")
    assert {one.severity for one in entries} == {Severity.NOTE}


def flights(*means: str, tps: str = "100.00", **more: Any) -> list[tuple[str, str]]:
    """A ladder of 8, 16, 32 and 64 connections, with throughput that doubles at each level."""
    threads = [8 << n for n in range(len(means))]
    rates = [f"{float(tps) * n / 8:.2f}" for n in threads]
    values = {"tps": rates, "latency_ms_avg": list(means)}
    return words(publication(table(threads=threads, values=values, **more)), "concurrency")


def test_equal_load_generators_may_print_the_connections_of_each() -> None:
    ((severity, sentence),) = flights("239.0", "239.5", "240.0")
    assert severity == "note"
    assert sentence.startswith("throughput and mean latency fit 3 times the printed connections")
    told = flights("239.0", "239.5", "240.0", "240.0", "300.0")
    assert [severity for severity, _ in told] == ["contradiction", "note"]
    told = flights("100.0", "110.0", "120.0")
    assert [severity for severity, _ in told] == ["contradiction"] * 3, "no whole number of them"


def test_a_latency_that_is_not_called_a_mean_may_be_a_percentile() -> None:
    told = flights("100.0", "110.0", "120.0", is_mean_said=False)
    assert [severity for severity, _ in told] == ["note"] * 3
    assert "the latency is not a mean" in told[0][1]
    values = {"tps": ["100.0"], "latency_ms_avg": ["30.0"], "latency_ms_p99": ["20.0"]}
    asked = publication(table(threads=[8], values=values, is_mean_said=False))
    assert words(asked, "percentiles") == []


def test_a_client_may_be_a_limit_at_the_most_connections_only() -> None:
    told = flights("80.0", "80.0", "80.0", "50.0")
    assert [severity for severity, _ in told] == ["note"]
    told = flights("80.0", "80.0", "80.0", "8.0")
    assert [severity for severity, _ in told] == ["contradiction"]


def test_a_column_with_dropped_zeros_is_as_exact_as_its_others() -> None:
    # 80.5 stands for 80.50 beside 40.00: no half of a tenth is given
    values = {"tps": ["100.00", "400.00"], "latency_ms_avg": ["80.5", "40.00"]}
    (entry,) = found(publication(table(values=values)), "concurrency")
    assert entry.place.startswith("A, oltp_read_write, 8 threads")


# Statements.


NOT_ALIKE = ["2837.10", "2851.44", "2829.93", "2840.07", "2846.62"]


@pytest.mark.parametrize(
    ("workload", "qps", "told"),
    [
        ("oltp_read_write", ["2000.40", "2000.50"], []),
        (
            "oltp_read_write",
            ["2000.40", "2200.00"],
            [("contradiction", "queries and transactions do not belong to the same run", 16)],
        ),
        (
            "oltp_read_write",
            ["2000.40", "2080.00"],  # of transactions that were rolled back
            [("note", "more than 20 queries per transaction", 16)],
        ),
        (
            "oltp_read_write",
            ["1800.00", "1800.00"],
            [("note", "a transaction of oltp_read_write has 18 statements here and 20", None)],
        ),
        (
            "oltp_read_write",
            ["100.00", "100.00"],
            [("note", "a transaction of oltp_read_write has 1 statement here and 20", None)],
        ),
        (
            "oltp_read_write",
            ["2000.40", "1990.00"],  # of a dashboard
            [("note", "queries are not 20 times the transactions", 16)],
        ),
        (
            "bulk_insert",
            ["230.10", "233.30", "231.90"],
            [("note", "queries are not 1 times the transactions", n) for n in (8, 16, 32)],
        ),
        ("tpcc", NOT_ALIKE, []),
        (
            "tpcc",
            ["2800.00"] * 4 + ["2500.00"],
            [("contradiction", "queries and transactions do not belong to the same run", 128)],
        ),
    ],
)
def test_queries_are_so_many_times_the_transactions(
    workload: str, qps: list[str], told: list[tuple[str, str, int | None]]
) -> None:
    values = {"tps": ["100.00"] * len(qps), "qps": qps}
    threads = [8 << n for n in range(len(qps))]
    entries = found(
        publication(table(workload=workload, threads=threads, values=values)), "statements"
    )
    assert len(entries) == len(told)
    for entry, (severity, sentence, place) in zip(entries, told, strict=True):
        assert entry.severity.value == severity
        assert entry.sentence.startswith(sentence)
        assert entry.place == (f"A, {workload}, {place} threads" if place else "")


def test_statements_of_an_unknown_workload_are_what_most_rows_agree_on() -> None:
    ladder = {"workload": "mixed", "threads": [50, 100, 200, 500, 1000]}
    values = {"qps": ["30000.0", "42857.1", "54545.5", "60000.0", "60606.1"]}
    values["latency_ms_avg"] = ["10.00", "14.00", "22.00", "50.00", "99.00"]
    asked = publication(table(**ladder, values=values))
    assert words(asked, "statements") == [
        ("note", "a transaction of mixed seems to have 6 statements")
    ]
    assert found(asked, "concurrency") == []
    values["latency_ms_avg"][3] = "75.00"
    (entry,) = found(publication(table(**ladder, values=values)), "concurrency")
    assert (entry.severity, entry.place) == (Severity.CONTRADICTION, "A, mixed, 500 threads")
    ladder["workload"] = "oltp_read_write"  # its name is known, its options are others
    (entry,) = found(publication(table(**ladder, values=values)), "concurrency")
    assert entry.severity is Severity.CONTRADICTION
    values["latency_ms_avg"] = ["10.00", "11.00", "22.00", "35.00", "99.00"]
    assert words(publication(table(**ladder, values=values)), "statements") == []


# Percentiles.


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"latency_ms_p95": ["9.0"], "latency_ms_p99": ["8.0"]}, "p95 is above p99"),
        ({"latency_ms_p99": ["9.0"], "latency_ms_max": ["8.0"]}, "p99 is above max"),
        ({"latency_ms_avg": ["10.0"], "latency_ms_p99": ["9.0"]}, "p99 is below the mean"),
        (
            {"latency_ms_avg": ["1.0"], "latency_ms_p95": ["22.0"]},
            "p95 is above what the mean allows",
        ),
        ({"latency_ms_avg": ["1.0"], "latency_ms_p95": ["19.0"]}, None),
        ({"latency_ms_avg": ["10.0"], "latency_ms_p95": ["9.0"]}, None),
        ({"latency_ms_p99": ["9.0"], "latency_ms_p999": ["9.0"]}, None),
    ],
)
def test_percentiles_that_no_latencies_have(values: dict[str, list[str]], said: str | None) -> None:
    asked = publication(table(threads=[8], values=values))
    assert [str(one.sentence) for one in found(asked, "percentiles")] == ([said] if said else [])


@pytest.mark.parametrize(("most", "severity"), [(None, "note"), ("50", "contradiction")])
def test_a_mean_above_the_99th_percentile_needs_latencies_far_above_it(
    most: str | None, severity: str
) -> None:
    values = {"latency_ms_avg": ["10.0"], "latency_ms_p99": ["9.0"]}
    values |= {"latency_ms_max": [most]} if most else {}
    (entry,) = found(publication(table(threads=[8], values=values)), "percentiles")
    assert (entry.severity.value, entry.sentence) == (severity, "p99 is below the mean")
    assert "the slowest 0.01 of requests took 99.05 ms" in entry.arithmetic


def test_without_a_mean_the_connections_bound_the_percentiles() -> None:
    # 8 connections at 100/s wait 80 ms each: one in twenty may wait 1600 ms
    values = {"tps": ["100.0"], "latency_ms_p95": ["1700"]}
    ((severity, sentence),) = words(publication(table(threads=[8], values=values)), "percentiles")
    assert (severity, sentence) == ("contradiction", "p95 is above what the mean allows")
    values["latency_ms_p95"] = ["1500"]
    assert words(publication(table(threads=[8], values=values)), "percentiles") == []
    values["latency_ms_p95"] = ["1700"]
    opened = publication(table(threads=[8], values=values), disclosed={"rate": "100/s"})
    assert words(opened, "percentiles") == []


def test_percentiles_of_sysbench_lie_on_its_grid() -> None:
    asked = publication(table(values={"latency_ms_p95": ["1.61", "2.97"]}))
    assert all(is_on_grid(n) for c in asked.cells() for _, _, n in c.quantiles())
    means = ["1.60", "2.99", "5.23"]
    values = {"threads": [1, 2, 3], "values": {"latency_ms_p95": means}}
    ((severity, sentence),) = words(publication(table(**values), tool="sysbench 1.0.20"), "grid")
    assert severity == "note"
    assert sentence.startswith("3 of 3 percentiles cannot come from a single run")
    assert words(publication(table(**values), tool="another"), "grid") == []


# Repeats.


def test_a_cell_that_is_printed_again_with_other_numbers_is_named() -> None:
    once = table(threads=[8, 8], values={"tps": ["100.00", "101.50"]})
    (entry,) = found(publication(once), "repeats")
    assert (entry.severity, entry.place) == (Severity.NOTE, "A, oltp_read_write, 8 threads")
    assert entry.arithmetic == "tps 100.00"
    same = table(threads=[8], values={"tps": ["100.00"], "latency_ms_avg": ["80.0"]})
    assert found(publication(same, same), "repeats") == []


# Copies.


def test_what_is_no_size_of_a_cache_and_no_printed_number_breaks_no_audit() -> None:
    tables = [
        table(values={"tps": ["100", "200"]}, at={"cache": size})
        for size in ("Redis 6.2.1", "off.", "...", "16G")
    ]
    assert found(publication(*tables), "shape") == []
    for text in ("many", "9" * 400):
        with pytest.raises(UsageError, match="is no publication"):
            publication_of(YAML % text, "a")


def test_a_row_that_stands_twice_was_not_measured_twice() -> None:
    one, other = rates(A=["512.33", "498.01"], B=["512.33", "498.01"])
    ((severity, sentence),) = words(publication(one, other), "copies")
    assert severity == "contradiction"
    assert sentence.startswith("2 numbers of two different measurements are the same")
    assert words(publication(one, *rates(B=["512.33", "501.12"])), "copies") == []
    ladder = {"threads": [8, 16, 32, 64, 128]}
    near = [
        table(system, **ladder, values={"tps": values})
        for system, values in (
            ("A", ["1214", "1397", "1423", "1440", "1452"]),
            ("B", ["1214", "1388", "1423", "1431", "1460"]),
        )
    ]
    assert words(publication(*near), "copies") == [], "equally fast, with four digits"
    limited = [
        table(system, **ladder, values={"tps": values})
        for system, values in (
            ("A", ["999.98", "999.97", "1000.02", "999.99", "999.96"]),
            ("B", ["999.98", "999.95", "1000.02", "999.99", "999.97"]),
        )
    ]
    assert words(publication(*limited), "copies") == [], "at a rate that no log discloses"
    sections = [{**one, "at": {"section": name}} for name in ("first", "second")]
    assert words(publication(*sections), "copies") == [], "a baseline that stands in both"
    rounded = rates(A=["12000", "15000"], B=["12000", "15000"])
    assert words(publication(*rounded), "copies") == []
    limited = publication(one, other, disclosed={**TOLD, "rate": "500/s"})
    assert words(limited, "copies") == [], "both have the rate that was asked for"
    assert between([limited, publication(other)]).entries == ()


def test_digits_that_agree_in_many_cells_were_not_measured() -> None:
    ladder = [8, 16, 32, 64, 128]
    one = {"qps": ["21537", "33861", "45112", "52907", "61344"]}
    one["latency_ms_avg"] = ["3.71", "4.72", "7.09", "12.09", "20.86"]
    other = {"qps": ["22537", "34861", "40218", "51907", "57345"]}  # three by whole thousands
    other["latency_ms_avg"] = ["4.71", "4.59", "8.02", "12.33", "22.86"]  # two by whole ms

    def of(values: dict[str, list[str]]) -> Publication:
        tables = [table("A", threads=ladder, values=one), table("B", threads=ladder, values=values)]
        return publication(*tables)

    ((severity, sentence),) = words(of(other), "digits")
    assert severity == "over-claim"
    assert sentence.startswith("5 of 10 numbers of A and B differ by whole thousands")
    others = {**other, "qps": ["22539", "34861", "40218", "51903", "57345"]}
    assert words(of(others), "digits") == [], "three in ten come by chance now and then"
    rounded = {"qps": ["22000", "34000", "40000", "51000", "57000"], "latency_ms_avg": ["4.00"] * 5}
    asked = publication(
        table("A", threads=ladder, values={"qps": ["21000", "33000", "45000", "52000", "61000"]}),
        table("B", threads=ladder, values=rounded),
    )
    assert words(asked, "digits") == [], "rounded further than they show"


def test_publications_are_held_against_each_other() -> None:
    rows = ["512.33", "498.01"]
    tables = rates(MySQL=rows, A=["600.11", "700.22"])
    first = publication(*tables, title="first", systems={"MySQL": "5.6", "A": "1"})

    def beside(version: str, values: list[str], **places: str) -> list[tuple[str, str, str]]:
        tables = rates(MySQL=values, B=["611.13", "711.31"])
        systems = {"MySQL": version, "B": "2"}
        found = {f"systems.{name}": place for name, place in places.items()}
        second = publication(*tables, title="second", systems=systems, places=found)
        ours = first.model_copy(update={"places": found})
        entries = between([ours, second]).entries
        return [(one.severity.value, one.rule, one.place) for one in entries]

    assert beside("5.7", rows) == [("contradiction", "copies", "first; second")]
    assert beside("5.6", rows) == [("note", "copies", "first; second")]
    assert beside("5.6", ["522.37", "508.02"]) == []
    found = beside("5.7", rows, MySQL="page, line 9")
    assert found == [("note", "copies", "first; second")], (
        "versions of the page's words accuse none"
    )


# Design.


def test_falls_and_crossovers_are_told() -> None:
    tables = [
        table("A", at={"buffer_pool_gb": "8"}, values={"tps": ["100.0", "90.0"]}),
        table("A", at={"buffer_pool_gb": "16"}, values={"tps": ["90.0", "120.0"]}),
        table("B", at={"buffer_pool_gb": "8"}, values={"tps": ["80.0", "120.0"]}),
    ]
    said = [sentence for _, sentence in words(publication(*tables), "shape")]
    assert said == [
        "throughput falls with more connections by over 3 % in 1 place; without repeats, this may "
        "be chance",
        "throughput falls with more memory by over 3 % in 1 place; without repeats, this may "
        "be chance",
        "neither of A and B is ahead everywhere: 1 cell against 1, the others within 3 %",
    ]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"environment": {"network_ms": "5"}}, "a latency is below one round trip"),
        ({"environment": {"memory_gb": "8"}}, "buffer_pool_gb is larger than the machine's memory"),
        (
            {"dataset": {"tables": "10", "rows_per_table": "1000000", "size_gb": "100"}},
            "the dataset's size does not fit its rows",
        ),
        ({"environment": {"round_trip_ms": "5"}}, "a latency is below the network's round trip"),
        (
            {"environment": {"memory_gb": "24"}, "settings": {"innodb_buffer_pool_size": "32G"}},
            "innodb_buffer_pool_size is larger than the machine's memory",
        ),
        (
            {"dataset": {"rows_per_table": "2180000", "gb_per_table": "5.2"}},
            "the dataset's size does not fit its rows",
        ),
        ({"environment": {"network_ms": "1", "memory_gb": "64"}}, None),
    ],
)
def test_what_the_set_up_does_not_allow(more: dict[str, Any], said: str | None) -> None:
    one = table(at={"buffer_pool_gb": "16"}, values={"latency_ms_p95": ["3.0", "4.0"]})
    sentences = [sentence for _, sentence in words(publication(one, **more), "physics")]
    assert bool(sentences) == bool(said)
    assert all(sentence.startswith(said or "") for sentence in sentences)


def test_what_the_words_of_a_page_name_may_be_of_another_machine() -> None:
    one = table(values={"latency_ms_p95": ["3.0", "4.0"]})
    more = {
        "environment": {"memory_gb": "16", "round_trip_ms": "30"},
        "settings": {"innodb_buffer_pool_size": "48G"},
        "dataset": {"rows_per_table": "10000000", "gb_per_table": "0.9"},
    }
    told = words(publication(one, **more, is_set_up_of_prose=True), "physics")
    assert [severity for severity, _ in told] == ["note"] * 4


def test_sizes_of_memory_have_their_units() -> None:
    small = [
        table(at={"cache": size}, values={"tps": [rate, rate]})
        for size, rate in (("512M", "100.0"), ("1G", "200.0"))
    ]
    memory = {"memory_gb": "16"}
    assert found(publication(*small, environment=memory), "physics") == []
    assert found(publication(*small), "shape") == [], "1 GB is more than 512 MB"
    for axis, size, larger in (
        ("cache_mb", "512", 0),
        ("cache", "25%", 0),
        ("cache", "32G", 1),
        ("cache_gb", "32", 1),
    ):
        one = table(at={axis: size}, values={"tps": ["1.0", "2.0"]})
        assert len(found(publication(one, environment=memory), "physics")) == larger


def test_how_far_latencies_lie_apart_is_no_latency() -> None:
    values = {"latency_ms_avg": ["3.0", "4.0"], "latency_ms_stddev": ["0.1", "0.2"]}
    asked = publication(table(values=values), environment={"network_ms": "1"})
    assert found(asked, "physics") == []


def test_what_is_not_told_is_listed() -> None:
    one = table(values={"tps": ["1.0", "2.0"]})
    assert words(publication(one), "missing") == []
    ((severity, sentence),) = words(publication(one, disclosed={}), "missing")
    assert severity == "unsafe design"
    assert sentence.startswith("the publication does not state: how often each cell was measured; ")
    both = rates(MySQL=["1.0", "2.0"], A=["1.1", "2.1"])
    for systems, told in (({"MySQL": "8.0.30"}, 1), ({"MySQL": "8.0.30", "A": "1.2"}, 0)):
        ((_, sentence),) = words(publication(*both, disclosed={}, systems=systems), "missing")
        assert sentence.count("the servers' versions") == told


@pytest.mark.parametrize(("weak", "told"), [("2", 1), ("1", 0)])
def test_a_durability_that_the_settings_do_not_give_is_a_contradiction(
    weak: str, told: int
) -> None:
    asked = publication(
        table(values={"tps": ["1.0", "2.0"]}),
        disclosed={**TOLD, "durability": "fully durable"},
        settings={"innodb_flush_log_at_trx_commit": weak},
    )
    assert len(found(asked, "settings")) == told


# The file.


def test_mistakes_of_a_file_have_their_lines() -> None:
    text = (
        "title: x\ntables:\n  - system: A\n    threads: [1, 2]\n    values: {tps: [1.50, fast]}\n"
    )
    with pytest.raises(UsageError) as refused:
        publication_of(text, "p.yaml")
    assert "p.yaml is no publication" in str(refused.value)
    assert "line 5: tables[0].values.tps[1]" in str(refused.value)


def test_numbers_keep_their_last_digit() -> None:
    text = "tables:\n  - {system: A, threads: [1, 2], values: {tps: [1.50, 2]}}\n"
    (first, second) = publication_of(text, "p.yaml").cells()
    assert (first.values["tps"].text, first.values["tps"].half) == ("1.50", 0.005)
    assert (second.values["tps"].text, second.values["tps"].half) == ("2", 0.005)
