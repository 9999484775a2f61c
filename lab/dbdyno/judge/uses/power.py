"""Power of a comparison before it is made: differences for its blocks, blocks for a difference.

Two systems started anew for each block differ by chance from start to start. The size of this noise
is not known before the first run, so every answer is given for several sizes
(docs/how-it-works/method.md). Noise within a window is the scatter of throughput per second,
averaged over the window. "Seen" means: in four of five comparisons the ratio's interval leaves 1
outside. A run which stops when decided is judged here by its last block; differences seen earlier
come on top.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal

import numpy as np

from dbdyno.judge.interval import HORIZON_MAX, LEVEL, nominal_level, quantile
from dbdyno.plan.plan import BLOCKS_LOOKED_AHEAD, BLOCKS_MIN, DesignPlan
from dbdyno.stats.design import ONE_CELL, Question, Scatter, TimedDesign
from dbdyno.stats.distributions import (
    Numbers,
    chi_square_quantile,
    noncentral_t_cdf,
    noncentral_t_shift,
    normal_cdf,
)
from dbdyno.stats.pooled import usual_half_width

Stop = Literal["blocks", "decided"]
POWER: Final = 0.8
"""Four of five."""
NOISES: Final = (0.005, 0.015, 0.04, 0.08)
"""Standard deviations of a system's throughput over restarts: a quiet machine to a busy machine;
virtual machines of two processors had 4 % (docs/how-it-works/verdicts.md)."""
USUAL_NOISE: Final = 0.04
SECOND_NOISE: Final = 0.06
"""Scatter of a one-second mean with autocorrelated seconds (3 %, autocorrelation 0.6)."""


def log_sd(noise: float, window_s: float, cells: int = 1) -> float:
    """Standard deviation of ln(B/A) over blocks, for this noise of restarts and this window.

    Args:
        noise: with that of the seconds, where the window is infinite.
        cells: number of cells, each with a window, in the mean.
    """
    return math.sqrt(2 * (noise**2 + SECOND_NOISE**2 / window_s / cells))


def power_of(
    difference: float,
    blocks: int,
    noise: float,
    window_s: float,
    stop: Stop = "blocks",
    question: Question = ONE_CELL,
) -> float:
    """Upper bound of the probability to distinguish a ratio of 1 + difference from 1 by so many
    blocks.

    Args:
        question: level of the question.
    """
    if blocks < BLOCKS_MIN:
        return 0.0
    off = math.log1p(difference) * math.sqrt(blocks) / log_sd(noise, window_s, question.cells)
    multiplier = _multiplier(blocks, stop, question)
    return 1 - float(noncentral_t_cdf(multiplier, _freedom(blocks, question), off))


def difference_seen(
    blocks: int, noise: float, window_s: float, stop: Stop = "blocks", question: Question = ONE_CELL
) -> float | None:
    """The least ratio difference seen, 0.02 = 2 %; None where blocks give no verdict."""
    if blocks < BLOCKS_MIN:
        return None
    multiplier = _multiplier(blocks, stop, question)
    off = float(noncentral_t_shift(1 - POWER, multiplier, _freedom(blocks, question)))
    return math.expm1(off * log_sd(noise, window_s, question.cells) / math.sqrt(blocks))


def difference_seen_in_time(chosen: TimedDesign, scatter: Scatter) -> float:
    """The least ratio difference seen by a run with a time, on a machine of this scatter."""
    blocks, variance = chosen.blocks, scatter.variance(chosen.windows.window_s)
    design = DesignPlan(time_s=blocks * chosen.block_s, stop="decided", blocks=blocks)
    off = float(noncentral_t_shift(1 - POWER, quantile(blocks, design), blocks - 1))
    return math.expm1(off * math.sqrt(2 * variance / blocks))


def blocks_to_see(
    difference: float,
    noise: float,
    window_s: float,
    stop: Stop = "blocks",
    question: Question = ONE_CELL,
) -> int | None:
    """The blocks in which a ratio difference is seen; None if a plan cannot have so many.

    Above `HORIZON_MAX` blocks the intervals are wider than need be, so some larger numbers see
    less.
    """

    def power(blocks: int) -> float:
        return power_of(difference, blocks, noise, window_s, stop, question)

    ends = (HORIZON_MAX, BLOCKS_LOOKED_AHEAD)
    most = next((end for end in ends if power(end) >= POWER), None)
    if most is None:
        return None
    return BLOCKS_MIN + bisect_left(range(BLOCKS_MIN, most), POWER, key=power)


def tie_power(
    margin: float,
    blocks: int,
    noise: float,
    window_s: float,
    stop: Stop = "blocks",
    question: Question = ONE_CELL,
) -> float:
    """Probability for two equal systems to be called equivalent within the margin.

    The interval must lie within the margin, whatever spread the blocks show. So it is the mean over
    the distribution of the spread, at a thousand of its quantiles.
    """
    if blocks < BLOCKS_MIN:
        return 0.0
    freedom = _freedom(blocks, question)
    quantiles = chi_square_quantile((np.arange(1000) + 0.5) / 1000, freedom)
    half = _multiplier(blocks, stop, question) * np.sqrt(quantiles / freedom)
    room = math.log1p(margin) * math.sqrt(blocks) / log_sd(noise, window_s, question.cells) - half
    return float(np.mean(np.maximum(0.0, 2 * normal_cdf(room) - 1)))


POINTS: Final = (np.arange(24) + 0.5) / 24
"""Where a distribution is looked at: the middles of as many equally likely parts."""
DEVIATES: Final = np.array([NormalDist().inv_cdf(point) for point in POINTS.tolist()])
"""Quantiles of the standard normal distribution at these points."""
PLANNED: Final = 0.85
"""Planned a little safer than the promised four of five: a spread from few blocks is more often too
small than too large."""


@dataclass(frozen=True)
class Noise:
    """Standard deviation of a block's ln ratio, its degrees of freedom, and the blocks."""

    sd: float
    freedom: float
    blocks: int

    def later(self, blocks: int) -> float:
        """Degrees of freedom after so many blocks."""
        return self.freedom * (blocks - 1) / (self.blocks - 1)


def blocks_to_decide(
    mean: float, noise: Noise, margin: float, design: DesignPlan, level: float = LEVEL
) -> int | None:
    """Total blocks to decide in four of five runs, given the results of the blocks so far.

    Neither the true difference nor its spread is known, so the chance is the mean over the
    posterior of both after these blocks: Student's posterior, and beside it a tie (within half the
    margin). The tie has the weight of its Bayes factor against the other with the prior of one
    block.

    Args:
        mean: of the blocks' ln ratios.
        level: error rate of the interval: 0.05, or a cell's share of it.

    Returns:
        More than there are; None if more than a plan can have.
    """
    sd, freedom, blocks = noise.sd, noise.freedom, noise.blocks
    if sd <= 0:
        return max(blocks + 1, BLOCKS_MIN)
    spread = sd * np.sqrt(freedom / chi_square_quantile(POINTS, freedom))[:, None]
    t_squared = blocks * (mean / sd) ** 2
    factor = math.sqrt(blocks) * (1 + t_squared / freedom) ** (-(freedom + 1) / 2)
    other = mean + spread / math.sqrt(blocks) * DEVIATES
    tie = math.log1p(margin) * (POINTS - 0.5)

    def chance(wanted: int) -> float:
        error = spread / math.sqrt(wanted)
        half = quantile(wanted, design, level, noise.later(wanted)) * error
        of_tie, of_other = (_decides(truth, error, half, margin) for truth in (tie, other))
        return float(factor * of_tie + of_other) / (1 + float(factor))

    low = max(blocks + 1, BLOCKS_MIN)
    ends = [most for most in (HORIZON_MAX, BLOCKS_LOOKED_AHEAD) if most >= low]
    high = next((most for most in ends if chance(most) >= PLANNED), None)
    return None if high is None else low + bisect_left(range(low, high), PLANNED, key=chance)


def _decides(truth: Numbers, error: Numbers, half: Numbers, margin: float) -> float:
    """Probability of an interval, with this half width, without 1 or within the margin."""
    away = normal_cdf((truth - half) / error) + normal_cdf((-truth - half) / error)
    room = math.log1p(margin) - half
    within = normal_cdf((room - truth) / error) - normal_cdf((-room - truth) / error)
    return float(np.mean(np.minimum(1, away + np.where(room > 0, within, 0))))


def _freedom(blocks: int, question: Question) -> int:
    """Degrees of freedom of the spread that is common to all intervals."""
    return (blocks - 1) * question.intervals


def _multiplier(blocks: int, stop: Stop, question: Question) -> float:
    """Half width over s/√blocks."""
    design = DesignPlan(blocks=blocks, stop=stop)
    if question.intervals == 1:
        return quantile(blocks, design)
    return usual_half_width(blocks, question.intervals, nominal_level(blocks, design))
