"""A replicated trial without proof of its commits is void."""

from __future__ import annotations

import pytest

from dbdyno.judge.audit import examine
from dbdyno.judge.checks import durability as checks
from dbdyno.judge.checks.machine import machine
from dbdyno.judge.finding import Finding, Level
from dbdyno.measurement import measurement, replication
from dbdyno.plan.plan import Plan
from dbdyno.plan.systems import SystemPlan, TopologyPlan
from support import making
from support.making import A

SOUND = {
    replication.REPLICAS_RUNNING: 1.0,
    replication.TRANSACTIONS_BEHIND: 12.0,
    replication.SEMISYNC_ON: 1.0,
    replication.SEMISYNC_REPLICAS: 1.0,
    replication.COMMITS_ACKNOWLEDGED: 10_000.0,
    replication.COMMITS_NOT_ACKNOWLEDGED: 0.0,
    replication.TIMES_OFF: 0.0,
    replication.AFTER_SYNC: 1.0,
}


def plan(kind: str = "semisync", replicas: int = 1) -> Plan:
    topology = TopologyPlan.model_validate({"replicas": replicas, "replication": kind})
    system = SystemPlan(label=A, reference=A, topology=topology)
    return making.plan(systems=(A,)).model_copy(update={"systems": (system,)})


def trial(seen: dict[str, float], **kind: object) -> measurement.Measurement:
    made = making.measurement(A, **kind)  # type: ignore[arg-type]
    return making.changed(made, server=made.server.model_copy(update={"replication": seen}))


def findings(seen: dict[str, float], asked: Plan, **kind: object) -> list[Finding]:
    names = ("replicas-missing", "commits-not-waited", "replica-lags")
    return [f for f in examine(trial(seen, **kind), asked) if f.check in names]


def cases(found: Finding) -> list[str]:
    assert (found.check, found.level) == ("commits-not-waited", Level.VOID)
    return [reason["case"] for reason in found.values["reasons"]]


@pytest.mark.parametrize("kind", ["semisync", "async"])
def test_a_proven_trial_has_no_finding(kind):
    assert findings(SOUND, plan(kind)) == []


def test_a_system_without_replicas_owes_no_proof():
    assert findings({}, making.plan(systems=(A,))) == []
    assert findings({}, plan("semisync", replicas=0)) == []


@pytest.mark.parametrize("kind", ["semisync", "async", "group"])
def test_a_replicated_trial_without_readings_is_void(kind):
    found = checks.replicas_missing(trial({}), plan(kind))
    assert (found.level, found.values["running"], found.values["replicas"]) == (Level.VOID, None, 1)


def test_a_missing_replica_is_void():
    found = checks.replicas_missing(trial(SOUND), plan(replicas=2))
    assert found.level is Level.VOID
    assert found.values == {"running": 1, "replicas": 2, "kind": "semisync"}


@pytest.mark.parametrize(
    ("changed", "alone", "ended", "is_on"),
    [
        ({replication.COMMITS_NOT_ACKNOWLEDGED: 7.0}, 7, 0, True),
        ({replication.TIMES_OFF: 1.0, replication.SEMISYNC_ON: 0.0}, 0, 1, False),
    ],
    ids=["one commit", "a whole state"],
)
def test_a_fall_back_to_asynchronous_is_void(changed, alone, ended, is_on):
    (found,) = findings({**SOUND, **changed}, plan())
    assert cases(found) == ["alone"]
    counts = {"alone": alone, "waited": 10_000, "ended": ended, "is_on": is_on}
    assert counts.items() <= found.values["reasons"][0].items()
    assert findings({**SOUND, **changed}, plan("async")) == []


def test_writes_without_one_acknowledged_commit_are_void_and_reads_are_not():
    silent = {**SOUND, replication.COMMITS_ACKNOWLEDGED: 0.0}
    (found,) = findings(silent, plan())
    assert cases(found) == ["unproven"]
    reading = making.plan(systems=(A,), workloads=("oltp_read_only",))
    reading = reading.model_copy(update={"systems": plan().systems})
    assert findings(silent, reading, workload="oltp_read_only") == []


def test_a_server_that_counts_no_commits_is_believed_while_it_waits():
    counted = (replication.COMMITS_ACKNOWLEDGED, replication.COMMITS_NOT_ACKNOWLEDGED)
    postgres = {n: v for n, v in SOUND.items() if n not in (*counted, replication.TIMES_OFF)}
    assert findings(postgres, plan()) == []
    (found,) = findings({**postgres, replication.SEMISYNC_ON: 0.0}, plan())
    assert cases(found) == ["alone"]
    del postgres[replication.SEMISYNC_ON]
    (found,) = findings(postgres, plan())
    assert cases(found) == ["alone", "unproven"]


def test_the_other_wait_point_is_void():
    (found,) = findings({**SOUND, replication.AFTER_SYNC: 0.0}, plan())
    points = {"case": "wait-point", "at": "after_commit", "wanted": "after_sync"}
    assert found.values["reasons"] == [points]


def test_a_replica_more_than_a_second_of_load_behind_is_doubtful():
    assert findings({**SOUND, replication.TRANSACTIONS_BEHIND: 1000.0}, plan()) == []
    (found,) = findings({**SOUND, replication.TRANSACTIONS_BEHIND: 2500.0}, plan("async"))
    assert (found.check, found.level) == ("replica-lags", Level.DOUBTFUL)
    assert (found.values["behind"], found.values["behind_s"]) == (2500, 2.5)


def test_the_replicas_own_work_is_not_another_processs():
    busy = {"other_cpu": 1.0, "host_cores": 4}
    assert list(machine([trial({}, **busy)], plan()))
    measured = trial({}, **busy)
    for cpu in (1.0, 1.5):  # the second is more than the host's ticks show
        assert not list(machine([making.with_replicas(measured, cpu)], plan()))
