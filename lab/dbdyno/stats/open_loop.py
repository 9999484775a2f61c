"""Open loops in numbers: is a rate sustained, and up to which rate does a latency limit hold?

The pilot, in its search for rates, and the judge share these functions, so "sustained" and "within
the limit" mean the same in both.

In an open loop requests fall due whatever the server does. Due requests not yet begun are the
backlog: while it grows the server takes less than the offered rate, and latencies depend on the
window's length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

CHANCE_DEVIATIONS: Final = 3.0
"""Growth within so many standard deviations of a random walk is chance."""
GROWTH_SHARE_MIN: Final = 0.005
"""Growth below that share of the rate does not matter, however long it was looked at."""
PARTS_MIN: Final = 4
"""A last half needs that many intervals before it is cut in two."""

OVER: Final = 1e-9
"""So far beyond the limit, in ln latency, lies what was not sustained; half of it is rounding."""


class Growth(NamedTuple):
    """Growth of the backlog over the last half of a window.

    Attributes:
        per_s: growth in requests a second.
        limit_per_s: growth explained by chance, or too small to matter.
    """

    per_s: float
    limit_per_s: float

    @property
    def sustained(self) -> bool:
        """True if the server kept up with the offered rate."""
        return self.per_s <= self.limit_per_s


def growth(ends_s: Sequence[float], backlogs: Sequence[int], rate_per_s: float) -> Growth | None:
    """Measure the backlog's growth over a window's last half; None below two intervals.

    The means of the last two quarters are compared. Arrivals by chance, served at no more than
    their rate, walk at random: over t seconds their difference has a variance of 2·rate·t at most,
    so a difference within three standard deviations is no growth.

    Args:
        ends_s: end of each interval of the window.
        backlogs: requests due and not begun at these ends.
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


@dataclass(frozen=True, order=True)
class Point:
    """A trial at a rate; its latency is None with too few requests."""

    rate_per_s: float
    latency_ms: float | None
    sustained: bool


class RateSide(StrEnum):
    """Position of a limit's rate among the tried rates."""

    BETWEEN = "between"
    ABOVE = "above"  # the highest rate tried still kept the limit
    BELOW = "below"  # the lowest rate tried broke it
    UNKNOWN = "unknown"  # no rate had requests enough


class Crossing(NamedTuple):
    """The highest sustained rate within a limit; for ABOVE and BELOW the last rate tried there."""

    side: RateSide
    rate_per_s: float | None


def rate_at_limit(points: Sequence[Point], limit_ms: float) -> Crossing:
    """The highest sustained rate within a latency limit.

    Latency only rises with the rate. So a higher latency at a lower rate is pooled with the next
    (isotonic regression of ln latency), and a single stall at a low rate does not decide alone.
    Between the last rate within the limit and the next, ln latency is interpolated linearly over ln
    rate. The true curve bends upwards, so the estimate is rather too low, by less than the distance
    of two rates. A rate not sustained breaks the limit, whatever its latency.
    """
    known = sorted(p for p in points if p.latency_ms is not None or not p.sustained)
    if not known:
        return Crossing(RateSide.UNKNOWN, None)
    limit = math.log(limit_ms)
    kept_below = limit + OVER / 2
    latencies = [_log_latency(p, limit + OVER) for p in known]
    logs = rising(latencies)
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


def rising(values: Sequence[float]) -> list[float]:
    """The rising sequence closest to the values, in least squares (isotonic regression).

    A value below its predecessors is pooled with them, and all of the pool take its mean.
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, count = value, 1
        while pools and pools[-1][0] > mean:
            before, more = pools.pop()
            mean, count = (before * more + mean * count) / (more + count), more + count
        pools.append((mean, count))
    return [mean for mean, count in pools for _ in range(count)]


def _log_latency(point: Point, over: float) -> float:
    log = -math.inf if point.latency_ms is None else math.log(max(point.latency_ms, 1e-6))
    return log if point.sustained else max(log, over)
