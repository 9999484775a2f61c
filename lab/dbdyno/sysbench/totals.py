"""Intervals of a run merged: counts are added, extremes kept, histograms merged."""

from __future__ import annotations

from _collections_abc import Mapping  # collections costs start-up time
from binascii import a2b_base64

from dbdyno._engine import Histogram
from dbdyno.sysbench.options.output import Percentile
from dbdyno.sysbench.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

EVENT = "event"
SERVICE = "event_service"
TIMER_LAG = "timer_lag"
_NS_PER_MS = 1e6


class Histograms(Mapping[str, Histogram]):
    """Histograms by name, each merged over all intervals.

    They are decoded on demand: a report needs a twelfth of them.
    """

    def __init__(self, intervals: Sequence[Mapping[str, Any]]) -> None:
        self._encoded: dict[str, list[str]] = {}
        self._merged: dict[str, Histogram] = {}
        for interval in intervals:
            for name, text in interval["histograms"].items():
                self._encoded.setdefault(name, []).append(text)

    def __getitem__(self, name: str) -> Histogram:
        if name not in self._merged:
            merged, *others = (Histogram.decode(a2b_base64(text)) for text in self._encoded[name])
            for other in others:
                merged.add(other)
            self._merged[name] = merged
        return self._merged[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded)

    def __len__(self) -> int:
        return len(self._encoded)


class Totals(NamedTuple):
    """Merged intervals, without the warm-up.

    Counts have their names of the engine's record.

    Attributes:
        seconds: from the first interval's beginning to the last one's end.
        errors: failed statements by error code.
        arrivals: events that fell due; 0 without a rate.
        backlog, in_flight: events due but not begun, and running, at the end.
        silence_ns_max: longest stretch without an answer while events were in flight.
        histograms: by name.
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
    histograms: Histograms

    @classmethod
    def of(cls, intervals: Sequence[Mapping[str, Any]]) -> Totals:
        """The sum of intervals as a record has them."""
        counted = without_warmup(intervals)
        start_s = min((one["start_s"] for one in counted), default=0.0)
        return cls(
            seconds=max((one["end_s"] for one in counted), default=0.0) - start_s,
            errors=_errors(counted),
            histograms=Histograms(counted),
            **{name: _merged(name, counted) for name in _COUNTS},
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
        """Latency of each kind of statement in the run."""
        return {
            name: histogram
            for name, histogram in self.histograms.items()
            if name not in (EVENT, SERVICE, TIMER_LAG)
        }


def mean_ns(histogram: Histogram) -> float:
    """Mean of a histogram, as exact as its size classes; 0 when empty."""
    recorded = histogram.recorded()
    count = sum(count for _, count in recorded)
    return sum(middle_ns * count for middle_ns, count in recorded) / count if count else 0.0


def without_warmup(intervals: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The counted intervals: of the measured time, and of events beyond its end."""
    return [interval for interval in intervals if interval["phase"] != "warmup"]


_COUNTS = tuple(name for name in Totals._fields if name not in ("seconds", "errors", "histograms"))


def _merged(name: str, intervals: Sequence[Mapping[str, Any]]) -> int:
    """A count of several intervals: their sum, unless its name says otherwise."""
    if name in ("backlog", "in_flight"):  # at the end
        return int(intervals[-1][name]) if intervals else 0
    if name.endswith("_min"):
        return min((one[name] for one in intervals if one["events"]), default=0)
    if name.endswith("_max"):
        return max((one[name] for one in intervals), default=0)
    return sum(one[name] for one in intervals)


def _errors(intervals: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    merged: dict[str, int] = {}
    for interval in intervals:
        for code, count in interval["errors"].items():
            merged[code] = merged.get(code, 0) + count
    # Numbers in their order, then SQLSTATEs; those of PostgreSQL may be all digits, and are longer.
    return dict(sorted(merged.items(), key=lambda item: (len(item[0]), item[0])))
