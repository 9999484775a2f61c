"""Open loops in numbers: is a rate sustained, and up to which rate does a latency limit hold?

Nothing but numbers goes in, so that the pilot, which looks for rates worth measuring, and the
judge, which says what was measured, cannot differ in what "sustained" or "within the limit" means.

In an open loop requests fall due whatever the server does. What is due and not begun is the
backlog: where it keeps growing the server takes less than it is offered, and every latency is a
matter of how long the window was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
import scipy

CHANCE_DEVIATIONS: Final = 3.0
"""Growth within so many standard deviations of a random walk is chance."""
GROWTH_SHARE_MIN: Final = 0.005
"""Growth below that share of the rate does not matter, however long it was looked at."""
PARTS_MIN: Final = 4
"""A last half needs that many intervals before it is cut in two."""

OVER: Final = 1e-9
"""So far beyond the limit, in ln latency, lies what was not sustained; half of it is rounding."""


class Growth(NamedTuple):
    """How the backlog moved over the last half of a window.

    Attributes:
        per_s: requests by which it grew in a second.
        limit_per_s: what chance alone, or too little to matter, explains.
    """

    per_s: float
    limit_per_s: float

    @property
    def sustained(self) -> bool:
        """Whether the server took what it was offered."""
        return self.per_s <= self.limit_per_s


def growth(ends_s: Sequence[float], backlogs: Sequence[int], rate_per_s: float) -> Growth | None:
    """The backlog's growth over the last half of a window; None for fewer than two intervals.

    The means of the last two quarters are compared. Arrivals by chance, served at no more than
    their rate, walk at random: over t seconds their difference has a variance of 2·rate·t at most,
    so what lies within three deviations of that is no growth.

    Args:
        ends_s: when each interval of the window ended.
        backlogs: requests due and not begun at those moments.
    """
    half = len(ends_s) // 2 if len(ends_s) >= 2 * PARTS_MIN else 0
    times, waiting = np.asarray(ends_s[half:], float), np.asarray(backlogs[half:], float)
    if len(times) < 2:
        return None
    cut = len(times) // 2
    apart_s = float(times[cut:].mean() - times[:cut].mean())
    grown = float(waiting[cut:].mean() - waiting[:cut].mean())
    chance = CHANCE_DEVIATIONS * math.sqrt(2 * rate_per_s * apart_s)
    return Growth(grown / apart_s, max(chance / apart_s, GROWTH_SHARE_MIN * rate_per_s))


class Point(NamedTuple):
    """What one trial at a rate saw; latency is None where there were too few requests for it."""

    rate_per_s: float
    latency_ms: float | None
    sustained: bool


class RateSide(StrEnum):
    """Where the rate at which a limit is met lies among the rates that were tried."""

    BETWEEN = "between"
    ABOVE = "above"  # the highest rate tried still kept the limit
    BELOW = "below"  # the lowest rate tried broke it
    UNKNOWN = "unknown"  # no rate had requests enough


class Crossing(NamedTuple):
    """The highest sustained rate within a limit; for ABOVE and BELOW the last rate tried there."""

    side: RateSide
    rate_per_s: float | None


def rate_at_limit(points: Sequence[Point], limit_ms: float) -> Crossing:
    """The highest sustained rate at which the latency keeps a limit.

    Latency only rises with the rate. So where one rate's is above that of the next, the two are
    pooled (isotonic regression of ln latency), and one stall at a low rate does not decide alone.
    Between the last rate that keeps the limit and the next, ln latency is taken as a line over
    ln rate. The true curve bends upwards, so that the estimate is rather too low, by less than
    the distance of two rates. What is not sustained breaks the limit, whatever its window showed.
    """
    known = sorted(p for p in points if p.latency_ms is not None or not p.sustained)
    if not known:
        return Crossing(RateSide.UNKNOWN, None)
    limit = math.log(limit_ms)
    kept_below = limit + OVER / 2
    latencies = [_log_latency(p, limit + OVER) for p in known]
    logs = scipy.optimize.isotonic_regression(latencies).x.tolist()
    kept = [p.rate_per_s for p, log in zip(known, logs, strict=True) if log < kept_below]
    if not kept:
        unread = [point for point in points if point.rate_per_s < known[0].rate_per_s]
        return (
            Crossing(RateSide.UNKNOWN, None)
            if unread
            else Crossing(RateSide.BELOW, known[0].rate_per_s)
        )
    if len(kept) == len(known):
        return Crossing(RateSide.ABOVE, known[-1].rate_per_s)
    below, above = logs[len(kept) - 1], logs[len(kept)]
    part = max(0.0, (limit - below) / (above - below))
    low, high = math.log(kept[-1]), math.log(known[len(kept)].rate_per_s)
    return Crossing(RateSide.BETWEEN, math.exp(low + part * (high - low)))


def _log_latency(point: Point, over: float) -> float:
    log = -math.inf if point.latency_ms is None else math.log(max(point.latency_ms, 1e-6))
    return log if point.sustained else max(log, over)
