"""Two systems' evenness compared, block by block.

What is always above zero (jitter, p99 over p50) is compared as throughput is: by its logarithm
within blocks. What is counted (stalls, dips) is mostly zero, so it has no logarithm, and its
distribution no shape: there the signs of the blocks' differences are turned round in every possible
way, which is exact for any distribution, and says nothing below six blocks (method.md 1.b, 1.e).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Final, TypeVar

import numpy as np

from dbdyno.judge.stability import Stability
from dbdyno.judge.typical import Typical, typical_of_logs
from dbdyno.measurement import Cell, Noun
from dbdyno.plan import DesignPlan

Number = TypeVar("Number", int, float)

JITTER: Final = "jitter"
TAIL: Final = "latency_p99_over_p50"
STALLS: Final = "stalls"
DIPS: Final = "dips"

MEASURES: Final[Mapping[str, Callable[[Stability], float | None]]] = {
    JITTER: lambda one: one.jitter,
    TAIL: lambda one: one.latency_p99_over_p50,
}
COUNTS: Final[Mapping[str, Callable[[Stability], int | None]]] = {
    STALLS: lambda one: None if one.stalls is None else len(one.stalls),
    DIPS: lambda one: None if one.jitter is None else len(one.dips),
}


class StabilityRatio(Noun):
    """One measure of a system over the baseline's, in one cell; above 1 is less even.

    Attributes:
        measure: a name of `MEASURES`.
        baseline_typical, system_typical: geometric means of the blocks that both have.
    """

    cell: Cell
    baseline: str
    system: str
    measure: str
    baseline_typical: float
    system_typical: float
    ratio: Typical


class CountPair(Noun):
    """How often something happened in both systems' trials of one cell.

    Attributes:
        what: a name of `COUNTS`.
        baseline_total, system_total: in the blocks that both have.
        p: how likely chance makes so unequal totals if the systems do not differ (sign-flip, two
            sides).
    """

    cell: Cell
    baseline: str
    system: str
    what: str
    baseline_total: int
    system_total: int
    blocks: int
    p: float


def ratios(
    found: Iterable[Stability], baseline: str, systems: Sequence[str], design: DesignPlan
) -> list[StabilityRatio]:
    """Every measure of every system against the baseline, by cells."""
    made = []
    for (cell, arms), system, measure in product(_arms(found).items(), systems, MEASURES):
        pairs = _pairs(arms, baseline, system, MEASURES[measure])
        logs = [(math.log(a), math.log(b)) for a, b in pairs if a > 0 and b > 0]
        below, above = (typical_of_logs(side, design) for side in _sides(logs))
        ratio = typical_of_logs([b - a for a, b in logs], design)
        if below and above and ratio:
            made.append(
                StabilityRatio(
                    cell=cell,
                    baseline=baseline,
                    system=system,
                    measure=measure,
                    baseline_typical=below.value,
                    system_typical=above.value,
                    ratio=ratio,
                )
            )
    return made


def counts(found: Iterable[Stability], baseline: str, systems: Sequence[str]) -> list[CountPair]:
    """Stalls and dips of every system beside the baseline's, by cells."""
    made = []
    for (cell, arms), system, what in product(_arms(found).items(), systems, COUNTS):
        pairs = _pairs(arms, baseline, system, COUNTS[what])
        if pairs:
            made.append(
                CountPair(
                    cell=cell,
                    baseline=baseline,
                    system=system,
                    what=what,
                    baseline_total=sum(a for a, _ in pairs),
                    system_total=sum(b for _, b in pairs),
                    blocks=len(pairs),
                    p=sign_flip([b - a for a, b in pairs]),
                )
            )
    return made


def sign_flip(differences: Sequence[int]) -> float:
    """Fisher's exact test that differences have no side: the share of all turnings of their signs
    whose sum is as far from 0 as theirs. 1 where all are 0.

    The sums' distribution is built up difference by difference, so any number of blocks is exact.
    """
    sizes = [abs(difference) for difference in differences if difference]
    reach = sum(sizes)
    chances = np.zeros(2 * reach + 1)
    chances[reach] = 1.0
    for size in sizes:
        chances = (np.roll(chances, size) + np.roll(chances, -size)) / 2
    sums = np.arange(-reach, reach + 1)
    return min(1.0, float(chances[np.abs(sums) >= abs(sum(differences))].sum()))


Arms = Mapping[Cell, Mapping[str, Mapping[int, Stability]]]
"""Trials by cell, system and block."""


def _arms(found: Iterable[Stability]) -> Arms:
    arms: dict[Cell, dict[str, dict[int, Stability]]] = {}
    for one in found:
        arms.setdefault(one.cell, {}).setdefault(one.system, {})[one.block] = one
    return arms


def _pairs(
    of_cell: Mapping[str, Mapping[int, Stability]],
    baseline: str,
    system: str,
    read: Callable[[Stability], Number | None],
) -> list[tuple[Number, Number]]:
    """Baseline's and system's numbers in every block in which both have one."""
    below, above = of_cell.get(baseline, {}), of_cell.get(system, {})
    read_in = ((read(below[block]), read(above[block])) for block in below if block in above)
    return [(a, b) for a, b in read_in if a is not None and b is not None]


def _sides(logs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in logs], [b for _, b in logs]
