"""What stood behind each primary, what its commits waited for, and that they did.

A rate of commits says nothing until it is said what a commit was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.language.words import Text, count, name, say
from dbdyno.measurement import replication
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.plan.plan_systems import TopologyPlan
from dbdyno.report.numbers import number, seconds
from dbdyno.report.parts import Column, Table
from dbdyno.report.rows import systems_of

COLUMNS = (
    Column(say("System")),
    Column(say("Workload and load")),
    Column(say("Trials"), numeric=True),
    Column(say("Commits that a replica had"), numeric=True),
    Column(say("Commits that none had"), numeric=True),
    Column(say("Most transactions behind"), numeric=True),
    Column(say("Replicas' CPU µs per transaction"), numeric=True),
)


def asked(plan: Plan) -> Iterator[Text]:
    """What the plan says of replicas and of the network, a sentence each."""
    for system in plan.systems:
        if system.topology.replicas:
            yield say("{system}: {behind}.", system=system.label, behind=_said(system.topology))
    network = plan.network
    if network.client_ms:
        yield say(
            "The network adds {delay_ms:g} ms to each round trip between load and primary.",
            delay_ms=network.client_ms,
        )
    if network.replica_ms:
        yield say(
            "The network adds {delay_ms:g} ms to each round trip between servers.",
            delay_ms=network.replica_ms,
        )


def table(plan: Plan, measurements: Sequence[Measurement]) -> Table | None:
    """What replicated in the windows of each system and cell; None where nothing did."""
    rows = []
    for system in systems_of(plan, measurements):
        of_system = [m for m in measurements if m.trial.system == system and m.server.replication]
        for title in dict.fromkeys(m.trial.cell.title for m in of_system):
            of_cell = [m for m in of_system if m.trial.cell.title == title]
            rows.append((name(system), name(title), name(f"{len(of_cell)}"), *_row(of_cell)))
    return Table(say("Replication in the measured windows"), COLUMNS, tuple(rows)) if rows else None


def _said(topology: TopologyPlan) -> Text:
    behind = count(topology.replicas, "replica")
    if topology.replication == "semisync":
        return say(
            "a commit waits ({after}) until one of {replicas} has it, {most} at most",
            after=topology.wait_point.replace("_", " "),
            replicas=behind,
            most=seconds(topology.timeout_s),
        )
    if topology.replication == "group":
        return say(
            "a group of {members}; a commit waits until a majority agrees",
            members=topology.replicas + 1,
        )
    return say("{replicas}, for which no commit waits", replicas=behind)


def _row(trials: Sequence[Measurement]) -> tuple[Text, ...]:
    def total(what: str) -> float | None:
        seen = [m.server.replication[what] for m in trials if what in m.server.replication]
        return sum(seen) if seen else None

    behind = max(m.server.replication.get(replication.TRANSACTIONS_BEHIND, 0) for m in trials)
    events, cpu_s = sum(m.events for m in trials), total(replication.REPLICAS_CPU_S)
    return (
        number(total(replication.COMMITS_ACKNOWLEDGED), 0),
        number(total(replication.COMMITS_NOT_ACKNOWLEDGED), 0),
        number(behind, 0),
        number(cpu_s / events * 1e6 if cpu_s is not None and events else None, 1),
    )
