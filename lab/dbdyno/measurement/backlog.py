"""The backlog of an open loop: requests that are due and not begun."""

from __future__ import annotations

from dbdyno.measurement.measurement import Measurement
from dbdyno.stats.open_loop import Growth, growth


def backlog_growth(measurement: Measurement) -> Growth | None:
    """How the backlog moved; None in a closed loop, and where too little was seen."""
    rate, window = measurement.trial.cell.rate_per_s, measurement.measured
    return growth([i.end_s for i in window], [i.backlog for i in window], rate) if rate else None


def is_sustained(measurement: Measurement) -> bool:
    """Whether the server took what it was offered, as far as can be seen."""
    seen = backlog_growth(measurement)
    return seen is None or seen.sustained
