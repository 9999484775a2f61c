"""Pages as they are found on the web: cells a line, comments, spelling mistakes, pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.audit.audit import audit
from dbdyno.audit.imported import imported
from dbdyno.audit.page.columns import Mapping
from dbdyno.audit.page.page import Page, page_of
from dbdyno.audit.read import read
from dbdyno.audit.saved import yaml_of
from dbdyno.audit.tables import PublishedTable, publication_of
from dbdyno.errors import UsageError


def page(text: str) -> Page:
    return page_of(text, "page", Mapping())


def seen(tables: list[PublishedTable]) -> list[tuple[object, ...]]:
    """System, workload, condition, levels and the texts of each metric."""
    return [
        (
            t.system,
            t.workload,
            t.at,
            t.threads,
            {m: [n.text for n in t.values[m]] for m in t.values},
        )
        for t in tables
    ]


def alone(*cells: str) -> str:
    """A cell a line, with blank lines between."""
    return "".join(f"{cell}\n\n" for cell in cells)


LEVELS = ("4th", "16th")
SERIES = (
    alone("# 测试", "### 1.1 ibp=8G", "TPS", *LEVELS)
    + alone("Alpha-pool", "120.5", "340.25", "Alpha", "100.5", "300", "P.S，以上。")
    + alone("QPS", *LEVELS, "Alpha-pool", "2410.1", "6805.2", "Alpha", "2010.3", "6000.4")
    + alone("![chart](a.png)", "### 1.2 ibp=16G", "TPS", *LEVELS, "Alpha", "150.5", "450.25")
)
POOL_8 = [
    ("Alpha-pool", "", {"buffer_pool_gb": "8"}, (4, 16), {"tps": ["120.5", "340.25"]}),
    ("Alpha", "", {"buffer_pool_gb": "8"}, (4, 16), {"tps": ["100.5", "300"]}),
    ("Alpha-pool", "", {"buffer_pool_gb": "8"}, (4, 16), {"qps": ["2410.1", "6805.2"]}),
    ("Alpha", "", {"buffer_pool_gb": "8"}, (4, 16), {"qps": ["2010.3", "6000.4"]}),
]


def test_series_a_cell_a_line_below_their_metric() -> None:
    found = page(SERIES)
    pool_16 = ("Alpha", "", {"buffer_pool_gb": "16"}, (4, 16), {"tps": ["150.5", "450.25"]})
    assert seen(found.tables) == [*POOL_8, pool_16]
    assert found.unread == []
    lines = SERIES.splitlines()
    for table in found.tables:
        for metric, values in table.values.items():
            assert [lines[at - 1] for at in table.lines[metric]] == [n.text for n in values]


def test_tables_without_a_workload_are_of_the_only_test_that_the_words_name() -> None:
    words = "Sysbench runs oltp\\_read\\_write for an hour.\n"
    found = page(f"{SERIES}\n{words}")
    assert {table.workload for table in found.tables} == {"oltp_read_write"}
    line = SERIES.count("\n") + 2
    assert found.assumed == [f"page: oltp_read_write, as line {line} says"]
    both = page(f"{SERIES}\n{words}oltp_read_only is for later.\n")
    assert {table.workload for table in both.tables} == {""}


def test_tables_side_by_side_restate_others_by_the_size_in_their_names(tmp_path: Path) -> None:
    heading = ("### 1.3 Alpha, each ibp", "Alpha", "TPS", *LEVELS, "QPS", *LEVELS)
    rows = ("Alpha(8G)", "100.5", "300", "Alpha(8G)", "2010.3", "6000.4")
    rows += ("Alpha(16G)", "150.5", "450.25", "Alpha(16G)", "3010.3", "9005.4")
    (tmp_path / "page.md").write_text(SERIES + alone(*heading, *rows))
    (publication,) = read([tmp_path / "page.md"])
    cells = {(c.system, c.threads, *c.at.values()): c for c in publication.cells()}
    assert len(cells) == 6
    assert {m: n.text for m, n in cells["Alpha", 16, "16"].values.items()} == {
        "tps": "450.25",
        "qps": "9005.4",
    }
    entries = audit(publication).entries
    assert not [one for one in entries if one.rule in ("repeats", "copies")]


@pytest.mark.parametrize(
    ("ratio", "severity"),
    [("0.8692", "confirmed"), ("0.8501", "note"), ("0.8512", "over-claim")],
)
def test_a_table_of_ratios_is_held_against_the_averages(
    tmp_path: Path, ratio: str, severity: str
) -> None:
    ratios = alone("Alpha vs Alpha-pool", "8G", "16G", "avg", "Alpha vs Alpha-pool")
    ratios += alone(ratio, "-", ratio)
    beta = alone("Beta", "140.5", "330")  # 400.5 / 470.5 of Alpha
    text = ratios + SERIES.replace(alone("P.S，以上。"), beta)
    (tmp_path / "page.md").write_text(text)
    (publication,) = read([tmp_path / "page.md"])
    change, mean = publication.changes
    assert (change.systems, change.threads, change.at) == (
        ("Alpha", "Alpha-pool"),
        0,
        {"buffer_pool_gb": "8"},
    )
    assert (mean.systems, mean.at, [one.text for one in mean.mean_of]) == (
        change.systems,
        {},
        [ratio],
    )
    entry, _ = [one for one in audit(publication).entries if one.rule == "changes"]
    assert entry.severity.value == severity, entry


PAIR = "Alpha vs Alpha-pool"
WITH_MEAN = {
    "in a column": alone(PAIR, "8G", "16G", "avg", PAIR, "0.8692", "0.9001", "{}"),
    "in two lines below": alone(PAIR, "8G", "16G", PAIR, "0.8692", "0.9001", "avg", "{}"),
    "in a line below": alone(PAIR, "8G", "16G", PAIR, "0.8692", "0.9001", "平均值：{}"),
    "in a row": f"| {PAIR} | 8G | 16G |\n|---|---|---|\n| {PAIR} | 0.8692 | 0.9001 |\n"
    "| avg | {} | |\n\n",
}


@pytest.mark.parametrize("form", WITH_MEAN.values(), ids=WITH_MEAN)
@pytest.mark.parametrize(
    ("mean", "severity"), [("0.8846", "confirmed"), ("0.8847", "confirmed"), ("0.8147", "note")]
)
def test_a_mean_of_ratios_is_held_against_these(
    tmp_path: Path, form: str, mean: str, severity: str
) -> None:
    """It is 0.88465, rounded or cut off; of something else it is no contradiction."""
    (tmp_path / "page.md").write_text(form.format(mean) + SERIES)
    (publication,) = read([tmp_path / "page.md"])
    *ratios, printed = publication.changes
    assert [one.text for one in ratios] == ["0.8692", "0.9001"]
    assert ([one.text for one in printed.mean_of], printed.text) == (["0.8692", "0.9001"], mean)
    line = int(printed.place.rpartition(" ")[2])
    assert mean in form.format(mean).splitlines()[line - 1]
    (entry,) = [one for one in audit(publication).entries if f"({printed.place})" in one.place]
    assert (entry.rule, entry.severity.value) == ("changes", severity)
    assert publication_of(yaml_of(publication, {}), "saved.yaml") == publication


def test_a_mean_of_several_pairs_is_named_as_not_understood() -> None:
    rows = "| A vs B | 0.8692 | 0.9001 |\n| B vs A | 1.1505 | 1.1110 |\n| avg | 1.0099 | 1.0056 |\n"
    table = "| threads | A TPS | B TPS |\n|---|---|---|\n| 4 | 9 | 10 |\n| 16 | 18 | 20 |\n"
    found = page(f"{table}\n| ratio | 4 threads | 16 threads |\n|---|---|---|\n{rows}")
    assert [(one.threads, one.text) for one in found.changes] == [
        *((4, "0.8692"), (16, "0.9001")),
        *((4, "1.1505"), (16, "1.1110")),
    ]
    assert found.unread == ["page, line 10: not understood: 1.0099, 1.0056"]


@pytest.mark.parametrize(
    ("above", "levels"),
    [
        ("Throughput (TPS)", ("4", "16")),
        ("## TPS", ("4 threads", "16 threads")),
        ("## TPS", LEVELS),
    ],
)
def test_a_blank_first_cell_leaves_no_line(above: str, levels: tuple[str, ...]) -> None:
    rows = alone("Alpha", "100.5", "300", "Beta", "90.5", "200.5")
    (alpha, beta) = seen(page(alone(above, *levels) + rows).tables)
    assert alpha == ("Alpha", "", {}, (4, 16), {"tps": ["100.5", "300"]})
    assert beta[0] == "Beta"


def test_systems_in_the_heading_of_cells_a_line() -> None:
    text = alone("Latency is below.", "QPS", "Threads", "Alpha 1", "Beta 2")
    text += alone("8", "100.5", "90.5", "16", "190.5", "150.5", "The end.")
    assert seen(page(text).tables) == [
        ("Alpha 1", "", {}, (8, 16), {"qps": ["100.5", "190.5"]}),
        ("Beta 2", "", {}, (8, 16), {"qps": ["90.5", "150.5"]}),
    ]


def barred(*cells: str) -> str:
    return "".join(f"{cell} |\n" for cell in cells)


HEAD = ("并发", "版本", "qps", "平均响应时间(ms)")


def rows(rate: str, *names: str) -> str:
    return barred(*(cell for name in names for cell in ("50", name, rate, "0.25")))


def test_numbered_headings_with_brackets_part_tables_of_barred_lines() -> None:
    text = "产品对比\n综合来看,相差不大。\n1. 读请求(read)\n" + barred(*HEAD)
    text += rows("3065.5", "开源 A", "B") + "2. 写请求（update）\n" + barred(*HEAD)
    text += rows("965.5", "开源 A", "B") + "3. 混合场景(OLTP 测试)\n" + barred(*HEAD)
    text += rows("1065.5", "开源 A", "B")
    found = page(text)
    assert [(t.system, t.workload) for t in found.tables] == [
        (system, workload) for workload in ("read", "update", "mixed") for system in ("开源 A", "B")
    ]
    assert found.tables[0].lines == {"qps": (10,), "latency_ms_avg": (11,)}


@pytest.mark.parametrize(
    ("heading", "workload"),
    [
        ("2.1 read (select)", "select"),
        ("读写混合", "oltp_read_write"),
        ("Mixed workload", "mixed"),
        ("1、写请求", "write"),
        ("We read it in a mixed group", ""),
        ("Reads", "read"),
    ],
)
def test_a_heading_names_a_test_without_its_statements(heading: str, workload: str) -> None:
    found = page(f"## {heading}\n\n| Threads | A TPS |\n| --- | --- |\n| 8 | 10.5 |\n")
    assert [(t.system, t.workload) for t in found.tables] == [("A", workload)]


def test_a_row_that_lacks_a_cell_is_named_and_all_others_are_read() -> None:
    short = alone("### 1.3 ibp=32G", "TPS", *LEVELS, "Alpha", "1.5", "2.5", "Beta", "1.5", "Later.")
    found = page(SERIES + short)
    assert len(found.tables) == 5
    line = SERIES.count("\n") + short[: short.index("Beta")].count("\n") + 1
    assert found.unread == [f"line {line} of page: a row of another length than its table"]


HIDDEN_PAGE = """# Report

Machine: 64 GB of memory, `--tables=16`.

### Point select

**v1.0**

| Threads | QPS | p95 (ms) |
| --- | --- | --- |
| 8 | 101.5 | 1.5 |
| 16 | 191.5 | 2.5 |

<!-- cache on
| Treads | QPS | p95 (ms) |
| --- | --- | --- |
| 8 | 101.5 | 1.5 |
| 16 | 191.5 | 2.5 |
-->

**v2.0**

| Threads | QPS | p95 (ms) |
| --- | --- | --- |
| 8 | 111.5 | 1.5 |
| 16 | 201.5 | 2.5 |
"""


def test_tables_in_comments_are_read_apart_and_said(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(HIDDEN_PAGE)
    (publication,) = read([tmp_path / "page.md"])
    assert [(t.system, t.workload, t.at, t.is_hidden) for t in publication.tables] == [
        ("v1.0", "oltp_point_select", {}, False),
        ("v1.0", "oltp_point_select", {"in": "a comment"}, True),
        ("v2.0", "oltp_point_select", {}, False),
    ]
    assert publication.tables[1].lines["qps"] == (17, 18)
    entries = audit(publication).entries
    told = {one.rule: str(one.arithmetic) for one in entries if one.rule != "unread"}
    assert told["hidden"].endswith("line 15")
    assert "copies" not in told, "a comment may hold what was shown before"
    assert publication.assumed[0].endswith("line 15: Treads as Threads, like line 9")
    assert [one for one in entries if "Treads" in str(one.arithmetic)]


def test_tables_in_comments_of_html() -> None:
    def table(rate: str) -> str:
        return f"<table><tr><th>Threads<th>TPS</tr>\n<tr><td>8<td>{rate}</tr></table>\n"

    text = f"<h2>Alpha 1</h2>\n{table('10.5')}<!-- old:\n{table('9.5')}-->\n{table('11.5')}"
    found = page(text.replace("11.5", "10.5"))
    assert [(t.system, t.is_hidden, t.lines["tps"]) for t in found.tables] == [
        ("Alpha 1", False, (3,)),
        ("Alpha 1", True, (6,)),
        ("Alpha 1", False, (9,)),
    ]


def test_a_table_that_cannot_be_read_is_left_out_though_it_is_alone(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    settings = "\n```\ninnodb_buffer_pool_size = 96G\n```\nEach server has 64 GB of memory.\n"
    path.write_text("| Threads | TPS | foo |\n| --- | --- | --- |\n| 8 | 1 | 2 |\n" + settings)
    (publication,) = read([path])
    assert publication.unread == (f"line 1 of {path}: what do these columns mean? foo",)
    rules = {one.rule for one in audit(publication).entries}
    assert rules >= {"physics", "unread"}, "96 GB are more than 64"
    with pytest.raises(UsageError, match="what do these columns mean"):
        imported([path], "made", Mapping())


def test_a_page_of_pictures_says_so_and_is_audited_for_its_set_up(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("# A against B\n\nA is faster.\n\n![TPS](tps.png)\n\n<img src=qps.png>\n")
    (publication,) = read([path])
    assert publication.unread == (f"{path}, line 5: 2 pictures, and no table of results",)
    assert {one.rule for one in audit(publication).entries} == {"unread"}
