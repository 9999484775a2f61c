"""Intervals of a run put together: counts are added, extremes kept, histograms merged.

What is read of a record beyond the plain counts may be missing: records of closed loops have no
schedule to tell of.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dbdyno._engine import Histogram
from dbdyno.sysbench.options.telling import Percentile

EVENT = "event"
SERVICE = "event_service"
TIMER_LAG = "timer_lag"
_NOT_STATEMENTS = frozenset({EVENT, SERVICE, TIMER_LAG})
_WARMUP = "warmup"
_NS_PER_MS = 1e6


class Totals(NamedTuple):
    """Intervals merged; those of the warm-up count for nothing.

    Attributes:
        seconds: from the first interval's beginning to the last one's end.
        errors: failed statements by error code.
        arrivals: events that fell due; 0 without a rate.
        backlog, in_flight: events due but not begun, and running, at the end.
        silence_ns_max: longest stretch without an answer while events were in flight.
        histograms: by name, each merged.
    """

    seconds: float
    events: int
    reads: int
    writes: int
    others: int
    errors: dict[str, int]
    restarts: int
    reconnects: int
    bytes_received: int
    bytes_sent: int
    arrivals: int
    backlog: int
    in_flight: int
    silence_ns_max: int
    latency_ns_sum: int
    latency_ns_min: int
    latency_ns_max: int
    histograms: dict[str, Histogram]

    @classmethod
    def of(cls, intervals: Sequence[Mapping[str, Any]]) -> Totals:
        """The sum of intervals as a record has them."""
        counted = [interval for interval in intervals if interval.get("phase") != _WARMUP]
        busy = [interval for interval in counted if interval["events"]]
        last: Mapping[str, Any] = counted[-1] if counted else {}

        def total(name: str) -> int:
            return sum(interval.get(name, 0) for interval in counted)

        return cls(
            seconds=_end_s(counted) - min((one["start_s"] for one in counted), default=0.0),
            events=total("events"),
            reads=total("reads"),
            writes=total("writes"),
            others=total("others"),
            errors=_errors(counted),
            restarts=total("restarts"),
            reconnects=total("reconnects"),
            bytes_received=total("bytes_received"),
            bytes_sent=total("bytes_sent"),
            arrivals=total("arrivals"),
            backlog=last.get("backlog", 0),
            in_flight=last.get("in_flight", 0),
            silence_ns_max=max((one.get("silence_ns_max", 0) for one in counted), default=0),
            latency_ns_sum=total("latency_ns_sum"),
            latency_ns_min=min((one["latency_ns_min"] for one in busy), default=0),
            latency_ns_max=max((one["latency_ns_max"] for one in busy), default=0),
            histograms=_histograms(counted),
        )

    @property
    def queries(self) -> int:
        """Statements answered without error."""
        return self.reads + self.writes + self.others

    def per_s(self, count: int) -> float:
        """The count per second of these intervals."""
        return count / self.seconds if self.seconds > 0 else 0.0

    def latency_ns_mean(self) -> int:
        """Whole ns, as in sysbench; 0 without events."""
        return self.latency_ns_sum // self.events if self.events else 0

    def latency_ms(self, percentile: Percentile) -> float:
        """A percentile of the events' latency, never above the greatest nor below the least."""
        histogram = self.histograms.get(EVENT)
        if histogram is None:
            return 0.0
        latency_ns = histogram.quantile(percentile.percent / 100)
        return min(max(latency_ns, self.latency_ns_min), self.latency_ns_max) / _NS_PER_MS

    def statements(self) -> dict[str, Histogram]:
        """Latency of each kind of statement that occurred."""
        return {
            name: histogram
            for name, histogram in self.histograms.items()
            if name not in _NOT_STATEMENTS
        }


def mean_ns(histogram: Histogram) -> float:
    """Mean of a histogram, as exact as its size classes; 0 when empty."""
    recorded = histogram.recorded()
    count = sum(count for _, count in recorded)
    return sum(middle_ns * count for middle_ns, count in recorded) / count if count else 0.0


def _end_s(intervals: Sequence[Mapping[str, Any]]) -> float:
    return max((float(interval["end_s"]) for interval in intervals), default=0.0)


def _errors(intervals: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    merged: Counter[str] = Counter()
    for interval in intervals:
        merged.update(interval["errors"])
    return dict(sorted(merged.items(), key=lambda item: int(item[0])))


def _histograms(intervals: Sequence[Mapping[str, Any]]) -> dict[str, Histogram]:
    merged: dict[str, Histogram] = {}
    for interval in intervals:
        for name, text in interval["histograms"].items():
            histogram = Histogram.decode(a2b_base64(text))
            if name in merged:
                merged[name].add(histogram)
            else:
                merged[name] = histogram
    return merged
