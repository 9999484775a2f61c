"""Servers that could not be treated as the lab's own."""

from __future__ import annotations

from dbdyno.judge.checks import design
from dbdyno.judge.finding import Level
from dbdyno.measurement.metric import TABLE
from dbdyno.plan.plan import Plan
from dbdyno.plan.systems import SystemPlan
from dbdyno.report.tell.findings import evidence
from support import making
from support.making import A


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


def test_servers_of_our_own_are_no_doubt() -> None:
    assert not list(design.uncontrolled_server(making.pairs((1.0,)), making.plan()))
    only_own = [making.measurement(A)]
    assert not list(design.uncontrolled_server(only_own, plan()))


def test_the_cpu_of_servers_that_nobody_saw_is_no_number() -> None:
    metric = next(m for m in TABLE if m.name == "server_cpu_us_per_query")
    assert making.measurement(server_cpu_s=0.0).value(metric) is None
    assert making.measurement(server_cpu_s=2.0).value(metric) is not None
