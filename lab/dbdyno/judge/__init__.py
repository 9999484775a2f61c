"""What the measurements allow to be said: measurements and plan in, findings and verdicts out.

Pure: no files, no clock, no chance. The same stored trials give the same judgement in ten years,
and an imported log is judged by the same rules as a run of our own.

    audit ─▶ findings, sound trials ─estimate─▶ values, ratios ─verdict─▶ words with reasons
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dbdyno.judge import outliers as outlying
from dbdyno.judge import stability_pairs
from dbdyno.judge.audit import Audit, Sound
from dbdyno.judge.audit import audit as audit_of
from dbdyno.judge.estimate import Estimate, SystemValue, estimates, system_values
from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.outliers import BadRestarts, Outlier
from dbdyno.judge.peaks import PeakRatio, peak_ratios
from dbdyno.judge.scalability import Scalability
from dbdyno.judge.scalability import scalability as scalability_of
from dbdyno.judge.stability import Stability
from dbdyno.judge.stability import stability as stability_of
from dbdyno.judge.stability_pairs import CountPair, StabilityRatio
from dbdyno.judge.verdict import Verdict, Word, verdict_of
from dbdyno.judge.within_run import WithinRun, within_runs
from dbdyno.judge.wording import sentence
from dbdyno.measurement import Cell, Measurement, Noun
from dbdyno.metric import PRIMARY
from dbdyno.plan import Plan, cells

__all__ = [
    "Audit",
    "Estimate",
    "Finding",
    "Judgement",
    "Level",
    "Sound",
    "SystemValue",
    "Verdict",
    "Word",
    "judge",
    "sentence",
]


class Judgement(Noun):
    """All that is said about a run.

    Attributes:
        values: every metric of every system and cell that has a sound trial.
        estimates: every metric of every system against the first one of the plan.
        verdicts: about `metric.PRIMARY`, one for each cell and each system but the first.
        scalability: every ladder of a closed loop; peaks: those of two systems, where both peak.
        stability: every sound trial; stability_ratios, stability_counts: systems compared by it.
        outliers, bad_restarts: what lies apart; it stays in all numbers.
        within_runs: noise within windows and between restarts, for planning.
    """

    findings: tuple[Finding, ...]
    values: tuple[SystemValue, ...]
    estimates: tuple[Estimate, ...]
    verdicts: tuple[Verdict, ...]
    scalability: tuple[Scalability, ...] = ()
    peaks: tuple[PeakRatio, ...] = ()
    stability: tuple[Stability, ...] = ()
    stability_ratios: tuple[StabilityRatio, ...] = ()
    stability_counts: tuple[CountPair, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    bad_restarts: tuple[BadRestarts, ...] = ()
    within_runs: tuple[WithinRun, ...] = ()

    def value(self, cell: Cell, system: str, metric_name: str) -> SystemValue | None:
        """That metric of that system in that cell; None without a sound trial."""
        wanted = (cell, system, metric_name)
        return next((v for v in self.values if (v.cell, v.system, v.metric) == wanted), None)

    def estimate(self, cell: Cell, system: str, metric_name: str) -> Estimate | None:
        """That metric of that system against the baseline; None for the baseline itself."""
        wanted = (cell, system, metric_name)
        return next((e for e in self.estimates if (e.cell, e.system, e.metric) == wanted), None)


def judge(measurements: Sequence[Measurement], plan: Plan) -> Judgement:
    """Audits the measurements, estimates with those that are sound, and puts it into words.

    The plan's first system is the baseline. With one system there are values but no verdicts.
    """
    audited = audit_of(measurements, plan)
    baseline, *systems = (system.label for system in plan.systems)
    judged = _cells(measurements, plan)
    compared = estimates(audited.sound, judged, baseline, systems)
    counted = {one.trial.key for one in audited.sound}
    return Judgement(
        findings=audited.findings,
        values=tuple(system_values(audited.sound, judged)),
        estimates=tuple(compared),
        verdicts=tuple(
            verdict_of(estimate, plan.design.margin, _concerning(estimate, audited, counted))
            for estimate in compared
            if estimate.metric == PRIMARY.name
        ),
        **_shape(audited, plan),
    )


def _shape(audited: Audit, plan: Plan) -> dict[str, Any]:
    """What is said beside the verdicts on how systems scale, how evenly they work, what is odd."""
    sound, margin = audited.sound, plan.design.margin
    baseline, *systems = (system.label for system in plan.systems)
    ladders, even = scalability_of(audited, plan), stability_of(sound)
    per_cell = plan.procedure.restart == "cell"
    return {
        "scalability": tuple(ladders),
        "peaks": tuple(peak_ratios(ladders, baseline)),
        "stability": tuple(even),
        "stability_ratios": tuple(stability_pairs.ratios(even, baseline, systems)),
        "stability_counts": tuple(stability_pairs.counts(even, baseline, systems)),
        "outliers": tuple(outlying.outliers(sound, margin)),
        "bad_restarts": tuple(outlying.bad_restarts(sound, margin, per_cell=per_cell)),
        "within_runs": tuple(within_runs(sound)),
    }


def _cells(measurements: Iterable[Measurement], plan: Plan) -> list[Cell]:
    """The plan's cells, then those that only the measurements have (settings, imported logs)."""
    seen = (measurement.trial.cell for measurement in measurements)
    return list(dict.fromkeys([*cells(plan), *seen]))


def _concerning(estimate: Estimate, audited: Audit, counted: set[str]) -> list[Finding]:
    """Findings about the cell and its two systems, but none on an attempt that was made good."""
    return [
        finding
        for finding in audited.findings
        if finding.concerns(estimate.cell, estimate.baseline, estimate.system)
        and not (finding.level is Level.VOID and finding.trial in counted)
    ]
