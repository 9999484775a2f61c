"""Values of a system and ratios of two systems, each with the interval that its blocks allow.

The block is the unit of replication, never the second or the request: method.md 3.1 measures what
becomes of intervals that forget it (a winner in 55 to 79 % of ties). So every trial gives one
number, its logarithm is taken, and Student's t does the rest: on the blocks' log values for one
system, on the differences within blocks for two. Only `Sound` trials can enter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from dbdyno.judge.audit import Sound
from dbdyno.judge.checks_design import BLOCKS_MIN
from dbdyno.measurement import Cell, Noun, value_of
from dbdyno.metric import TABLE, Metric

CONFIDENCE: Final = 0.95


class SystemValue(Noun):
    """One metric of one system in one cell.

    Attributes:
        value: merged over the sound trials as the metric says; None if it was not seen.
        low, high: 95 % interval of the blocks' typical (geometric mean) value; None below 3 blocks.
        blocks: sound blocks in which the metric was seen.
    """

    cell: Cell
    system: str
    metric: str
    value: float | None
    low: float | None
    high: float | None
    blocks: int


class Estimate(Noun):
    """How much of the baseline's value a system has: one metric, one cell.

    Attributes:
        ratio: system / baseline, geometric mean over blocks; None without a sound pair.
        low, high: 95 % interval of the ratio; None below 3 blocks.
        blocks: sound pairs.
        log_sd: standard deviation of the blocks' ln ratios; None below 2 blocks.
    """

    cell: Cell
    metric: str
    baseline: str
    system: str
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    log_sd: float | None


@dataclass(frozen=True)
class Interval:
    """Mean, standard deviation and half width of the t interval, along the last axis of samples."""

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    half: NDArray[np.float64]


def t_interval(samples: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Student's interval of the mean: mean ± t(n−1)·s/√n over the last axis (method.md 1.b).

    Works on many samples at once, so that the simulations test the very code that decides.

    Raises:
        ValueError: fewer than two numbers in a sample.
    """
    values = np.asarray(samples, dtype=np.float64)
    n = values.shape[-1]
    if n < 2:
        raise ValueError(f"an interval needs two numbers at least, found {n}")
    sd = values.std(axis=-1, ddof=1)
    quantile = float(stats.t.ppf((1 + confidence) / 2, n - 1))
    return Interval(values.mean(axis=-1), sd, quantile * sd / math.sqrt(n))


def system_values(sound: Iterable[Sound], cells: Sequence[Cell]) -> list[SystemValue]:
    """Every metric of every system in these cells, in the order of cells, systems, metrics."""
    groups: dict[tuple[Cell, str], list[Sound]] = {}
    for one in sound:
        groups.setdefault((one.trial.cell, one.trial.system), []).append(one)
    return [
        _system_value(cell, system, trials, metric)
        for cell in cells
        for (of_cell, system), trials in groups.items()
        if of_cell == cell
        for metric in TABLE
    ]


def estimates(
    sound: Iterable[Sound], cells: Sequence[Cell], baseline: str, systems: Sequence[str]
) -> list[Estimate]:
    """Every metric of each system against the baseline, in the order of cells, systems, metrics."""
    by_place = {(one.trial.cell, one.trial.system, one.trial.block): one for one in sound}
    made = []
    for cell in cells:
        arms = {
            label: {
                block: one for (c, s, block), one in by_place.items() if (c, s) == (cell, label)
            }
            for label in (baseline, *systems)
        }
        for system in systems:
            for metric in TABLE:
                logs = _log_ratios(arms[baseline], arms[system], metric)
                made.append(estimate_of(logs, cell, metric, baseline, system))
    return made


def estimate_of(
    log_ratios: Sequence[float], cell: Cell, metric: Metric, baseline: str, system: str
) -> Estimate:
    """The estimate that these blocks' ln(system / baseline) give."""
    ratio, low, high, log_sd = _back(log_ratios)
    return Estimate(
        cell=cell,
        metric=metric.name,
        baseline=baseline,
        system=system,
        ratio=ratio,
        low=low,
        high=high,
        blocks=len(log_ratios),
        log_sd=log_sd,
    )


def _system_value(cell: Cell, system: str, trials: list[Sound], metric: Metric) -> SystemValue:
    logs = [log for one in trials if (log := _log_value(one, metric)) is not None]
    _, low, high, _ = _back(logs)
    return SystemValue(
        cell=cell,
        system=system,
        metric=metric.name,
        value=value_of([one.condensed for one in trials], metric),
        low=low,
        high=high,
        blocks=len(logs),
    )


def _log_ratios(
    baseline: Mapping[int, Sound], system: Mapping[int, Sound], metric: Metric
) -> list[float]:
    """ln(system / baseline) of every block in which both are sound and showed the metric."""
    differences = []
    for block in sorted(baseline.keys() & system.keys()):
        below = _log_value(baseline[block], metric)
        above = _log_value(system[block], metric)
        if below is not None and above is not None:
            differences.append(above - below)
    return differences


def _log_value(one: Sound, metric: Metric) -> float | None:
    value = one.value(metric)
    return math.log(value) if value is not None and value > 0 else None


def _back(
    logs: Sequence[float],
) -> tuple[float | None, float | None, float | None, float | None]:
    """Typical value, low and high end, and standard deviation of the logs, as n allows."""
    if not logs:
        return None, None, None, None
    if len(logs) == 1:
        return math.exp(logs[0]), None, None, None
    found = t_interval(logs)
    mean, sd, half = float(found.mean), float(found.sd), float(found.half)
    if len(logs) < BLOCKS_MIN:
        return math.exp(mean), None, None, sd
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half), sd
