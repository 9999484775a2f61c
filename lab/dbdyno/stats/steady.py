"""Whether a rate has become steady, and since when: docs/how-it-works/procedure.md, with nothing
but numbers.

The series begins with the load. Its head is cut off where two rules agree that the rest is alike:
MSER-5 (the cut that leaves the smallest variance of the mean) and change points in the mean found
by an optimal partition, whose penalty takes the long-run variance, since neighbouring seconds are
alike and the plain variance would find changes in every series. What they cut is stretched, as both
cut a slow warm-up too early. Then three gates: no earlier part
was faster than the last one, enough is left, and no line through what is left rises or falls.
"""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dbdyno.stats.distributions import batch_means, line

FLOOR_S: Final = 10
"""The first seconds never count, whatever they look like."""
KEPT_S_MIN: Final = 60
BATCH_S: Final = 10
"""Means of ten seconds are all but independent where single seconds are not."""
CHANGE_MAX: Final = 0.02
"""A difference of rates that does not matter."""
TREND_P_MAX: Final = 0.05
CUT_STRETCH: Final = 1.75
"""Both rules cut where a slow warm-up drowns in noise, and leave its tail in the mean: -1.3 % of a
warm-up of 40 % with a time constant of 25 s. Cut so much later, 0.2 % are left, and a load that was
flat from the start is judged 3 s later in the mean (validation/method_validation.py)."""
MSER_BATCH_S: Final = 5
PART_S_MIN: Final = 5
PENALTY: Final = 3.0
CHI_SQUARED_MEDIAN: Final = 0.4549
"""Median of the chi-squared distribution with one degree of freedom."""

Rates = npt.NDArray[np.float64]


class Steady(NamedTuple):
    """What the rule says of a series of one rate a second.

    Attributes:
        cut_s: seconds after which the rate is steady; None where it is not.
        why: one clause for people.
    """

    cut_s: int | None
    why: str


def steady(rates_per_s: npt.ArrayLike) -> Steady:
    """Judges a load by the events of each of its seconds."""
    rates = np.asarray(rates_per_s, dtype=np.float64)
    if len(rates) < FLOOR_S + KEPT_S_MIN:
        least_s = FLOOR_S + KEPT_S_MIN
        return Steady(None, f"{len(rates)} s are too few to tell, {least_s} s are the least")
    edges = [0, *change_points(rates, PENALTY * np.log(len(rates)) * long_run_variance(rates))]
    parts = list(zip(edges, [*edges[1:], len(rates)], strict=True))
    last = float(rates[parts[-1][0] :].mean())
    if last == 0:
        return Steady(None, f"there was no event since second {edges[-1]} of {len(rates)}")
    faster = [
        (begin, end)
        for begin, end in parts[:-1]
        if end > FLOOR_S and rates[begin:end].mean() > last * (1 + CHANGE_MAX)
    ]
    if faster:
        begin, end = faster[-1]
        ratio = float(rates[begin:end].mean()) / last - 1
        return Steady(None, f"it was {ratio:.1%} faster from second {begin} to {end}")
    alike_s = max(FLOOR_S, mser_cut(rates), _alike_from(rates, parts))
    cut_s = ceil(CUT_STRETCH * alike_s) if alike_s > FLOOR_S else FLOOR_S
    if len(rates) - cut_s < KEPT_S_MIN:
        return Steady(None, f"it is alike only since second {alike_s} of {len(rates)}")
    change, chance = _trend(rates[alike_s:])
    if abs(change) > CHANGE_MAX and chance < TREND_P_MAX:
        return Steady(None, f"it still changed by {change:+.1%} since second {alike_s}")
    return Steady(cut_s, f"steady since second {cut_s} of {len(rates)}")


def mser_cut(rates: Rates) -> int:
    """Seconds to cut off so that the mean of the rest has the smallest variance, half at most."""
    batches = batch_means(rates, MSER_BATCH_S)
    variances = [
        float(batches[cut:].var()) / (len(batches) - cut) for cut in range(len(batches) // 2 + 1)
    ]
    return int(np.argmin(variances)) * MSER_BATCH_S


def long_run_variance(rates: Rates) -> float:
    """Variance of a second as it counts in long means; level shifts do not swell it."""
    steps = np.diff(batch_means(rates, BATCH_S))
    return float(BATCH_S * np.median(steps**2) / CHI_SQUARED_MEDIAN / 2)


def change_points(rates: Rates, penalty: float) -> list[int]:
    """Where the mean changes: the partition of least squared error plus `penalty` for each part.

    It is the exact optimum, as PELT finds it (Killick, Fearnhead, Eckley 2012), by plain dynamic
    programming: the series has some hundred seconds.
    """
    count = len(rates)
    sums = np.concatenate(([0.0], np.cumsum(rates)))
    squares = np.concatenate(([0.0], np.cumsum(rates**2)))
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    before = np.zeros(count + 1, dtype=np.int64)
    for end in range(PART_S_MIN, count + 1):
        starts = np.arange(end - PART_S_MIN + 1)
        errors = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        costs = best[starts] + errors + penalty
        before[end] = int(np.argmin(costs))
        best[end] = costs[before[end]]
    points: list[int] = []
    at = int(before[count])
    while at > 0:
        points.append(at)
        at = int(before[at])
    return points[::-1]


def _alike_from(rates: Rates, parts: list[tuple[int, int]]) -> int:
    """Where the parts begin whose means are those of the last one, walking back from it."""
    begin, end = parts[-1]
    last = rates[begin:end].mean()
    for earlier, later in reversed(parts[:-1]):
        if abs(rates[earlier:later].mean() / last - 1) > CHANGE_MAX:
            break
        begin = earlier
    return begin


def _trend(rates: Rates) -> tuple[float, float]:
    """The fitted change over the whole series as a share, and how likely chance makes as much."""
    batches = batch_means(rates[len(rates) % BATCH_S :], BATCH_S)
    fit = line(np.arange(len(batches)), batches)
    return fit.slope * len(batches) / float(batches.mean()), fit.chance
