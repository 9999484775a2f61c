"""Which measurements counted and which did not, as the judgement's findings say.

A report lists every attempt ever made, so each has to be told apart: sound (it counts), void (a
check took it away, or it cannot be run), failed (it did not end as planned), repeated (the trial
was complete before).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, listed, name, say
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.plan.plan import Plan, cells

OF_FAILED_ATTEMPT = frozenset({"trial-failed", "cell-cannot-run"})
"""The checks that speak of a failed attempt, which a later complete one makes good."""


NOTHING: Final = name("")


class State(StrEnum):
    """What became of an attempt."""

    SOUND = "sound"
    VOID = "void"
    FAILED = "failed"
    REPEATED = "repeated"


STATES: Final[Mapping[State, Text]] = {
    State.SOUND: say("sound"),
    State.VOID: say("void"),
    State.FAILED: say("failed"),
    State.REPEATED: say("repeated"),
}
"""What a report calls them."""


@dataclass(frozen=True)
class Attempt:
    """A measurement with its state and, unless it is sound, why it does not count."""

    measurement: Measurement
    state: State
    why: Text = NOTHING

    @cached_property
    def cell(self) -> Cell:
        """The cell it is of."""
        return self.measurement.trial.cell

    @property
    def system(self) -> str:
        """The system it is of."""
        return self.measurement.trial.system


def attempts(measurements: Iterable[Measurement], judgement: Judgement) -> tuple[Attempt, ...]:
    """Every measurement with its state, in the order of the trials' sequence."""
    complete: set[str] = set()
    made = []
    for measurement in measurements:
        key = measurement.trial.key
        made.append(_attempt(measurement, judgement.findings, key in complete))
        if measurement.failure is None:
            complete.add(key)
    return tuple(sorted(made, key=lambda attempt: attempt.measurement.trial.sequence))


def _attempt(measurement: Measurement, findings: Sequence[Finding], seen: bool) -> Attempt:
    if measurement.failure is not None:
        state = State.VOID if measurement.impossible else State.FAILED
        return Attempt(measurement, state, name(measurement.failure))
    if seen:
        return Attempt(measurement, State.REPEATED, say("the trial was complete before"))
    checks = [finding.check for finding in findings if _takes_away(finding, measurement)]
    if checks:
        return Attempt(measurement, State.VOID, listed(dict.fromkeys(checks)))
    return Attempt(measurement, State.SOUND)


def _takes_away(finding: Finding, measurement: Measurement) -> bool:
    if finding.level is not Level.VOID or finding.check in OF_FAILED_ATTEMPT:
        return False
    trial = measurement.trial
    if finding.trial is not None:
        return finding.trial == trial.key
    return finding.concerns(trial.cell, trial.system)


def sound(of: Iterable[Attempt], cell: Cell, system: str) -> list[Measurement]:
    """The measurements of that cell and system that count."""
    return [
        attempt.measurement
        for attempt in of
        if attempt.state is State.SOUND and (attempt.cell, attempt.system) == (cell, system)
    ]


def cells_of(plan: Plan, measurements: Iterable[Measurement]) -> list[Cell]:
    """The plan's cells, then those that only measurements have (an imported log)."""
    return list(dict.fromkeys([*cells(plan), *(m.trial.cell for m in measurements)]))


def systems_of(plan: Plan, measurements: Iterable[Measurement]) -> list[str]:
    """The plan's labels, the baseline first, then those that only measurements have."""
    labels = [system.label for system in plan.systems]
    return list(dict.fromkeys([*labels, *(m.trial.system for m in measurements)]))


def title_of(plan: Plan) -> Text:
    """The plan's title, or the systems' names; neutral, as the verdict turns them round."""
    systems = listed((system.label for system in plan.systems), " and ")
    return systems if plan.title in ("", systems) else name(plan.title)
