"""Cells worth measuring again: a list that may err, beside verdicts that hold together.

Holm's intervals (`holm`) keep the chance of any wrong word at 5 %, and among many cells pay for it
with differences that stay undecided. Benjamini and Hochberg's step-up ("Controlling the false
discovery rate", 1995) promises less: of the cells it lists, 5 % at most are ties on average. That
is no ground for a verdict but a good one for another run of just these cells, whose verdicts then
share the 5 % among fewer.

The promise is about the whole list. Its entries that are still undecided are its weakest, and most
of its ties are among them: simulated with 7 of 20 cells 4 % apart, 9 to 37 % of these are ties, and
all of them once every true difference has its verdict (tests/judge/test_exploratory.py). So a list
is kept whole, with the word that each cell has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dbdyno.judge.estimate import Estimate
from dbdyno.judge.sequential import LEVEL, level_left
from dbdyno.judge.verdict import Verdict, Word, word_for
from dbdyno.measurement import Cell, Noun
from dbdyno.metric import BY_NAME
from dbdyno.plan import DesignPlan


class Candidate(Noun):
    """An entry of a system's list. It is no verdict.

    Attributes:
        leans: better or worse than the baseline, as its ratio has it.
        ratio: of the cell's own estimate; picked for its size, so probably too far from 1.
        low, high: interval of the cell's verdict, which holds together with those of all cells.
        p: least level at which the cell's own interval leaves out a ratio of 1.
        cells: how many cells the list was picked from.
        word: what the cell's verdict says; only UNDECIDED is worth measuring again.
    """

    cell: Cell
    metric: str
    baseline: str
    system: str
    leans: Word
    ratio: float
    low: float
    high: float
    p: float
    cells: int
    word: Word


def candidates(verdicts: Sequence[Verdict], design: DesignPlan) -> tuple[Candidate, ...]:
    """The lists of all systems, in the order of the verdicts.

    A list is picked from the cells that share a system's 5 % (`holm`): those with an interval. One
    cell has nothing to be picked from, so it has no list.
    """
    made: dict[int, Candidate] = {}
    for system in dict.fromkeys(verdict.system for verdict in verdicts):
        able = [one for one in verdicts if one.system == system and one.low is not None]
        levels = [p_of(one.estimate, design) for one in able]
        for verdict, p, is_in in zip(able, levels, stepped_up(levels), strict=True):
            if is_in and len(able) > 1:
                made[id(verdict)] = _candidate(verdict, p, len(able))
    return tuple(made[id(verdict)] for verdict in verdicts if id(verdict) in made)


def p_of(estimate: Estimate, design: DesignPlan) -> float:
    """The least level at which the estimate's own interval leaves out a ratio of 1."""
    if estimate.ratio is None or estimate.log_sd is None or estimate.ratio == 1:
        return 1.0
    error = estimate.log_sd / math.sqrt(estimate.blocks)
    off = math.log(estimate.ratio) / error if error else math.inf
    return float(level_left(off, estimate.blocks, design))


def stepped_up(levels: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Which p-values are listed: the k least, with the greatest k whose k-th is k/m·level at most.

    The expected share of ties in the list is `level` times their share of all cells, for cells that
    are independent; for cells that share restarts it was measured (docs/method.md).
    """
    shares = (level * rank / len(levels) for rank in range(1, len(levels) + 1))
    passed = [p for p, share in zip(sorted(levels), shares, strict=True) if p <= share]
    return [bool(passed) and p <= passed[-1] for p in levels]


def _candidate(verdict: Verdict, p: float, cells: int) -> Candidate:
    estimate = verdict.estimate
    if estimate.ratio is None or verdict.low is None or verdict.high is None:
        raise ValueError(f"{estimate.blocks} blocks have no interval")
    leans, _ = word_for(BY_NAME[verdict.metric], estimate.ratio, estimate.ratio, 0.0)
    return Candidate(
        cell=verdict.cell,
        metric=verdict.metric,
        baseline=verdict.baseline,
        system=verdict.system,
        leans=leans,
        ratio=estimate.ratio,
        low=verdict.low,
        high=verdict.high,
        p=p,
        cells=cells,
        word=verdict.word,
    )
