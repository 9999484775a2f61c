"""Tables of pages become what was published, with every digit; what is unclear is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.audit.audit import audit
from dbdyno.audit.columns import Mapping, TableColumn, column_of, is_heading, number_of, published
from dbdyno.audit.grids import grids_in
from dbdyno.audit.imported import imported
from dbdyno.audit.ledger import Severity
from dbdyno.audit.read import read
from dbdyno.audit.tables import Publication
from dbdyno.errors import UsageError


def tables(text, mapping=None):
    grids = grids_in(text, "page", is_heading)
    mapping = mapping or Mapping()
    return [table for grid in grids for table in published(grid, mapping, "page").tables]


def texts(table):
    return {metric: [one.text for one in column] for metric, column in table.values.items()}


MARKDOWN = """
Point select on both:

| Threads | v2.1 QPS | v2.1 95% latency (ms) | v3.0 QPS | v3.0 95% latency (ms) |
| ---: | ---: | ---: | ---: | ---: |
| 150 | 240,304.06 | 1.61 | 334,219.04 | 0.64 |
| 300 | 276,635.75 | 2.97 | 456,444.86 | 1.10 |
"""
HTML = """
<h2>读写混合</h2><table><thead><tr><th rowspan="2">并发</th><th colspan="2">A</th></tr>
</thead><tbody>
<tr><td>x</td><td>y</td></tr></tbody></table>
<p>MySQL</p>
<table border=1><tr><th>线程数<th>TPS<th>平均响应时间（ms）</tr>
<tr><td>8</td><td>1&nbsp;234.5</td><td>6.48</td></tr>
<tr><td>16</td><td>2.1万</td><td>0.76</td></tr></table>
"""
CELLS = """
测试结果
并发数
TPS
QPS
8
686.14
13722.80
16
846.50
16929.94
说明：以上
3
个节点
"""
CSV = "threads;A;B\n8;1.234,5;2.000,0\n16;2.469,0;4.000,0\n"


def test_a_markdown_table_has_a_table_for_each_system():
    old, new = tables(MARKDOWN)
    assert (old.system, new.system, old.threads) == ("v2.1", "v3.0", (150, 300))
    assert texts(old) == {"qps": ["240304.06", "276635.75"], "latency_ms_p95": ["1.61", "2.97"]}
    assert texts(new)["latency_ms_p95"] == ["0.64", "1.10"]
    assert old.place == "page, line 4"


def test_html_cells_may_span_and_words_be_chinese():
    grids = grids_in(HTML, "page", is_heading)
    assert grids[0].heading == ("并发", "A", "A")
    assert grids[0].rows == (("并发", "x", "y"),)
    (table,) = published(grids[1], Mapping(), "page").tables
    assert (table.system, table.threads) == ("MySQL", (8, 16))
    assert texts(table) == {"tps": ["1234.5", "21000"], "latency_ms_avg": ["6.48", "0.76"]}


def test_cells_one_a_line_are_a_table_again():
    (table,) = tables(CELLS)
    assert (table.system, table.threads) == ("测试结果", (8, 16))
    assert texts(table) == {"tps": ["686.14", "846.50"], "qps": ["13722.80", "16929.94"]}


def test_a_mapping_says_what_the_page_leaves_open():
    mapping = Mapping(metric="tps", decimal=",", workload="oltp_read_write")
    first, second = tables(CSV, mapping)
    assert (first.system, second.system, first.workload) == ("A", "B", "oltp_read_write")
    assert texts(first) == {"tps": ["1234.5", "2469.0"]}
    named = Mapping.model_validate(
        {"columns": {"A": {"system": "mine", "metric": "qps"}, "B": "reads"}}
    )
    assert column_of("A", named) == TableColumn(metric="qps", system="mine")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("threads,A\n8,1\n", "what do these columns mean? A"),
        ("A tps,B tps\n1,2\n", "which column has the load levels?"),
        ("threads,tps\n8,fast\n", "line 2 of page: 'fast' is no number"),
        ("threads,tps\n8,12,5\n", "line 2 of page: a row of another length"),
        ("threads;tps\n8;12,5\n", "line 2 of page: '12,5' is no number"),
        ("threads;p95\n8;0,345\n", "line 2 of page: '0,345' is no number"),
        ("threads,TPS,TPS\n8,12,13\n", "line 1 of page: two columns hold the same: TPS"),
        ("threads,avg CPU\n8,12\n", "what do these columns mean? avg CPU"),
        ("threads,tps\n8.5,12\n", "'8.5' is no load level"),
    ],
)
def test_what_is_unclear_is_refused_with_its_line(text, said):
    with pytest.raises(UsageError) as refused:
        tables(text)
    assert said in str(refused.value)


def test_mistakes_of_a_mapping_have_their_lines(tmp_path):
    page, mapping = tmp_path / "page.csv", tmp_path / "columns.yaml"
    page.write_text("threads,A\n8,1\n")
    mapping.write_text("metrics: tps\ncolumns:\n  A: {metric: tps, of: A}\n")
    with pytest.raises(UsageError, match="is no mapping") as refused:
        read([page], mapping)
    assert "line 1: metrics: " in str(refused.value)
    assert "line 3: columns.A.of: " in str(refused.value)


LONG = """System,Workload,Threads,Buffer pool (GB),TPS
A,oltp_read_only,8,16,100.5
A,oltp_read_only,16,16,190.5
B,oltp_read_only,8,16G,90.5
A,oltp_read_only,8,48,101.5
"""


def test_systems_and_workloads_in_columns_of_their_own():
    found = tables(LONG)
    assert [(t.system, t.workload, t.at, t.threads) for t in found] == [
        ("A", "oltp_read_only", {"buffer_pool_gb": "16"}, (8, 16)),
        ("B", "oltp_read_only", {"buffer_pool_gb": "16"}, (8,)),
        ("A", "oltp_read_only", {"buffer_pool_gb": "48"}, (8,)),
    ]
    assert texts(found[0]) == {"tps": ["100.5", "190.5"]}


def test_a_system_may_have_rows_and_a_column_of_its_own():
    found = tables("System,Threads,TPS,v2.1 95% latency (ms)\nv2.1,8,100,9\nv1,8,90,8\n")
    assert [(one.system, *one.values) for one in found] == [
        ("v2.1", "tps"),
        ("v2.1", "latency_ms_p95"),
        ("v1", "tps"),
    ]


def test_load_levels_in_the_heading():
    page = "QPS with a buffer pool of 48G, point select:\n\n| | 8 threads | 16 threads |\n"
    page += "| --- | --- | --- |\n| A | 100.5 | 190.5 |\n| B | 90.5 | 170.1 |\n"
    first, second = tables(page)
    assert (first.system, first.workload) == ("A", "oltp_point_select")
    assert first.at == {"buffer_pool_gb": "48"}
    assert texts(second) == {"qps": ["90.5", "170.1"]}


@pytest.mark.parametrize(
    ("heading", "metric", "system"),
    [
        ("TPS", "tps", ""),
        ("MySQL 8.0 TPS", "tps", "MySQL 8.0"),
        ("QPS (v3.0)", "qps", "v3.0"),
        ("95% Latency(ms)", "latency_ms_p95", ""),
        ("p99", "latency_ms_p99", ""),
        ("P99.9 延迟", "latency_ms_p999", ""),
        ("平均响应时间(ms)", "latency_ms_avg", ""),
        ("avg latency", "latency_ms_avg", ""),
        ("读请求", "reads", ""),
        ("并发", "threads", ""),
        ("Threads", "threads", ""),
        ("avg TPS", "tps", ""),
        ("MySQL 平均TPS", "tps", "MySQL"),
        ("MySQL max latency (ms)", "latency_ms_max", "MySQL"),
        ("最小响应时间", "latency_ms_min", ""),
        ("p90 latency", "latency_ms_p90", ""),
        ("P999", "latency_ms_p999", ""),
        ("99分位响应时间(ms)", "latency_ms_p99", ""),
        ("latency stddev", "stddev", ""),
        ("MySQL_57 latency_ms_p95", "latency_ms_p95", "MySQL_57"),
        ("avg latency ms", "latency_ms_avg", ""),
        ("RT", "latency_ms_avg", ""),
        ("us-east TPS", "tps", "us-east"),
    ],
)
def test_headings_in_two_languages(heading, metric, system):
    found = column_of(heading, Mapping())
    assert found is not None
    assert (found.metric, found.system) == (metric, system)


def test_a_point_is_no_thousand_where_commas_begin_decimals():
    with pytest.raises(UsageError, match=r"'12\.5' is no number"):
        number_of("12.5", ",", 1, "page")
    assert number_of("1.012,5", ",", 1, "page").text == "1012.5"


def test_load_levels_in_the_heading_keep_the_unit_of_the_first():
    (table,) = tables("平均延迟(s),8,16\nMySQL,0.5,1.25\n")
    assert (table.system, table.threads) == ("MySQL", (8, 16))
    assert texts(table) == {"latency_ms_avg": ["500", "1250"]}


def test_a_file_that_names_no_system_is_one(tmp_path):
    files = []
    for name, tps in (("mysql", "100.5"), ("greatsql", "200.5")):
        files.append(tmp_path / f"{name}.csv")
        files[-1].write_text(f"threads,tps\n8,{tps}\n")
    (publication,) = read(files)
    assert [table.system for table in publication.tables] == ["mysql", "greatsql"]
    plan, measured = imported(files, "made", Mapping())
    assert [one.label for one in plan.systems] == ["mysql", "greatsql"]
    trials = [(one.trial.system, one.trial.block) for one in measured]
    assert trials == [("mysql", 0), ("greatsql", 0)]


@given(st.decimals(0, 10**9, places=2, allow_nan=False))
def test_a_number_keeps_its_digits_however_thousands_are_parted(value):
    for text in (f"{value:,}", f"{value}", f"{value:,}".replace(",", "\u202f")):
        assert number_of(text, ".", 1, "page").text == f"{value}"
    comma = f"{value:,}".replace(",", " ").replace(".", ",")
    assert number_of(comma, ",", 1, "page").text == f"{value}"


@pytest.mark.parametrize(
    ("page", "low", "high"),
    [
        ("threads,tps\n8,3.2万\n", 31_500, 32_500),
        ("threads,tps\n8,12.34k\n", 12_335, 12_345),
        ("threads,tps\n8,1.23456万\n", 12_345.55, 12_345.65),
        ("threads,mean latency (s)\n8,1.2\n", 1150, 1250),
        ("threads,mean latency (\u03bcs)\n8,1200\n", 1.1995, 1.2005),  # a Greek letter
        ("threads,mean latency (\u00b5s)\n8,1200\n", 1.1995, 1.2005),  # the sign micro
        ("threads,avg_latency_us\n8,1200\n", 1.1995, 1.2005),
        ("threads,mean latency (ms)\n8,1.2s\n", 1150, 1250),
        ("threads,mean latency\n8,350 µs\n", 0.3495, 0.3505),
        ("threads,QPS（万）\n8,3.2\n", 31_500, 32_500),
    ],
)
def test_a_number_of_another_unit_is_as_exact_as_it_was_printed(page, low, high):
    (table,) = tables(page)
    ((found,),) = table.values.values()
    assert (found.low, found.high) == pytest.approx((low, high))


@pytest.mark.parametrize(
    "page",
    [
        "threads,tps,mean latency (ms)\n64,3.2万,2.03\n128,3.2万,4.06\n",  # of 31,550 a second
        "threads,A tps,B tps\n64,3.2万,3.2万\n128,3.3万,3.3万\n",
    ],
)
def test_what_two_digits_leave_open_contradicts_nothing(page):
    found = audit(Publication(tables=tuple(tables(page))))
    assert found.count(Severity.CONTRADICTION) == 0


def test_a_column_of_changes_is_of_the_two_before_it():
    page = "| 并发 | v5 QPS | v6 QPS | QPS 提升 | v5 TPS | v6 TPS | diff |\n" + "| --- " * 7 + "|\n"
    page += "| 8 | 100 | 150 | 50.0% | 10 | 9 | -0.1 |\n"
    (grid,) = grids_in(page, "page", is_heading)
    found = published(grid, Mapping(), "page").changes
    assert [(c.systems, c.metric, c.threads, c.text) for c in found] == [
        (("v5", "v6"), "qps", 8, "50.0%"),
        (("v5", "v6"), "tps", 8, "-0.1"),
    ]
