"""A publication's claims and columns of changes, held against its own tables."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.audit.ledger import LedgerEntry, Severity
from support.publications import found, publication, rates, table, words


def claim(**more: Any) -> dict[str, Any]:
    return {"text": "as they say", "of": "A", "than": "B", **more}


def headline(tables: list[dict[str, Any]], **more: Any) -> LedgerEntry:
    (entry,) = found(publication(*tables, claims=[claim(**more)]), "headline")
    return entry


LADDERS = [
    table("A", values={"tps": ["150.0", "180.0"], "latency_ms_p95": ["5.0", "9.0"]}),
    table("B", values={"tps": ["120.0", "90.0"], "latency_ms_p95": ["6.0", "8.0"]}),
]
"""Ratios of throughput 1.25 and 2, of sums 1.571, of peaks 1.5."""


@pytest.mark.parametrize(
    ("asked", "severity"),
    [
        ({"ratio_min": 1.25, "ratio_max": 2}, "confirmed"),
        ({"ratio_min": 1.3}, "contradiction"),
        ({"ratio_max": 1.9}, "contradiction"),
        ({"ratio_min": 1.9, "holds": "some"}, "confirmed"),
        ({"ratio_min": 2.1, "holds": "some"}, "contradiction"),
        ({"ratio_min": 1.57, "ratio_max": 1.58, "holds": "average"}, "confirmed"),
        ({"ratio_min": 1.62, "ratio_max": 1.63, "holds": "average"}, "confirmed"),  # of ratios
        ({"ratio_min": 1.24, "ratio_max": 1.26, "holds": "average"}, "over-claim"),
        ({"ratio_min": 1.7, "ratio_max": 1.8, "holds": "average"}, "contradiction"),
        ({"ratio_min": 1.49, "ratio_max": 1.51, "holds": "peak"}, "confirmed"),
        ({"ratio_min": 1.57, "ratio_max": 1.58, "holds": "peak"}, "contradiction"),
        ({"ratio_min": 1.9, "threads": [16]}, "confirmed"),
        ({"ratio_min": 1.9, "threads": [8]}, "contradiction"),
        ({"ratio_min": 1.9, "workloads": ["oltp_read_write"], "threads": [16]}, "confirmed"),
        ({"ratio_max": 0.9, "threads": [8], "metric": "latency_ms_p95"}, "confirmed"),
        ({"ratio_max": 0.9, "threads": [16], "metric": "latency_ms_p95"}, "contradiction"),
    ],
)
def test_a_claim_is_held_against_its_cells(asked: dict[str, Any], severity: str) -> None:
    assert headline(LADDERS, **asked).severity.value == severity


def test_cells_against_a_claim_are_named_the_farthest_first() -> None:
    entry = headline(LADDERS, ratio_max=1.1)
    assert entry.sentence == "the claimed ratio, 1.1 or less, is true in 0 of 2 cells"
    assert entry.arithmetic == (
        "A, oltp_read_write, 16 threads: 180.0 against 90.0;"
        " A, oltp_read_write, 8 threads: 150.0 against 120.0"
    )


@pytest.mark.parametrize(("ratio", "severity"), [(1.252, "confirmed"), (1.254, "contradiction")])
def test_a_cell_is_given_the_room_of_its_rounding(ratio: float, severity: str) -> None:
    tables = [
        table(system, threads=[8], values={"tps": [n]}) for system, n in (("A", "5"), ("B", "4"))
    ]
    coarse = [{**one, "values": {"tps": [f"{one['values']['tps'][0]}00"]}} for one in tables]
    assert headline(tables, ratio_min=ratio).severity is Severity.CONFIRMED, "5 may be 5.5"
    assert headline(coarse, ratio_min=ratio).severity.value == severity, "500.5 / 399.5 at most"


def test_a_claim_along_the_load_compares_a_system_with_itself() -> None:
    drops = {"than": "", "threads": [16], "than_threads": 8}
    assert headline(LADDERS, **drops, of="B", ratio_max=0.8).severity is Severity.CONFIRMED
    assert headline(LADDERS, **drops, ratio_max=0.8).severity is Severity.CONTRADICTION
    average = {"ratio_min": 0.7, "ratio_max": 0.8, "holds": "average"}
    assert headline(LADDERS, **drops, **average).severity is Severity.CONTRADICTION


@pytest.mark.parametrize(
    "asked",
    [
        {"than": "C"},
        {"threads": [64]},
        {"at": {"buffer_pool_gb": "48"}},
        {"metric": "rate_variation"},
        {"than_threads": 64},
    ],
)
def test_a_claim_without_cells_is_a_note(asked: dict[str, Any]) -> None:
    asked = claim(ratio_min=1.1, **asked)
    assert words(publication(*LADDERS, claims=[asked]), "claims") == [
        ("note", "cannot be checked with the printed numbers")
    ]


def test_over_nothing_there_is_no_ratio_that_could_be_held_against_a_claim() -> None:
    entry = headline(rates(A=["0", "0"], B=["0", "100"]), ratio_max=0.5)
    assert entry.sentence == "the claimed ratio, 0.5 or less, is true in 1 of 1 cell"


def test_a_number_against_another_comparator_is_told() -> None:
    tables = rates(A=["100.0", "100.0"], B=["125.0", "125.0"], **{"B tuned": ["200.0", "200.0"]})
    half = headline(tables, holds="average", ratio_min=0.495, ratio_max=0.505)
    assert (half.severity, half.sentence) == (
        Severity.OVER_CLAIM,
        "the claimed ratio, 0.495 to 0.505, is true against B tuned, not against B",
    )
    assert half.arithmetic == (
        "all cells, ratio of sums, against B tuned: 0.5;"
        " the claim's cells, ratio of sums, against B: 0.8"
    )


def test_a_number_of_one_load_level_is_no_average() -> None:
    tables = rates(A=["100.0", "100.0"], B=["100.0", "200.0"])
    entry = headline(tables, holds="average", ratio_min=0.495, ratio_max=0.505)
    assert entry.severity is Severity.OVER_CLAIM
    assert entry.arithmetic == (
        "16 threads, ratio of sums, against B: 0.5;"
        " the claim's cells, ratio of sums, against B: 0.6667"
    )


def test_a_range_may_be_of_the_means_of_workloads() -> None:
    """Update index 6.0 and 4.0 % faster, read write 1.0 and 3.0 %: 5.0 and 2.0 % in the mean."""
    tables = [
        table(system, workload=workload, values={"tps": values})
        for workload, pairs_of in {
            "oltp_point_select": (["260.10", "361.80"], ["256.20", "352.00"]),
            "oltp_update_index": (["180.21", "221.90"], ["191.03", "230.77"]),
            "oltp_read_write": (["48.612", "56.794"], ["49.100", "58.496"]),
        }.items()
        for system, values in zip(("B", "A"), pairs_of, strict=True)
    ]
    writes = {"workloads": ["oltp_update_index", "oltp_read_write"]}
    entry = headline(tables, ratio_min=1.0195, ratio_max=1.0505, **writes)
    assert entry.severity is Severity.CONFIRMED
    assert entry.sentence.endswith("is true for the mean of each workload")
    for wrong in ({**writes, "ratio_min": 1.03, "ratio_max": 1.0505}, {"ratio_min": 1.0195}):
        assert headline(tables, **wrong).severity is Severity.CONTRADICTION
    all_of_them = headline(tables, ratio_min=1.0195, ratio_max=1.0505)
    assert all_of_them.severity is Severity.CONTRADICTION, "reads are slower"


def test_an_average_is_given_the_room_of_rounding() -> None:
    tables = [
        table(system, values={"tps": [{"text": n, "dropped": -3} for n in values]})
        for system, values in (("A", ("35000", "44000")), ("B", ("32000", "40000")))
    ]
    for holds in ("average", "peak"):
        entry = headline(tables, holds=holds, ratio_min=1.115, ratio_max=1.125)
        assert entry.severity is Severity.CONFIRMED, holds


@pytest.mark.parametrize(
    ("texts", "severities"),
    [
        (["+25.0 %", "25%", "0.25", "1.25x", "-20 %", "80%", "25"], ["confirmed"]),
        (["+35.0 %", "1.52"], ["contradiction"]),
        (["n/a"], []),
    ],
)
def test_a_printed_change_is_held_against_its_two_numbers(
    texts: list[str], severities: list[str]
) -> None:
    tables = rates(A=["100.0", "100.0"], B=["125.0", "100.0"])
    change = {"systems": ["A", "B"], "workload": "oltp_read_write", "threads": 8, "metric": "tps"}
    for text in texts:
        asked = publication(*tables, changes=[{**change, "text": text}])
        assert [one.severity.value for one in found(asked, "changes")] == severities, text


def test_a_change_may_be_cut_off_or_of_any_two_numbers_of_its_row() -> None:
    tables = rates(A=["100.0", "1"], B=["117.69", "1"], C=["150.0", "1"])
    change = {"workload": "oltp_read_write", "threads": 8, "metric": "tps", "systems": ["B", "C"]}
    for text, told in (("27.4 %", "confirmed"), ("50 %", "confirmed"), ("32.31", "confirmed")):
        asked = publication(*tables, changes=[{**change, "text": text}])
        assert [one.severity.value for one in found(asked, "changes")] == [told], text
    asked = publication(*tables, changes=[{**change, "text": "60 %"}])
    assert [one.severity.value for one in found(asked, "changes")] == ["contradiction"]


def test_a_sentence_is_as_true_as_the_least_true_of_its_claims() -> None:
    parts = [{"ratio_min": 1.25, "ratio_max": 2}, {"ratio_min": 1.3}, {"threads": [64]}]
    claims = [claim(**{"ratio_min": 1, **one}) for one in parts]
    claims[1]["text"] = "as  they\nsay"
    asked = publication(*LADDERS, claims=[*claims, claim(text="another", ratio_min=1)])
    severities = {one.place: one.severity.value for one in found(asked, "headline")}
    assert severities == {"as  they\nsay": "contradiction", "another": "confirmed"}
    assert found(asked, "claims") == []


def test_ratios_beside_each_other_are_means_of_a_kind() -> None:
    """Means of ratios: 27.5 against B, 25 against C; ratios of sums: 42.5 and 29.7."""
    tables = rates(A=["100.0", "5000.0"], B=["20.0", "100.0"], C=["5.0", "166.67"])
    entry = headline(tables, holds="average", ratio_min=26.9, ratio_max=27.1)
    assert "the claim's cells, mean of ratios, against B: 27.5" in str(entry.arithmetic)
    elsewhere = headline(tables, holds="average", ratio_min=24.9, ratio_max=25.1)
    assert elsewhere.arithmetic == (
        "all cells, mean of ratios, against C: 25;"
        " the claim's cells, mean of ratios, against B: 27.5"
    )


def test_the_means_of_workloads_are_of_a_kind() -> None:
    """Ratios of sums 1.69 and 1.01, means of ratios 1.35 and 1.5."""
    rows = {
        "oltp_read_only": (["10.00", "1700.0"], ["10.00", "1000.0"]),
        "oltp_insert": (["20.00", "1000.0"], ["10.00", "1000.0"]),
    }
    tables = [
        table(system, workload=workload, values={"tps": values})
        for workload, columns in rows.items()
        for system, values in zip(("A", "B"), columns, strict=True)
    ]
    entry = headline(tables, ratio_min=1.0, ratio_max=1.36)
    assert entry.severity is Severity.CONTRADICTION
