"""Facts of a run on which checks and sentences rely, looked up here and nowhere else.

dbdyno knows more of some runs than of others: servers can be an endpoint, statements come from a
script, numbers from another tool. Checks (`judge.audit.NEEDS`) and sentences of a report
(`Sentence`) declare the facts they need, and are left out where a fact is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.plan.template import statement_counts

Row = TypeVar("Row")


class Fact(StrEnum):
    """A fact; it holds for some of the systems or workloads of a run."""

    # Of systems, by the plan.
    HERE = "here"  # dbdyno drew the order of its trials and drove their load
    ELSEWHERE = "elsewhere"  # another tool measured it, and its output was imported
    OURS = "ours"  # dbdyno starts, configures and restarts its servers, and restores their rows
    OTHERS = "others"  # somebody else runs its servers
    # Of systems, by their measurements.
    SETTINGS = "settings"  # the settings of its servers were read
    MACHINE = "machine"  # the machine was watched during its trials
    BESIDE = "beside"  # its server's process was seen on that machine
    UNSEEN = "unseen"  # dbdyno started its server and could not see the process
    EVENTS = "events"  # it completed events
    # Of workloads.
    ROWS = "rows"  # its rows are the plan's dataset
    SCRIPTED = "scripted"  # a script makes its rows
    STATEMENTS = "statements"  # the statements of its events are known
    UNTOLD = "untold"  # a script sends it, and its statements are not known
    BUSY = "busy"  # all connections of the closed loop are always busy, as in all others
    RESTING = "resting"  # connections may rest between events


@dataclass(frozen=True)
class Known:
    """Facts of a run, each with the labels of the systems or workloads for which it holds."""

    labels: Mapping[Fact, tuple[str, ...]] = field(default_factory=dict)

    def has(self, *facts: Fact) -> bool:
        """True if each of the facts holds for some system or workload."""
        return all(self[fact] for fact in facts)

    def kept(self, rows: Mapping[Row, tuple[Fact, ...]]) -> list[Row]:
        """Rows with all their facts known."""
        return [row for row, needs in rows.items() if self.has(*needs)]

    def __getitem__(self, fact: Fact) -> tuple[str, ...]:
        return self.labels.get(fact, ())


def known_of(plan: Plan, measurements: Iterable[Measurement] = ()) -> Known:
    """Facts of a run with these measurements, or of a plan without any."""
    imported = [one.label for one in plan.systems if one.is_imported]
    others = [one.label for one in plan.systems if one.is_endpoint]
    ours = [one.label for one in plan.systems if one.label not in (*imported, *others)]
    workloads = () if imported else plan.workloads
    resting = [one.label for one in workloads if one.may_rest]
    declared = [one.label for one in workloads if not one.script or statement_counts(one.script)]
    is_busy = plan.load.threads and not resting
    of_plan = {
        Fact.HERE: [*ours, *others],
        Fact.ELSEWHERE: imported,
        Fact.OURS: ours,
        Fact.OTHERS: others,
        Fact.ROWS: [one.label for one in workloads if one.script is None],
        Fact.SCRIPTED: [one.label for one in workloads if one.script is not None],
        Fact.STATEMENTS: declared,
        Fact.UNTOLD: [one.label for one in workloads if one.label not in declared],
        Fact.BUSY: [one.label for one in workloads if is_busy],
        Fact.RESTING: resting,
    }
    return Known(
        {fact: tuple(labels) for fact, labels in of_plan.items()} | _seen(measurements, ours)
    )


def known_of_trial(measurement: Measurement, plan: Plan) -> Known:
    """Facts of one trial: of its system and its workload."""
    trial = measurement.trial
    systems = tuple(one for one in plan.systems if one.label == trial.system)
    workloads = tuple(one for one in plan.workloads if one.label == trial.cell.workload)
    own = plan.model_copy(update={"systems": systems, "workloads": workloads})
    return known_of(own, [measurement])


def _seen(measurements: Iterable[Measurement], ours: Iterable[str]) -> dict[Fact, tuple[str, ...]]:
    """Facts of systems as shown by measurements."""
    seen: dict[Fact, dict[str, None]] = {}
    for measurement in measurements:
        system = measurement.trial.system
        process = measurement.server.pid or measurement.server.cpu_s
        for fact, holds in (
            (Fact.SETTINGS, measurement.server.settings),
            (Fact.MACHINE, measurement.watch),
            (Fact.BESIDE, process),
            (Fact.UNSEEN, not process and not measurement.failure and system in ours),
            (Fact.EVENTS, measurement.events),
        ):
            if holds:
                seen.setdefault(fact, {})[system] = None
    return {fact: tuple(labels) for fact, labels in seen.items()}
