from __future__ import annotations

from dbdyno.measurement import measurement, replication
from dbdyno.plan.plan import NetworkPlan, Plan, TopologyPlan
from dbdyno.report.parts import Items
from dbdyno.report.sections import method
from dbdyno.report.sections.method import asked_replicas
from support import making

SEEN = {
    replication.COMMITS_ACKNOWLEDGED: 9_990.0,
    replication.COMMITS_NOT_ACKNOWLEDGED: 10.0,
    replication.TRANSACTIONS_BEHIND: 3.0,
    replication.REPLICAS_CPU_S: 2.0,
}


def measured(system: str, block: int, **changed: float) -> measurement.Measurement:
    made = making.measurement(system, block)
    server = made.server.model_copy(update={"replication": {**SEEN, **changed}})
    return making.changed(made, server=server)


def plan(*topologies: TopologyPlan, **more: object) -> Plan:
    made = making.plan()
    systems = tuple(
        system.model_copy(update={"topology": topology})
        for system, topology in zip(made.systems, topologies, strict=True)
    )
    return made.model_copy(update={"systems": systems, **more})


def test_commits_are_counted_by_system_and_cell() -> None:
    trials = [
        measured(making.A, 0),
        measured(making.A, 1, transactions_behind=8.0),
        making.measurement(making.B),
    ]
    table = method.replicas_table(making.plan(), trials)
    assert table is not None
    title = trials[0].trial.cell.title
    thin = "\N{NARROW NO-BREAK SPACE}"
    assert table.rows == ((making.A, title, "2", f"19{thin}980", "20", "8", "200.0"),)
    assert table in method.how_measured(making.plan(), trials).parts


def test_what_was_not_counted_is_a_dash_and_nothing_is_no_table() -> None:
    made = making.measurement(making.A)
    server = made.server.model_copy(update={"replication": {replication.REPLICAS_RUNNING: 1.0}})
    table = method.replicas_table(making.plan(), [making.changed(made, server=server)])
    assert table is not None
    assert table.rows[0][3:] == ("—", "—", "0", "—")
    assert method.replicas_table(making.plan(), [made]) is None


def test_the_plans_words_are_said() -> None:
    semisync = TopologyPlan(replicas=2, replication="semisync", timeout_s=1.5)
    told = list(method.asked_replicas(plan(semisync, TopologyPlan(replicas=1))))
    assert told == [
        f"{making.A}: a commit waits (after sync) until one of 2 replicas has it, 1.5 s at most.",
        f"{making.B}: 1 replica, for which no commit waits.",
    ]
    group = TopologyPlan(replicas=2, replication="group")
    network = NetworkPlan(client_ms=0.8, replica_ms=2)
    whole = plan(group, TopologyPlan(), network=network)
    told = list(method.asked_replicas(whole))
    assert told == [
        f"{making.A}: a group of 3; a commit waits until a majority agrees.",
        "The network adds 0.8 ms to each round trip between load and primary.",
        "The network adds 2 ms to each round trip between servers.",
    ]
    (items,) = (p for p in method.how_measured(whole, []).parts if isinstance(p, Items))
    assert set(told) <= set(items.items)
    assert list(asked_replicas(making.plan())) == []
