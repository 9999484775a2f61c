"""Noise of a block's ratio: assumed before a machine's first run, then learned from its runs.

Earlier comparisons of the same workloads show how much a ratio scatters from block to block. A few
blocks show a variance badly, and some cells are much noisier than others, so the median over all
cells counts. The part that a workload's cells have in common does not shrink in their mean; their
correlation over blocks shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean, median, variance
from typing import Final

from dbdyno.judge.audit import audit
from dbdyno.judge.beside.grid import block_means
from dbdyno.judge.estimate import Pairs
from dbdyno.judge.uses.power import SECOND_NOISE
from dbdyno.measurement.disturbance import current
from dbdyno.measurement.measurement import Cell, Measurement, without_pilots
from dbdyno.plan.known import Fact, known_of
from dbdyno.plan.plan import BLOCKS_MIN, Plan, cells, comparisons, metric_of
from dbdyno.stats.distributions import chi_square_quantile

FREEDOM_MIN: Final = 6
"""Least degrees of freedom of all cells together: two cells of four blocks."""
USUALLY_SHARED: Final = 0.5
"""Part of a cell's variance in step with its workload's cells; counts like one workload's."""
LEAST: Final = 1e-8
"""Least variance, 0.01 % as a standard deviation: blocks that are equal to the last digit."""

Logs = Mapping[int, float]
"""ln ratios by block."""


@dataclass(frozen=True)
class BlockNoise:
    """Variance of a block's ln throughput, of one system.

    Attributes:
        cell: of a cell.
        shared: the part in common with its workload's cells.
        cells, runs: number of earlier cells and runs behind it; 0 for assumed noise.
    """

    cell: float
    shared: float
    cells: int = 0
    runs: int = 0

    def sd(self, cells: int = 1) -> float:
        """Standard deviation of a mean over so many cells of a workload."""
        return math.sqrt(self.shared + (self.cell - self.shared) / cells)


def assumed(start: float, window_s: float) -> BlockNoise:
    """Noise where starts differ by this standard deviation, and seconds as usual."""
    return BlockNoise(start**2 + SECOND_NOISE**2 / window_s, start**2)


def is_like(earlier: Plan, plan: Plan) -> bool:
    """True for a comparison of dbdyno's own servers in closed loops with one of the workloads."""
    if earlier.procedure.sample_stacks:  # which adds noise of its own
        return False
    own = len(known_of(earlier)[Fact.OURS]) == len(earlier.systems)
    return own and bool(comparisons(earlier)) and any(_cells_like(earlier, plan))


def learned(runs: Iterable[tuple[Plan, Sequence[Measurement]]], plan: Plan) -> BlockNoise | None:
    """Noise in earlier runs of the plan's workloads, for its window; None if they show too little.

    Args:
        runs: plans and measurements of runs that are like the plan (`is_like`).
    """
    variances: list[float] = []
    parts, freedoms, seen = [USUALLY_SHARED], 0, 0
    for earlier, measurements in runs:
        windows_s = earlier.trial.window_s, plan.trial.window_s
        ladders = list(_ladders(earlier, measurements, plan))
        for cell in chain.from_iterable(ladder.values() for ladder in ladders):
            variances.append(_for_window(_typical_variance(cell), *windows_s))
            freedoms += len(cell) - 1
        parts += [_shared_part(ladder) for ladder in ladders if len(ladder) > 1]
        seen += bool(ladders)
    if freedoms < FREEDOM_MIN:
        return None
    typical, shared = max(LEAST, median(variances)), max(0.0, fmean(parts))
    return BlockNoise(typical, shared * typical, len(variances), seen)


def _ladders(
    earlier: Plan, measurements: Sequence[Measurement], plan: Plan
) -> Iterator[dict[Cell, Logs]]:
    """The sound blocks of each workload in each setting, by cell, as its verdicts have them."""
    every = Pairs(audit(without_pilots(current(measurements)), earlier).sound)
    for comparison in comparisons(earlier):
        pairs, ladders = every.of(comparison), dict[tuple[str, str], dict[Cell, Logs]]()
        for cell in comparison.cells(_cells_like(earlier, plan)):
            logs = pairs.log_ratios(cell, *comparison.labels, metric_of(earlier, cell))
            if len(logs) >= BLOCKS_MIN:
                ladders.setdefault(cell.ladder, {})[cell] = logs
        yield from ladders.values()


def _cells_like(earlier: Plan, plan: Plan) -> Iterator[Cell]:
    """Cells of the earlier plan in a closed loop, if the plan has one with the same workload."""
    alike = {one.label for one in earlier.workloads if plan.load.threads and one in plan.workloads}
    return (one for one in cells(earlier) if one.workload in alike and one.rate_per_s is None)


def _typical_variance(logs: Logs) -> float:
    """Variance of one system, too low in half of all cells and too high in the others."""
    freedom = len(logs) - 1
    return variance(logs.values()) / 2 * freedom / float(chi_square_quantile(0.5, freedom))


def _for_window(variance: float, earlier_s: float, window_s: float) -> float:
    """The variance with another window: the part of its seconds shrinks with its length."""
    second = min(SECOND_NOISE**2, variance * earlier_s)
    return variance + second / window_s - second / earlier_s


def _shared_part(ladder: Mapping[Cell, Logs]) -> float:
    """Mean covariance of two cells over the mean variance of a cell."""
    each = fmean(variance(logs.values()) for logs in ladder.values())
    whole = block_means(ladder).values()
    if each == 0 or len(whole) < BLOCKS_MIN:
        return USUALLY_SHARED
    return (len(ladder) * variance(whole) / each - 1) / (len(ladder) - 1)
