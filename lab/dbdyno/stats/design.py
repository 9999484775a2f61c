"""The design with the narrowest interval in a given time, from scatter and costs.

A block's ratio scatters from start to start of the servers and from second to second of a window,
and each start costs time. Short windows give more blocks, long ones steadier ones; scatter and
costs of the machine decide which gives the narrowest interval (docs/how-it-works/time.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from dbdyno.stats.distributions import Numbers
from dbdyno.stats.pooled import usual_half_width

FIRST_BLOCKS: Final = 2
"""The least that show how much starts scatter; their orders of systems mirror each other."""
FIRST_WARMUP_S: Final = 4.0
FIRST_WINDOW_S: Final = 10.0
"""Servers begin unevenly for some seconds, and how that ends shows in no shorter window: with 4 s
more blocks fit, but the intervals, which allow for warm-ups, are wider (docs/how-it-works/time.md).
"""
WINDOW_STEP: Final = 1.25
"""From one length that is considered to the next; nearer ones differ by nothing that matters."""
START_NOISE_USUAL: Final = 0.03
START_NOISE_WEIGHT: Final = 2
"""Two blocks say little about starts, so what is usual counts like so many differences more."""
START_NOISE_MIN: Final = 0.005
START_S_USUAL: Final = 5.0
TRIAL_S: Final = 1.5
"""What a start and a trial take beyond their load, before any was measured."""


class Costs(NamedTuple):
    """Seconds that a trial takes beyond its load.

    Attributes:
        start_s, trial_s: of a trial after a start of the server, and of one on a running server.
    """

    start_s: float
    trial_s: float


class Scatter(NamedTuple):
    """Noise in the first blocks, as standard deviations of ln throughput.

    Attributes:
        start: from start to start, beyond the part explained by the seconds of a window.
        second: of a second, as it counts in the mean of many.
    """

    start: float
    second: float

    def variance(self, window_s: float, cells: int = 1) -> float:
        """Of one system's mean ln throughput in trials of so many cells after one start."""
        return self.start**2 + self.second**2 / window_s / cells


class Block(NamedTuple):
    """The trials of one block, and the starts of servers among them."""

    trials: int
    starts: int

    def seconds(self, load_s: float, costs: Costs) -> float:
        """Duration of a block whose trials each run a load for so long."""
        warm = self.trials - self.starts
        return self.trials * load_s + self.starts * costs.start_s + warm * costs.trial_s


@dataclass(frozen=True)
class Question:
    """The intervals that a run is to narrow: their number, and the cells in the mean of each."""

    intervals: int = 1
    cells: int = 1


ONE_CELL: Final = Question()


class Windows(NamedTuple):
    """Seconds of a trial's load before and within its window."""

    warmup_s: float
    window_s: float

    @property
    def load_s(self) -> float:
        return self.warmup_s + self.window_s


class TimedDesign(NamedTuple):
    """A design chosen for a time.

    Attributes:
        blocks: as many as fit, the first ones included.
        block_s: duration of one.
    """

    windows: Windows
    blocks: int
    block_s: float


def first_windows(time_s: float, block: Block, blocks_min: int) -> Windows:
    """The windows of a run's first blocks.

    Args:
        blocks_min: the least that give a verdict; a short time is for those, in equal shares.
    """
    share_s = time_s / ((blocks_min + 1) * block.trials)
    return Windows(
        warmup_s=round(max(1.0, min(FIRST_WARMUP_S, 0.25 * share_s)), 1),
        window_s=round(max(2.0, min(FIRST_WINDOW_S, 0.4 * share_s)), 1),
    )


def narrowest(
    left_s: float,
    block: Block,
    first: Windows,
    scatter: Scatter,
    costs: Costs,
    blocks_max: int,
    machines: int = 1,
    question: Question = ONE_CELL,
) -> TimedDesign:
    """The window, and the blocks that then fit into the time, with the narrowest interval.

    Args:
        left_s: the time that the first blocks leave.
        first: windows of those.
        machines: how many run blocks beside each other; each of them has the time that is left.
        question: level of the question.
    """

    def seconds(window_s: float) -> float:
        return block.seconds(first.warmup_s + window_s, costs)

    def blocks_of(window_s: float) -> int:
        each = int(left_s / seconds(window_s))
        return min(blocks_max, FIRST_BLOCKS + machines * max(1, each))

    def half_width(window_s: float) -> float:
        blocks = blocks_of(window_s)
        later = (blocks - FIRST_BLOCKS) * scatter.variance(window_s, question.cells)
        variances = FIRST_BLOCKS * scatter.variance(first.window_s, question.cells) + later
        return usual_half_width(blocks, question.intervals) * math.sqrt(2 * variances) / blocks

    lengths = [first.window_s]  # a shorter one would hide warm-ups that the first windows show
    while seconds(lengths[-1] * WINDOW_STEP) <= left_s:
        lengths.append(float(f"{lengths[-1] * WINDOW_STEP:.2g}"))
    window_s = min(lengths, key=half_width)
    return TimedDesign(Windows(first.warmup_s, window_s), blocks_of(window_s), seconds(window_s))


def scatter_of(arms: Sequence[Sequence[Numbers]]) -> Scatter:
    """The scatter that trials show.

    Args:
        arms: of each system and cell the rates of the whole seconds of each trial.
    """
    second = _second_noise([rates for arm in arms for rates in arm])
    logs = [[math.log(rates.mean()) for rates in arm if rates.any()] for arm in arms]
    between = [float(np.var(arm, ddof=1)) for arm in logs if len(arm) > 1]
    if not between:
        return Scatter(START_NOISE_USUAL, second)
    length_s = fmean(len(rates) for arm in arms for rates in arm)
    seen = max(0.0, fmean(between) - second**2 / length_s)
    weight = START_NOISE_WEIGHT + len(between)
    start = math.sqrt((START_NOISE_WEIGHT * START_NOISE_USUAL**2 + len(between) * seen) / weight)
    return Scatter(max(START_NOISE_MIN, start), second)


def _second_noise(trials: Sequence[Numbers]) -> float:
    """Relative standard deviation of a second.

    Neighbouring seconds are alike, so the variance grows by twice their correlation, which is taken
    over all trials at once; that of few seconds is too low by about one over their number.
    """
    known = [rates / rates.mean() - 1 for rates in trials if len(rates) > 2 and rates.any()]
    squares = math.fsum(float(off @ off) for off in known)
    if not squares:
        return 0.0
    products = math.fsum(float(off[1:] @ off[:-1]) for off in known)
    correlation = products / squares + fmean(1 / len(off) for off in known)
    variance = squares / sum(len(off) - 1 for off in known)
    return math.sqrt(variance * max(1.0, 1 + 2 * correlation))
