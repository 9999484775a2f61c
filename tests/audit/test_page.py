"""A whole page as blogs publish it: tables of several forms, facts of the set-up, and claims beside
it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.audit.audit import audit
from dbdyno.audit.facts import facts_in
from dbdyno.audit.page.columns import Mapping
from dbdyno.audit.page.page import page_of
from dbdyno.audit.read import read
from dbdyno.errors import UsageError
from support.published_logs import PAGE, V1


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def entries(path: Path) -> list[tuple[str, str, str]]:
    ledger = audit(*read([path]))
    return [(one.severity.value, one.rule, one.place) for one in ledger.entries]


def test_a_page_of_markdown_is_held_against_itself(tmp_path: Path) -> None:
    (publication,) = read([written(tmp_path, "page.md", PAGE)])
    assert [(t.system, t.workload, t.threads) for t in publication.tables] == [
        ("Postern", "oltp_read_write", (16, 64)),
        ("Mistral", "oltp_read_write", (16, 64)),
        ("Postern", "oltp_point_select", (16,)),
        ("Mistral", "oltp_point_select", (16,)),
    ]
    assert ("note", "unread", "") in entries(tmp_path / "page.md")  # the machine's table


@pytest.mark.parametrize("quoted", [V1[V1.index("SQL statistics") :], "tpmC: 97.5\n"])
def test_a_page_that_quotes_the_end_of_a_log_is_read_for_its_tables(
    tmp_path: Path, quoted: str
) -> None:
    (publication,) = read([written(tmp_path, "page.md", f"{PAGE}\n```\n{quoted}```\n")])
    assert [table.system for table in publication.tables] == [
        "Postern",
        "Mistral",
        "Postern",
        "Mistral",
    ]


CLAIMS = """
disclosed: {repeats: five of each cell}
claims:
  - {text: Postern is always faster than Mistral, of: Postern, than: Mistral, ratio_min: 1}
  - text: at 64 threads Postern is 50 % faster
    of: Postern
    than: Mistral
    threads: [64]
    ratio_min: 1.495
    ratio_max: 1.505
"""


def test_claims_are_given_beside_a_page(tmp_path: Path) -> None:
    page = written(tmp_path, "page.md", PAGE)
    alone = audit(*read([page])).entries
    unread = "the audit does not read the sentences of pages"
    told = [one.arithmetic for one in alone if one.sentence == unread]
    assert len(told) == 1
    assert "`dbdyno audit PAGE CLAIMS.yaml`" in told[0]
    assert not [one for one in alone if one.rule in ("missing", "headline")]
    claims = written(tmp_path, "claims.yaml", CLAIMS)
    (both,) = read([page, claims])
    assert (both.title, len(both.tables)) == ("page.md", 4)
    assert (both.has_prose, both.is_set_up_of_prose) == (False, True)
    beside = {(one.severity.value, one.rule): one.place for one in audit(both).entries}
    assert "always" in beside["contradiction", "headline"]
    assert "50 %" in beside["confirmed", "headline"]
    assert ("note", "missing") in beside, "of what the YAML leaves out"
    bare = written(tmp_path, "bare.yaml", CLAIMS.replace("disclosed", "settings"))
    rules = {one.rule for one in audit(*read([page, bare])).entries}
    assert rules >= {"headline", "unread"}
    assert "missing" not in rules, "the page may tell it"
    with pytest.raises(UsageError, match=r"there are claims and no tables in .*claims.yaml"):
        read([claims])


@pytest.mark.parametrize(
    ("row", "claimed", "severity"),
    [
        ("80.5 | 90.5", "holds: average, ratio_min: 0.99, ratio_max: 1.01", "confirmed"),
        ("80;5 | 90.5", "holds: average, ratio_min: 0.99, ratio_max: 1.01", "note"),
        ("80;5 | 90.5", "holds: each, ratio_max: 1.1", "contradiction"),
    ],
)
def test_no_number_that_was_not_read_is_held_against_a_claim(
    tmp_path: Path, row: str, claimed: str, severity: str
) -> None:
    head = "| threads | Postern TPS | Mistral TPS |\n| --- | --- | --- |\n"
    page = f"# Read only\n\n{head}| 8 | 100.5 | 90.5 |\n\n# Read write\n\n{head}| 8 | {row} |\n"
    claims = f"claims: [{{text: as fast, of: Postern, than: Mistral, {claimed}}}]"
    paths = [written(tmp_path, "page.md", page), written(tmp_path, "claims.yaml", claims)]
    entries = audit(*read(paths)).entries
    assert [one.severity.value for one in entries if one.rule == "headline"] == [severity]


SET_UP = """
服务器：24 核，内存 128GB，网络平均延迟 0.80 ms。数据：10 张表，每张表 218 万行，单表 5.2 GB。

```
sysbench --oltp-tables-count=10 --oltp-table-size=2180000 --num-threads=50 prepare
innodb_buffer_pool_size = 30GB
```
"""


def test_facts_of_the_set_up_are_read_where_they_are_plain() -> None:
    facts = facts_in(SET_UP, "page")
    assert facts.dataset == {"tables": 10, "rows_per_table": 2_180_000, "gb_per_table": 5.2}
    assert facts.environment == {"memory_gb": "128", "round_trip_ms": "0.8"}
    assert facts.settings == {"innodb_buffer_pool_size": "30GB"}
    english = "<p>Two hosts with 64 GB of memory, sysbench 1.0.17, 1.5 million rows per table.</p>"
    facts = facts_in(english, "page")
    assert facts.environment == {"memory_gb": "64"}
    assert facts.dataset == {"rows_per_table": 1_500_000}
    assert facts.tool == "sysbench 1.0.17"
    hostile = "1" * 100_000 + " " * 100_000 + "\n \n" * 50_000 + "<" * 10_000
    assert facts_in(hostile, "page").dataset == {}, "and soon"
    plain = facts_in("利用sysbench生成16个表，每个表125万条记录。数据库总大小约 19G。", "page")
    assert plain.dataset == {"tables": 16, "rows_per_table": 1_250_000, "size_gb": 19}
    listed = facts_in("32 GB RAM, 1 TB SSD. innodb_buffer_pool_size=2,147,483,648.", "")
    assert listed.environment == {"memory_gb": "32"}
    assert listed.settings == {"innodb_buffer_pool_size": "2147483648"}
    two = facts_in("Memory: 64 GB. The client's memory: 16 GB. sysbench 0.5, sysbench 1.0.20", "")
    assert (two.environment, two.tool) == ({}, ""), "which of them is meant is not plain"


def test_pages_are_one_publication_unless_they_compare_others(tmp_path: Path) -> None:
    def page(name: str, systems: str, workload: str, rate: str) -> Path:
        first, second = systems.split()
        head = f"## {workload}\n\n| threads | {first} QPS | {second} QPS |\n| --- | --- | --- |\n"
        return written(tmp_path, name, f"{head}| 8 | {rate} | 90.1 |\n")

    reads = page("reads.md", "MySQL A", "point select", "100.5")
    writes = page("writes.md", "MySQL A", "write only", "50.5")
    again = page("again.md", "MySQL A", "point select", "101.5")
    other = page("other.md", "MySQL B", "point select", "102.5")
    found = read([reads, other, writes, again])
    assert [one.title for one in found] == ["reads.md, writes.md", "other.md", "again.md"]
    assert [len(one.tables) for one in found] == [4, 2, 2]


def test_a_page_without_results_is_refused(tmp_path: Path) -> None:
    page = written(tmp_path, "page.md", "| Component | Machine |\n| --- | --- |\n| a | b |\n")
    neither = "neither a table of results nor a log that is known"
    with pytest.raises(UsageError, match=neither) as refused:
        read([page])
    assert "line 1: Component, Machine" in str(refused.value)


@pytest.mark.parametrize(
    "heading",
    [
        ("System", "TPS (8 threads)", "TPS (16 threads)", "p95 ms (8 threads)"),
        ("Version", "TPS @ 8 threads", "TPS @ 16 threads", "p95 ms at 8 threads"),
        ("版本", "8线程 TPS", "16线程 TPS", "p95（8线程）"),
    ],
)
def test_a_load_level_beside_a_metric_is_read(heading: tuple[str, ...]) -> None:
    rows = [heading, ("--",) * 4, ("A", "800", "1400", "16.6"), ("B", "700", "1200", "-")]
    text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    found = page_of(text, "page", Mapping()).tables
    assert {
        (one.system, level, metric, number.text, line)
        for one in found
        for metric, numbers in one.values.items()
        for level, number, line in zip(one.threads, numbers, one.lines[metric], strict=True)
    } == {
        *(("A", 8, "tps", "800", 3), ("A", 16, "tps", "1400", 3)),
        *(("B", 8, "tps", "700", 4), ("B", 16, "tps", "1200", 4)),
        ("A", 8, "latency_ms_p95", "16.6", 3),
    }
