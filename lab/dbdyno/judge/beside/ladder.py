"""Comparisons along the load levels of a workload: crossovers, and regressions at high load.

Where the ratio is no smooth curve that crosses 1 (`curve.py`), a crossover is claimed only if two
cells of a ladder have verdicts of opposite sign, with simultaneous intervals
(docs/how-it-works/verdicts.md).

A system regresses at high load if its throughput at the most connections is below its throughput at
N_ref of them. N_ref is the ladder's middle level, known before the run: if it were the best level,
every chance peak would show a drop behind it (docs/how-it-works/verdicts.md). The price: a drop
from a peak beyond the middle is not claimed while the end is above the middle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from dbdyno.judge.beside.curve import Curve
from dbdyno.judge.estimate import Pairs, Sample, Unsettled, estimated
from dbdyno.judge.verdict import Verdict, Word, settled, word_of
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import PRIMARY
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import DesignPlan
from dbdyno.plan.systems import MeasuredArm


class Crossover(Noun):
    """The levels of a ladder at which a system is better than the baseline, and worse.

    Attributes:
        better, worse: levels (threads) with that verdict, rising.
        between: neighbouring levels among these between which the sign turns.
    """

    baseline: str
    system: str
    workload: str
    setting: str
    better: tuple[int, ...]
    worse: tuple[int, ...]
    between: tuple[tuple[int, int], ...]


class Regression(Noun):
    """A system's throughput at the highest level of a ladder against its middle level.

    Attributes:
        threads_reference, threads_most: the two levels.
        ratio: throughput at the highest over the middle level, geometric mean over blocks; None
            where it stood still at either in some block.
        low, high: confidence interval, simultaneous over the system's ladders, with room for the
            warm-ups' remainder; None below 3 blocks in which both levels are sound.
        level: error rate of this interval alone.
        word: worse where throughput falls; equivalent where it stays within the margin; undecided
            where it stood still in some block, as in verdicts.
    """

    system: str
    workload: str
    setting: str
    threads_reference: int
    threads_most: int
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    level: float | None
    word: Word
    material: bool


def crossovers(verdicts: Sequence[Verdict], curves: Iterable[Curve]) -> tuple[Crossover, ...]:
    """Find the crossovers of each system's ladders.

    Args:
        curves: where one crosses 1, its crossing is that of the ladder.
    """
    crossed = {(c.baseline, c.system, c.workload, c.setting) for c in curves if c.crossing}
    ladders: dict[tuple[str, str, str, str], list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.cell.rate_per_s is None:
            place = (verdict.baseline, verdict.system, *verdict.cell.ladder)
            ladders.setdefault(place, []).append(verdict)
    without = (_crossover(ladder) for place, ladder in ladders.items() if place not in crossed)
    return tuple(crossover for crossover in without if crossover.between)


def regressions(
    pairs: Pairs, cells: Sequence[Cell], systems: Sequence[str], design: DesignPlan
) -> tuple[Regression, ...]:
    """Compare the ends of each system's ladders of two levels or more."""
    return tuple(one for system in systems for one in _regressions(pairs, cells, system, design))


def reference_level(levels: Sequence[int]) -> int:
    """N_ref: the middle of the rising levels, the lower of two middles."""
    rising = sorted(levels)
    return rising[(len(rising) - 1) // 2]


def _crossover(ladder: Sequence[Verdict]) -> Crossover:
    signs = {v.cell.threads: v.word for v in ladder if v.word in (Word.BETTER, Word.WORSE)}
    rising = sorted(signs)
    cell = ladder[0].cell
    return Crossover(
        baseline=ladder[0].baseline,
        system=ladder[0].system,
        workload=cell.workload,
        setting=cell.setting,
        better=tuple(level for level in rising if signs[level] is Word.BETTER),
        worse=tuple(level for level in rising if signs[level] is Word.WORSE),
        between=tuple(
            (lower, upper) for lower, upper in pairwise(rising) if signs[lower] is not signs[upper]
        ),
    )


def _regressions(
    pairs: Pairs, cells: Sequence[Cell], system: str, design: DesignPlan
) -> Iterator[Regression]:
    ladders: dict[tuple[str, str], dict[int, Cell]] = {}
    for cell in cells:
        if cell.rate_per_s is None:
            ladders.setdefault(cell.ladder, {})[cell.threads] = cell
    long = [ladder for ladder in ladders.values() if len(ladder) > 1]
    contrasts = estimated([_contrast(pairs, ladder, system) for ladder in long], design)
    for ladder, (contrast, counted) in zip(long, contrasts, strict=True):
        held = settled(counted, _unsettled(pairs, ladder, system))
        without = Word.UNDECIDED if pairs.stood_still(system, *_ends(ladder)) else Word.NO_VERDICT
        word, material = word_of(held.low, held.high, design.margin) if held else (without, False)
        yield Regression(
            system=system,
            workload=contrast.cell.workload,
            setting=contrast.cell.setting,
            threads_reference=reference_level(list(ladder)),
            threads_most=max(ladder),
            ratio=contrast.ratio,
            low=held.low if held else None,
            high=held.high if held else None,
            blocks=contrast.blocks,
            level=held.level if held else None,
            word=word,
            material=material,
        )


def _ends(ladder: dict[int, Cell]) -> tuple[Cell, Cell]:
    """The cells at the reference level and at the highest level."""
    return ladder[reference_level(list(ladder))], ladder[max(ladder)]


def _unsettled(pairs: Pairs, ladder: dict[int, Cell], system: str) -> Unsettled | None:
    """Bounds of the warm-ups' remainder in the ratio of the two levels."""
    middle, most = _ends(ladder)
    levels = pairs.filed(
        (most, name, MeasuredArm(cell, system))
        for name, cell in (("middle", middle), ("most", most))
    )
    return levels.unsettled(most, "middle", "most")


def _contrast(pairs: Pairs, ladder: dict[int, Cell], system: str) -> Sample:
    """ln X(most) − ln X(reference) of one system, block by block."""
    middle, most = _ends(ladder)
    below, above = (pairs.logs(cell, system, PRIMARY) for cell in (middle, most))
    contrasts = {block: above[block] - below[block] for block in below if block in above}
    if pairs.stood_still(system, middle, most):
        contrasts = {}
    return Sample(most, PRIMARY.name, system, system, contrasts)
