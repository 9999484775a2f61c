"""What stood behind each primary, what its commits waited for, and that they did.

A rate of commits says nothing until it is said what a commit was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno import replication
from dbdyno.measurement import Measurement
from dbdyno.plan import Plan
from dbdyno.plan_systems import TopologyPlan
from dbdyno.report.numbers import count, number, seconds
from dbdyno.report.parts import Column, Table
from dbdyno.report.trials import systems_of

COLUMNS = (
    *(Column("System"), Column("Workload and load")),
    *(Column("Trials", True), Column("Commits that a replica had", True)),
    *(Column("Commits that none had", True), Column("Most transactions behind", True)),
    Column("Replicas' CPU µs per transaction", True),
)


def asked(plan: Plan) -> Iterator[str]:
    """What the plan says of replicas and of the network, a sentence each."""
    for system in plan.systems:
        if system.topology.replicas:
            yield f"{system.label}: {_said(system.topology)}."
    delays = {"load and primary": plan.network.client_ms, "servers": plan.network.replica_ms}
    for between, delay_ms in delays.items():
        if delay_ms:
            yield f"The network adds {delay_ms:g} ms to each round trip between {between}."


def table(plan: Plan, measurements: Sequence[Measurement]) -> Table | None:
    """What replicated in the windows of each system and cell; None where nothing did."""
    rows = []
    for system in systems_of(plan, measurements):
        of_system = [m for m in measurements if m.trial.system == system and m.server.replication]
        for title in dict.fromkeys(m.trial.cell.title for m in of_system):
            of_cell = [m for m in of_system if m.trial.cell.title == title]
            rows.append((system, title, str(len(of_cell)), *_row(of_cell)))
    return Table("Replication in the measured windows", COLUMNS, tuple(rows)) if rows else None


def _said(topology: TopologyPlan) -> str:
    behind = count(topology.replicas, "replica")
    if topology.replication == "semisync":
        after = topology.wait_point.replace("_", " ")
        return (
            f"a commit waits ({after}) until one of {behind} has it, {seconds(topology.timeout_s)} "
            "at most"
        )
    if topology.replication == "group":
        return f"a group of {topology.replicas + 1}; a commit waits until a majority agrees"
    return f"{behind}, for which no commit waits"


def _row(trials: Sequence[Measurement]) -> tuple[str, ...]:
    def total(name: str) -> float | None:
        seen = [m.server.replication[name] for m in trials if name in m.server.replication]
        return sum(seen) if seen else None

    behind = max(m.server.replication.get(replication.TRANSACTIONS_BEHIND, 0) for m in trials)
    events, cpu_s = sum(m.events for m in trials), total(replication.REPLICAS_CPU_S)
    return (
        number(total(replication.COMMITS_ACKNOWLEDGED), 0),
        number(total(replication.COMMITS_NOT_ACKNOWLEDGED), 0),
        number(behind, 0),
        number(cpu_s / events * 1e6 if cpu_s is not None and events else None, 1),
    )
