"""What is read off a sentence, and what is left unread."""

from __future__ import annotations

import pytest

from dbdyno.audit.publication import PublishedCell
from dbdyno.audit.sentences import Extent, meaning

LABELS = ("MySQL", "MySQL 8.0", "GreatSQL", "A", "B")


def cells(workload: str = "oltp_read_write") -> list[PublishedCell]:
    return [
        PublishedCell(
            system=system,
            workload=work,
            threads=threads,
            at={"buffer_pool_gb": size},
            values={},
            place="",
        )
        for system in "AB"
        for work in (workload, "oltp_point_select")
        for threads in (8, 16, 64)
        for size in ("16", "48")
    ]


@pytest.mark.parametrize(
    ("text", "subject", "other", "direction"),
    [
        ("A is faster than B", "A", "B", 1),
        ("A is slower than B", "A", "B", -1),
        ("Compared with B, A is slower", "A", "B", -1),
        ("B is outperformed by A", "B", "A", -1),
        ("Outperformed by A, B is no rival", "B", "A", -1),
        ("In comparison with B, A is slower", "A", "B", -1),
        ("与 B 相比，A 性能提升 30%", "A", "B", 1),
        ("和 B 5.7 版本相比，A 更慢", "A", "B", -1),
        ("A 与 B 相比，A 性能更高", "A", "B", 1),
        ("Upgrading from B to A improves throughput", "A", "B", 1),
        ("从 B 升级到 A，吞吐提升 30%", "A", "B", 1),
        ("A has a lower latency than B", "A", "B", -1),
        ("A has better latency than B", "A", "B", -1),
        ("A 的延迟优于 B", "A", "B", -1),
        ("A 比 B 快于 30%", "A", "B", 1),
        ("相比 B，A 性能提升明显", "A", "B", 1),
        ("GreatSQL 优于 MySQL 8.0", "GreatSQL", "MySQL 8.0", 1),
        # left open
        ("A is not faster than B", "A", "B", 0),
        ("A is faster than B except at 64 threads", "A", "B", 0),
        ("A has higher throughput and lower latency than B", "A", "B", 0),
        ("Across all tests B is worse", "", "", -1),
        ("A is a database, B another", "A", "B", 0),
        ("A and B have higher throughput with 64 threads", "", "", 1),
        ("对比 A 和 B，B 更快", "", "", 1),
        ("B 被 A 超过", "B", "A", 0),
        ("A uses less CPU than B", "A", "B", 0),
        ("A has a lower memory footprint than B", "A", "B", 0),
        ("A 的内存占用低于 B", "A", "B", 0),
        ("A is more stable than B", "A", "B", 0),
        ("A 的 TPS 波动低于 B", "A", "B", 0),
        ("A has more features than B", "A", "B", 0),
    ],
)
def test_who_is_put_before_whom(text: str, subject: str, other: str, direction: int) -> None:
    said = meaning(text, LABELS, cells())
    assert (said.subject, said.other, said.direction) == (subject, other, direction)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("v3 improves point select by 40 %", "v3"),
        ("v3 drops at 64 threads", ""),
        ("v3 improves as threads increase", ""),
        ("随着并发增加，v3 性能提升", ""),
    ],
)
def test_the_only_other_system_may_stay_unnamed(text: str, subject: str) -> None:
    said = meaning(text, ("v2", "v3"), cells())
    assert (said.subject, said.other) == ((subject, "v2") if subject else ("", ""))


@pytest.mark.parametrize(
    ("text", "threads", "workloads", "sizes"),
    [
        ("A is faster than B", {8, 16, 64}, 2, 2),
        ("At 64 threads A is faster than B", {64}, 2, 2),
        ("with 8 and 16 threads A is faster than B", {8, 16}, 2, 2),
        ("from 8 to 64 connections A is faster than B", {8, 16, 64}, 2, 2),
        ("with more than 16 threads A is faster than B", {64}, 2, 2),
        ("below 64 threads A is faster than B", {8, 16}, 2, 2),
        ("when concurrency is 16, A is faster than B", {16}, 2, 2),
        ("并发数达到 64 时，A 优于 B", {64}, 2, 2),
        ("16 线程以上 A 优于 B", {16, 64}, 2, 2),
        ("A is faster than B in point select", {8, 16, 64}, 1, 2),
        ("读写混合场景 A 优于 B", {8, 16, 64}, 1, 2),
        ("with a buffer pool of 48 A is faster than B", {8, 16, 64}, 2, 1),
        ("A is faster than B at 48G and 64 threads", {64}, 2, 1),
        ("with 128 threads A is faster than B", set(), 0, 0),
        ("under 64 threads A is faster than B", set(), 0, 0),  # with 64, or with fewer
    ],
)
def test_where_a_sentence_holds(text: str, threads: set[int], workloads: int, sizes: int) -> None:
    said = meaning(text, LABELS, cells())
    assert {cell.threads for cell in said.cells} == threads
    assert len({cell.workload for cell in said.cells}) == workloads
    assert len({cell.at["buffer_pool_gb"] for cell in said.cells}) == sizes
    assert (said.direction, said.conditional) == (1, False)


@pytest.mark.parametrize(
    ("text", "conditional"),
    [
        ("with a small buffer pool A is faster than B", True),
        ("当内存不足时，A 优于 B", True),
        ("A is faster than B no matter whether the buffer pool is small", False),
        ("无论并发多少，A 都优于 B", False),
    ],
)
def test_a_condition_without_cells_is_told(text: str, conditional: bool) -> None:
    assert meaning(text, LABELS, cells()).conditional is conditional


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("A is 30 % faster than B", 1.295, 1.305),
        ("A is 30.5 % slower than B", 0.6945, 0.6955),
        ("A reaches 70 % of B", 0.695, 0.705),
        ("A is about 50 % faster than B", 1.425, 1.575),
        ("A is over 30 % faster than B", 1.295, float("inf")),
        ("A is more than 30 % slower than B", 0, 0.705),
        ("A is 2.5x faster than B", 2.45, 2.55),
        ("A 性能是 B 的 2 倍", 1.5, 2.5),
        ("A 比 B 性能提升了 12%", 1.115, 1.125),
        ("A's latency is 20 % lower than that of B", 0.795, 0.805),
        ("A is 10-30 % faster than B", 1.095, 1.305),
        ("A is 10 % to 30 % slower than B", 0.695, 0.905),
        ("A 比 B 提升 10%～30%", 1.095, 1.305),
        ("A reaches between 70 and 80 percent of B", 0.695, 0.805),
        ("A is better than B by 1/4", 1.1875, 1.3125),
        ("A 比 B 慢约三分之一", 0.6337, 0.7003),
        ("A reaches two thirds of B", 0.6337, 0.7003),
        ("A reaches half of B", 0.475, 0.525),
        ("A is twice as fast as B", 1.5, 2.5),
        ("A is 2 times slower than B", 0.4, 0.667),
        ("A's latency is 4x better than B's", 0.2222, 0.2857),
        ("A 的性能是 B 的两倍", 1.5, 2.5),
        ("A 比 B 性能提升 1 倍", 1.5, 2.5),
        ("A 比 B 高出一倍", 1.5, 2.5),
        ("A 比 B 性能提升 2 倍", 1.5, 3.5),
    ],
)
def test_ratios(text: str, low: float, high: float) -> None:
    (ratio,) = meaning(text, LABELS, cells()).ratios
    assert (ratio.low, ratio.high) == pytest.approx((low, high), abs=2e-3)
    assert ratio.is_range == ("10" in text or "70 and" in text)


@pytest.mark.parametrize(
    "text",
    [
        "A was faster than B, each was run 3 times",
        "A was faster than B on 4 x 22 cores",
        "A was tested against B 5 times",
        "A is faster than B, its CPU is at 90 %",
    ],
)
def test_what_is_counted_is_no_ratio(text: str) -> None:
    assert meaning(text, LABELS, cells()).ratios == ()


@pytest.mark.parametrize(
    "text", ["A's 99 % latency is lower than that of B", "A uses 30 % of memory", "A: 30 %, B"]
)
def test_a_share_of_something_else_is_none(text: str) -> None:
    said = meaning(text, LABELS, cells())
    assert not said.ratios or not said.other


def test_an_even_distribution_knows_exceptions() -> None:
    assert meaning("均匀分布下 A 优于 B", LABELS, cells()).extent is Extent.PLAIN
    assert meaning("A 均优于 B", LABELS, cells()).extent is Extent.ALWAYS


def test_the_percentile_that_a_sentence_names() -> None:
    assert meaning("A's p99 latency is lower than B's", LABELS, []).metrics == ("latency_ms_p99",)
    assert meaning("A 的 95% 响应时间低于 B", LABELS, []).metrics == ("latency_ms_p95",)
    assert meaning("A has a lower latency than B", LABELS, []).metrics[0] == "latency_ms_avg"
    assert meaning("A has more QPS than B", LABELS, []).metrics == ("qps",)
