"""Stalls and dips of two systems beside each other, counted over the blocks that both have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Final

from dbdyno.judge.beside.stability import Stability
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.measurement_parts import Noun

STALLS: Final = "stalls"
DIPS: Final = "dips"

COUNTS: Final[Mapping[str, Callable[[Stability], int | None]]] = {
    STALLS: lambda one: None if one.stalls is None else len(one.stalls),
    DIPS: lambda one: None if one.low_share is None else len(one.dips),
}


class CountPair(Noun):
    """How often something happened in both systems' trials of one cell.

    Attributes:
        what: a name of `COUNTS`.
        baseline_total, system_total: in the blocks that both have.
    """

    cell: Cell
    baseline: str
    system: str
    what: str
    baseline_total: int
    system_total: int
    blocks: int


def counts(found: Iterable[Stability], baseline: str, systems: Sequence[str]) -> list[CountPair]:
    """Stalls and dips of every system beside the baseline's, by cells."""
    arms: dict[Cell, dict[str, dict[int, Stability]]] = {}
    for one in found:
        arms.setdefault(one.cell, {}).setdefault(one.system, {})[one.block] = one
    made = []
    for (cell, of_cell), system, what in product(arms.items(), systems, COUNTS):
        below, above = of_cell.get(baseline, {}), of_cell.get(system, {})
        read = ((COUNTS[what](below[at]), COUNTS[what](above[at])) for at in below if at in above)
        pairs = [(a, b) for a, b in read if a is not None and b is not None]
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
                )
            )
    return made
