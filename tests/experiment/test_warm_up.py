"""Load until it is steady: looks at fixed times, ends at the first good one or at the cap."""

import json

import pytest

from dbdyno.errors import CellError, LoadError
from dbdyno.experiment import procedure as room
from dbdyno.experiment.order import trials_of
from dbdyno.experiment.procedure import is_look, run_until_steady
from support import making
from support.fakes import FakeServer, command


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
