"""How much a comparison differs from machine to machine, where blocks ran on several.

A verdict rests on blocks, so it holds for the machines that ran them. For another machine like them
the machines are the sample: each gives one number, the mean of its blocks' ln ratios, and the
interval is Student's for one more such number, not for their mean. How much machines differ beyond
what blocks do by themselves is the variance component between groups of a one-way layout with
unequal groups (Searle, Casella and McCulloch, Variance Components, 1992, section 3.6); whether they
differ at all is its F test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, stdev
from typing import Final

from dbdyno.judge.estimate import Pairs
from dbdyno.judge.interval import end_of
from dbdyno.judge.verdict import Verdict
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import BY_NAME
from dbdyno.measurement.parts import Noun
from dbdyno.stats.distributions import student_quantile, variance_ratio_tail

CHANCE: Final = 0.05


class OnMachine(Noun):
    """The ratio on one machine: geometric mean over its sound blocks."""

    machine: str
    ratio: float
    blocks: int


class MachineSpread(Noun):
    """A comparison in one cell, by machines.

    Attributes:
        between: standard deviation of machines' ln ratios beyond what their blocks explain.
        differ: whether they differ by more than chance would have it in 5 % of runs; None where no
            machine has two blocks.
        ratio, low, high: of another machine like these, with the interval in which it lies in 95 %
            of runs; that of two machines is as wide as two numbers make it.
    """

    cell: Cell
    baseline: str
    system: str
    machines: tuple[OnMachine, ...]
    between: float
    differ: bool | None
    ratio: float
    low: float
    high: float


def machine_spreads(pairs: Pairs, verdicts: Iterable[Verdict]) -> Iterator[MachineSpread]:
    """For each verdict whose blocks ran on two machines or more."""
    for verdict in verdicts:
        logs = pairs.log_ratios(
            verdict.cell, verdict.baseline, verdict.system, BY_NAME[verdict.metric]
        )
        by_machine: dict[str, list[float]] = {}
        for block, log in logs.items():
            machine = pairs.arm(verdict.cell, verdict.system)[block].measurement.machine
            by_machine.setdefault(machine, []).append(log)
        if len(by_machine) > 1:
            yield _spread(verdict, dict(sorted(by_machine.items())))


def _spread(verdict: Verdict, by_machine: dict[str, list[float]]) -> MachineSpread:
    groups = list(by_machine.values())
    means = [fmean(logs) for logs in groups]
    middle = fmean(means)
    low, high = another(means)
    between, differ = components(groups)
    return MachineSpread(
        cell=verdict.cell,
        baseline=verdict.baseline,
        system=verdict.system,
        machines=tuple(
            OnMachine(machine=name, ratio=math.exp(fmean(logs)), blocks=len(logs))
            for name, logs in by_machine.items()
        ),
        between=between,
        differ=differ,
        ratio=math.exp(middle),
        low=end_of(low),
        high=end_of(high),
    )


def another(means: Sequence[float]) -> tuple[float, float]:
    """Between which limits one more of these numbers lies in 95 % of cases."""
    count = len(means)
    apart = stdev(means) * math.sqrt(1 + 1 / count)
    half = student_quantile(0.975, count - 1) * apart
    return fmean(means) - half, fmean(means) + half


def components(groups: Sequence[Sequence[float]]) -> tuple[float, bool | None]:
    """Standard deviation between groups beyond that within, and whether F finds any.

    Without a group of two nothing is known of what is within: all of it is between.
    """
    sizes = [len(group) for group in groups]
    total, count = sum(sizes), len(groups)
    means = [fmean(group) for group in groups]
    if total == count:
        return stdev(means), None
    middle = sum(map(sum, groups)) / total
    apart = zip(sizes, means, strict=True)
    above = sum(size * (mean - middle) ** 2 for size, mean in apart) / (count - 1)
    inside = sum(
        (value - mean) ** 2 for group, mean in zip(groups, means, strict=True) for value in group
    ) / (total - count)
    typical = (total - sum(size**2 for size in sizes) / total) / (count - 1)
    between = math.sqrt(max(0.0, (above - inside) / typical))
    if inside <= 0:
        return between, above > 0
    chance = variance_ratio_tail(above / inside, count - 1, total - count)
    return between, chance < CHANCE
