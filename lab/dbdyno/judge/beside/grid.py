"""All cells of a system together: one ratio, and the number of verdicts by word.

The cells of a block share its restarts and its minutes, so they are not independent
(docs/how-it-works/verdicts.md): if they were taken as independent, a geometric mean's 95 % interval
would cover less than 70 % (tests/judge/beside/test_grid.py). So each block gives one number, the
weighted mean of its cells' log ratios, and the interval is over blocks. Weights are declared
beforehand: equal over workloads, and equal over the cells of a workload. Blocks with a missing cell
are left out, since they would mix other cells.

Counts are of verdicts, never of point estimates: with no difference at all a system "wins" 15 of 20
cells in 29 % of comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from dbdyno.judge.estimate import Pairs, back
from dbdyno.judge.verdict import Verdict, Word, word_for
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import BY_NAME, Metric
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import DesignPlan


class GridSummary(Noun):
    """A system against the baseline over all cells of closed loops, or over one setting's.

    Attributes:
        setting: the setting of these cells, if there are several; empty for all cells.
        cells: cells in the ratio; `cells_left_out` have fewer than three sound pairs.
        ratio: geometric mean over cells, of the geometric means over blocks; None without a block
            in which all these cells are sound.
        low, high: its 95 % confidence interval; None below 3 blocks.
        blocks: number of blocks with all these cells; block_ratios: the ratio of each.
        word, material: the decision table on that interval; material beyond the margin.
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
    block_ratios: tuple[float, ...]
    word: Word
    material: bool
    counts: dict[Word, int]
    setting: str = ""


def summaries(
    pairs: Pairs, verdicts: Sequence[Verdict], design: DesignPlan
) -> tuple[GridSummary, ...]:
    """Summaries over all cells of a comparison, then over each setting's if there are several.

    Args:
        verdicts: of one comparison.
    """
    # at a given rate the throughput is the rate
    closed = [verdict for verdict in verdicts if verdict.cell.rate_per_s is None]
    by_setting: dict[str, list[Verdict]] = {}
    for verdict in closed:
        by_setting.setdefault(verdict.cell.setting, []).append(verdict)
    grids = {"": closed, **(by_setting if len(by_setting) > 1 else {})}
    return tuple(_summary(pairs, grid, setting, design) for setting, grid in grids.items() if grid)


def weights(cells: Sequence[Cell]) -> dict[Cell, float]:
    """Each cell's share of the mean: workloads weigh alike, and so do a workload's cells."""
    by_workload: dict[str, list[Cell]] = {}
    for cell in cells:
        by_workload.setdefault(cell.workload, []).append(cell)
    return {
        cell: 1 / len(by_workload) / len(alike) for alike in by_workload.values() for cell in alike
    }


def block_means(logs: Mapping[Cell, Mapping[int, float]]) -> dict[int, float]:
    """The weighted mean log ratio of each block in which no cell is missing."""
    share = weights(list(logs))
    whole = set.intersection(*(set(of_cell) for of_cell in logs.values())) if logs else set()
    return {block: sum(share[c] * logs[c][block] for c in logs) for block in sorted(whole)}


def _summary(
    pairs: Pairs, grid: Sequence[Verdict], setting: str, design: DesignPlan
) -> GridSummary:
    first = grid[0]
    metric = BY_NAME[first.metric]
    usable = [verdict for verdict in grid if verdict.low is not None]
    # Where a system stood still in some cell, a mean over the others would hide it.
    stood_still = any(verdict.standstill for verdict in grid)
    means = block_means(
        {
            v.cell: pairs.log_ratios(v.cell, v.baseline, v.system, metric)
            for v in usable
            if not stood_still
        }
    )
    ratio, low, high, _ = back(list(means.values()), design)
    if low is not None and high is not None:
        low, high = _widened(pairs, usable, low, high)
    word, material = _word(low, high, metric, first.margin)
    words = [verdict.word for verdict in grid]
    return GridSummary(
        baseline=first.baseline,
        system=first.system,
        metric=metric.name,
        cells=len(usable),
        cells_left_out=len(grid) - len(usable),
        ratio=ratio,
        low=low,
        high=high,
        blocks=len(means),
        block_ratios=tuple(back([mean])[0] or 1.0 for mean in means.values()),
        word=word,
        material=material,
        counts={word: words.count(word) for word in Word},
        setting=setting,
    )


def _widened(
    pairs: Pairs, verdicts: Sequence[Verdict], low: float, high: float
) -> tuple[float, float]:
    """The interval widened by the warm-ups' remainder in each cell."""
    share = weights([verdict.cell for verdict in verdicts])
    for verdict in verdicts:
        unsettled = pairs.unsettled(verdict.cell, verdict.baseline, verdict.system)
        if unsettled is not None:
            low, high = unsettled.shared(share[verdict.cell]).widened(low, high)
    return low, high


def _word(
    low: float | None, high: float | None, metric: Metric, margin: float
) -> tuple[Word, bool]:
    if low is None or high is None:
        return Word.NO_VERDICT, False
    return word_for(metric, low, high, margin)


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
