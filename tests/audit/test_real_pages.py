"""Tables as real pages have them, rebuilt small with other numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.audit.page.columns import Mapping
from dbdyno.audit.page.page import Page, page_of
from dbdyno.audit.read import read
from dbdyno.errors import UsageError


def page(text: str) -> Page:
    return page_of(text, "page", Mapping())


def numbers(read_page: Page) -> list[tuple[str, tuple[int, ...], dict[str, list[str]]]]:
    """System, load levels and the texts of each metric."""
    return [
        (t.system, t.threads, {m: [n.text for n in t.values[m]] for m in t.values})
        for t in read_page.tables
    ]


def piped(*rows: str) -> str:
    heading, *body = (f"| {row} |\n" for row in rows)
    return f"{heading}{'|---' * (heading.count('|') - 1)}|\n{''.join(body)}\n"


def test_an_unknown_column_is_left_out_and_named_unless_it_tells_rows_apart() -> None:
    partly = page(piped("threads | tps | glimmer", "4 | 120.5 | 7", "8 | 220.5 | 9"))
    assert numbers(partly) == [("page", (4, 8), {"tps": ["120.5", "220.5"]})]
    assert partly.unread == ["line 1 of page: what do these columns mean? glimmer"]
    mixed = page(piped("threads | tps | glimmer", "4 | 120.5 | 7", "4 | 220.5 | 9"))
    assert not mixed.tables
    assert "what do these columns mean? glimmer" in mixed.unread[0]


def test_cells_and_rows_that_cannot_be_read_are_named_and_the_others_are_read() -> None:
    rows = ["threads | tps | p95 (ms)", "4 | 120.5 | ~", "8 | 220.5 | 9.5", "all | 300 | 9"]
    partly = page(piped(*rows, "16 | 320 | 10.5"))
    assert numbers(partly) == [
        ("page", (4,), {"tps": ["120.5"]}),
        ("page", (8, 16), {"tps": ["220.5", "320"], "latency_ms_p95": ["9.5", "10.5"]}),
    ]
    assert [line.split(":")[0] for line in partly.unread] == ["line 5 of page", "line 3 of page"]
    assert not page(piped("threads | tps", "4 | ~", "8 | ~", "16 | 7.5")).tables, "mostly unread"


SETTINGS = ("- Threads: 12", "Number of threads: **12**", "sysbench --threads=12 run", "线程数：12")


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_table_without_load_levels_has_the_only_one_of_its_page(setting: str) -> None:
    table = piped("Workload | TPS | Latency (ms)", "oltp_read_only | 520.5 | 23.1")
    whole = page(f"{setting}\n\n## Results\n\n{table}")
    assert numbers(whole) == [("page", (12,), {"tps": ["520.5"], "latency_ms_avg": ["23.1"]})]
    assert whole.assumed == ["page, line 5: 12 threads, as line 1 says"]
    plain = f"{setting}\n\n## Results\n\n{table}\n"
    assert not page(f"{plain}It was slower with 96 threads.\n").tables
    assert not page(f"{plain}sysbench --threads=24 run\n").tables
    assert [system for system, *_ in numbers(page(f"{setting}\n\n{table}"))] == ["page"]


def test_clients_of_a_page_count_before_the_threads_of_a_generator() -> None:
    table = piped("System | TPS", "Alpha 1.2 | 520.5", "Beta 3.4 | 620.5")
    whole = page(f"pgbench --client=40 --threads=4\n\n{table}")
    assert {levels for _, levels, _ in numbers(whole)} == {(40,)}


def test_threads_of_a_processor_are_no_load_level() -> None:
    table = piped("System | TPS", "Alpha 1.2 | 520.5", "Beta 3.4 | 620.5")
    assert not page(f"- Cores: 8\n- Threads: 16\n\n## Results\n\n{table}").tables


def test_a_table_that_begins_below_the_rows_of_another_is_read() -> None:
    first, second = (
        piped(
            "vCPUs | Connections (in Stress Testing) | TPS",
            f"2 | {n}00 | {n}5.5",
            f"4 | 1,{n}00 | 9",
        )
        for n in (3, 4)
    )
    both = page(f"{first.rstrip()}\n{second}")
    assert [levels for _, levels, _ in numbers(both)] == [(300,), (1300,), (400,), (1400,)]


def test_many_rules_below_each_other_are_read_soon() -> None:
    assert not page("---|---|\n" * 20_000).tables


def test_cells_a_line_with_a_bar_behind_each_and_some_blank() -> None:
    cells = ["vCPUs", "Maximum Connections (Stress Testing)", "TPS", "IOPS", "---|---|---|---"]
    body = ["2", "300", "35.5", "See below.", "4", "1,300", "95.25", "", "8", "2,300", "180", ""]
    lines = "".join(f"{cell} |\n".lstrip() for cell in (*cells, *body))
    again = lines.replace("300", "700")
    both = page(f"Test data\n\n{lines}{again}\nThe end.\n")
    assert [levels for _, levels, _ in numbers(both)] == [
        *((300,), (1300,), (2300,)),
        *((700,), (1700,), (2700,)),
    ]
    assert {table.at["cpus"] for table in both.tables} == {"2", "4", "8"}


def test_a_pair_of_numbers_below_a_heading_that_says_it_twice() -> None:
    table = piped("threads | latency (avg/p95) avg/p95 ms", "4 | 3.5/9.5", "8 | 4.5/12.5")
    pairs = {"latency_ms_avg": ["3.5", "4.5"], "latency_ms_p95": ["9.5", "12.5"]}
    assert numbers(page(table)) == [("page", (4, 8), pairs)]


def test_rates_with_commas_in_a_heading_are_no_load_levels() -> None:
    table = piped("TPS | 12,400 | 14,900", "QPS | 248,000 | 298,000")
    assert not page(table).tables


def test_other_spellings_of_rates() -> None:
    table = piped("threads | trns p/s | r/w requests p/s", "4 | 120.5 | 2290.25", "8 | 210 | 3990")
    whole = page(table)
    assert numbers(whole)[0][2]["tps"] == ["120.5", "210"]


def test_a_table_read_in_part_counts_as_read_by_an_audit(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(piped("threads | tps | glimmer", "4 | 120.5 | 7", "8 | 220.5 | 9"))
    publication, *_ = read([path])
    assert any("glimmer" in line for line in publication.unread)
    path.write_text(piped("threads | glimmer", "4 | 7", "8 | 9"))
    with pytest.raises(UsageError, match="glimmer"):
        read([path])


def test_points_between_thousands_are_no_decimals() -> None:
    rows = ["threads | tps | latency média (ms)", "1 | 1.250 | 0.80", "4 | 4.000 | 1.00"]
    spanish = page(piped(*rows))
    assert not spanish.tables
    assert "does the point in 1.250 part thousands?" in spanish.unread[0]
    slow = page(piped(*rows).replace("0.80", "801.20").replace("1.00", "999.50"))
    assert numbers(slow)[0][2]["tps"] == ["1.250", "4.000"]


def test_tests_of_japanese_headings_and_short_names_of_columns() -> None:
    names = {
        "ポイントセレクト性能": "oltp_point_select",
        "インデックス以外のパフォーマンスを更新する": "oltp_update_non_index",
        "インデックスのパフォーマンスを更新する": "oltp_update_index",
        "読み取り/書き込みパフォーマンス": "oltp_read_write",
    }
    table = piped("スレッド | v1.1 TPS | v1.2 TPS", "8 | 12.5 | 13.5")
    whole = page("".join(f"## {name}\n\n{table}" for name in names))
    assert [t.workload for t in whole.tables] == [n for n in names.values() for _ in range(2)]
    short = page(
        piped("threads | RO A1 tps | RO B2 tps | RW A1 tps | RW B2 tps", "8 | 1 | 2 | 3 | 4")
    )
    assert {(t.system, t.workload) for t in short.tables} == {
        (system, f"oltp_read_{kind}") for system in ("A1", "B2") for kind in ("only", "write")
    }


def test_a_bracket_within_a_systems_name_keeps_its_end() -> None:
    whole = page(f"## Alpha 2.1 (patched)\n\n{piped('threads | tps', '8 | 12.5')}")
    assert numbers(whole)[0][0] == "Alpha 2.1 (patched)"


MATRIX = """- 1 4 16
- 350 1210 4100 alpha.1
- 360 1250.5 4300 alpha.2
"""


def test_lines_of_numbers_below_load_levels_with_a_name_behind() -> None:
    rates = page(f"## QPS\n\n{MATRIX}\nThe end.\n")
    assert numbers(rates) == [
        ("alpha.1", (1, 4, 16), {"qps": ["350", "1210", "4100"]}),
        ("alpha.2", (1, 4, 16), {"qps": ["360", "1250.5", "4300"]}),
    ]
    unknown = page(f"## Other\n\n{MATRIX}\n")
    assert (unknown.tables, len(unknown.unread)) == ([], 1), "named, as no metric is said"


def test_numbers_that_sum_up_others_are_named_with_their_lines() -> None:
    below = page(piped("System | Threads | TPS", "A | 8 | 100.5", "B | 8 | 110.5", "avg | | 105.5"))
    assert [system for system, *_ in numbers(below)] == ["A", "B"]
    assert (below.unread, below.refusals) == (["page, line 5: not understood: 105.5"], [])
    beside = page(f"TPS:\n\n{piped(' | 4 | 16 | avg', 'A | 100.5 | 300.5 | 200.5')}")
    assert numbers(beside) == [("A", (4, 16), {"tps": ["100.5", "300.5"]})]
    assert beside.unread == ["page, line 5: not understood: 200.5"]


WITHOUT_LEVEL = piped("System | TPS", "Alpha 1.2 | 520.5", "Beta 3.4 | 620.5")
BETWEEN = "It ended with 8 threads.\n\n## Read only\n\n{}\n\nThe cache was warm.\n\n"


@pytest.mark.parametrize(
    "words",
    [
        "All systems were loaded with 64 threads.",
        "全部用 128 个线程压测。",
        "Each run took an hour at 16 connections, 10 tables of 1,000,000 rows.",
    ],
)
def test_a_table_has_the_only_load_level_in_the_words_below_its_heading(words: str) -> None:
    (level,) = {int(word) for word in words.split() if word in ("64", "128", "16")}
    whole = page(f"{BETWEEN.format(words)}{WITHOUT_LEVEL}")
    assert {levels for _, levels, _ in numbers(whole)} == {(level,)}
    assert whole.assumed == [f"page, line 9: {level} threads, as line 5 says"]
    html = f"<h2>Read only</h2>\n<p>{words}</p>\n<p>The cache was warm.</p>\n<table><tr><th>System"
    whole = page(f"{html}<th>TPS</tr><tr><td>Alpha 1.2<td>520.5</tr></table>")
    assert whole.assumed == [f"page, line 4: {level} threads, as line 2 says"]


@pytest.mark.parametrize(
    "words",
    [
        "First with 16 threads.\n\nThen with 64 threads.",
        "We compared 16 and 64 threads.",
        "From 8 to 64 threads nothing changed.",
        "It holds for up to 64 threads.",
        "Three clients, each with 64 threads.",
        "Threads: 8, 16, 64",
        "With 64 threads it is slow, with 1,000 threads slower.",
        "The host has 32 cores and 64 threads.",
        "max_connections: 64",
        "```\nsysbench oltp_read_only --threads=64 prepare\n```",
    ],
)
def test_words_that_leave_the_load_level_open_give_none(words: str) -> None:
    whole = page(f"{BETWEEN.format(words)}{WITHOUT_LEVEL}")
    assert (whole.tables, whole.assumed) == ([], [])
    assert "which column has the load levels?" in whole.unread[0]


def test_a_load_level_directly_above_a_table_counts_before_others_below_its_heading() -> None:
    both = "".join(f"With {level} threads:\n\n{WITHOUT_LEVEL}\n" for level in (16, 64))
    whole = page(f"## Results\n\n{both}")
    assert [levels for _, levels, _ in numbers(whole)] == [(16,), (16,), (64,), (64,)]
    assert whole.assumed == [
        "page, line 5: 16 threads, as line 3 says",
        "page, line 13: 64 threads, as line 11 says",
    ]
