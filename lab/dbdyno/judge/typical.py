"""A typical value of several blocks with the interval that their number allows.

What is judged beside throughput (a peak, a ratio of peaks) is one number a block, as
throughput is, and gets its interval by the same rule: as wide as the way to stop asks for
(method.md 1.b). Positive numbers are taken
by their logarithms, so that a half and a double are equally far; their mean is then geometric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dbdyno.judge.checks.design import BLOCKS_MIN
from dbdyno.judge.interval import interval
from dbdyno.measurement.measurement_parts import Noun
from dbdyno.plan.plan import DesignPlan


class Typical(Noun):
    """A number that every block gave once.

    Attributes:
        value: their mean, geometric where they are positive by nature.
        low, high: its 95 % interval; None below 3 blocks.
        blocks: how many gave one.
    """

    value: float
    low: float | None
    high: float | None
    blocks: int


def typical(values: Sequence[float], design: DesignPlan) -> Typical | None:
    """The arithmetic mean, for shares and differences that may be zero; None without a value."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if len(values) < BLOCKS_MIN:
        return Typical(value=mean, low=None, high=None, blocks=len(values))
    half = float(interval(values, design).half)
    return Typical(value=mean, low=mean - half, high=mean + half, blocks=len(values))


def typical_of_logs(logs: Sequence[float], design: DesignPlan) -> Typical | None:
    """The geometric mean of numbers given by their natural logarithms; None without one."""
    found = typical(logs, design)
    if found is None:
        return None
    return Typical(
        value=math.exp(found.value),
        low=None if found.low is None else math.exp(found.low),
        high=None if found.high is None else math.exp(found.high),
        blocks=found.blocks,
    )
