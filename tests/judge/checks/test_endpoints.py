"""Servers that could not be treated as the lab's own."""

from __future__ import annotations

from datetime import datetime, timedelta

from dbdyno.judge.checks import design
from dbdyno.judge.finding import Level
from dbdyno.measurement.measurement import Measurement, ServerFacts
from dbdyno.measurement.metric import TABLE
from dbdyno.plan.plan import Plan
from dbdyno.plan.systems import SystemPlan
from dbdyno.report.tell.findings import evidence
from support import making
from support.making import A

BEGIN = datetime.fromisoformat("2026-11-21T06:00:00+00:00")
NOTHING = ServerFacts(version="", settings={}, status={}, cpu_s=0.0)


def plan() -> Plan:
    endpoint = SystemPlan(label="cloud", reference="mysql://bench@db1:3306/sbtest")
    own = SystemPlan(label=A, reference=A)
    return making.plan().model_copy(update={"systems": (own, endpoint)})


def test_an_endpoint_is_reported_once_with_what_was_not_done() -> None:
    trials = making.pairs((1.0,) * 3, systems=(A, "cloud"))
    (found,) = design.uncontrolled_server(trials, plan())
    assert (found.level, found.system, found.trial) == (Level.DOUBTFUL, "cloud", None)
    assert found.values == {"blocks": 3, "is_seen": True, "balanced": []}
    assert "did not see its other clients" in str(evidence(found))


def test_a_balancer_is_named() -> None:
    trials = [making.unseen(one) for one in making.pairs((1.0,) * 3, systems=(A, "cloud"))]
    server = trials[1].server.model_copy(update={"balanced": ("db1:3306",)})
    (found,) = design.uncontrolled_server([making.changed(trials[1], server=server)], plan())
    text = str(evidence(found))
    assert "did not see its processes, disks and other clients" in text
    assert "db1:3306: a balancer before several servers" in text


def seen(*uptimes_s: float, block: int = 0, moves: float = 12.0) -> list[Measurement]:
    """Trials of the endpoint, 100 s apart, each with the uptime at its end."""
    made = []
    for number, uptime_s in enumerate(uptimes_s):
        one = making.measurement("cloud", threads=number + 1, block=block)
        facts = {"uptime_s": uptime_s, "status": {**one.server.status, "Uptime": moves}}
        server = one.server.model_copy(update=facts)
        began = (BEGIN + timedelta(seconds=100 * number)).isoformat()
        made.append(making.changed(one, server=server, started_at=began))
    return made


def test_an_endpoint_that_was_restarted_within_a_block_is_told() -> None:
    crashed = seen(757, 17)
    (found,) = design.split_block(crashed, plan())
    assert (found.check, found.level, found.system) == ("split-block", Level.DOUBTFUL, "cloud")
    values = {"case": "restarted", "system": "cloud", "block": 1, "uptime_s": 17, "since_s": 112}
    assert found.values == values
    failed = making.changed(crashed[0], failure="the load broke off", server=NOTHING)
    assert len(list(design.split_block([failed, crashed[1]], plan()))) == 1
    assert found.values["since_s"] == 112


def test_the_restart_of_an_endpoint_on_this_machine_is_told_once() -> None:
    procedure = making.plan().procedure.model_copy(update={"restart": "block"})
    asked = plan().model_copy(update={"procedure": procedure})
    crashed = [
        making.changed(one, server=one.server.model_copy(update={"pid": pid}))
        for pid, one in zip((7, 8), seen(757, 17), strict=True)
    ]
    (found,) = design.split_block([*crashed, making.measurement(A)], asked)
    assert found.values["case"] == "restarted"


def test_an_uptime_that_goes_on_or_is_anothers_is_no_restart() -> None:
    assert not list(design.split_block(seen(757, 857, 957), plan()))
    assert not list(design.split_block(seen(12, 112), plan()))  # begun just before
    assert not list(design.split_block(seen(757, 300), plan()))  # behind a balancer
    assert not list(design.split_block(seen(0, 0, moves=0.0), plan()))
    apart = [seen(757)[0], seen(0, 17, block=1)[1]]
    assert not list(design.split_block(apart, plan()))


def test_servers_of_our_own_are_no_doubt() -> None:
    assert not list(design.uncontrolled_server(making.pairs((1.0,)), making.plan()))
    only_own = [making.measurement(A)]
    assert not list(design.uncontrolled_server(only_own, plan()))


def test_the_cpu_of_servers_that_nobody_saw_is_no_number() -> None:
    metric = next(m for m in TABLE if m.name == "server_cpu_us_per_query")
    assert making.measurement(server_cpu_s=0.0).value(metric) is None
    assert making.measurement(server_cpu_s=2.0).value(metric) is not None
