"""A whole page as blogs publish it: tables of several forms, and sentences that are held against
them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.audit.audit import audit
from dbdyno.errors import UsageError
from dbdyno.intake.prose import facts_in, sentences
from dbdyno.intake.read import read
from support.published_logs import PAGE


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
    found = entries(tmp_path / "page.md")
    assert ("contradiction", "words", "Postern is always faster than Mistral.") in found
    assert ("confirmed", "headline", "At 64 threads Postern is 50 % faster than Mistral.") in found
    assert ("confirmed", "figures", "Postern reaches 1,500 TPS.") in found
    assert ("confirmed", "words", "Mistral's p95 latency is lower than Postern's.") in found
    conditional = "With a small data set Mistral is faster than Postern."
    assert [(weight, rule) for weight, rule, place in found if place == conditional] == [
        ("note", "claims")
    ]
    assert ("note", "unread", "") in found  # the machine's table
    assert not [place for _, _, place in found if "listing" in place]


def test_a_page_of_html_says_the_same(tmp_path: Path) -> None:
    page = (
        "<html><head><title>x is faster than y</title></head><body>"
        "<p>B is <b>always</b> slower than A.</p>"
        "<table><tr><th>threads<th>A TPS<th>B TPS<tr><td>8<td>100.5<td>90.1"
        "<tr><td>16<td>200.5<td>210.9</table><script>A is faster than B</script></body></html>"
    )
    found = entries(written(tmp_path, "page.html", page))
    assert ("contradiction", "words", "B is always slower than A.") in found
    assert len([place for _, rule, place in found if rule == "words"]) == 1


def test_what_a_page_discloses_is_not_called_missing(tmp_path: Path) -> None:
    told = (
        "Each cell was measured with 5 runs each of 60 seconds after a warm-up, in random order;"
        " ± is the standard deviation. The client had a machine of its own: its CPU was idle."
        " Versions 8.0.30 and 8.4.1, sync_binlog=1.\n\n"
    )
    table = "| threads | A TPS | B TPS |\n| --- | --- | --- |\n| 8 | 100.5 | 90.1 |\n"
    rules = [rule for _, rule, _ in entries(written(tmp_path, "page.md", told + table))]
    assert "missing" not in rules
    (tmp_path / "page.md").write_text(table)
    assert ("unsafe design", "missing", "") in entries(tmp_path / "page.md")


SET_UP = """
服务器：24 核，内存 128GB，网络平均延迟 0.80 ms。数据：10 张表，每张表 218 万行，单表 5.2 GB。

```
sysbench --oltp-tables-count=10 --oltp-table-size=2180000 --num-threads=50 prepare
innodb_buffer_pool_size = 30GB
```
"""


def test_facts_of_the_set_up_are_read_where_they_are_plain() -> None:
    facts = facts_in(SET_UP)
    assert facts.dataset == {"tables": 10, "rows_per_table": 2_180_000, "gb_per_table": 5.2}
    assert facts.environment == {"memory_gb": "128", "round_trip_ms": "0.8"}
    assert facts.settings == {"innodb_buffer_pool_size": "30GB"}
    english = "<p>Two hosts with 64 GB of memory, sysbench 1.0.17, 1.5 million rows per table.</p>"
    facts = facts_in(english)
    assert facts.environment == {"memory_gb": "64"}
    assert facts.dataset == {"rows_per_table": 1_500_000}
    assert facts.tool == "sysbench 1.0.17"
    hostile = "1" * 100_000 + " " * 100_000 + "\n \n" * 50_000 + "<" * 10_000
    assert facts_in(hostile).dataset == {}, "and soon"
    two = facts_in("Memory: 64 GB. The client's memory: 16 GB. sysbench 0.5, sysbench 1.0.20")
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
    with pytest.raises(
        UsageError, match="neither a table of results nor a log that is known"
    ) as refused:
        read([page])
    assert "line 1: Component, Machine" in str(refused.value)


def test_sentences_have_the_line_of_their_paragraph() -> None:
    found = sentences("# Title\n\nOne is\nhere. Two! 三是这样。四\n\n- five\n")
    assert [(one.text, one.line) for one in found] == [
        ("Title", 1),
        ("One is here.", 3),
        ("Two!", 3),
        ("三是这样。", 3),
        ("四", 3),
        ("five", 6),
    ]
