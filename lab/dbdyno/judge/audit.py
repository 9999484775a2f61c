"""The list of checks, and the only door from measurements to estimates.

`audit` runs every check on every measurement and returns the measurements without a void finding as
`Sound`. Estimates take `Sound` only, and only `audit` can make it, so a void measurement cannot
reach a verdict by mistake (docs/how-it-works/decisions.md).

A failed attempt which was repeated stays in the list with its finding; the complete attempt counts.
If a trial is complete twice, the first attempt counts, so that there is no choice.

To add a check: a function in the file of `judge/checks` on its subject, a line here, and in
tests/judge/checks a measurement which trips it and another which does not. Its preconditions on the
run stand in `NEEDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

from dbdyno.judge.checks import (
    counts,
    course,
    design,
    disturbance,
    durability,
    generator,
    machine,
    standstill,
    work,
)
from dbdyno.judge.checks.course import Steadiness, not_yet_steady, without_head
from dbdyno.judge.checks.settings import changed_versions, unequal_settings
from dbdyno.judge.finding import Finding, Level
from dbdyno.measurement.measurement import EVENT, Measurement, kinds_of
from dbdyno.measurement.metric import KIND, Metric
from dbdyno.measurement.parts import Phase
from dbdyno.plan.known import Fact, known_of, known_of_trial
from dbdyno.plan.plan import Plan
from dbdyno.stats.settling import NO_TAIL, Tail

TrialCheck = Callable[[Measurement, Plan], Finding | None]
"""A check of a single trial."""
RunCheck = Callable[[Sequence[Measurement], Plan], Iterable[Finding]]
"""A check of all trials together, failed attempts included."""

GATES: Final[tuple[TrialCheck, ...]] = (
    work.cell_cannot_run,
    course.trial_failed,
    standstill.no_events,
)
"""Checks before all others: if any finds the trial void, there is no data left for the rest."""

TRIAL_CHECKS: Final[tuple[TrialCheck, ...]] = (
    course.server_restarted,
    standstill.stands_still,
    course.stall,
    work.step_undone,
    work.script_check,
    generator.rate_not_sustained,
    generator.few_requests,
    counts.errors,
    counts.little_law,
    counts.statements_of_event,
    counts.commits_at_server,
    counts.uncommitted,
    durability.replicas_missing,
    durability.commits_not_waited,
    durability.replica_lags,
    durability.commits_unflushed,
    work.retries,
    generator.client_bound,
    generator.near_ceiling,
    generator.timer_late,
    disturbance.disturbed,
)

RUN_CHECKS: Final[tuple[RunCheck, ...]] = (
    design.imported_run,
    design.sampled_stacks,
    design.unequal_load,
    work.unequal_dataset,
    work.rows_not_kept,
    design.incomplete_run,
    durability.unseen_flushes,
    design.uncontrolled_server,
    unequal_settings,
    changed_versions,
    work.unequal_plans,
    design.sequential_design,
    design.split_block,
    design.machine_drift,
    disturbance.uneven_disturbance,
    machine.machine,
    generator.certificate_failed,
)

CHECKS: Final = (*GATES, *TRIAL_CHECKS, *RUN_CHECKS, course.not_steady)
"""Every check, in order: by trial, by run, by cell."""

NEEDS: Final[Mapping[Callable[..., object], tuple[Fact, ...]]] = {
    generator.client_bound: (Fact.HERE,),
    generator.few_requests: (Fact.HERE, Fact.EVENTS),
    counts.little_law: (Fact.HERE, Fact.EVENTS),
    counts.statements_of_event: (Fact.STATEMENTS, Fact.EVENTS),
    counts.commits_at_server: (Fact.SETTINGS, Fact.EVENTS),
    counts.uncommitted: (Fact.EVENTS,),
    disturbance.disturbed: (Fact.MACHINE,),
    design.imported_run: (Fact.ELSEWHERE,),
    design.uncontrolled_server: (Fact.OTHERS,),
    design.unequal_load: (Fact.HERE,),
    design.incomplete_run: (Fact.HERE,),
    design.sequential_design: (Fact.HERE,),
    design.split_block: (Fact.HERE,),
    design.machine_drift: (Fact.HERE,),
    changed_versions: (Fact.HERE,),
    unequal_settings: (Fact.SETTINGS,),
    durability.unseen_flushes: (Fact.SETTINGS, Fact.BESIDE),
    work.rows_not_kept: (Fact.ROWS,),
    disturbance.uneven_disturbance: (Fact.MACHINE,),
    machine.machine: (Fact.MACHINE,),
    course.not_steady: (Fact.HERE,),
}
"""Preconditions of a check, which is left out without them: facts of its trial, or of some system
of its run."""

CPU_METRIC: Final = "server_cpu_us_per_query"
_TOKEN: Final = object()


@final
class Sound:
    """A usable measurement; made by `audit` only.

    Args:
        steadiness: of its cell, where its windows were not all steady.
    """

    def __init__(
        self, measurement: Measurement, token: object, steadiness: Steadiness | None = None
    ) -> None:
        if token is not _TOKEN:
            raise TypeError("only judge.audit.audit makes a Sound")
        self.measurement: Final = measurement
        self.trial: Final = measurement.trial
        self.steadiness: Final = steadiness
        self._values: dict[str, float | None] = {}

    def value(self, metric: Metric) -> float | None:
        """`Measurement.value`, read once for both the system's value and the ratio."""
        if metric.name not in self._values:
            self._values[metric.name] = self.shown(metric).value(metric)
        return self._values[metric.name]

    def shown(self, metric: Metric) -> Measurement:
        """The counted part of the window; for server CPU time, which has no parts, the whole."""
        return self.measurement if metric.name == CPU_METRIC else self.condensed

    @property
    def left(self) -> Tail:
        """The remainder of its system's warm-up in it."""
        return self.steadiness.left(self.trial.system) if self.steadiness else NO_TAIL

    @property
    def stood_still(self) -> bool:
        """True if no event was completed in it: its throughput is 0, which has no logarithm."""
        return self.condensed.events == 0

    @cached_property
    def condensed(self) -> Measurement:
        """The counted part of the window, with its event histograms added up.

        The sum of counts is exact, so every metric reads the same. It is made once here because
        each metric and each merged value would otherwise decode every second's histogram again.
        """
        cut_s = self.steadiness.settling.cut_s if self.steadiness else 0
        late = without_head(self.measurement, cut_s)
        names = (EVENT, *(KIND + kind for kind in kinds_of([late])))
        whole = {name: late.histogram(name).encode() for name in names}
        intervals = []
        for interval in late.intervals:
            blobs = whole if interval.phase is Phase.MEASURED else {}
            whole = {} if blobs else whole
            intervals.append(interval.model_copy(update={"histograms": blobs}))
        return late.model_copy(update={"intervals": tuple(intervals)})


@dataclass(frozen=True)
class Audit:
    """Result of an audit: all findings, and the measurements still usable."""

    findings: tuple[Finding, ...]
    sound: tuple[Sound, ...]


def audit(measurements: Iterable[Measurement], plan: Plan) -> Audit:
    """Run every check on all measurements; findings in the order of trials, then the run."""
    attempts = list(measurements)
    known = known_of(plan, attempts)
    of_run = [
        finding
        for check in RUN_CHECKS
        if known.has(*NEEDS.get(check, ()))
        for finding in check(attempts, plan)
    ]
    of_many = [finding for finding in of_run if finding.level is Level.VOID]
    of_trials: list[Finding] = []
    usable: list[Measurement] = []
    complete: set[str] = set()
    for measurement in attempts:
        findings = examine(measurement, plan)
        of_trials.extend(findings)
        first = measurement.failure is None and measurement.trial.key not in complete
        if measurement.failure is None:
            complete.add(measurement.trial.key)
        void = any(finding.level is Level.VOID for finding in findings)
        if first and not void and not any(one.voids(measurement.trial) for one in of_many):
            usable.append(measurement)
    is_course_known = known.has(*NEEDS[course.not_steady])
    unsteady = not_yet_steady(usable) if is_course_known else {}
    of_cells = (course.not_steady(cell, steadiness) for cell, steadiness in unsteady.items())
    sound = (Sound(one, _TOKEN, unsteady.get(one.trial.cell)) for one in usable)
    return Audit((*of_trials, *of_run, *filter(None, of_cells)), tuple(sound))


def examine(measurement: Measurement, plan: Plan) -> list[Finding]:
    """Run the checks on a trial; if a gate is shut, only its finding is returned.

    A row of an imported table has numbers and no course: there is no second to look at.
    """
    if measurement.reported and not measurement.intervals:
        return []
    for gate in GATES:
        if finding := gate(measurement, plan):
            return [finding]
    known = known_of_trial(measurement, plan)
    findings = (
        check(measurement, plan) for check in TRIAL_CHECKS if known.has(*NEEDS.get(check, ()))
    )
    return [finding for finding in findings if finding is not None]
