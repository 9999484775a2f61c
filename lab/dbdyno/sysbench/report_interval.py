"""The lines of ``--report-interval``: sysbench's, and one more where events have a schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dbdyno.sysbench.options.telling import Percentile, decimals
from dbdyno.sysbench.totals import Totals

_TOLD = (
    *("seconds", "connections", "events", "queries", "reads", "writes", "others"),
    *("errors", "reconnects"),
)


class Stretch(NamedTuple):
    """What a line is about: the stretch of time that has just ended.

    Attributes:
        at_s: its end, seconds of the measured time.
        backlog, in_flight: events due but not begun, and running, at its end.
    """

    at_s: float
    seconds: float
    connections: int
    events: int
    queries: int
    reads: int
    writes: int
    others: int
    errors: int
    reconnects: int
    backlog: int
    in_flight: int
    latencies_ms: tuple[float, ...]

    @classmethod
    def of_news(
        cls, news: Mapping[str, Any], at_s: float, percentiles: Sequence[Percentile]
    ) -> Stretch:
        """What the engine tells of an interval, without its histograms."""
        latency_ms = news["latency_ms"]
        return cls(
            **{name: news[name] for name in _TOLD},
            at_s=at_s,
            backlog=news.get("backlog", 0),
            in_flight=news.get("in_flight", 0),
            latencies_ms=tuple(latency_ms.get(one.text, 0.0) for one in percentiles),
        )

    @classmethod
    def of_totals(
        cls, totals: Totals, connections: int, at_s: float, percentiles: Sequence[Percentile]
    ) -> Stretch:
        """Several recorded intervals put together."""
        return cls(
            at_s=at_s,
            seconds=totals.seconds,
            connections=connections,
            events=totals.events,
            queries=totals.queries,
            reads=totals.reads,
            writes=totals.writes,
            others=totals.others,
            errors=sum(totals.errors.values()),
            reconnects=totals.reconnects,
            backlog=totals.backlog,
            in_flight=totals.in_flight,
            latencies_ms=tuple(totals.latency_ms(percentile) for percentile in percentiles),
        )


def interval_line(stretch: Stretch, percentiles: Sequence[Percentile], interval_s: float) -> str:
    """One line of rates. Each percentile has sysbench's words, so a search finds any of them."""

    def rate(count: int) -> str:
        return f"{count / stretch.seconds:4.2f}"

    latencies = "lat (ms,0%): 0.00"
    if percentiles:
        pairs = zip(percentiles, stretch.latencies_ms, strict=True)
        latencies = " ".join(f"lat (ms,{one.text}%): {ms:4.2f}" for one, ms in pairs)
    return (
        f"{moment(stretch.at_s, interval_s)} thds: {stretch.connections} "
        f"tps: {rate(stretch.events)} qps: {rate(stretch.queries)} "
        f"(r/w/o: {rate(stretch.reads)}/{rate(stretch.writes)}/{rate(stretch.others)}) "
        f"{latencies} err/s: {rate(stretch.errors)} reconn/s: {rate(stretch.reconnects)}"
    )


def queue_line(stretch: Stretch, interval_s: float) -> str:
    """Events that wait and events that run, at the stretch's end; only where there is a rate."""
    return (
        f"{moment(stretch.at_s, interval_s)} "
        f"queue length: {stretch.backlog}, concurrency: {stretch.in_flight}"
    )


def moment(at_s: float, interval_s: float) -> str:
    """``[ 3s ]``, with the decimals that multiples of the interval need."""
    return f"[ {at_s:.{decimals(interval_s)}f}s ]"
