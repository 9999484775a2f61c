"""The steps before a trial: which are taken when, what is kept of each, what is kept undone."""

from __future__ import annotations

import itertools
import json

import pytest

from dbdyno.errors import CellError, LoadError, ServerError
from dbdyno.experiment import procedure as room
from dbdyno.experiment.context import RunContext
from dbdyno.experiment.forecast import Forecast
from dbdyno.experiment.order import trials_of
from dbdyno.experiment.procedure import (
    Steps,
    before_trial,
    catch_up,
    drop_caches,
    is_look,
    lay_out,
    purge_binary_logs,
    run_until_steady,
    settle_mysql,
    start,
)
from dbdyno.measurement.parts import Step
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.postgres.server import PostgresServer
from support import making
from support.fakes import FakeInstance, FakeServer, Progress, World, command


@pytest.fixture
def context(tmp_path):
    def made(**procedure):
        plan = making.plan()
        changed = plan.procedure.model_copy(update=procedure)
        plan = plan.model_copy(update={"procedure": changed})
        return RunContext(plan, None, tmp_path, Progress(), World().makers, Forecast(plan), [], 0)

    return made


@pytest.fixture
def instance(tmp_path):
    made = FakeInstance(ServerSpec("a", making.A), tmp_path / "i", [])
    made.snapshot()
    yield made
    made.close()


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr(room, "DROP_CACHES", tmp_path / "drop_caches")
    return tmp_path / "drop_caches"


def begun(context, instance, keys=None):
    steps = Steps()
    lay_out(context, instance, steps)
    server = start(context, instance, keys or {}, steps)
    server.stop()
    return [step.name for step in steps.taken]


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
    monkeypatch.setattr(room, "settle_mysql", settle)
    return seen


class Running:
    label = making.A
    pid = 4711


def test_purging_and_settling_are_done_as_the_plan_says(context, asked):
    before_trial(context(), Running(), Steps())
    assert asked == []
    steps, running = Steps(), Running()
    before_trial(context(purge_binlogs=True, settle_cap_s=30.0), running, steps)
    assert asked == [("purge", running), ("settle", 30.0)]
    assert [step.name for step in steps.taken] == ["purge binary logs", "settle"]


def test_a_postgresql_is_brought_to_rest_in_its_own_words(context, asked, monkeypatch):
    class Postgres(PostgresServer):
        def __init__(self):
            self.label, self.pid = "pg", 4711

    vacuumed = Step(name="settle", seconds=0.3, detail="vacuumed")
    monkeypatch.setattr(room, "settle_postgres", lambda server, cap_s: vacuumed)
    steps = Steps()
    before_trial(context(settle_cap_s=30.0), Postgres(), steps)
    assert (steps.taken, asked) == ([vacuumed], [])


def test_restored_data_has_nothing_to_settle(context, asked):
    before_trial(context(settle_cap_s=30.0), Running(), Steps([Step(name="restore", seconds=1)]))
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


def test_replicas_catch_up_before_a_trial_and_it_is_told_when_they_do_not():
    steps = Steps()
    catch_up(Running(), steps)
    assert steps.taken == []
    catch_up(Followed(0.5), steps)
    catch_up(Followed(3600), steps)
    assert [(step.name, step.seconds, step.done) for step in steps.taken] == [
        ("replicas catch up", 0.5, True),
        ("replicas catch up", room.CATCH_UP_S, False),
    ]


def test_nothing_is_changed_in_a_server_that_the_lab_did_not_start(context, asked):
    class Foreign(Running):
        pid = 0

    steps = Steps()
    before_trial(context(purge_binlogs=True, settle_cap_s=30.0), Foreign(), steps)
    assert asked == []
    assert [(step.name, step.done) for step in steps.taken] == [
        ("purge binary logs", False),
        ("settle", False),
    ]
    assert "owner" in steps.taken[0].detail


def test_an_endpoints_tables_are_looked_at_and_this_machines_caches_left_alone(
    context, tmp_path, cache
):
    endpoint = FakeInstance(ServerSpec("a", "mysql://u@h:1/d"), tmp_path / "i", [])
    endpoint.snapshot()
    steps = Steps()
    lay_out(context(drop_caches=True), endpoint, steps)
    assert [(step.name, step.done) for step in steps.taken] == [
        ("look at the tables", True),
        ("drop caches", False),
    ]
    assert not cache.exists()


def test_a_replica_that_is_gone_is_a_step_not_done():
    class Gone(Followed):
        def catch_up(self, cap_s):
            raise ServerError("a: a replica does not answer", found="connection refused")

    steps = Steps()
    catch_up(Gone(0), steps)
    assert [(step.done, step.detail) for step in steps.taken] == [(False, "connection refused")]


# A server is told to write everything out, watched until it has, and left as it was.


class Server:
    """Answers with what is left, step by step; its variables can be set."""

    label = "a"

    def __init__(self, left=((0, 0),), log_bin="1", gone=""):
        self.left = itertools.chain(left, itertools.repeat(left[-1]))
        self.variables = {
            "innodb_max_dirty_pages_pct": "75.000000",
            "innodb_max_dirty_pages_pct_lwm": "10.5",
        }
        self.now, self.log_bin, self.gone, self.asked = (0, 0), log_bin, gone, []

    def ask(self, sql):
        self.asked.append(sql)
        if self.gone and self.gone in sql:
            raise ServerError("a: no answer", found="gone away")
        if sql.startswith("SET GLOBAL"):
            name, _, value = sql.removeprefix("SET GLOBAL ").partition(" = ")
            self.variables[name] = value
            return []
        if sql.startswith("SHOW GLOBAL STATUS"):
            self.now = next(self.left)
        answers = {
            "SHOW GLOBAL STATUS": [(room.DIRTY_PAGES, str(self.now[0]))],
            "SHOW ENGINE": [("InnoDB", "", f"TRANSACTIONS\nHistory list length {self.now[1]}\n")],
            "SELECT @@log_bin": [(self.log_bin,)],
            "SHOW BINARY LOGS": [("binlog.000001", "3000000", "No"), ("it's.2", "500000", "No")],
            **{f"SELECT @@GLOBAL.{name}": [(v,)] for name, v in self.variables.items()},
        }
        known = [words for words in answers if sql.startswith(words)]
        return answers[max(known, key=len)] if known else []


@pytest.fixture(autouse=True)
def no_sleep(monkeypatch):
    monkeypatch.setattr(room.time, "sleep", lambda seconds: None)


def clock():
    return itertools.count().__next__


def test_it_waits_until_pages_are_written_and_versions_purged():
    server = Server(left=((5000, 900), (300, 400), (10, 90)))
    step = settle_mysql(server, 60, clock())
    assert (step.name, step.done) == ("settle", True)
    assert step.detail == "dirty pages 5000 to 10, history 900 to 90"
    assert step.seconds > 0


def test_the_server_flushes_all_meanwhile_and_is_as_it_was_afterwards():
    server = Server()
    settle_mysql(server, 60, clock())
    assert [sql for sql in server.asked if "= 0" in sql] == [
        "SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0",
        "SET GLOBAL innodb_max_dirty_pages_pct = 0",
    ]
    assert server.variables == {
        "innodb_max_dirty_pages_pct": "75",
        "innodb_max_dirty_pages_pct_lwm": "10.5",
    }


def test_the_cap_ends_the_wait_and_the_step_is_not_done():
    step = settle_mysql(Server(left=((5000, 0),)), 3, clock())
    assert not step.done
    assert step.detail == "not at rest at the cap: dirty pages 5000 to 5000, history 0 to 0"


def test_a_history_that_gets_no_shorter_is_rest():
    server = Server(left=((0, 3000), (0, 2000), (0, 1500)))
    step = settle_mysql(server, 1000, clock())
    assert step.done
    assert step.detail.endswith("history 3000 to 1500")
    looks = [sql for sql in server.asked if sql.startswith("SHOW ENGINE")]
    assert len(looks) == 3 + room.QUIET_LOOKS


@pytest.mark.parametrize("gone", ["STATUS", "SET GLOBAL", "ENGINE"])
def test_a_server_that_does_not_answer_is_a_step_not_done(gone):
    step = settle_mysql(Server(gone=gone), 60, clock())
    assert (step.done, step.detail) == (False, "gone away")


def test_binary_logs_are_purged_to_a_new_one_whatever_its_name():
    server = Server()
    step = purge_binary_logs(server)
    assert (step.name, step.done, step.detail) == ("purge binary logs", True, "2 of 3.5 MB")
    assert server.asked[-1] == "PURGE BINARY LOGS TO 'it''s.2'"
    assert "FLUSH BINARY LOGS" in server.asked


def test_without_a_binary_log_there_is_nothing_to_purge():
    server = Server(log_bin="0")
    step = purge_binary_logs(server)
    assert (step.done, step.detail) == (True, "the binary log is off")
    assert server.asked == ["SELECT @@log_bin"]


def test_a_purge_that_is_refused_is_a_step_not_done():
    step = purge_binary_logs(Server(gone="PURGE"))
    assert (step.done, step.detail) == (False, "gone away")


# Load until it is steady: looks at fixed times, ends at the first good one or at the cap.


def plan(cap_s):
    trial = {"until_steady": True, "warmup_cap_s": cap_s, "window_s": 3, "warmup_s": 1}
    made = making.plan()
    return made.model_copy(update={"trial": made.trial.model_copy(update=trial)})


TRIAL = trials_of(making.plan(), "r")[0]


@pytest.fixture
def server():
    started = FakeServer("a")
    yield started
    started.process.kill()
    started.process.wait()


def run(server, cap_s, **options):
    told = []
    made = run_until_steady(
        plan(cap_s), TRIAL, server, told.append, command(**{"tick_s": 0.001, **options})
    )
    return made, told


def test_a_steady_load_ends_at_the_first_look(server):
    made, told = run(server, 900)
    assert made.steady
    assert made.cut_s == 10
    assert 120 <= made.seconds < 180
    assert set(made.rates_per_s) == {100.0}
    assert {one["phase"] for one in told} == {"until steady"}


def test_a_cap_too_short_to_tell_is_said(server):
    made, _ = run(server, 30)
    assert (made.steady, made.seconds) == (False, 30.0)
    assert made.why == "30 s are too few to tell, 70 s are the least"


def test_at_the_cap_it_is_looked_too(server):
    made, _ = run(server, 80)
    assert (made.steady, made.seconds) == (True, 80.0)


def test_its_requests_are_not_those_of_the_trial_and_all_of_it_is_window(server, tmp_path):
    run(server, 20, log=tmp_path / "log")
    (asked,) = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert asked["seed"] != TRIAL.seed
    assert 0 <= asked["seed"] < 2**63
    assert (asked["warmup_s"], asked["window_s"]) == (0.0, 20)


def test_a_server_that_dies_under_it_is_the_reason(server, tmp_path):
    made, _ = run(server, 100, kill_server=tmp_path / "killed")
    assert not made.steady
    assert made.why == "the load broke off: error 2013: Lost connection"


def test_an_engine_that_dies_under_it_is_the_reason(server):
    made, _ = run(server, 100, die=True)
    assert made.why.startswith("the load broke off: ")
    assert "thread panicked" in made.why


@pytest.mark.parametrize(("stage", "kind"), [("limits", CellError), ("connect", LoadError)])
def test_a_load_that_cannot_begin_is_raised(server, stage, kind):
    refused = {"kind": "refused", "code": 1045, "message": "no", "stage": stage}
    with pytest.raises(kind):
        run(server, 30, fail={"run": refused})


def test_an_engine_that_says_nothing_is_given_up(server, monkeypatch):
    monkeypatch.setattr(room, "PATIENCE_S", 0.2)
    monkeypatch.setattr(room, "DRAIN_S", 0.0)
    made, _ = run(server, 1, tick_s=30, deaf=True)
    assert made.why == "the engine did not end in time"


def test_looks_are_at_two_minutes_and_each_minute_after():
    assert [second for second in range(400) if is_look(second)] == [120, 180, 240, 300, 360]
