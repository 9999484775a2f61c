"""Table of metrics: key, unit and better direction.

Trials are merged total over total (a rate or a mean: sum both sides, then divide), a quantile is
read off the added counts of histograms, as a mean of percentiles would be wrong.

Report rows, intervals and exports derive from this table, so a row and the significance beside it
always rest on the same number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

KIND: Final = "event_kind_"
"""Prefix of the names of histograms and metrics of a script's own kind of events."""


class Better(StrEnum):
    """The direction good for the user."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True)
class Metric:
    """A quantity read from a measurement.

    Attributes:
        name: key used in stores and JSON, unit last.
        unit: as printed.
        better: good direction.
        decimals: digits behind the point in tables.
        quantile: quantile of the event latency for histogram metrics, else None.
        requests_above_minimum: requests beyond the quantile needed to show it
            (docs/how-it-works/stability.md: 100).
        kind: name that a script gives to the events counted; empty for all events.
    """

    name: str
    unit: str
    better: Better
    decimals: int = 2
    quantile: float | None = None
    requests_above_minimum: int = 100
    kind: str = ""

    def requests_needed(self) -> int:
        """Requests a measurement must hold before this metric is shown; 1 for plain metrics."""
        if self.quantile is None:
            return 1
        return round(self.requests_above_minimum / (1 - self.quantile))


TABLE: Final[tuple[Metric, ...]] = (
    Metric("transactions_per_s", "1/s", Better.HIGHER),
    Metric("queries_per_s", "1/s", Better.HIGHER),
    Metric("latency_ms_avg", "ms", Better.LOWER),
    Metric("latency_ms_p50", "ms", Better.LOWER, quantile=0.50),
    Metric("latency_ms_p95", "ms", Better.LOWER, quantile=0.95),
    Metric("latency_ms_p99", "ms", Better.LOWER, quantile=0.99),
    Metric("latency_ms_p999", "ms", Better.LOWER, quantile=0.999),
    Metric("latency_ms_max", "ms", Better.LOWER),
    Metric("server_cpu_us_per_query", "µs", Better.LOWER, decimals=1),
)

NOPM: Final = Metric("new_orders_per_min", "1/min", Better.HIGHER, decimals=0, kind="new_order")
"""New orders a minute of a load like TPC-C's; seen only where a script calls events `new_order`."""
RATE_AT_LIMIT: Final = Metric("rate_at_limit_per_s", "1/s", Better.HIGHER)
"""The highest sustained rate within a latency limit. Several trials together show it, so it is no
metric of a single measurement."""
BY_NAME: Final[dict[str, Metric]] = {
    metric.name: metric for metric in (*TABLE, NOPM, RATE_AT_LIMIT)
}
PRIMARY: Final = BY_NAME["transactions_per_s"]
"""The metric a closed loop's verdict is about."""


def of_kind(kind: str) -> tuple[Metric, Metric]:
    """Rate and p95 of the events that a script calls `kind`.

    Its name may equal another metric's, such as `transactions`: hence the prefix `KIND`.
    """
    rate, p95 = f"{KIND}{kind}_per_s", f"{KIND}{kind}_latency_ms_p95"
    return (
        Metric(rate, "1/s", Better.HIGHER, kind=kind),
        Metric(p95, "ms", Better.LOWER, quantile=0.95, kind=kind),
    )


def metrics_of_kinds(kinds: Iterable[str]) -> list[Metric]:
    """Metrics of events with these names given by a script; new orders also per minute."""
    names = list(kinds)
    orders = [NOPM] if NOPM.kind in names else []
    return [*orders, *(metric for kind in names for metric in of_kind(kind))]
