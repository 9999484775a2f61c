"""Values of a system and ratios of two systems, each with its confidence interval over blocks.

The block is the unit of replication, never the second or the request: intervals over seconds would
give more than 40 % of ties a winner (tests/judge/test_method.py). So every trial gives a single
number, and intervals are computed from logarithms: Student's t of the blocks' log values for a
system; for a pair the differences within blocks, with noise estimated from all cells (`pooled`).
The width depends on the run's stopping rule (`interval`). Only `Sound` trials can enter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

from dbdyno.judge.audit import Sound
from dbdyno.judge.interval import FIXED, LEVEL, Held, end_of, together, typical_of_logs
from dbdyno.measurement.measurement import Cell, kinds_of, value_of
from dbdyno.measurement.metric import NOPM, PRIMARY, TABLE, Metric, metrics_of_kinds
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import DesignPlan
from dbdyno.plan.systems import Comparison, MeasuredArm
from dbdyno.stats.settling import NEAR, Tail


class SystemValue(Noun):
    """A metric of a system in a cell.

    Attributes:
        value: merged over the sound trials by the metric's rule; None if absent.
        low, high: 95 % interval of the blocks' typical (geometric mean) value; None below 3 blocks.
        blocks: sound blocks with the metric.
    """

    cell: Cell
    system: str
    metric: str
    value: float | None
    low: float | None
    high: float | None
    blocks: int


class Estimate(Noun):
    """A system's share of the baseline's value: one metric, one cell.

    Attributes:
        ratio: system / baseline, geometric mean over blocks; None without a sound pair.
        low, high: 95 % interval of the ratio by itself; None below 3 blocks.
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


def system_values(
    sound: Iterable[Sound], cells: Sequence[Cell], design: DesignPlan = FIXED
) -> list[SystemValue]:
    """Every metric of every system in these cells, in the order of cells, systems, metrics.

    Events named by a script have metrics of their own.
    """
    pairs = Pairs(sound)
    values = []
    for cell in cells:
        for system, arm in pairs.arms_of(cell).items():
            kinds = kinds_of(one.condensed for one in arm.values())
            for metric in (*TABLE, *metrics_of_kinds(kinds)):
                logs = list(pairs.logs(cell, system, metric).values())
                usual = typical_of_logs(logs, design)
                values.append(
                    SystemValue(
                        cell=cell,
                        system=system,
                        metric=metric.name,
                        value=value_of([one.shown(metric) for one in arm.values()], metric),
                        low=usual.low if usual else None,
                        high=usual.high if usual else None,
                        blocks=len(logs),
                    )
                )
    return values


@dataclass(frozen=True)
class Sample:
    """ln(system / baseline) of a metric in a cell, by block."""

    cell: Cell
    metric: str
    baseline: str
    system: str
    logs: Mapping[int, float]

    @property
    def noise_group(self) -> tuple[str, str, str]:
        """Cells whose blocks scatter alike: those of a workload in a setting."""
        return self.metric, self.cell.setting, self.cell.workload


class Estimated(NamedTuple):
    """An estimate, and its interval among all cells; None below three blocks."""

    estimate: Estimate
    held: Held | None


def estimates(
    pairs: Pairs,
    cells: Sequence[Cell],
    baseline: str,
    system: str,
    design: DesignPlan = FIXED,
    metrics: Sequence[Metric] = (*TABLE, NOPM),
) -> list[Estimate]:
    """These metrics of a system against the baseline, in the order of cells and metrics.

    New orders a minute are left out where they were not counted.
    """
    every = [
        estimated([pairs.sample(cell, baseline, system, metric) for cell in cells], design)
        for metric in metrics
    ]
    by_cell = (one.estimate for of_cell in zip(*every, strict=True) for one in of_cell)
    return [one for one in by_cell if one.blocks or one.metric != NOPM.name]


def estimated(
    samples: Sequence[Sample], design: DesignPlan = FIXED, level: float = LEVEL
) -> list[Estimated]:
    """Make an estimate of each sample; their intervals hold together at 1 - level."""
    held = together(
        [one.logs for one in samples], [one.noise_group for one in samples], design, level
    )
    return [
        Estimated(_estimate_of(sample, of_sample), of_sample)
        for sample, of_sample in zip(samples, held, strict=True)
    ]


def _estimate_of(sample: Sample, held: Held | None) -> Estimate:
    logs = list(sample.logs.values())
    return Estimate(
        cell=sample.cell,
        metric=sample.metric,
        baseline=sample.baseline,
        system=sample.system,
        ratio=math.exp(fmean(logs)) if logs else None,
        low=held.alone_low if held else None,
        high=held.alone_high if held else None,
        blocks=len(logs),
        log_sd=stdev(logs) if len(logs) > 1 else None,
    )


class Pairs:
    """The sound trials of a run by cell, system and block; each block gives one logarithm.

    Every comparison takes its samples from here, so a block counts as one sample in grids and
    ladders exactly as it does in a cell.
    """

    def __init__(self, sound: Iterable[Sound]) -> None:
        self._arms: dict[tuple[Cell, str], dict[int, Sound]] = {}
        for measured in sound:
            arm = self._arms.setdefault((measured.trial.cell, measured.trial.system), {})
            arm.setdefault(measured.trial.block, measured)

    def of(self, comparison: Comparison) -> Pairs:
        """The trials of two arms alone, filed under the cells and names of their verdicts."""
        return self.filed(
            (cell, label, place)
            for cell in comparison.cells(dict.fromkeys(cell for cell, _ in self._arms))
            for label, place in zip(comparison.labels, comparison.places(cell), strict=True)
        )

    def filed(self, arms: Iterable[tuple[Cell, str, MeasuredArm]]) -> Pairs:
        """Select the trials of these arms, each filed under its given cell and name."""
        pairs = Pairs(())
        for cell, label, place in arms:
            pairs._arms[cell, label] = self._arms.get((place.cell, place.system), {})
        return pairs

    def arm(self, cell: Cell, system: str) -> Mapping[int, Sound]:
        """The system's trials of the cell by block, in the order stored."""
        return self._arms.get((cell, system), {})

    def arms_of(self, cell: Cell) -> dict[str, Mapping[int, Sound]]:
        """Every system's trials of the cell, the systems in the order of their first trials."""
        return {system: arm for (of, system), arm in self._arms.items() if of == cell}

    def logs(self, cell: Cell, system: str, metric: Metric) -> dict[int, float]:
        """ln of the metric in every block with a value, in the order of blocks."""
        logs = {block: _log_value(one, metric) for block, one in self.arm(cell, system).items()}
        return {block: log for block, log in sorted(logs.items()) if log is not None}

    def stood_still(self, system: str, *cells: Cell) -> bool:
        """True if the system completed no event in some block of these cells.

        Such a block has no ratio, and a choice of the other blocks would depend on their result.
        """
        trials = (one for cell in cells for one in self.arm(cell, system).values())
        return any(one.value(PRIMARY) == 0 for one in trials)

    def log_ratios(
        self, cell: Cell, baseline: str, system: str, metric: Metric
    ) -> dict[int, float]:
        """ln(system / baseline) of every block in which both are sound and showed the metric."""
        below, above = (self.logs(cell, label, metric) for label in (baseline, system))
        return {block: above[block] - below[block] for block in below if block in above}

    def sample(self, cell: Cell, baseline: str, system: str, metric: Metric) -> Sample:
        """The log ratios of every such block, with the names of the two systems."""
        logs = self.log_ratios(cell, baseline, system, metric)
        return Sample(cell, metric.name, baseline, system, logs)

    def unsettled(self, cell: Cell, baseline: str, system: str) -> Unsettled | None:
        """Bounds of the ratio's change until both throughputs settle; None if they had settled."""
        arms = [self.arm(cell, label) for label in (baseline, system)]
        if not all(arms):
            return None
        below, above = (next(iter(arm.values())) for arm in arms)
        unsteady = [one.steadiness for one in (below, above) if one.steadiness is not None]
        if not unsteady:
            return None
        until_s = max(steadiness.settling.until_s for steadiness in unsteady)
        unsettled = Unsettled.of(below.left, above.left, until_s)
        widest = max(unsettled.high, -unsettled.low, unsettled.high - unsettled.low)
        return unsettled if widest > NEAR else None


class Unsettled(NamedTuple):
    """The warm-ups' remainder in a ratio of throughputs: ln(ratio settled / ratio counted).

    Attributes:
        low, best, high: the best fits of both systems, and limits around them.
        until_s: seconds of load until it is gone.
    """

    low: float
    best: float
    high: float
    until_s: float

    @classmethod
    def of(cls, below: Tail, above: Tail, until_s: float) -> Unsettled:
        """Of a baseline and a system. Their fits err apart, so squares of their limits add up."""
        best = above.best - below.best
        low = best - math.hypot(above.best - above.low, below.high - below.best)
        high = best + math.hypot(above.high - above.best, below.best - below.low)
        return cls(low, best, high, until_s)

    def shared(self, share: float) -> Unsettled:
        """The remainder in a geometric mean with this share of the ratio."""
        return Unsettled(share * self.low, share * self.best, share * self.high, self.until_s)

    def widened(self, low: float, high: float) -> tuple[float, float]:
        """The ends of a ratio's interval, moved to hold the ratio of settled rates.

        Changes of a rate within trials are independent of the trials' means, so here too squares
        add up. The counted ratio's interval stays within, since a warm-up need not follow the
        fitted curve.
        """
        log_low, log_high = math.log(low), math.log(high)  # their product may be too large
        half, moved = (log_high - log_low) / 2, (log_high + log_low) / 2 + self.best
        down, up = math.hypot(half, self.best - self.low), math.hypot(half, self.high - self.best)
        return min(low, end_of(moved - down)), max(high, end_of(moved + up))


def _log_value(sound: Sound, metric: Metric) -> float | None:
    value = sound.value(metric)
    return math.log(value) if value is not None and value > 0 else None
