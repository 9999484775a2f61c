"""Headings and words above a table say its workload, system, metric or load level."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.audit.audit import audit
from dbdyno.audit.imported import imported
from dbdyno.audit.page.captions import system_in
from dbdyno.audit.page.columns import Mapping
from dbdyno.audit.page.page import page_of
from dbdyno.audit.read import read
from dbdyno.audit.tables import PublishedTable
from dbdyno.errors import UsageError

Place = tuple[str, str, dict[str, str]]


def table(*rows: str, head: str = "Threads | QPS | 95% latency(ms)") -> str:
    rule = " | ".join("---" for _ in head.split("|"))
    return "\n".join(f"| {row} |" for row in (head, rule, *rows)) + "\n\n"


def tables(text: str, mapping: Mapping | None = None) -> list[PublishedTable]:
    return page_of(text, "page.md", mapping or Mapping()).tables


def places(text: str) -> list[Place]:
    return [(one.system, one.workload, one.at) for one in tables(text)]


A_READ, B_READ = table("8 | 241.5 | 1.6"), table("8 | 330.1 | 0.7")
A_WRITE, B_WRITE = table("8 | 85.2 | 45.0"), table("8 | 105.4 | 36.0")
FOUR: list[Place] = [
    ("A", "oltp_point_select", {}),
    ("B", "oltp_point_select", {}),
    ("A", "oltp_update_index", {}),
    ("B", "oltp_update_index", {}),
]
TITLE = "# B against A\n\nAll tests ran for ten minutes, three times.\n\n## Results\n\n"
NESTED = {
    "the workload outside": f"{TITLE}### Point Select test\n\n**A**\n\n{A_READ}**B:**\n\n{B_READ}"
    f"### Update Index test\n\n**A**\n\n{A_WRITE}**B:**\n\n{B_WRITE}",
    "numbered, with words for bold": f"{TITLE}### 3.1 Point Select\n\nA:\n\n{A_READ}B:\n\n{B_READ}"
    f"### 3.2 Update Index\n\nA:\n\n{A_WRITE}B:\n\n{B_WRITE}",
    "Chinese": f"{TITLE}### 点查测试\n\n**A**\n\n{A_READ}**B**\n\n{B_READ}"
    f"### 索引更新测试\n\n**A**\n\n{A_WRITE}**B**\n\n{B_WRITE}",
}


@pytest.mark.parametrize("text", NESTED.values(), ids=list(NESTED))
def test_nested_headings_give_an_axis_each(text: str) -> None:
    assert places(text) == FOUR


def test_the_system_may_stand_outside() -> None:
    page = f"{TITLE}### A\n\n**Point Select**\n\n{A_READ}**Update Index**\n\n{A_WRITE}"
    page += f"### B\n\n**Point Select**\n\n{B_READ}**Update Index**\n\n{B_WRITE}"
    assert sorted(places(page), key=str) == sorted(FOUR, key=str)


def html(text: str) -> str:
    cells = text.strip().splitlines()
    rows = (row.strip("| ").split(" | ") for row in (cells[0], *cells[2:]))
    return "".join(["<table>", *("<tr><td>" + "<td>".join(row) for row in rows), "</table>"])


def test_headings_of_html_are_headings() -> None:
    page = f"<h1>B against A</h1><h3>Point <i>Select</i></h3><p><b>A</b></p>{html(A_READ)}"
    page += f"<p><strong>B</strong>:</p>{html(B_READ)}<script>var x = 'C'</script>"
    page += f"<h3>Update Index</h3><p>A</p>{html(A_WRITE)}<div>B</div>{html(B_WRITE)}"
    assert places(page) == FOUR
    mixed = NESTED["the workload outside"].replace(A_READ, html(A_READ) + "\n\n")
    assert places(mixed) == FOUR, "HTML in Markdown"


def test_cells_under_other_headings_are_never_merged(tmp_path: Path) -> None:
    page = "# Server 8.0\n\n"
    pools = {"Thread pool": (A_READ, B_READ), "No thread pool": (A_WRITE, B_WRITE)}
    for heading, (first, second) in pools.items():
        page += f"## {heading}\n\n**first**\n\n{first}**second**\n\n{second}"
    assert places(page) == [
        (system, "", {"section": section})
        for section in ("Thread pool", "No thread pool")
        for system in ("first", "second")
    ]
    (tmp_path / "page.md").write_text(page)
    measured = imported([tmp_path / "page.md"], "made", Mapping(workload="w")).measurements
    seen = [(one.trial.cell.workload, one.trial.block, one.reported) for one in measured]
    assert [(workload, block) for workload, block, _ in seen] == [
        *[("w, section Thread pool", 0)] * 2,
        *[("w, section No thread pool", 0)] * 2,
    ]
    assert seen[0][2] == {"queries_per_s": 241.5, "latency_ms_p95": 1.6}
    assert all(one.rule != "repeats" for one in audit(*read([tmp_path / "page.md"])).entries)


def test_equal_percentiles_make_no_table_a_restated_one() -> None:
    rows = table("8 | 85.2 | 1.6", head="Threads | QPS | 95% latency(ms)")
    page = f"## Prepared\n\n**A**\n\n{A_READ}## Not prepared\n\n**A**\n\n{rows}"
    assert places(page) == [
        ("A", "", {"section": "Prepared"}),
        ("A", "", {"section": "Not prepared"}),
    ]


def test_a_table_that_restates_another_adds_no_cell(tmp_path: Path) -> None:
    page = f"## Point select\n\n**A**\n\n{A_READ}## Summary of point select\n\n**A**\n\n"
    page += table("8 | 242 | 1.2", head="Threads | QPS | avg latency (ms)")
    (tmp_path / "page.md").write_text(page)
    assert places(page) == [("A", "oltp_point_select", {})] * 2
    (measured,) = imported([tmp_path / "page.md"], "made", Mapping()).measurements
    assert measured.reported == {
        "queries_per_s": 241.5,
        "latency_ms_p95": 1.6,
        "latency_ms_avg": 1.2,
    }


def test_repeats_under_one_heading_stay_repeats(tmp_path: Path) -> None:
    (tmp_path / "page.csv").write_text("threads,tps\n8,100.5\n8,101.5\n")
    measured = imported([tmp_path / "page.csv"], "made", Mapping()).measurements
    assert [one.trial.block for one in measured] == [0, 1]


@pytest.mark.parametrize(
    ("captions", "system"),
    [
        (["v2.1", "Point Select 测试", "测试结果"], "v2.1"),
        (["Read write, 64 threads", "MySQL 8.0"], "MySQL 8.0"),
        (["The results are as follows", "PostgreSQL 16 results"], "PostgreSQL 16"),
        (["The cache was warm, and nothing else ran."], ""),
        (["2.1 TPS", "Benchmark results"], ""),
        (["MySQL 8.0 vs. PostgreSQL 16"], ""),
        (["表 3：只读性能", "开源 MySQL"], "开源 MySQL"),
        (["TPC-C, 100 warehouses", "tuned"], "tuned"),
        (["8G buffer pool", "MySQL 8.0"], "MySQL 8.0"),
    ],
)
def test_a_caption_names_a_system_by_the_words_for_nothing_else(
    captions: list[str], system: str
) -> None:
    assert system_in(captions, ()) == system


@pytest.mark.parametrize(
    ("heading", "workload"),
    [
        ("oltp_insert", "oltp_insert"),
        ("Delete test", "oltp_delete"),
        ("bulk_insert", ""),
        ("4. Update Non-Index 测试", "oltp_update_non_index"),
        ("OLTP read/write", "oltp_read_write"),
        ("TPROC-C", "tpcc"),
        ("Read only and write only", ""),
    ],
)
def test_a_heading_names_the_one_workload_in_it(heading: str, workload: str) -> None:
    assert places(f"## {heading}\n\n**A**\n\n{A_READ}") == [("A", workload, {})]


def test_a_product_outside_comes_first_on_a_page_of_several() -> None:
    page = ""
    for product, bulk, scan in (("MySQL 8.0", A_READ, A_WRITE), ("MariaDB 11", B_READ, B_WRITE)):
        page += f"## {product}\n\n### Bulk load\n\n{bulk}### Long scans\n\n{scan}"
    assert places(page) == [
        (product, "", {"section": section})
        for product in ("MySQL 8.0", "MariaDB 11")
        for section in ("Bulk load", "Long scans")
    ]


def test_a_load_level_above_the_table() -> None:
    rows = table("A | 100", "B | 90", head=" | TPS")
    (one, other) = tables(f"### Read only, 64 threads\n\n{rows}")
    assert (one.system, one.workload, one.threads) == ("A", "oltp_read_only", (64,))
    assert other.system == "B"
    page = "### 95th percentile\n\n" + table("A | 100", head=" | TPS")
    (refusal,) = page_of(page, "page.md", Mapping()).refusals
    assert "line 3 of page.md: which column has the load levels?" in str(refusal)


def test_metric_and_load_level_above_a_table_of_workloads() -> None:
    rows = table("oltp_insert | 5,346 | 5,003*", "bulk_insert | 98 | 90", head="Benchmark | A | B")
    (first, *_) = found = tables(f"## TPS, 4 threads\n\n{rows}")
    assert (first.system, first.workload, first.threads) == ("A", "oltp_insert", (4,))
    assert [len(one.values["tps"]) for one in found] == [1] * 4
    machine = table("memory | 64", head="Component | GB")
    assert tables(f"## TPS, 4 threads\n\n{machine}") == []


def test_metrics_may_stand_in_the_first_column() -> None:
    rows = ("TPS | 100.5 | 90.5", "Avg latency (ms) | 79.5 | 88.0", "CPU usage | 90% | 80%")
    page = "**64 threads**\n\n" + table(*rows, head="Metric | MySQL 8.0 | MariaDB 11")
    (one, other) = tables(page)
    assert (one.system, one.threads, one.values["latency_ms_avg"][0].text) == (
        "MySQL 8.0",
        (64,),
        "79.5",
    )
    assert (other.system, list(other.values)) == ("MariaDB 11", ["tps", "latency_ms_avg"])


def test_a_line_in_bold_may_describe_the_tables_below_the_next() -> None:
    page = "## 16 cores\n\n**Results (QPS/95%rt)**\n\n"
    for workload, rate in (("Point Select", "163457.60"), ("Read Only", "5016.20")):
        cells = f"32 | {rate}/0.22 | {rate}/0.23"
        page += f"**{workload}**\n\n{table(cells, head='Threads | express | complex')}"
    texts = [[number.text for (number,) in one.values.values()] for one in tables(page)]
    seen = [(one.system, one.workload) for one in tables(page)]
    assert [(*place, *numbers) for place, numbers in zip(seen, texts, strict=True)] == [
        ("express", "oltp_point_select", "163457.60", "0.22"),
        ("complex", "oltp_point_select", "163457.60", "0.23"),
        ("express", "oltp_read_only", "5016.20", "0.22"),
        ("complex", "oltp_read_only", "5016.20", "0.23"),
    ]


def test_comments_and_code_say_nothing_about_tables_outside() -> None:
    page = f"### Point select\n\n**A**\n\n{A_READ}<!-- hidden\n\n{B_READ}-->\n```sh\n# B\n```\n"
    page += table("16 | 250.5 | 2.5")
    assert [(one.system, one.threads, one.place, one.is_hidden) for one in tables(page)] == [
        ("A", (8,), "page.md, line 5", False),
        ("A", (8,), "page.md, line 11", True),
        ("A", (16,), "page.md, line 19", False),
    ]


def test_a_table_of_text_has_its_rules() -> None:
    rule = "+---------+-------+\n"
    page = f"Point select:\n```\n{rule}| threads | tps   |\n{rule}"
    page += f"|       8 | 100.5 |\n{rule}|      16 | 190.5 |\n{rule}```\n"
    psql = "\n threads |  tps  \n---------+-------\n       8 | 100.5\n      16 | 190.5\n(2 rows)\n"
    for text in (page, psql):
        (one,) = tables(text)
        assert (one.threads, [n.text for n in one.values["tps"]]) == ((8, 16), ["100.5", "190.5"])


def test_a_table_that_cannot_be_read_is_named_beside_the_others(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(A_READ + "Next:\n\n" + table("8 | 1 | 2", head="Threads | TPS | foo"))
    (publication,) = read([page])
    assert len(publication.tables) == 1
    assert publication.unread == (f"line 7 of {page}: what do these columns mean? foo",)
    with pytest.raises(UsageError, match=r"line 7 of .*: what do these columns mean"):
        imported([page], "made", Mapping())  # a run would look whole


@pytest.mark.parametrize(
    ("title", "sizes"),
    [
        ("Results", ("8G buffer pool", "16 GB buffer pool")),
        ("Results", ("ibp=8G", "innodb_buffer_pool_size = 16G")),
        ("By size of the buffer pool", ("8G", "16 GB")),
    ],
)
def test_sizes_of_the_buffer_pool_in_headings(title: str, sizes: tuple[str, str]) -> None:
    small, large = (f"### {size}\n\n**A**\n\n" for size in sizes)
    assert places(f"## {title}\n\n{small}{A_READ}{large}{B_READ}") == [
        ("A", "", {"buffer_pool_gb": "8"}),
        ("A", "", {"buffer_pool_gb": "16"}),
    ]


def test_sizes_in_headings_that_may_be_of_anything_part_the_tables() -> None:
    page = f"## Results\n\n### 8G\n\n**A**\n\n{A_READ}### 16G\n\n**A**\n\n{B_READ}"
    assert [at for *_, at in places(page)] == [{"section": "8G"}, {"section": "16G"}]


def test_sizes_of_the_buffer_pool_in_the_heading_of_a_table() -> None:
    rows = table("A | 100.5 | 150.5 | 125.5", "B | 90.5 | 120.5 | 105.5", head=" | 8G | 16G | avg")
    whole = page_of(f"## TPS by buffer pool, 32 threads\n\n{rows}", "page.md", Mapping())
    assert [
        (one.system, one.at, one.threads, *(number.text for number in one.values["tps"]))
        for one in whole.tables
    ] == [
        ("A", {"buffer_pool_gb": "8"}, (32,), "100.5"),
        ("A", {"buffer_pool_gb": "16"}, (32,), "150.5"),
        ("B", {"buffer_pool_gb": "8"}, (32,), "90.5"),
        ("B", {"buffer_pool_gb": "16"}, (32,), "120.5"),
    ]
    assert whole.assumed == ["page.md, line 3: 32 threads, as line 1 says"]
    assert whole.unread == [
        "page.md, line 5: not understood: 125.5",
        "page.md, line 6: not understood: 105.5",
    ]
