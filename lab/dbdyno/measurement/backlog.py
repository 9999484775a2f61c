"""The backlog of an open loop: requests due and not begun."""

from __future__ import annotations

from dbdyno.measurement.measurement import Measurement
from dbdyno.stats.open_loop import Growth, growth


def backlog_growth(measurement: Measurement) -> Growth | None:
    """Change of the backlog; None in a closed loop, and with too few intervals."""
    rate, window = measurement.trial.cell.rate_per_s, measurement.measured
    return growth([i.end_s for i in window], [i.backlog for i in window], rate) if rate else None


def is_sustained(measurement: Measurement) -> bool:
    """True unless a growing backlog shows a rate above the server's capacity."""
    seen = backlog_growth(measurement)
    return seen is None or seen.sustained
