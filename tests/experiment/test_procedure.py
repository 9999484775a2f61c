"""The steps before a trial: which are taken when, what is kept of each, what is kept undone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment import procedure as room
from dbdyno.experiment.context import RunContext
from dbdyno.experiment.procedure import (
    Steps,
    before_start,
    before_trial,
    catch_up,
    drop_caches,
    start,
)
from dbdyno.experiment.schedule.schedule import TrialQueue
from dbdyno.measurement.parts import Step
from dbdyno.servers.base import ServerSpec
from support import making
from support.fakes import Progress
from support.world import FakeInstance, FakeServer, World


@pytest.fixture
def context(tmp_path):
    def made(**procedure):
        plan = making.plan(procedure=procedure)
        return RunContext("r", TrialQueue(plan, [], 0), None, tmp_path, Progress(), World().makers)

    return made


@pytest.fixture
def instance(tmp_path):
    made = FakeInstance(World(), ServerSpec("a", making.A), tmp_path / "i")
    made.snapshot()
    return made


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr(room, "DROP_CACHES", tmp_path / "drop_caches")
    return tmp_path / "drop_caches"


def begun(context, instance, keys=None):
    steps = Steps()
    before_start(context, instance, steps)
    server = start(context, instance, keys or {}, steps)
    server.stop()
    return [step.name for step in steps.taken]


def test_a_server_of_others_may_stay_on_the_generators_cores(context, tmp_path, monkeypatch):
    moved = []
    monkeypatch.setattr(room, "set_affinity", lambda pid, cores: moved.append(pid))
    for reference in (making.A, "mysql://bench@127.0.0.1:3306/sbtest"):
        instance = FakeInstance(World(), ServerSpec("a", reference), tmp_path / "i")
        instance.snapshot()
        start(context(pin=(0,)), instance, {}, Steps()).stop()
    assert len(moved) == 1


def test_data_is_restored_before_each_start_or_only_before_the_first(context, instance):
    every = context()
    assert [begun(every, instance) for _ in range(2)] == [["restore", "start"]] * 2
    once = context(fresh_data="once")
    assert [begun(once, instance) for _ in range(2)] == [["restore", "start"], ["start"]]
    once.as_loaded.clear()  # something spoiled it
    assert begun(once, instance) == ["restore", "start"]


def test_the_settings_of_the_start_are_handed_on_and_kept(context, instance):
    steps = Steps()
    start(context(), instance, {"sync_binlog": 0, "log_bin": "ON"}, steps).stop()
    assert instance.started_with == [{"sync_binlog": 0, "log_bin": "ON"}]
    assert steps.taken[-1].detail == "sync_binlog=0, log_bin=ON"


def test_sql_after_the_start_that_is_refused_leaves_no_server(context, instance, monkeypatch):
    def refuse(server, sql):
        raise ServerError(f"{sql}: unknown variable")

    monkeypatch.setattr(FakeServer, "ask", refuse)
    instance.spec = replace(instance.spec, after_start=("SET GLOBAL mistyped = 1",))
    with pytest.raises(ServerError, match="mistyped = 1: unknown variable"):
        start(context(), instance, {}, Steps())
    assert instance.server.killed == 1
    assert not instance.server.alive()


def test_caches_are_dropped_after_the_restore_and_before_the_start(context, instance, cache):
    assert begun(context(drop_caches=True), instance) == ["restore", "drop caches", "start"]
    assert cache.read_text() == "3\n"


def test_caches_that_may_not_be_dropped_are_a_step_not_done(tmp_path):
    step = drop_caches(tmp_path / "no such folder" / "drop_caches")
    assert not step.done
    assert "No such file" in step.detail
    assert "root" in step.detail


def test_a_step_that_fails_is_not_kept_as_taken():
    steps = Steps()
    with pytest.raises(ServerError), steps.timed("restore"):
        raise ServerError("no snapshot")
    assert steps.taken == []


@pytest.fixture
def asked(monkeypatch):
    seen = []

    def purge(server):
        seen.append(("purge", server))
        return Step(name="purge binary logs", seconds=0.1)

    def settle(server, cap_s):
        seen.append(("settle", cap_s))
        return Step(name="settle", seconds=0.2)

    monkeypatch.setattr(room, "purge_binary_logs", purge)
    monkeypatch.setattr(room, "settle", settle)
    return seen


class Running:
    label = making.A
    pid = 4711


def test_purging_and_settling_are_done_as_the_plan_says(context, instance, asked):
    before_trial(context(), instance, Running(), Steps())
    assert asked == []
    steps, running = Steps(), Running()
    before_trial(context(purge_binlogs=True, settle_cap_s=30.0), instance, running, steps)
    assert asked == [("purge", running), ("settle", 30.0)]
    assert [step.name for step in steps.taken] == ["purge binary logs", "settle"]


def test_restored_data_has_nothing_to_settle(context, instance, asked):
    steps = Steps([Step(name="restore", seconds=1)])
    before_trial(context(settle_cap_s=30.0), instance, Running(), steps)
    assert asked == []


class Followed(Running):
    """A primary whose replicas take `took_s` to catch up."""

    pids = (1, 2)

    def __init__(self, took_s):
        self.took_s = took_s

    def replication(self):
        return {}

    def catch_up(self, cap_s):
        return min(self.took_s, cap_s)


def test_replicas_catch_up_before_a_trial_and_it_is_reported_when_they_do_not():
    steps = Steps()
    catch_up(Running(), steps)
    assert steps.taken == []
    catch_up(Followed(0.5), steps)
    catch_up(Followed(3600), steps)
    assert [(step.name, step.seconds, step.done) for step in steps.taken] == [
        ("replicas catch up", 0.5, True),
        ("replicas catch up", room.CATCH_UP_S, False),
    ]


def test_a_server_of_ours_whose_process_is_not_seen_is_brought_to_rest_too(
    context, instance, asked
):
    class Unseen(Running):
        pid = 0

    before_trial(context(settle_cap_s=30.0), instance, Unseen(), Steps())
    assert asked == [("settle", 30.0)]


def test_nothing_is_changed_in_a_server_that_the_lab_did_not_start(context, tmp_path, asked):
    endpoint = FakeInstance(World(), ServerSpec("a", "mysql://u@h:1/d"), tmp_path / "i")
    steps, plan = Steps(), {"purge_binlogs": True, "settle_cap_s": 30.0}
    run = context(**plan)
    before_trial(run, endpoint, Running(), steps)
    assert asked == run.progress.stages == []
    assert [(step.name, step.done) for step in steps.taken] == [
        ("purge binary logs", False),
        ("settle", False),
    ]
    assert "owner" in steps.taken[0].detail


def test_an_endpoints_tables_are_looked_at_and_this_machines_caches_left_alone(
    context, tmp_path, cache
):
    endpoint = FakeInstance(World(), ServerSpec("a", "mysql://u@h:1/d"), tmp_path / "i")
    endpoint.snapshot()
    steps, run = Steps(), context(drop_caches=True)
    before_start(run, endpoint, steps)
    start(run, endpoint, {}, steps).stop()
    assert run.progress.stages == ["a: looking at the tables", "a: logging in"]
    assert [(step.name, step.done) for step in steps.taken] == [
        ("look at the tables", True),
        ("drop caches", False),
        ("connect", True),
    ]
    assert not cache.exists()


def test_a_replica_that_is_gone_is_a_step_not_done():
    class Gone(Followed):
        def catch_up(self, cap_s):
            raise ServerError("a: a replica does not answer", found="connection refused")

    steps = Steps()
    catch_up(Gone(0), steps)
    assert [(step.done, step.detail) for step in steps.taken] == [(False, "connection refused")]
