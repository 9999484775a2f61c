"""Confidence interval of a mean over blocks: of fixed blocks, or of blocks which may end early.

A look at the data after every block, with a stop as soon as the interval pleases, errs more often
than promised: with a t interval at each look, one tie in six gets a winner
(docs/how-it-works/verdicts.md). Repeated confidence intervals (Jennison & Turnbull 1991) are wide
enough for all intervals of a run to hold together: mean ± c(n)·s/√n. Here c(n) is Student's
quantile at the nominal level A·n/N for n of at most N blocks, and A makes the chance of any miss up
to N equal to the level asked for. Because they hold together, any reason to stop is allowed:
decided, out of time, Ctrl-C.

A comes from `multiplier_table`, with the first look at three blocks. Between its rows the next
longer horizon serves, and beyond its edges the sum of the looks' levels: both can only make an
interval wider.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dbdyno.judge.multiplier_table import FINAL_LEVELS, LEVELS
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import BLOCKS_MIN, DesignPlan
from dbdyno.stats.distributions import Numbers, student_quantile
from dbdyno.stats.pooled import GROUP_MIN, pooled

LEVEL: Final = 0.05
"""Error rate of an interval: the complement of 95 %."""
FAR_MARGINS: Final = 3.0
"""Margins beyond which a whole cell is far (6 % by default), so it needs less of the level."""
KEPT: Final = 0.5
"""Part of its level that a far cell keeps: its interval still shows the size of the change."""
LEFT_FOR_MORE: Final = 0.1
"""Share of the level reserved for added time (`dbdyno resume --time`)."""
FIXED: Final = DesignPlan()
"""All blocks are run, whatever they show."""
LOG_MAX: Final = 700.0
"""No interval's end lies beyond, up or down: a number must hold its exponential."""
_HORIZONS: Final = tuple(FINAL_LEVELS)
HORIZON_MAX: Final = _HORIZONS[-1]
"""Beyond so many blocks intervals are wider than need be."""


@dataclass(frozen=True)
class ConfidenceInterval:
    """Mean, standard deviation and half width of an interval, along the last axis of samples."""

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    half: NDArray[np.float64]


def interval(samples: ArrayLike, design: DesignPlan, level: float = LEVEL) -> ConfidenceInterval:
    """The interval of the mean of each sample, with the width for the design's stopping rule.

    Takes many samples at once, so the simulations test the very code of the verdicts.

    Raises:
        ValueError: fewer than two numbers in a sample.
    """
    values = np.asarray(samples, dtype=np.float64)
    n = values.shape[-1]
    if n < 2:
        raise ValueError(f"an interval needs two numbers at least, found {n}")
    sd = values.std(axis=-1, ddof=1)
    width = quantile(n, design, level) / math.sqrt(n)
    half = width * sd if math.isfinite(width) else np.full_like(sd, math.inf)
    return ConfidenceInterval(values.mean(axis=-1), sd, half)


@dataclass(frozen=True)
class Held:
    """The interval of a ratio, which holds together with those of other cells.

    Attributes:
        low, high: its ends; alone_low, alone_high: of the 95 % interval of this cell by itself.
        sd, freedom: standard deviation of a block's ln ratio by all cells, and the degrees of
            freedom with which Student's t gives the interval.
        level: error rate of this interval; 0.05 with a single cell.
        cells: number of cells to share the 5 %.
    """

    low: float
    high: float
    alone_low: float
    alone_high: float
    sd: float
    freedom: float
    level: float
    cells: int


def together(
    samples: Sequence[Mapping[int, float]],
    groups: Sequence[Hashable],
    design: DesignPlan = FIXED,
    level: float = LEVEL,
) -> list[Held | None]:
    """Intervals of ratios that hold together, in all looks of a run.

    Args:
        samples: of each cell the blocks' ln ratios.
        groups: for each cell the group of cells whose noise is like its own.

    Returns:
        An interval for each sample, in their order; None below three blocks, which make no claim
        and take no share of the level.
    """
    places = [place for place, sample in enumerate(samples) if len(sample) >= BLOCKS_MIN]
    blocks = sorted({block for place in places for block in samples[place]})
    held: list[Held | None] = [None] * len(samples)
    if not places:
        return held
    table = np.array(
        [[samples[place].get(block, math.nan) for place in places] for block in blocks]
    )
    look = nominal_level(len(blocks), design, level)
    noise = pooled(table, [groups[place] for place in places], look)
    shares = [level * noise.level / look] * len(places)
    lows, highs = noise.mean - noise.together, noise.mean + noise.together
    if len(places) < GROUP_MIN:
        errors = noise.sd / np.sqrt((~np.isnan(table)).sum(axis=0))

        def half_width(at: int, level: float) -> float:
            freedom = float(noise.freedom[at])
            return quantile(len(blocks), design, level, freedom) * float(errors[at])

        far = math.log1p(FAR_MARGINS * design.margin)
        lows, highs, shares = with_recycled_level(noise.mean, half_width, level, far)
    for at, place in enumerate(places):
        held[place] = Held(
            low=end_of(lows[at]),
            high=end_of(highs[at]),
            alone_low=end_of(noise.mean[at] - noise.alone[at]),
            alone_high=end_of(noise.mean[at] + noise.alone[at]),
            sd=float(noise.sd[at]),
            freedom=float(noise.freedom[at]),
            level=shares[at],
            cells=len(places),
        )
    return held


def with_recycled_level(
    means: Numbers, half_width: Callable[[int, float], float], level: float, far: float
) -> tuple[Numbers, Numbers, list[float]]:
    """Intervals that hold together, with half of the level of cells far from a tie recycled.

    Each of m cells begins with level/m. A cell with its whole interval beyond `far` keeps half of
    that, and the other cells share the rest. If all cells are far, the rest is not used.

    The levels follow the ratios under test and not the data, as in Strassburger and Bretz (2008). A
    set of true ratios is possible unless an interval misses its ratio, at level/2m for a far ratio.
    The levels of any set add up to `level`, so the true ratios are possible in 1 - level of runs.
    Each interval is the range of the cell's possible ratios: a far cell's ends at `far`, and beyond
    `far` another cell's is as wide as a far cell's.

    Args:
        means: of each cell.
        half_width: of the interval of the cell at a place, for a level.
        far: distance from a tie beyond which a cell is far.

    Returns:
        Lower ends, upper ends, and each interval's level.
    """
    cells = range(len(means))
    near, equal, kept = list(cells), level / len(means), KEPT * level / len(means)
    share = equal
    for _ in cells:
        near = [at for at in near if abs(means[at]) - half_width(at, share) <= far]
        share = (level - kept * (len(means) - len(near))) / max(1, len(near))
    lows, highs, levels = means.copy(), means.copy(), []
    for at in cells:
        outer = half_width(at, kept if set(near) - {at} else equal)
        low, high = means[at] - outer, means[at] + outer
        if at in near:
            inner = half_width(at, share)
            inner_low, inner_high = means[at] - inner, means[at] + inner
        else:
            inner_low, inner_high = max(low, far), min(high, -far)
        lows[at] = low if low < -far else inner_low
        highs[at] = high if high > far else inner_high
        levels.append(share if at in near else kept if near else equal)
    return lows, highs, levels


def quantile(
    n: int, design: DesignPlan, level: float = LEVEL, freedom: float | None = None
) -> float:
    """Half width over s/√n of n blocks' interval: Student's, or the repeated interval's.

    Args:
        freedom: degrees of freedom of s; n - 1 by default.
    """
    if design.stop == "decided" and n < BLOCKS_MIN:
        return math.inf
    return _student(n - 1 if freedom is None else freedom, nominal_level(n, design, level))


def nominal_level(n: int, design: DesignPlan, level: float = LEVEL) -> float:
    """Error rate of n blocks' interval for the intervals of all looks to miss in `level`."""
    if design.stop == "blocks":
        return level
    if design.time_s is not None:
        level *= share_of_error(design.chosen.additions if design.chosen else 0)
    horizon = max(design.blocks, n)
    return final_level(horizon, level) * n / horizon


def share_of_error(additions: int) -> float:
    """Share of the whole level for the blocks until the next addition of time.

    Time may be added to a run at any moment, so each addition needs a reserve of the level: the
    original run spends nine tenths, an addition nine tenths of the rest. All their looks together
    miss in no more than the whole level.
    """
    return (1 - LEFT_FOR_MORE) * LEFT_FOR_MORE**additions


@lru_cache(maxsize=4096)
def final_level(horizon: int, level: float = LEVEL) -> float:
    """A: the nominal level at the last of `horizon` blocks, for all looks to miss in `level`.

    Between two levels of the table ln A is interpolated over ln level, which is nearly straight.
    """
    if level < LEVELS[-1] or horizon > HORIZON_MAX:
        looks = range(BLOCKS_MIN, horizon + 1)
        return level * horizon / sum(looks)  # the levels of all looks add up to `level`
    row = _HORIZONS[bisect_left(_HORIZONS, horizon)]
    rising = (np.log(LEVELS[::-1]), np.log(FINAL_LEVELS[row][::-1]))
    # The nominal level at n is A·n/row whatever part of the row's looks is taken.
    return math.exp(float(np.interp(math.log(level), *rising))) * horizon / row


def end_of(log: float) -> float:
    """An interval's end from its natural logarithm: positive and finite however far it lies."""
    return math.exp(min(max(log, -LOG_MAX), LOG_MAX))


@lru_cache(maxsize=4096)
def _student(freedom: float, level: float) -> float:
    return student_quantile(1 - level / 2, freedom)


class Typical(Noun):
    """The mean of a number over blocks, such as a peak, with its interval.

    Attributes:
        value: their mean, geometric where they are positive by nature.
        low, high: its 95 % interval; None below 3 blocks.
        blocks: number of blocks with a value.
    """

    value: float
    low: float | None
    high: float | None
    blocks: int


def typical(values: Sequence[float], design: DesignPlan) -> Typical | None:
    """The arithmetic mean, for shares and differences (zero allowed); None without a value."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if len(values) < BLOCKS_MIN:
        return Typical(value=mean, low=None, high=None, blocks=len(values))
    half = float(interval(values, design).half)
    return Typical(value=mean, low=mean - half, high=mean + half, blocks=len(values))


def typical_of_logs(logs: Sequence[float], design: DesignPlan) -> Typical | None:
    """The geometric mean of numbers given by their natural logarithms; None if empty."""
    if (log := typical(logs, design)) is None:
        return None
    low, high = (None if end is None else end_of(end) for end in (log.low, log.high))
    return Typical(value=math.exp(log.value), low=low, high=high, blocks=log.blocks)
