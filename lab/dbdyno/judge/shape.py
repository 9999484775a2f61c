"""What is said beside the verdicts: how systems scale, how evenly they work, which runs are odd.

All of it is made of sound trials, and none of it changes a word.
"""

from __future__ import annotations

from typing import TypedDict

from dbdyno.judge.audit import Audit
from dbdyno.judge.outliers import BadRestarts, Outlier, bad_restarts, outliers
from dbdyno.judge.peaks import PeakRatio, peak_ratios
from dbdyno.judge.scalability import Scalability, scalability
from dbdyno.judge.stability import Stability, stability
from dbdyno.judge.stability_pairs import CountPair, StabilityRatio, counts, ratios
from dbdyno.judge.within_run import WithinRun, within_runs
from dbdyno.plan import Plan


class Shape(TypedDict):
    """The fields of a `Judgement` that are made here."""

    scalability: tuple[Scalability, ...]
    peaks: tuple[PeakRatio, ...]
    stability: tuple[Stability, ...]
    stability_ratios: tuple[StabilityRatio, ...]
    stability_counts: tuple[CountPair, ...]
    outliers: tuple[Outlier, ...]
    bad_restarts: tuple[BadRestarts, ...]
    within_runs: tuple[WithinRun, ...]


def shape(audited: Audit, plan: Plan) -> Shape:
    """All of it for one run; the plan's first system is the baseline."""
    sound, design = audited.sound, plan.design
    baseline, *systems = (system.label for system in plan.systems)
    ladders, even = scalability(audited, plan), stability(sound)
    per_cell = plan.procedure.restart == "cell"
    return Shape(
        scalability=tuple(ladders),
        peaks=tuple(peak_ratios(ladders, baseline, design)),
        stability=tuple(even),
        stability_ratios=tuple(ratios(even, baseline, systems, design)),
        stability_counts=tuple(counts(even, baseline, systems)),
        outliers=tuple(outliers(sound, design.margin)),
        bad_restarts=tuple(bad_restarts(sound, design.margin, per_cell=per_cell)),
        within_runs=tuple(within_runs(sound)),
    )
