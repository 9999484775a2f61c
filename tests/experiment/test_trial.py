"""One trial on a running server: what is raised, what is a failed measurement."""

from types import SimpleNamespace

import pytest

from dbdyno.errors import LoadError, LostError, ServerError
from dbdyno.experiment import trial as trial_room
from dbdyno.experiment.engine.process import STOP_GRACE_S, Message
from dbdyno.experiment.engine.spec import DRAIN_S, run_spec
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.experiment.trial import PATIENCE_S, run_trial
from support import making

PLAN = making.plan(window_s=3, warmup_s=1)
TRIAL = trials_of(PLAN, "r")[0]


def run(server, plan=PLAN):
    intervals = []
    engine = server.world.engine
    return run_trial(plan, TRIAL, server, intervals.append, engine_of=engine), intervals


def test_a_trial_is_reported_interval_by_interval(server):
    measured, intervals = run(server)
    assert [i["at_s"] for i in intervals] == [1.0, 2.0, 3.0, 4.0]
    assert measured.failure is None
    assert measured.trial == TRIAL
    assert measured.started_at.startswith("20")


def test_the_window_is_watched_second_by_second(server):
    measured, _ = run(server)
    assert [sample.at_s for sample in measured.watch] == [0.5, 1.5, 2.5, 3.5]
    assert measured.server.cpu_s >= 0.0
    assert server.readings == 3, "the edges, and once more to see whether the second is right"


def test_what_stood_still_is_told_as_it_was_at_the_windows_end(server, monkeypatch):
    waiting = iter([{"UPDATE: updating": 2}, {"SELECT: statistics": 1}])
    monkeypatch.setattr(trial_room, "waiting_statements", lambda server: next(waiting))
    silent = {"queries": 0, "errors": {}}
    told = iter(
        [
            Message("interval", {"phase": "measured", "at_s": 4.0, **silent}),
            Message("interval", {"phase": "drain", "at_s": 9.0, **silent}),
            Message("record", {}),
        ]
    )
    engine = SimpleNamespace(message=lambda timeout_s: next(told))
    counters = SimpleNamespace(
        error=None,
        seconds_to_edge=lambda: None,
        interval_ended=lambda at_s: None,
        read_if_due=lambda: None,
    )
    seen = trial_room._EngineReport()
    trial_room._collect(PLAN.trial, server, engine, counters, seen, lambda interval: None)
    assert seen.waiting == {"UPDATE: updating": 2}


def test_a_refusal_before_the_load_is_raised_while_the_server_lives(server):
    server.world.fail = {"run": {"kind": "refused", "code": 1045, "message": "no"}}
    with pytest.raises(LoadError, match="could not drive the load"):
        run(server)


def test_a_refusal_of_a_server_that_is_dead_is_a_failed_trial(server, monkeypatch):
    answers = iter([True])
    monkeypatch.setattr(server, "alive", lambda: next(answers, False))
    server.world.fail = {"run": {"kind": "refused", "code": 2003, "message": "gone"}}
    measured, _ = run(server)
    assert measured.failure.startswith("the server died")
    assert "error 2003: gone" in measured.failure
    assert (measured.intervals, measured.window_s) == ((), 0.0)


def test_a_server_that_cannot_be_asked_is_raised(server):
    server.kill()
    with pytest.raises(ServerError, match="no answer"):
        run(server)


def test_counters_that_cannot_be_read_fail_the_trial(server, monkeypatch):
    def refuse():
        raise ServerError("a: no answer", found="timeout")

    monkeypatch.setattr(server, "status", refuse)
    measured, _ = run(server)
    assert measured.failure == "the server's counters could not be read: timeout"
    assert measured.events == 300


def test_a_machine_that_is_lost_at_an_edge_of_the_window_is_not_a_server_that_died(
    server, monkeypatch
):
    def lose():
        monkeypatch.setattr(server, "alive", lambda: False)
        raise LostError("a machine of the fleet was lost", found="replica 1 on 10.0.0.3")

    monkeypatch.setattr(server, "status", lose)
    measured, _ = run(server)
    assert measured.failure == "a machine of the fleet was lost: replica 1 on 10.0.0.3"
    assert measured.lost


SESSIONS = [
    ("5", "event_scheduler", "localhost", "", "Daemon", "9", "Waiting on empty queue", ""),
    ("7", "load", "lo:1", "sbtest", "Execute", "3", "Waiting for commit lock", "COMMIT"),
    ("8", "load", "lo:2", "sbtest", "Execute", "3", "Waiting for commit lock", "COMMIT"),
    ("9", "load", "lo:3", "sbtest", "Execute", "3", "", "update sbtest1 SET k=1"),
    ("10", "load", "lo:4", "sbtest", "Sleep", "3", "", ""),
    ("11", "load", "lo:5", "sbtest", "Query", "3", "Waiting for worker", ""),
    ("12", "root", "localhost", "", "Query", "0", "init", "SHOW PROCESSLIST"),
]


def test_a_server_that_stands_still_is_asked_what_waits_and_is_no_failure(server, monkeypatch):
    monkeypatch.setattr(server, "ask", lambda sql: SESSIONS)
    server.world.silent = True
    measured, _ = run(server)
    assert (measured.failure, measured.events, measured.window_s) == (None, 0, 3.0)
    assert measured.server.waiting == {
        "COMMIT: Waiting for commit lock": 2,
        "UPDATE": 1,
        "QUERY: Waiting for worker": 1,
    }
    assert measured.server.status["Uptime"] == 3.0
    server.world.silent = False
    assert run(server)[0].server.waiting == {}


def test_a_server_that_answers_nobody_stands_still_too(server, monkeypatch):
    def wait_in_vain():
        raise ServerError("a: no answer", found="TimeoutError: no whole answer in time")

    monkeypatch.setattr(server, "status", wait_in_vain)
    server.world.silent = True
    measured, _ = run(server)
    assert (measured.failure, measured.events) == (None, 0)
    assert (measured.server.status, measured.server.waiting) == ({}, {})


def test_an_engine_that_never_ends_is_ended(server, monkeypatch):
    asked = run_spec(PLAN, TRIAL, server)
    endless = {**asked, "window_s": 100 * PATIENCE_S}
    monkeypatch.setattr(trial_room, "run_spec", lambda *others: endless)
    server.world.deaf, began_s = True, server.world.clock.now_s
    measured, _ = run(server)
    planned_s = PLAN.trial.warmup_s + PLAN.trial.window_s + DRAIN_S
    assert server.world.clock.now_s - began_s <= planned_s + PATIENCE_S + STOP_GRACE_S + 1.1
    assert measured.failure.startswith("the engine did not end in time")
    assert len(measured.intervals) > planned_s


def test_without_warm_up_the_whole_load_is_the_window(server):
    measured, _ = run(server, making.plan(window_s=2, warmup_s=0))
    assert (measured.warmup_s, measured.window_s, measured.events) == (0.0, 2.0, 200)
    assert measured.server.status["Questions"] == 200 * 20.0


def test_a_trial_whose_stacks_cannot_be_sampled_runs_and_tells_the_reason(server):
    plan = making.with_parts(PLAN, procedure={"sample_stacks": True})
    measured, _ = run(server, plan)
    assert (measured.failure, measured.events, measured.profile) == (None, 300, None)
    stacks, states = measured.procedure
    assert [(step.name, step.done) for step in (stacks, states)] == [
        ("sample stacks", False),
        ("sample states", False),
    ]
    assert stacks.detail == "the server is no process of this machine"
    assert "no connection" in states.detail
    assert run(server)[0].procedure == ()
