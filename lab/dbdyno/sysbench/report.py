"""The texts of a run, to the blank: header, interval line, final report. Pure: no stream, no clock.

Counts, sums and times are of the whole run, events that came home after ``--time`` included, as
in sysbench. The percentile is read from the merged histograms.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dbdyno._engine import Histogram
from dbdyno.sysbench.general import General

_NS_PER_MS = 1e6


def header(general: General) -> str:
    """What is run, as far as sysbench says it; ends before "Initializing worker threads..."."""
    seed = "the system's entropy" if general.seed is None else f"seed ({general.seed})."
    lines = ["Running the test with following options:", f"Number of threads: {general.threads}"]
    if general.report_interval_s:
        every = general.report_interval_s
        lines.append(f"Report intermediate results every {every} second(s)")
    if general.validate:
        lines.append("Validation checks: on.\n")
    lines.append(f"Initializing random number generator from {seed}")
    return "\n".join(lines) + "\n\n"


def interval_line(news: Mapping[str, Any], percentile: int) -> str:
    """One line of rates about the interval that `news` tells of."""
    seconds = news["seconds"]

    def rate(name: str) -> str:
        return f"{news[name] / seconds:4.2f}"

    latency_ms = news["latency_ms"].get(str(percentile), 0.0)
    return (
        f"[ {news['at_s']:.0f}s ] thds: {news['connections']} tps: {rate('events')} "
        f"qps: {rate('queries')} (r/w/o: {rate('reads')}/{rate('writes')}/{rate('others')}) "
        f"lat (ms,{percentile}%): {latency_ms:4.2f} "
        f"err/s: {rate('errors')} reconn/s: {rate('reconnects')}"
    )


def final_report(record: Mapping[str, Any], percentile: int) -> str:
    """The report of a whole run; `percentile` 0 leaves the percentile out."""
    totals = Totals.of(record["intervals"])
    fairness = record["fairness"]
    return "\n".join(
        [
            *_statistics(totals),
            "",
            "General statistics:",
            f"    total time:                          {totals.seconds:.4f}s",
            f"    total number of events:              {totals.events}",
            "",
            *_latency(totals, percentile),
            "",
            "Threads fairness:",
            "    events (avg/stddev):           "
            f"{fairness['events_mean']:.4f}/{fairness['events_stddev']:3.2f}",
            "    execution time (avg/stddev):   "
            f"{fairness['seconds_mean']:.4f}/{fairness['seconds_stddev']:3.2f}",
            "",
        ]
    )


class Totals(NamedTuple):
    """The intervals of a run, merged."""

    seconds: float
    events: int
    reads: int
    writes: int
    others: int
    errors: int
    reconnects: int
    latency_ns_sum: int
    latency_ns_min: int
    latency_ns_max: int
    latency: Histogram

    @classmethod
    def of(cls, intervals: Sequence[Mapping[str, Any]]) -> Totals:
        """Sums of counts, least and greatest of latencies, union of histograms."""

        def total(name: str) -> int:
            return sum(interval[name] for interval in intervals)

        busy = [interval for interval in intervals if interval["events"]]
        starts = [interval["start_s"] for interval in intervals]
        ends = [interval["end_s"] for interval in intervals]
        return cls(
            seconds=max(ends, default=0.0) - min(starts, default=0.0),
            events=total("events"),
            reads=total("reads"),
            writes=total("writes"),
            others=total("others"),
            errors=sum(sum(interval["errors"].values()) for interval in intervals),
            reconnects=total("reconnects"),
            latency_ns_sum=total("latency_ns_sum"),
            latency_ns_min=min((interval["latency_ns_min"] for interval in busy), default=0),
            latency_ns_max=max((interval["latency_ns_max"] for interval in busy), default=0),
            latency=_merged(intervals),
        )


def _merged(intervals: Sequence[Mapping[str, Any]]) -> Histogram:
    merged = Histogram()
    for interval in intervals:
        if text := interval["histograms"].get("event"):
            merged.add(Histogram.decode(b64decode(text)))
    return merged


def _statistics(totals: Totals) -> list[str]:
    queries = totals.reads + totals.writes + totals.others

    def counted(label: str, count: int) -> str:
        per_s = count / totals.seconds if totals.seconds > 0 else 0.0
        return f"    {label:<37}{count:<6} ({per_s:.2f} per sec.)"

    performed = (
        ("read:", totals.reads),
        ("write:", totals.writes),
        ("other:", totals.others),
        ("total:", queries),
    )
    return [
        "SQL statistics:",
        "    queries performed:",
        *(f"        {label:<33}{count}" for label, count in performed),
        counted("transactions:", totals.events),
        counted("queries:", queries),
        counted("ignored errors:", totals.errors),
        counted("reconnects:", totals.reconnects),
    ]


def _latency(totals: Totals, percentile: int) -> list[str]:
    def row(label: str, latency_ns: float) -> str:
        return f"         {label} {latency_ns / _NS_PER_MS:39.2f}"

    mean_ns = totals.latency_ns_sum // totals.events if totals.events else 0
    quantile = "         percentile stats:               disabled"
    if percentile:
        quantile_ms = totals.latency.quantile(percentile / 100) / _NS_PER_MS
        quantile = f"        {percentile:3d}th percentile: {quantile_ms:27.2f}"
    return [
        "Latency (ms):",
        row("min:", totals.latency_ns_min),
        row("avg:", mean_ns),
        row("max:", totals.latency_ns_max),
        quantile,
        row("sum:", totals.latency_ns_sum),
    ]
