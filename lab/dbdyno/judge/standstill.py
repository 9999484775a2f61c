"""Blocks in which a system stood still: its throughput is 0, and 0 has no ratio.

A system which stood still in every block, while the other worked, is worse even without a ratio.
Suppose that two systems stand still equally often, each with probability p. A pair with a
standstill of a given side only has probability p(1 − p), a quarter at most, so n of them, all of
the same side, have 2 · 4^-n at most: 3.1 % for three blocks. As each further block only makes this
rarer, a look after every block costs no error. A system which stood still in some blocks cannot be
judged by the others alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.judge.estimate import Estimate, Pairs
from dbdyno.judge.finding import Finding, Level, Reason
from dbdyno.judge.interval import LEVEL
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import BLOCKS_MIN

EACH_PAIR_MAX: Final = 0.25


class Standstill(Noun):
    """Counts of a cell's pairs with a standstill.

    Attributes:
        system, baseline: pairs with a standstill of this side only; both: of both sides.
        pairs: all sound pairs of the cell.
        level: error rate of a verdict by standstill, given the system's other cells.
        cells: number of cells to share the 5 %.
    """

    system: int
    baseline: int
    both: int
    pairs: int
    level: float = LEVEL
    cells: int = 1

    @property
    def is_whole(self) -> bool:
        """True if the same side stood still in every pair, while the other worked."""
        return self.pairs in (self.system, self.baseline)

    @property
    def claims(self) -> bool:
        """True if it can give a verdict."""
        return self.is_whole and self.pairs >= BLOCKS_MIN

    @property
    def pairs_needed(self) -> int:
        """Number of pairs like these for a verdict."""
        pairs = BLOCKS_MIN
        while chance(pairs) > self.level:
            pairs += 1
        return pairs


def chance(pairs: int) -> float:
    """Bound on the chance of so many pairs, all of the same side, for equal probabilities."""
    return 2 * EACH_PAIR_MAX**pairs


def standstill_of(pairs: Pairs, estimate: Estimate) -> Standstill | None:
    """Count the standstills in the pairs of the estimate's cell; None without a standstill."""
    below, above = (pairs.arm(estimate.cell, who) for who in (estimate.baseline, estimate.system))
    seen = [(below[at].stood_still, above[at].stood_still) for at in below if at in above]
    if not any(map(any, seen)):
        return None
    return Standstill(
        system=seen.count((False, True)),
        baseline=seen.count((True, False)),
        both=seen.count((True, True)),
        pairs=len(seen),
    )


def shared(
    standstills: Sequence[Standstill | None], estimates: Sequence[Estimate]
) -> tuple[list[Standstill | None], float]:
    """The standstills of a system's cells with their levels, and the rest of the level.

    Holm's correction for multiplicity: all cells with a claim share the 5 %. A decided standstill
    passes its share on, an undecided standstill keeps it.
    """
    others = sum(
        one is None and estimate.low is not None
        for one, estimate in zip(standstills, estimates, strict=True)
    )
    claiming = [one.pairs for one in standstills if one is not None and one.claims]
    cells, open_ones = len(claiming) + others, claiming
    share = LEVEL / max(cells, 1)
    while left := [pairs for pairs in open_ones if chance(pairs) > share]:
        if left == open_ones:
            break
        open_ones = left
        share = LEVEL / (len(left) + others)
    update = {"level": share, "cells": max(cells, 1)}
    given = [one and one.model_copy(update=update) for one in standstills]
    return given, LEVEL - len(left) * share


def longest_of(findings: Sequence[Finding]) -> list[Reason]:
    """The evidence of the longest standstill without a completed event."""
    notes = [f.values for f in findings if f.check == "stands-still" and f.level is Level.NOTE]
    longest = sorted(notes, key=lambda values: -float(values["silent_s"]))[:1]
    return [Reason(kind="stands-still", values=values) for values in longest]
