"""``--output=csv``: a line of names with their units, then a line for each whole interval.

The rows are those of sysbench's interval lines, and are written as the intervals end.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.sysbench.options.telling import Percentile
from dbdyno.sysbench.report_interval import Stretch
from dbdyno.sysbench.totals import Totals

_NS_PER_MS = 1e6
_COLUMNS = (
    *("time_s", "interval_s", "threads", "transactions_per_s", "queries_per_s"),
    *("reads_per_s", "writes_per_s", "others_per_s", "errors_per_s", "reconnects_per_s"),
    *("restarts_per_s", "due_per_s", "backlog", "in_flight", "silence_ms_max"),
    *("latency_ms_min", "latency_ms_mean", "latency_ms_max"),
)


def head(percentiles: Sequence[Percentile]) -> str:
    """The names of the columns; the percentiles are the last ones, ``latency_ms_p99.9``."""
    return ",".join([*_COLUMNS, *(f"latency_ms_p{one.text}" for one in percentiles)]) + "\n"


def row(totals: Totals, stretch: Stretch) -> str:
    """One interval."""
    rates = (
        *(totals.events, totals.queries, totals.reads, totals.writes, totals.others),
        *(sum(totals.errors.values()), totals.reconnects, totals.restarts, totals.arrivals),
    )
    latencies_ns = (totals.latency_ns_min, totals.latency_ns_mean(), totals.latency_ns_max)
    cells = [
        f"{stretch.at_s:.6f}".rstrip("0").rstrip("."),
        f"{totals.seconds:.6f}",
        str(stretch.connections),
        *(f"{totals.per_s(count):.3f}" for count in rates),
        str(totals.backlog),
        str(totals.in_flight),
        f"{totals.silence_ns_max / _NS_PER_MS:.3f}",
        *(f"{latency_ns / _NS_PER_MS:.6f}" for latency_ns in latencies_ns),
        *(f"{latency_ms:.6f}" for latency_ms in stretch.latencies_ms),
    ]
    return ",".join(cells) + "\n"
