"""The interval of a mean over blocks: of fixed blocks, or of blocks that may end early.

Whoever looks after every block and stops when the interval pleases, errs more often than promised:
with a t interval at each look, one tie in six gets a winner (docs/how-it-works/method.md). Repeated
confidence intervals (Jennison & Turnbull 1991) are so much wider that all intervals of a run hold
together: mean ± c(n)·s/√n, where c(n) is Student's quantile at the nominal level A·n/N for n of at
most N blocks, and A such that the chance of any miss up to N is the level asked for. Because they
hold together, any reason to stop is allowed: decided, out of time, Ctrl-C.

A comes from `multiplier_table`, whose first look is at three blocks. Between its rows the next
longer horizon serves, and beyond its edges the sum of the looks' levels: both can only make an
interval wider.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dbdyno.judge.multiplier_table import FINAL_LEVELS, LEVELS
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import BLOCKS_MIN, DesignPlan
from dbdyno.stats.distributions import student_quantile

LEVEL: Final = 0.05
"""How often an interval may miss the truth: the complement of 95 %."""
LEFT_FOR_MORE: Final = 0.1
"""Share of the level that is kept for time that may be added (`dbdyno resume --time`)."""
FIXED: Final = DesignPlan()
"""All blocks are run, whatever they show."""
LOG_MAX: Final = 700.0
"""No interval's end lies beyond, up or down: a number must hold its exponential."""
_HORIZONS: Final = tuple(FINAL_LEVELS)
HORIZON_MAX: Final = _HORIZONS[-1]
"""Beyond that many blocks intervals are wider than they need be."""


@dataclass(frozen=True)
class ConfidenceInterval:
    """Mean, standard deviation and half width of an interval, along the last axis of samples."""

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    half: NDArray[np.float64]


def interval(samples: ArrayLike, design: DesignPlan, level: float = LEVEL) -> ConfidenceInterval:
    """The interval of the mean of each sample, as wide as the design's way to stop asks for.

    Works on many samples at once, so that the simulations test the very code that decides.

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


def quantile(n: int, design: DesignPlan, level: float = LEVEL) -> float:
    """Half width over s/√n of n blocks' interval: Student's, or that of a repeated interval."""
    if design.stop == "blocks":
        return _student(n, level)
    if design.time_s is not None:
        level *= share_of_error(design.chosen.additions if design.chosen else 0)
    if n < BLOCKS_MIN:
        return math.inf
    horizon = max(design.blocks, n)
    return _student(n, final_level(horizon, level) * n / horizon)


def share_of_error(additions: int) -> float:
    """Of the whole level, what the blocks until the next addition may spend.

    Time may be added to a run whenever somebody wishes, so every addition must have been paid for
    beforehand: the run as it was begun spends nine tenths, an addition nine tenths of what is left.
    All looks of all of them then miss in no more than the whole level.
    """
    return (1 - LEFT_FOR_MORE) * LEFT_FOR_MORE**additions


@lru_cache(maxsize=4096)
def final_level(horizon: int, level: float = LEVEL) -> float:
    """A: the nominal level at the last of `horizon` blocks, so that all looks miss in `level`.

    Between two levels of the table ln A is interpolated over ln level, which is all but straight.
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
def _student(n: int, level: float) -> float:
    return student_quantile(1 - level / 2, n - 1)


class Typical(Noun):
    """The mean of numbers of which every block gave one, such as a peak, with its interval.

    Attributes:
        value: their mean, geometric where they are positive by nature.
        low, high: its 95 % interval; None below 3 blocks.
        blocks: how many gave one.
    """

    value: float
    low: float | None
    high: float | None
    blocks: int


def typical(values: Sequence[float], design: DesignPlan) -> Typical | None:
    """The arithmetic mean, for shares and differences that may be zero; None without a value."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if len(values) < BLOCKS_MIN:
        return Typical(value=mean, low=None, high=None, blocks=len(values))
    half = float(interval(values, design).half)
    return Typical(value=mean, low=mean - half, high=mean + half, blocks=len(values))


def typical_of_logs(logs: Sequence[float], design: DesignPlan) -> Typical | None:
    """The geometric mean of numbers given by their natural logarithms; None without one."""
    typical_log = typical(logs, design)
    if typical_log is None:
        return None
    return Typical(
        value=math.exp(typical_log.value),
        low=None if typical_log.low is None else end_of(typical_log.low),
        high=None if typical_log.high is None else end_of(typical_log.high),
        blocks=typical_log.blocks,
    )
