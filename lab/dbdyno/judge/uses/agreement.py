"""Agreement of two runs of an experiment.

A block of one run cannot be paired with a block of the other: days and machines lie between them.
So only each run's own ratio of system to baseline is compared, which is free of drift between the
runs. Both are means of ln ratios with a spread of their own, so their difference has Welch's
interval (Welch 1947, degrees of freedom by Satterthwaite):

    (m₂ − m₁) ± t(ν)·√(f₁²·s₁²/n₁ + f₂²·s₂²/n₂)

f is 1 for a run of fixed blocks. A run until decided stopped at a moment chosen by its data, so
there f is the width of its repeated interval over Student's (`interval`). The cells of a system
share the 5 % equally.

If either run's ratio has a warm-up's remainder, the interval reaches at least as far as the ends of
the two verdicts' intervals, which have room for it. If CPU taken by others may explain a part of
either ratio, the interval has room for this part, as the verdict's own has.

The table of the verdicts gives the word. All of the interval within the margin: the runs agree. All
on one side of zero: they differ. Otherwise they are not shown to differ, a weaker result than
agreement. Two experiments of five blocks rarely prove agreement within 2 %; neither is at fault. If
a system stood still in some blocks of a run, the ratio of the others is not compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum

from dbdyno.judge.estimate import Estimate
from dbdyno.judge.interval import FIXED, LEVEL, end_of, quantile
from dbdyno.judge.verdict import Verdict, Word, beyond_cpu_taken, word_of
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import DesignPlan
from dbdyno.stats.distributions import student_quantile


class Agreeing(StrEnum):
    """Relation of two runs in one comparison."""

    AGREE = "agree"
    DIFFER = "differ"
    NOT_SHOWN = "not shown to differ"
    MISSING = "not in both"


class Agreement(Noun):
    """A system against the baseline in one cell, in two runs.

    Attributes:
        first, second: the runs' verdicts; None where a run has no verdict.
        ratio: second ratio / first ratio; None if either is missing or has a standstill.
        low, high: its interval, simultaneous with the system's other cells at 95 %; None below
            three blocks in either run.
        cells: number of these cells.
    """

    cell: Cell
    baseline: str
    system: str
    first: Verdict | None
    second: Verdict | None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    cells: int = 1
    word: Agreeing = Agreeing.MISSING

    @property
    def same_word(self) -> bool:
        """True if both runs give the same verdict."""
        return bool(self.first and self.second and self.first.word is self.second.word)

    @property
    def contradict(self) -> bool:
        """True if one run says better and the other worse."""
        words = {verdict.word for verdict in (self.first, self.second) if verdict}
        return words == {Word.BETTER, Word.WORSE}


def agreements(
    first: Sequence[Verdict], second: Sequence[Verdict], designs: tuple[DesignPlan, DesignPlan]
) -> Iterator[Agreement]:
    """Compare every comparison of either run, in the first run's order.

    Args:
        designs: each run's stopping rule; the margin is the first run's.
    """
    places = [{_place(verdict): verdict for verdict in run} for run in (first, second)]
    shared = [place for place in places[0] if all(_has_interval(run.get(place)) for run in places)]
    for place in dict.fromkeys([*places[0], *places[1]]):
        cell, _, baseline, system = place
        pair = (places[0].get(place), places[1].get(place))
        bare = Agreement(cell=cell, baseline=baseline, system=system, first=pair[0], second=pair[1])
        if pair[0] is None or pair[1] is None:
            yield bare
        elif pair[0].standstill or pair[1].standstill:
            yield bare.model_copy(update={"word": Agreeing.NOT_SHOWN})
        else:
            cells = max(1, sum(one[-1] == system for one in shared))
            of_pair = _difference(pair[0], pair[1], designs, cells)
            yield bare.model_copy(update=of_pair)


def _has_interval(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.estimate.low is not None and not verdict.standstill


def _place(verdict: Verdict) -> tuple[Cell, str, str, str]:
    return verdict.cell, verdict.metric, verdict.baseline, verdict.system


def _difference(
    first: Verdict, second: Verdict, designs: tuple[DesignPlan, DesignPlan], cells: int
) -> dict[str, object]:
    below, above = first.estimate, second.estimate
    if below.ratio is None or above.ratio is None:
        return {}
    ratio = above.ratio / below.ratio
    half = _half_width((below, above), designs, LEVEL / cells)
    if half is None:
        return {"ratio": ratio, "word": Agreeing.NOT_SHOWN}
    low, high = _settled(first, second, ratio * end_of(-half), ratio * end_of(half))
    low, high = beyond_cpu_taken(low, high, second.cpu_taken)
    low, high = beyond_cpu_taken(low, high, -first.cpu_taken)
    word = _word(low, high, designs[0].margin)
    return {"ratio": ratio, "low": low, "high": high, "cells": cells, "word": word}


def _settled(first: Verdict, second: Verdict, low: float, high: float) -> tuple[float, float]:
    """The interval with room for the warm-ups' remainder in either ratio."""
    if first.steady_after_s is None and second.steady_after_s is None:
        return low, high
    if not (first.low and first.high and second.low and second.high):
        return low, high
    least = end_of(math.log(second.low) - math.log(first.high))
    most = end_of(math.log(second.high) - math.log(first.low))
    return min(low, least), max(high, most)


def _half_width(
    runs: tuple[Estimate, Estimate], designs: tuple[DesignPlan, DesignPlan], level: float
) -> float | None:
    """Half of Welch's interval of the difference of two mean ln ratios, each with its f."""
    parts = []
    for estimate, design in zip(runs, designs, strict=True):
        n = estimate.blocks
        if estimate.log_sd is None or estimate.low is None:
            return None
        wider = quantile(n, design, level) / quantile(n, FIXED, level)
        parts.append(((wider * estimate.log_sd) ** 2 / n, n))
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return 0.0
    freedom = variance**2 / sum(part**2 / (blocks - 1) for part, blocks in parts)
    return student_quantile(1 - level / 2, freedom) * math.sqrt(variance)


def _word(low: float, high: float, margin: float) -> Agreeing:
    word, _ = word_of(low, high, margin)
    if word is Word.EQUIVALENT:
        return Agreeing.AGREE
    return Agreeing.NOT_SHOWN if word is Word.UNDECIDED else Agreeing.DIFFER
