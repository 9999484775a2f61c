"""Outlying runs: named, listed, never dropped.

A restart with 30 % less throughput, once in thirty, is a fact about the system, not a fault of the
measurement, and twenty blocks are too few to give its frequency (docs/how-it-works/method.md).
So every outlying run stays in all numbers and is listed here.

The rule is Rosner's generalised extreme Studentised deviate (Technometrics 25, 1983), which finds
outliers even if several hide each other. Each step has 2.5 %, so in about 5 % of cases five to
twelve runs without an outlier are given one (simulated in the tests). Besides, a run must be off by
more than the margin: smaller deviations do not matter. If blocks ran on several machines, runs are
compared with others of the same machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from dbdyno.judge.audit import Sound
from dbdyno.measurement.measurement import Cell, Trial
from dbdyno.measurement.metric import Metric
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import BLOCKS_FEW
from dbdyno.stats.distributions import student_quantile

MetricOf = Callable[[Cell], Metric]
"""The metric for judging a cell's runs."""
STEP_CHANCE: Final = 0.025


class Outlier(Noun):
    """A trial apart from the system's others in its cell.

    Attributes:
        trial: its key.
        metric: the outlying metric: throughput, or at a fixed rate latency.
        ratio: its value over the geometric mean of the runs which are no outliers.
        runs: sound trials of the system in the cell on that machine, this one included.
    """

    trial: str
    cell: Cell
    system: str
    block: int
    metric: str
    ratio: float
    runs: int


def outliers(sound: Iterable[Sound], margin: float, metric_of: MetricOf) -> list[Outlier]:
    """List the outlying trials in the order of trials; empty among fewer than five."""
    groups: dict[tuple[Cell, str, str], list[tuple[Trial, float]]] = {}
    for measured in sound:
        value = measured.value(metric_of(measured.trial.cell))
        if value:
            place = measured.trial.cell, measured.trial.system, measured.measurement.machine
            groups.setdefault(place, []).append((measured.trial, math.log(value)))
    outliers = []
    for (cell, *_), trials in groups.items():
        for place_of, off in outlying([log for _, log in trials], margin).items():
            trial, _ = trials[place_of]
            outliers.append(
                Outlier(
                    trial=trial.key,
                    cell=trial.cell,
                    system=trial.system,
                    block=trial.block,
                    metric=metric_of(cell).name,
                    ratio=math.exp(off),
                    runs=len(trials),
                )
            )
    return outliers


def outlying(logs: Sequence[float], margin: float) -> dict[int, float]:
    """Places of the outliers, with their distance from the mean of the rest; empty below five.

    At most the smaller half can be outliers: between two equal halves neither is the odd one.
    """
    if len(logs) < BLOCKS_FEW:
        return {}
    places = rosner(logs, (len(logs) - 1) // 2)
    rest = [log for place, log in enumerate(logs) if place not in places]
    middle = math.fsum(rest) / len(rest)
    far = {place: logs[place] - middle for place in sorted(places)}
    return {place: off for place, off in far.items() if abs(off) > math.log1p(margin)}


def rosner(sample: Sequence[float], most: int, chance: float = STEP_CHANCE) -> set[int]:
    """The places named by the generalised ESD test, `most` at the most.

    Each step sets apart the value furthest from the mean. The last step whose value was too far for
    `chance` gives the number of outliers.
    """
    values = np.asarray(sample, dtype=np.float64)
    left = list(range(len(values)))
    taken: list[int] = []
    last_step = 0
    for step in range(1, most + 1):
        rest = values[left]
        sd = float(rest.std(ddof=1))
        if sd <= 1e-12:
            break
        off = np.abs(rest - rest.mean())
        worst = int(off.argmax())
        if float(off[worst]) / sd > _critical(len(values), step, chance):
            last_step = step
        taken.append(left.pop(worst))
    return set(taken[:last_step])


def _critical(count: int, step: int, chance: float) -> float:
    """Rosner's λ of the step: the greatest deviate of so many exceeds it with that chance."""
    left = count - step + 1
    t = student_quantile(1 - chance / (2 * left), left - 2)
    return (left - 1) * t / math.sqrt((left - 2 + t * t) * left)
