"""Blocks in which a system stood still: its throughput is 0, and 0 has no ratio.

One that stood still in every block, while the other worked, is the worse one without any ratio: two
that do so equally often, each with probability p, would show a pair like that with p(1 − p), which
is a quarter at most, and so n of them, all of one side, with 2 · 4^-n: 3.1 % for three blocks. As
each block only makes that rarer, looking after every block costs nothing. One that stood still in
some blocks cannot be judged by the others alone.
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
    """In how many pairs of a cell somebody stood still.

    Attributes:
        system, baseline: pairs in which only that one stood still; both: in which both did.
        pairs: all sound pairs of the cell.
        level: how often a word that rests on it may be wrong, given the system's other cells.
        cells: how many cells share the 5 %.
    """

    system: int
    baseline: int
    both: int
    pairs: int
    level: float = LEVEL
    cells: int = 1

    @property
    def is_whole(self) -> bool:
        """Whether one and the same stood still in every pair, while the other one worked."""
        return self.pairs in (self.system, self.baseline)

    @property
    def claims(self) -> bool:
        """Whether it can give a word at all."""
        return self.is_whole and self.pairs >= BLOCKS_MIN

    @property
    def pairs_needed(self) -> int:
        """Pairs like these that decide."""
        pairs = BLOCKS_MIN
        while chance(pairs) > self.level:
            pairs += 1
        return pairs


def chance(pairs: int) -> float:
    """How often two that stand still equally often show so many pairs, all of one side."""
    return 2 * EACH_PAIR_MAX**pairs


def standstill_of(pairs: Pairs, estimate: Estimate) -> Standstill | None:
    """The pairs of the estimate's cell in which one of the two stood still; None if none did."""
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
    """The standstills of one system's cells with their levels, and the level that is left.

    Holm's method, as `adjusted` has it for intervals: all cells that claim something share the
    5 %; a standstill that is decided passes its share on, one that is not keeps it.
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
    """The evidence of the longest standstill in which nothing was completed."""
    notes = [f.values for f in findings if f.check == "stands-still" and f.level is Level.NOTE]
    longest = sorted(notes, key=lambda values: -float(values["silent_s"]))[:1]
    return [Reason(kind="stands-still", values=values) for values in longest]
