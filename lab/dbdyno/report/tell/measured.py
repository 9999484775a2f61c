"""Names of measured things: metrics, costs, counters, cells, loads, and faults of certificates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dbdyno.language.words import PARTED, Said, count, name, say
from dbdyno.measurement.certificate import LAG_MS_MAX, KnownAnswer, Punctuality
from dbdyno.measurement.cost import Cost, CountedBy
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import Metric
from dbdyno.plan.publication import RATE_VARIATION

METRICS: Final[Mapping[str, Said]] = {
    "transactions_per_s": say("TPS"),
    "queries_per_s": say("QPS"),
    "latency_ms_avg": say("avg"),
    "latency_ms_p50": say("p50"),
    "latency_ms_p95": say("p95"),
    "latency_ms_p99": say("p99"),
    "latency_ms_p999": say("p99.9"),
    "latency_ms_max": say("max"),
    "server_cpu_us_per_query": say("server CPU per query"),
    "new_orders_per_min": say("NOPM"),
    "rate_at_limit_per_s": say("rate within the limit"),
    RATE_VARIATION: say("variation from second to second"),
}
COSTS: Final[Mapping[str, Said]] = {
    "server_cpu_us": say("server CPU"),
    "rows_read": say("rows read"),
    "rows_changed": say("rows changed"),
    "read_kb": say("read by the server"),
    "written_kb": say("written by the server"),
    "log_kb": say("of which log"),
    "storage_read_kb": say("read from storage"),
    "storage_written_kb": say("process writes (page cache)"),
    "syncs": say("syncs of data and log files"),
    "disk_flushes": say("flushes of the machine's disks"),
    "switches": say("context switches"),
    "replies_kb": say("sent to the client"),
}
UNITS: Final = {
    str(unit): unit for unit in (say("rows"), say("syncs"), say("flushes"), say("switches"))
}
COUNTERS: Final[Mapping[str, Said]] = {
    "process": say("the kernel, for the server's process"),
    "disks": say("the kernel, for all disks"),
    "engine": say("dbdyno's load generator"),
    "rows": say("rows inserted, updated, deleted"),
    "rows_read": say("{first} or {second}", first="Innodb_rows_read", second="Rows_read"),
    "innodb": say("{counter} with the log", counter="Innodb_data_written"),
    "pg_stat_io": say("{counter} with the log", counter="pg_stat_io"),
}
"""Names of counters without a name of their own in a server's status."""
QUESTIONS: Final[Mapping[str, Said]] = {
    "saturated": say("four workers of 10 ms, asked by 8 connections"),
    "exponential": say("exponential service of 10 ms, 8 connections"),
    "rate": say("250 a second at four workers of 10 ms (M/M/4)"),
    "stall": say("200 a second at a server that stands still for 0.5 s"),
}
"""Tasks of the reference server, by the names of `KnownAnswer.question`."""


def metric_label(metric: Metric) -> Said:
    """A metric's words in tables and charts: for the events of a script its name for them."""
    return METRICS.get(metric.name) or name(metric.kind)


def cost_label(cost: Cost) -> Said:
    """A cost's words in tables and charts."""
    return COSTS[cost.name]


def cost_unit(cost: Cost) -> Said:
    """The unit of a cost, per transaction."""
    return UNITS.get(cost.unit) or name(cost.unit)


def counter(source: CountedBy) -> Said:
    """The counter of a cost: the server's own name for it, or the party that counted."""
    return COUNTERS.get(source.name) or name(source.name)


def load_words(cell: Cell) -> Said:
    """A cell's load: "8 threads", "500/s over 8 threads"."""
    threads = count(cell.threads, "thread")
    if cell.rate_per_s is None:
        return threads
    return say("{rate}/s over {threads}", rate=rate_text(cell.rate_per_s), threads=threads)


def rate_text(rate_per_s: float) -> str:
    """A rate with its thousands parted."""
    return f"{rate_per_s:,.6g}".replace(",", PARTED)


def cell_title(cell: Cell) -> Said:
    """A cell as a heading."""
    named = {"workload": cell.workload, "load": load_words(cell), "setting": cell.setting}
    if cell.setting == "default":
        return say("{workload}, {load}", **named)
    return say("{workload}, {load}, {setting}", **named)


def certificate_faults(
    wrong: Iterable[Mapping[str, Any]], late: Iterable[Mapping[str, Any]]
) -> Iterator[Said]:
    """Numbers of a certificate beyond their limits, a clause each.

    Args:
        wrong: fields of each `KnownAnswer`.
        late: fields of each `Punctuality`.
    """
    for answer in map(KnownAnswer.model_validate, wrong):
        yield say(
            "{statistic} off by {error:+.1%} (limit {limit:.1%}): {question}",
            statistic=answer.statistic,
            error=answer.error,
            limit=answer.allowed,
            question=QUESTIONS[answer.question],
        )
    for seen in map(Punctuality.model_validate, late):
        yield say(
            "at {rate:.0f} requests/s: {reached:.0f} reached, p99 {lag:.2f} ms late (limit "
            "{limit:.0f} ms)",
            rate=seen.rate_per_s,
            reached=seen.reached_per_s,
            lag=seen.lag_ms_p99,
            limit=LAG_MS_MAX,
        )
