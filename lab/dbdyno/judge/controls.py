"""Checks a run by its controls: the baseline against itself, and against a known slowdown.

Control trials are split off first, under the name of their own arm, and judged by the same code as
systems: audit, interval, words. The result is compared with the known ratio. Since it is known, the
trials make the comparison's baseline surer too (`Pairs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dbdyno.judge.audit import Audit, Sound, audit
from dbdyno.judge.estimate import Pairs, estimate_of
from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.verdict import Verdict, verdict_of
from dbdyno.measurement.measurement import Cell, Measurement, loads_of
from dbdyno.measurement.metric import PRIMARY
from dbdyno.measurement.outcome import ControlOutcome
from dbdyno.plan.controls import KINDS, TRUTH, Kind
from dbdyno.plan.plan import Plan


@dataclass(frozen=True)
class JudgedControls:
    """Outcomes of the controls, findings about their own trials, and those that are sound."""

    outcomes: tuple[ControlOutcome, ...]
    findings: tuple[Finding, ...]
    sound: tuple[Sound, ...]

    def beside(self, compared: Iterable[Sound]) -> Pairs:
        """The comparison's pairs, with the controls of those cells whose windows count whole.

        Where a warm-up is cut off, the trials of a cell would be cut alike, and the controls were
        not looked at together with the other system.
        """
        compared = tuple(compared)
        cut = {one.trial.cell for one in (*compared, *self.sound) if one.steadiness is not None}
        again = (one for one in self.sound if one.trial.cell not in cut)
        return Pairs(compared, again, self.outcomes[0].system if self.outcomes else "")


def split_controls(
    measurements: Iterable[Measurement],
) -> tuple[list[Measurement], list[Measurement]]:
    """The trials of the comparison, and the control trials under the names of their arms."""
    compared, controls = [], []
    for measurement in measurements:
        if measurement.trial.control:
            controls.append(_of_its_arm(measurement))
        else:
            compared.append(measurement)
    return compared, controls


def _of_its_arm(measurement: Measurement) -> Measurement:
    """The same trial under the name of its arm, which no system of a plan can have."""
    trial = measurement.trial
    own = trial.model_copy(update={"system": trial.arm})
    return measurement.model_copy(update={"trial": own})


def judge_controls(
    compared: Sequence[Measurement], controls: Sequence[Measurement], plan: Plan
) -> JudgedControls:
    """Judges the control trials against the baseline's trials in their cell.

    Args:
        compared, controls: as `split_controls` gives them.
    """
    outcomes: list[ControlOutcome] = []
    findings: list[Finding] = []
    sound: list[Sound] = []
    for kind in KINDS:
        arm = [m for m in controls if m.trial.control == kind]
        if arm:
            outcome, audited = _outcome(kind, compared, arm, plan)
            outcomes.append(outcome)
            keys = {m.trial.key for m in arm}
            own = (f for f in audited.findings if f.trial in keys)
            findings += (f for f in own if f.level is not Level.NOTE)
            sound += (one for one in audited.sound if one.trial.key in keys)
    return JudgedControls(tuple(outcomes), tuple(findings), tuple(sound))


def _outcome(
    kind: Kind, compared: Sequence[Measurement], arm: Sequence[Measurement], plan: Plan
) -> tuple[ControlOutcome, Audit]:
    baseline, label = plan.systems[0].label, arm[0].trial.system
    places = {(m.trial.block, m.trial.cell) for m in arm}
    beside = [
        m
        for m in compared
        if m.trial.system == baseline and (m.trial.block, m.trial.cell) in places
    ]
    pair = (plan.systems[0], plan.systems[0].model_copy(update={"label": label}))
    audited = audit([*beside, *arm], plan.model_copy(update={"systems": pair, "compare": ()}))
    pairs, cells = Pairs(audited.sound), list(dict.fromkeys(m.trial.cell for m in arm))
    # The known ratio is the same in all cells, and each block has one of them.
    logs = [pairs.log_ratios(cell, baseline, label, PRIMARY) for cell in cells]
    found = [log for of_cell in logs for log in of_cell.values()]
    estimate = estimate_of(found, cells[0], PRIMARY, baseline, label, plan.design)
    verdict = verdict_of(estimate, plan.design.margin, design=plan.design)
    loads = loads_of([*beside, *arm])
    return _outcome_of(kind, verdict, cells[0] if len(cells) == 1 else None, loads), audited


def _outcome_of(kind: Kind, verdict: Verdict, cell: Cell | None, loads: int) -> ControlOutcome:
    estimate, truth = verdict.estimate, TRUTH[kind]
    low, high = estimate.low, estimate.high
    return ControlOutcome(
        kind=kind,
        cell=cell,
        system=verdict.baseline,
        ratio=estimate.ratio,
        low=low,
        high=high,
        blocks=estimate.blocks,
        word=verdict.word.value,
        truth=truth,
        held=None if low is None or high is None else low <= truth <= high,
        loads=max(1, loads),
    )
