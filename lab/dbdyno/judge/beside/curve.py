"""The ratio of two systems along the load levels of a workload, as a smooth curve with its band.

Neighbouring levels of threads tell about each other: the log ratio is taken as a polynomial of ln
threads, of degree two, or three from seven levels on. Each block's ratios are smoothed by least
squares, and the smoothed values are judged like cells: their intervals hold together over all
curves of a comparison. Where the levels contradict a smooth curve, there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from dbdyno.judge.beside.grid import filled
from dbdyno.judge.estimate import Estimated, Pairs, Sample, estimated
from dbdyno.judge.verdict import Verdict, ladders_of
from dbdyno.measurement.metric import BY_NAME
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import BLOCKS_MIN, DesignPlan
from dbdyno.stats.distributions import Numbers
from dbdyno.stats.pooled import pooled

LEVELS_MIN: Final = 5
"""Fewer levels do not show whether a curve is smooth."""
CUBIC_FROM: Final = 7
LACK_OF_FIT: Final = 0.2
"""Error rate of the test that a curve is smooth: a curve is rather left out than wrong."""
STEPS: Final = 400
"""Places between two levels at which a crossing is looked for."""


class SmoothedRatio(Noun):
    """The smoothed ratio at a number of threads, with its simultaneous interval."""

    threads: int
    ratio: float
    low: float
    high: float


class RatioCrossing(Noun):
    """Number of threads at which the ratio crosses 1, with the interval in which it does.

    Attributes:
        rises: True if the system is better beyond, worse if False.
    """

    threads: float
    low: float
    high: float
    rises: bool


class Curve(Noun):
    """A system against the baseline along a ladder.

    Attributes:
        points: at each level, rising.
        crossing: None where the band leaves 1 to one side only, or nowhere.
    """

    baseline: str
    system: str
    workload: str
    setting: str
    points: tuple[SmoothedRatio, ...]
    crossing: RatioCrossing | None


def curves(pairs: Pairs, verdicts: Sequence[Verdict], design: DesignPlan) -> tuple[Curve, ...]:
    """Fit a curve to each ladder of five levels or more of a comparison."""
    ladders = ladders_of(verdict for verdict in verdicts if verdict.cell.rate_per_s is None)
    smooth = [
        smoothed
        for ladder in ladders.values()
        if len(ladder) >= LEVELS_MIN and all(v.low is not None and not v.standstill for v in ladder)
        if (smoothed := _smoothed(pairs, sorted(ladder, key=lambda v: v.cell.threads)))
    ]
    judged = iter(estimated([sample for one in smooth for sample in one], design))
    return tuple(_curve([next(judged) for _ in samples]) for samples in smooth)


def _smoothed(pairs: Pairs, ladder: Sequence[Verdict]) -> list[Sample]:
    """Each level's smoothed log ratios by block; empty if the levels contradict a smooth curve."""
    samples = [pairs.sample(v.cell, v.baseline, v.system, BY_NAME[v.metric]) for v in ladder]
    blocks = filled({sample.cell: sample.logs for sample in samples})
    if len(blocks) < BLOCKS_MIN:
        return []
    logs = np.array([[of[sample.cell] for sample in samples] for of in blocks.values()])
    curve, rest = _bases(np.log([v.cell.threads for v in ladder]))
    left = pooled(logs @ rest, ["rest"] * rest.shape[1], LACK_OF_FIT)
    if (np.abs(left.mean) > left.together).any():
        return []
    smooth = logs @ curve @ curve.T
    return [
        replace(sample, logs=dict(zip(blocks, map(float, values), strict=True)))
        for sample, values in zip(samples, smooth.T, strict=True)
    ]


def _bases(places: Numbers) -> tuple[Numbers, Numbers]:
    """Orthonormal bases of the polynomials at these places, and of what is orthogonal to them."""
    degree = 3 if len(places) >= CUBIC_FROM else 2
    powers = np.vander((places - places.mean()) / np.ptp(places), degree + 1, increasing=True)
    basis = np.linalg.qr(powers, mode="complete").Q
    return basis[:, : degree + 1], basis[:, degree + 1 :]


def _curve(levels: Sequence[Estimated]) -> Curve:
    first = levels[0].estimate
    points = tuple(_points(levels))
    return Curve(
        baseline=first.baseline,
        system=first.system,
        workload=first.cell.workload,
        setting=first.cell.setting,
        points=points,
        crossing=crossing(points),
    )


def _points(levels: Sequence[Estimated]) -> Iterator[SmoothedRatio]:
    for estimate, held in levels:
        if estimate.ratio is not None and held is not None:
            yield SmoothedRatio(
                threads=estimate.cell.threads, ratio=estimate.ratio, low=held.low, high=held.high
            )


def crossing(points: Sequence[SmoothedRatio]) -> RatioCrossing | None:
    """Find where a curve crosses 1, if its band lies on one side first and on the other last.

    Between two levels the curve and its band are straight lines over ln threads.
    """
    above = [point.low > 1 for point in points]
    below = [point.high < 1 for point in points]
    if not any(above) or not any(below):
        return None
    rises = below.index(True) < above.index(True)
    before, after = (below, above) if rises else (above, below)
    last = max(at for at, is_there in enumerate(before) if is_there)
    first = min(at for at, is_there in enumerate(after) if is_there)
    if last > first:
        return None  # it crosses more than once
    places = np.log([point.threads for point in points])
    fine = np.linspace(places[last], places[first], STEPS * (first - last) + 1)
    low, ratio, high = (
        np.interp(fine, places, np.log([getattr(point, name) for point in points]))
        for name in ("low", "ratio", "high")
    )
    ends = (high, ratio, low) if rises else (low, ratio, high)
    at = [_first_beyond(fine, line if rises else -line) for line in ends]
    return RatioCrossing(threads=at[1], low=at[0], high=at[2], rises=rises)


def _first_beyond(places: Numbers, line: Numbers) -> float:
    """Threads at which a line over ln threads becomes positive."""
    return math.exp(float(places[int(np.argmax(line >= 0))]))
