"""What the measurements allow to be said: measurements and plan in, findings and verdicts out.

Pure: no files, no clock, no chance. The same stored trials give the same judgement in ten years,
and an imported log is judged by the same rules as a run of our own.

    audit ─▶ findings, sound trials ─estimate─▶ values, ratios ─verdict─▶ words with reasons
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dbdyno.judge.audit import Audit, Sound
from dbdyno.judge.audit import audit as audit_of
from dbdyno.judge.controls import apart, proved
from dbdyno.judge.estimate import Estimate, SystemValue, estimates, system_values
from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.ledger import Ledger, ledger_of, out_of_calibration
from dbdyno.judge.verdict import Verdict, Word, verdict_of
from dbdyno.judge.wording import sentence
from dbdyno.measurement import Cell, Measurement, Noun
from dbdyno.measurement_control import ControlOutcome
from dbdyno.metric import PRIMARY
from dbdyno.plan import Plan, cells

__all__ = [
    "Audit",
    "ControlOutcome",
    "Estimate",
    "Finding",
    "Judgement",
    "Ledger",
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
        controls: what the run's control trials came to, which are in nothing else here.
        ledger: the same counted over all complete runs of the workspace.
    """

    findings: tuple[Finding, ...]
    values: tuple[SystemValue, ...]
    estimates: tuple[Estimate, ...]
    verdicts: tuple[Verdict, ...]
    controls: tuple[ControlOutcome, ...] = ()
    ledger: Ledger = Ledger()

    def value(self, cell: Cell, system: str, metric_name: str) -> SystemValue | None:
        """That metric of that system in that cell; None without a sound trial."""
        wanted = (cell, system, metric_name)
        return next((v for v in self.values if (v.cell, v.system, v.metric) == wanted), None)

    def estimate(self, cell: Cell, system: str, metric_name: str) -> Estimate | None:
        """That metric of that system against the baseline; None for the baseline itself."""
        wanted = (cell, system, metric_name)
        return next((e for e in self.estimates if (e.cell, e.system, e.metric) == wanted), None)


def judge(
    measurements: Sequence[Measurement], plan: Plan, earlier: Iterable[ControlOutcome] = ()
) -> Judgement:
    """Audits the measurements, estimates with those that are sound, and puts it into words.

    The plan's first system is the baseline. With one system there are values but no verdicts.

    Args:
        earlier: what the controls of the workspace's other runs came to.
    """
    measurements, controls = apart(measurements)
    checked = proved(measurements, controls, plan)
    ledger = ledger_of([*earlier, *checked.outcomes])
    audited = audit_of(measurements, plan)
    audited = replace(audited, findings=(*audited.findings, *out_of_calibration(ledger)))
    baseline, *systems = (system.label for system in plan.systems)
    judged = _cells(measurements, plan)
    compared = estimates(audited.sound, judged, baseline, systems)
    counted = {one.trial.key for one in audited.sound}
    return Judgement(
        findings=(*audited.findings, *checked.findings),
        values=tuple(system_values(audited.sound, judged)),
        estimates=tuple(compared),
        verdicts=tuple(
            verdict_of(estimate, plan.design.margin, _concerning(estimate, audited, counted))
            for estimate in compared
            if estimate.metric == PRIMARY.name
        ),
        controls=checked.outcomes,
        ledger=ledger,
    )


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
