"""Causes of a difference: where a transaction's time and CPU go, and which counters differ.

    time of a transaction = CPU + waiting for a CPU + waiting for locks, disks, network

Parts are in microseconds per transaction, with an interval of their difference over the blocks.
Counters of the server are ranked by how much of the difference they can explain.
"""

from __future__ import annotations

import math
from typing import Final

from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.parts import Noun

EXPLAINS_MIN: Final = 0.05
"""Least share of a difference that a counter must explain to be named as its cause."""
EFFECT_MIN: Final = 0.005
"""A smaller change of throughput by a factor counts as no change."""


class Factor(Noun):
    """A factor of the throughput ratio, with its 95 % interval over the blocks.

    Attributes:
        name: `work` (CPU per transaction), `taken` (CPU that others had) or `waiting`.
        ratio: below 1 it makes the system slower.
    """

    name: str
    ratio: float
    low: float | None
    high: float | None


class Part(Noun):
    """A part of a transaction's time or CPU, in µs per transaction.

    Attributes:
        name: `cpu`, `queued`, `waiting`; `user`, `kernel`; or a group of threads.
        difference_us: the system's less the baseline's, mean over blocks; low_us, high_us: its
            interval, which holds together with those of the other parts; None below three blocks.
        share: of the difference of the whole.
    """

    name: str
    baseline_us: float
    system_us: float
    difference_us: float
    low_us: float | None
    high_us: float | None
    share: float | None


class Change(Noun):
    """A counter, or a cost, that differs between two systems per transaction.

    Attributes:
        name: of a cost (`measurement.cost`), or the server's own name of a counter.
        is_cost: True for a cost.
        baseline, system: count per transaction.
        ratio, low, high: system / baseline with its simultaneous interval; the ratio is None where
            the baseline counts nothing.
        explains: the largest share, 0 to 1, of the difference in a transaction's time that it can
            explain; None where the cost of a unit is unknown.
    """

    name: str
    is_cost: bool
    baseline: float
    system: float
    ratio: float | None
    low: float | None
    high: float | None
    explains: float | None


class Causes(Noun):
    """What makes a system slower or faster in a cell.

    Attributes:
        factors: their product is the throughput ratio.
        time: parts of a transaction's time; cpu: parts of its CPU, user and kernel; threads: the
            same CPU by group of threads. Empty where not observed.
        changes: counters that surely differ, the likeliest cause first; ten at most.
        examined: number of counters compared.
    """

    cell: Cell
    baseline: str
    system: str
    factors: tuple[Factor, ...]
    time: tuple[Part, ...]
    cpu: tuple[Part, ...]
    threads: tuple[Part, ...]
    changes: tuple[Change, ...]
    examined: int

    @property
    def first(self) -> Change | Factor | None:
        """The likeliest cause: a counter that explains enough, else the factor furthest from 1."""
        for change in self.changes:
            if (change.explains or 0.0) >= EXPLAINS_MIN:
                return change
        largest = max(self.factors, key=lambda one: abs(math.log(one.ratio)), default=None)
        if largest is None or abs(math.log(largest.ratio)) < EFFECT_MIN:
            return None
        return largest
