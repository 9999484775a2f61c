"""Tables of pages become what was published, with every digit; what is unclear is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.audit.audit import audit
from dbdyno.audit.imported import imported
from dbdyno.audit.ledger import Severity
from dbdyno.audit.page.columns import (
    Mapping,
    TableColumn,
    column_of,
    is_heading,
    level_of,
    number_of,
)
from dbdyno.audit.page.grids import grids_in
from dbdyno.audit.page.page import published
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
    assert (table.system, table.threads) == ("page", (8, 16)), "results are no system"
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


LEVELS = """sysbench threads;Number of threads;Thread count;client threads;concurrency;connections
virtual users;Virtual Users;VUs;# of clients;concurrent users;Users;Terminals;thds
Active connections;Threads (per client);并发数;线程数;sysbench 线程数;并发连接数;并发用户数
连接数;压测线程数"""
LEVELS = LEVELS.replace("\n", ";").split(";")
UNUSED = ["CPU usage", "avg CPU (%)", "Errors/s", "Notes", "Total queries", "Reconnects", "IOPS"]
UNUSED += ["最大连接数", "备注", "Duration (s)"]


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
        *((heading, "threads", "") for heading in LEVELS),
        ("v6.0.0 tpmC", "nopm", "v6.0.0"),
        ("MySQL NOPM", "nopm", "MySQL"),
        ("New orders/min", "nopm", ""),
        ("TPM", "tpm", ""),
        ("A Transactions/sec", "tps", "A"),
        ("Transactions per second (TPS)", "tps", ""),
        ("TPS (Txn/sec)", "tps", ""),
        ("Throughput (ops/s)", "tps", ""),
        ("A ops/sec", "tps", "A"),
        ("events/s", "tps", ""),
        ("PostgreSQL 16 queries per second", "qps", "PostgreSQL 16"),
        ("QPS (queries/s)", "qps", ""),
        ("查询/秒", "qps", ""),
        ("事务数(次/秒)", "tps", ""),
        ("每秒事务数", "tps", ""),
        ("95%RT", "latency_ms_p95", ""),
        ("95 percentile latency", "latency_ms_p95", ""),
        ("95%ile", "latency_ms_p95", ""),
        ("p99.99 latency", "latency_ms_p9999", ""),
        ("median latency", "latency_ms_p50", ""),
        ("Latency/trans", "latency_ms_avg", ""),
        ("tps (without initial connection time)", "tps", ""),
        ("Peak TPS", "tps_max", ""),
        ("MySQL TPS stddev", "tps_stddev", "MySQL"),
        ("线程数\\系统", "threads", ""),
        ("B 99线", "latency_ms_p99", "B"),
        ("50 threads latency", "latency_ms_avg", "50 threads"),
        ("warehouses", "warehouses", ""),
        ("Table size", "rows", ""),
        ("实例规格", "instance", ""),
        ("innodb_flush_method", "condition", "innodb_flush_method"),
        ("スレッド", "threads", ""),
        ("A 95%レイテンシー(ミリ秒)", "latency_ms_p95", "A"),
        ("lat média (ms)", "latency_ms_avg", ""),
        ("延迟降低", "change", ""),
        ("差異", "change", ""),
        ("TPS の向上 (%)", "change", ""),
        ("工作負載", "workload", ""),
        ("NEW_ORDER p99 (ms)", "latency_ms_p99", ""),
        ("Payment p99 (ms)", "other", ""),
        *((heading, "other", "") for heading in UNUSED),
    ],
)
def test_headings_in_several_languages(heading, metric, system):
    found = column_of(heading, Mapping())
    assert found is not None
    assert (found.metric, found.system) == (metric, system)


def test_a_heading_of_either_rate_is_no_metric_of_a_system_called_as_the_other():
    assert column_of("TPS/QPS", Mapping()) is None
    with pytest.raises(UsageError, match="what do these columns mean"):
        tables("Threads,TPS/QPS,p95\n8,120,3.5\n")


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
    run = imported(files, "made", Mapping())
    assert [one.label for one in run.plan.systems] == ["mysql", "greatsql"]
    trials = [(one.trial.system, one.trial.block) for one in run.measurements]
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


def test_a_change_between_load_levels_is_none_between_systems():
    page = "Threads,A TPS,B TPS,vs prev,speedup\n8,100,150,,1.0\n16,150,190,+27%,1.27\n"
    (grid,) = grids_in(page, "page", is_heading)
    assert published(grid, Mapping(), "page").changes == []


def test_what_no_rule_uses_is_left_out_and_conditions_part_the_rows():
    page = "| Version | Warehouses | Threads | TPS | CPU (%) | Notes |\n" + "| --- " * 6 + "|\n"
    page += "| 8.0 | 10 | 8 threads | 1,203 tps | 90 | |\n| 8.0 | 100 | 8 | - | 80 | slow |\n"
    page += "| 8.4 | 10 | 64 * 4 | ~ | 80 | |\n| 8.4 | 10 | 8线程 | 1.5k QPS | 80 | |\n"
    for text in (page, page.replace("~", "<0.10")):
        assert [(t.system, t.at, t.threads, texts(t)) for t in tables(text)] == [
            ("8.0", {"warehouses": "10"}, (8,), {"tps": ["1203"]}),
            ("8.4", {"warehouses": "10"}, (8,), {"tps": ["1500"]}),
        ]


@pytest.mark.parametrize(
    ("text", "level"),
    [
        *(("8", 8), ("1,024", 1024), ("128 * 3", 384), ("64 threads", 64), ("threads=16", 16)),
        *(("8th", 8), ("32 VUs", 32), ("100 并发", 100), ("8.0", None), ("8 GB", None), ("", None)),
    ],
)
def test_load_levels_as_they_are_written(text, level):
    assert level_of(text) == level


def test_two_numbers_in_a_cell_are_two_columns():
    page = "| - | Table count | Sysbench threads | QPS | Latency (avg/.95) |\n" + "|---" * 5 + "|\n"
    page += "| v2.0 | 32 | 128 * 3 | 201,936 | 1.90 ms/5.68 ms |\n"
    page += "| v1.0 | 32 | 128 * 3 | 188,686 | 2.04 ms / 5.99 ms |\n"
    one, other = tables(page)
    assert (one.system, one.threads, one.at) == ("v2.0", (384,), {"tables": "32"})
    assert texts(one) == {
        "qps": ["201936"],
        "latency_ms_avg": ["1.90"],
        "latency_ms_p95": ["5.68"],
    }
    assert other.system == "v1.0"


def test_a_second_row_of_headings_belongs_to_the_first():
    page = "<table><tr><th rowspan=2>Threads<th colspan=2>MySQL 8.0<th colspan=2>MariaDB 11</tr>"
    page += "<tr><th>TPS<th>p95 (ms)<th>TPS<th>p95 (ms)</tr><tr><td>8<td>1<td>2<td>3<td>4</table>"
    first, second = tables(page)
    assert (first.system, texts(first)) == ("MySQL 8.0", {"tps": ["1"], "latency_ms_p95": ["2"]})
    assert (second.system, texts(second)) == ("MariaDB 11", {"tps": ["3"], "latency_ms_p95": ["4"]})


def test_columns_of_words_name_workloads_or_systems():
    page = "| | Threads | TPS |\n|---|---|---|\n| point select | 8 | 10 |\n| read only | 8 | 5 |\n"
    assert [(t.system, t.workload) for t in tables(page)] == [
        ("page", "oltp_point_select"),
        ("page", "oltp_read_only"),
    ]
    page = page.replace("point select", "direct").replace("read only", "by proxy")
    assert [t.system for t in tables(page)] == ["direct", "by proxy"]


def test_words_before_a_table_may_name_the_unit_of_its_columns():
    page = "Average latency (us):\n\n| Threads | A | B |\n|---|---|---|\n| 8 | 1200 | 900 |\n"
    (one, _) = tables(page)
    assert texts(one) == {"latency_ms_avg": ["1.200"]}


def test_columns_of_workloads_are_no_systems():
    page = "QPS:\n\n| Threads | Point select | A read only | B read only |\n|---|---|---|---|\n"
    assert [(t.system, t.workload) for t in tables(f"{page}| 8 | 10 | 5 | 4 |\n")] == [
        ("page", "oltp_point_select"),
        ("A", "oltp_read_only"),
        ("B", "oltp_read_only"),
    ]
    page = page.replace("Point select", "primary")
    assert [t.system for t in tables(f"{page}| 8 | 10 | 5 | 4 |\n")][:2] == [
        "primary",
        "A read only",
    ]


def test_a_remark_behind_a_number_is_no_part_of_it():
    remarks = (" (+25 %)", "（1.26x）", " ± 12", " +/- 0.8 %", " tps", "*", " ✓")
    for text in (f"1,511.2{remark}" for remark in remarks):
        assert number_of(text, ".", 1, "page").text == "1511.2"


def test_connections_are_the_load_beside_threads_of_a_generator():
    (one,) = tables("clients,threads,tps\n64,4,100.5\n")
    assert one.threads == (64,)


def test_cells_a_line_may_be_words_and_the_line_above_a_column():
    page = "Results\n1. Reads/s\nThreads |\nVersion |\nqps |\np99 (ms) |\n"
    page += "8 |\nMySQL |\n100.5 |\n9.5 |\n8 |\nMariaDB |\n120.5 |\n8.5 |\nThe end.\n"
    one, other = tables(page)
    assert (one.system, one.threads, texts(one)) == (
        "MySQL",
        (8,),
        {"qps": ["100.5"], "latency_ms_p99": ["9.5"]},
    )
    assert (other.system, one.place) == ("MariaDB", "page, line 3")


def test_words_of_a_column_that_are_rates_are_its_metric():
    page = "| Virtual users | Throughput | Min | p95 |\n|:-:|:-:|:-:|:-:|\n"
    page += "| 10 | **80.7 req/s** | 1 ms | 9 ms |\n"
    (one,) = tables(page)
    assert texts(one) == {"tps": ["80.7"], "latency_ms_min": ["1"], "latency_ms_p95": ["9"]}


def test_names_are_repeated_below_and_sums_left_out():
    page = (
        "| System | Threads | TPS | % |\n|---|---|---|---|\n| A | 8 | 100 | |\n| | 16 | 150 | |\n"
    )
    page += "| B | 8 | 110 | +10% |\n| | 16 | 160 | +7% |\n| **Average** | | 130 | |\n"
    assert [(t.system, t.threads) for t in tables(page)] == [("A", (8, 16)), ("B", (8, 16))]


def test_rows_of_a_single_text_head_the_rows_below():
    page = (
        "TPS:\n\n| Threads | 5.7 | 8.0 | 8.0 / 5.7 |\n|---|---|---|---|\n| **Read only** | | | |\n"
    )
    page += "| 8 | 100 | 110 | 1.10 |\n| **Read write** | | | |\n| 8 | 50 | 55 | 1.10 |\n"
    assert [(t.system, t.workload, texts(t)) for t in tables(page)] == [
        ("5.7", "oltp_read_only", {"tps": ["100"]}),
        ("8.0", "oltp_read_only", {"tps": ["110"]}),
        ("5.7", "oltp_read_write", {"tps": ["50"]}),
        ("8.0", "oltp_read_write", {"tps": ["55"]}),
    ]


def test_the_mark_of_a_footnote_is_no_digit():
    page = "<table><tr><th>Threads<th>TPS</tr><tr><td>8<td>1,300<sup>1</sup></tr></table>"
    (one,) = tables(page)
    assert texts(one) == {"tps": ["1300"]}


def test_runs_of_words_are_systems_and_shares_of_a_rate_no_systems():
    page = "On 8 virtual users:\n\n| Run | NOPM | NOPM/VU | Backup |\n|---|---|---|---|\n"
    found = tables(f"{page}| before | 13,470 | 1683.8 | none |\n| after | 8,856 | 1107.0 | one |\n")
    assert [(t.system, t.threads, texts(t)) for t in found] == [
        ("before", (8,), {"nopm": ["13470"]}),
        ("after", (8,), {"nopm": ["8856"]}),
    ]
    (numbered,) = tables("Run,Threads,TPS\n1,8,100.5\n2,8,101.5\n")
    assert numbered.threads == (8, 8)
