"""Cells together: one ratio of a comparison, and one of each workload in each setting.

The cells of a block share its restarts and its minutes, so they are not independent
(docs/how-it-works/verdicts.md): if they were taken as independent, a geometric mean's 95 % interval
would cover less than 70 % (tests/judge/beside/test_grid.py). So each block gives one number, the
weighted mean of its cells' log ratios, and the interval is over blocks. Weights are declared
beforehand: equal over workloads, and equal over the cells of a workload.

Each level is a family of its own: the intervals of the workloads hold together at 95 %, and so do
those of the cells. Counts are of verdicts, never of point estimates: with no difference at all a
system "wins" 15 of 20 cells in 29 % of comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from dbdyno.judge.estimate import Estimated, Pairs, Sample, estimated
from dbdyno.judge.verdict import (
    Verdict,
    Word,
    beyond_cpu_taken,
    blocks_needed,
    ladders_of,
    word_for,
)
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import BY_NAME
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import DesignPlan


class GridSummary(Noun):
    """A system against the baseline over several cells of closed loops.

    Attributes:
        workload, setting: of these cells; both empty for all cells.
        cells: cells in the ratio; `cells_left_out` have fewer than three sound pairs.
        ratio: geometric mean over cells, of the geometric means over blocks; None where a system
            stood still in some cell.
        low, high: its 95 % confidence interval, simultaneous over the workloads; None below 3
            blocks.
        blocks: number of blocks with at least half of these cells.
        word, material: the decision table on that interval; material beyond the margin.
        margin: ratio difference of practical importance.
        blocks_needed: for UNDECIDED, total blocks which would probably decide; None if over 1000.
        seconds_needed: time for the missing blocks here; None if unknown.
        counts: verdicts by word.
    """

    baseline: str
    system: str
    metric: str
    cells: int
    cells_left_out: int
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    word: Word
    material: bool
    margin: float
    counts: dict[Word, int]
    workload: str = ""
    setting: str = ""
    blocks_needed: int | None = None
    seconds_needed: float | None = None

    @property
    def is_open(self) -> bool:
        """True if more blocks could still change the word."""
        return self.word is Word.UNDECIDED or (self.word is Word.NO_VERDICT and self.blocks > 0)


def summaries(
    pairs: Pairs,
    verdicts: Sequence[Verdict],
    design: DesignPlan,
    block_s: float | None = None,
) -> tuple[GridSummary, ...]:
    """Summaries over all cells of a comparison, then over each workload's in each setting.

    Without a workload of two cells there are none for workloads.

    Args:
        verdicts: of one comparison.
        block_s: duration of a block of the whole plan here.
    """
    # at a given rate the throughput is the rate
    closed = [verdict for verdict in verdicts if verdict.cell.rate_per_s is None]
    ladders = ladders_of(closed)
    levels = [{("", ""): closed}] if closed else []
    if 1 < len(ladders) < len(closed):
        levels.append(ladders)
    return tuple(one for grids in levels for one in _level(pairs, grids, design, block_s))


def of_workloads(
    verdicts: Sequence[Verdict], summarised: Iterable[GridSummary]
) -> list[GridSummary]:
    """A comparison's summaries of workloads; of a single workload that of all cells.

    Args:
        summarised: of every comparison, by `summaries`.
    """
    is_single = len(ladders_of(verdicts)) == 1
    return [one for one in _of_arms(verdicts, summarised) if one.workload or is_single]


def of_all_cells(
    verdicts: Sequence[Verdict], summarised: Iterable[GridSummary]
) -> GridSummary | None:
    """A comparison's summary of all cells."""
    return next((one for one in _of_arms(verdicts, summarised) if not one.workload), None)


def _of_arms(
    verdicts: Sequence[Verdict], summarised: Iterable[GridSummary]
) -> Iterator[GridSummary]:
    arms = {(one.baseline, one.system) for one in verdicts}
    return (one for one in summarised if (one.baseline, one.system) in arms)


def at_level(
    verdicts: Sequence[Verdict], summarised: Iterable[GridSummary], design: DesignPlan
) -> list[Verdict | GridSummary]:
    """A comparison's answers at the level of its question: workloads or cells.

    A workload of a single cell is answered by that cell. Rates of an open loop, and cells short of
    three sound blocks, count by themselves at any level.

    Args:
        summarised: of every comparison, by `summaries`.
    """
    workloads = of_workloads(verdicts, summarised)
    if not workloads or not design.asks_for_workloads(len(verdicts)):
        return list(verdicts)
    short = (Word.VOID, Word.NO_VERDICT)
    by_cell = [v for v in verdicts if v.cell.rate_per_s is not None or v.word in short]
    return [*workloads, *by_cell]


def _level(
    pairs: Pairs,
    grids: Mapping[tuple[str, str], Sequence[Verdict]],
    design: DesignPlan,
    block_s: float | None,
) -> Iterator[GridSummary]:
    """The summary of each workload and setting, with intervals that hold together."""
    judged = estimated([_sample(pairs, grid) for grid in grids.values()], design)
    for (place, grid), of_grid in zip(grids.items(), judged, strict=True):
        yield _summary(pairs, place, grid, of_grid, design, block_s)


def weights(cells: Sequence[Cell]) -> dict[Cell, float]:
    """Each cell's share of the mean: workloads weigh alike, and so do a workload's cells."""
    by_workload: dict[str, list[Cell]] = {}
    for cell in cells:
        by_workload.setdefault(cell.workload, []).append(cell)
    return {
        cell: 1 / len(by_workload) / len(alike) for alike in by_workload.values() for cell in alike
    }


def block_means(logs: Mapping[Cell, Mapping[int, float]]) -> dict[int, float]:
    """The weighted mean log ratio of each block."""
    share = weights(list(logs))
    return {
        block: sum(share[cell] * of_cell[cell] for cell in logs)
        for block, of_cell in filled(logs).items()
    }


def filled(logs: Mapping[Cell, Mapping[int, float]]) -> dict[int, dict[Cell, float]]:
    """The log ratio of each cell in each block.

    A cell that is missing in a block is taken to deviate from its mean as the block's other cells
    do; a block with less than half of the weight is left out.
    """
    if not all(logs.values()):
        return {}
    share, blocks = weights(list(logs)), {}
    usual = {cell: fmean(of_cell.values()) for cell, of_cell in logs.items()}
    for block in sorted(set().union(*logs.values())):
        there = [cell for cell in logs if block in logs[cell]]
        weight = sum(share[cell] for cell in there)
        if weight >= 0.5:
            off = sum(share[cell] * (logs[cell][block] - usual[cell]) for cell in there) / weight
            blocks[block] = {c: logs[c].get(block, usual[c] + off) for c in logs}
    return blocks


def sample_of(samples: Sequence[Sample]) -> Sample:
    """The samples of several cells together, under the name of the first cell."""
    return replace(samples[0], logs=block_means({sample.cell: sample.logs for sample in samples}))


def _sample(pairs: Pairs, grid: Sequence[Verdict]) -> Sample:
    samples = [
        pairs.sample(v.cell, v.baseline, v.system, BY_NAME[v.metric])
        for v in grid
        if v.low is not None
    ]
    # Where a system stood still in some cell, a mean over the others would hide it.
    if not samples or any(verdict.standstill for verdict in grid):
        first = grid[0]
        return Sample(first.cell, first.metric, first.baseline, first.system, {})
    return sample_of(samples)


def _summary(
    pairs: Pairs,
    place: tuple[str, str],
    grid: Sequence[Verdict],
    judged: Estimated,
    design: DesignPlan,
    block_s: float | None,
) -> GridSummary:
    (workload, setting), (estimate, held) = place, judged
    margin, usable = grid[0].margin, [verdict for verdict in grid if verdict.low is not None]
    low, high, needed, missing_s = None, None, None, None
    word, material = Word.NO_VERDICT, False
    if held is not None:
        low, high = _widened(pairs, usable, held.low, held.high)
        word, material = word_for(BY_NAME[estimate.metric], low, high, margin)
    if word is Word.UNDECIDED:
        needed = blocks_needed(estimate, held, margin, design)
    if needed is not None and block_s is not None:
        missing_s = (needed - estimate.blocks) * block_s
    words = [verdict.word for verdict in grid]
    return GridSummary(
        baseline=estimate.baseline,
        system=estimate.system,
        metric=estimate.metric,
        cells=len(usable),
        cells_left_out=len(grid) - len(usable),
        ratio=estimate.ratio,
        low=low,
        high=high,
        blocks=estimate.blocks,
        word=word,
        material=material,
        margin=margin,
        counts={word: words.count(word) for word in Word},
        workload=workload,
        setting=setting,
        blocks_needed=needed,
        seconds_needed=missing_s,
    )


def _widened(
    pairs: Pairs, verdicts: Sequence[Verdict], low: float, high: float
) -> tuple[float, float]:
    """The interval widened by the warm-ups' remainder and by CPU that others took, in each cell."""
    share = weights([verdict.cell for verdict in verdicts])
    taken = sum(share[verdict.cell] * verdict.cpu_taken for verdict in verdicts)
    low, high = beyond_cpu_taken(low, high, taken)
    for verdict in verdicts:
        unsettled = pairs.unsettled(verdict.cell, verdict.baseline, verdict.system)
        if unsettled is not None:
            low, high = unsettled.shared(share[verdict.cell]).widened(low, high)
    return low, high


class MachineRatio(Noun):
    """A comparison in a cell on one of several machines.

    Attributes:
        ratio: geometric mean over the machine's sound blocks.
    """

    cell: Cell
    baseline: str
    system: str
    machine: str
    blocks: int
    ratio: float


def machine_ratios(pairs: Pairs, verdicts: Iterable[Verdict]) -> Iterator[MachineRatio]:
    """Yield the ratio on each machine, for each verdict with blocks on two machines or more."""
    for verdict in verdicts:
        cell, baseline, system = verdict.cell, verdict.baseline, verdict.system
        by_machine: dict[str, list[float]] = {}
        for block, log in pairs.log_ratios(cell, baseline, system, BY_NAME[verdict.metric]).items():
            machine = pairs.arm(cell, system)[block].measurement.machine
            by_machine.setdefault(machine, []).append(log)
        for machine, logs in sorted(by_machine.items()) if len(by_machine) > 1 else ():
            yield MachineRatio(
                cell=cell,
                baseline=baseline,
                system=system,
                machine=machine,
                blocks=len(logs),
                ratio=math.exp(fmean(logs)),
            )
