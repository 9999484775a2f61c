"""What is said beside the verdicts: how systems scale, how evenly they work, which runs are odd.

All of it is made of sound trials, and none of it changes a word.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from dbdyno.judge.audit import Audit, Sound
from dbdyno.judge.beside.outliers import BadRestarts, Outlier, bad_restarts, outliers
from dbdyno.judge.beside.peaks import PeakRatio, peak_ratios
from dbdyno.judge.beside.scalability import Scalability, scalability
from dbdyno.judge.beside.stability import Stability, stability
from dbdyno.judge.beside.stability_pairs import CountPair, counts
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import BY_NAME, PRIMARY, Metric
from dbdyno.plan.plan import Plan, cells


class Shape(TypedDict):
    """The fields of a `Judgement` that are made here."""

    scalability: tuple[Scalability, ...]
    peaks: tuple[PeakRatio, ...]
    stability: tuple[Stability, ...]
    stability_counts: tuple[CountPair, ...]
    outliers: tuple[Outlier, ...]
    bad_restarts: tuple[BadRestarts, ...]


def metric_of(cell: Cell) -> Metric:
    """Throughput; at a fixed rate all do the same number of requests, and latency tells."""
    return PRIMARY if cell.rate_per_s is None else BY_NAME["latency_ms_p99"]


def in_order(sound: Iterable[Sound], plan: Plan) -> list[Sound]:
    """By cells, systems and blocks, as people read; trials come in the order in which they ran."""
    trials = list(sound)
    seen = (one.trial.cell for one in trials)
    of_cell = {cell: place for place, cell in enumerate(dict.fromkeys([*cells(plan), *seen]))}
    of_system = {system.label: place for place, system in enumerate(plan.systems)}

    def place(one: Sound) -> tuple[int, int, int]:
        trial = one.trial
        return of_cell[trial.cell], of_system.get(trial.system, len(of_system)), trial.block

    return sorted(trials, key=place)


def shape(audited: Audit, plan: Plan) -> Shape:
    """All of it for one run; the plan's first system is the baseline."""
    sound, design = in_order(audited.sound, plan), plan.design
    baseline, *systems = (system.label for system in plan.systems)
    ladders, even = scalability(sound, audited.findings, plan), stability(sound)
    per_cell = plan.procedure.restart == "cell"
    return Shape(
        scalability=tuple(ladders),
        peaks=tuple(peak_ratios(ladders, baseline, design)),
        stability=tuple(even),
        stability_counts=tuple(counts(even, baseline, systems)),
        outliers=tuple(outliers(sound, design.margin, metric_of)),
        bad_restarts=tuple(bad_restarts(sound, design.margin, metric_of, per_cell=per_cell)),
    )
