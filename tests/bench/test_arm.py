"""An arm's server is fresh, kept off the generator's cores, and never left behind."""

import os

import pytest
from tests import making
from tests.bench.fakes import Progress, World

from dbdyno.bench import procedure as procedure_room
from dbdyno.bench.arm import run_arm
from dbdyno.bench.forecast import Forecast
from dbdyno.bench.lab import Lab
from dbdyno.bench.order import trials_of
from dbdyno.errors import StoreError
from dbdyno.servers.base import ServerSpec
from dbdyno.store import Store


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path) as opened:
        yield opened


def arm_of(store, plan, world):
    """A lab, an instance with a snapshot, and the first arm's trials."""
    stored = store.create_run(plan, "command", {}, 2)
    trials = [t for t in trials_of(plan, stored.run_id) if t.position == 0 and t.block == 0]
    folder = store.path.parent
    lab = Lab(plan, store, folder, Progress(), world.makers, Forecast(plan), [*trials], 2)
    instance = world.open(ServerSpec(trials[0].system, "mysql"), folder / "i", lab.progress.stage)
    instance.snapshot()
    return lab, instance, trials


def small(**facts):
    return making.plan(**{"threads": (1, 8), "blocks": 1, "window_s": 2, "warmup_s": 0, **facts})


def test_the_ladder_runs_on_one_fresh_server_which_is_stopped(store):
    world = World()
    lab, instance, trials = arm_of(store, small(), world)
    run_arm(lab, instance, trials)
    measured = store.measurements(trials[0].run_id)
    assert [m.trial for m in measured] == trials
    assert len({m.server.pid for m in measured}) == 1
    assert world.calls == [
        ("snapshot", trials[0].system),
        ("restore", trials[0].system),
        ("start", trials[0].system),
    ]
    assert instance.server.stopped == 1
    assert lab.left == []


def test_a_trial_that_cannot_be_stored_ends_the_arm_and_its_server(store, monkeypatch):
    def refuse(measurement):
        raise StoreError("disk full")

    world = World()
    lab, instance, trials = arm_of(store, small(), world)
    monkeypatch.setattr(store, "append", refuse)
    with pytest.raises(StoreError, match="disk full"):
        run_arm(lab, instance, trials)
    assert world.servers_left() == []
    assert lab.left == trials


def test_a_server_that_ends_uncleanly_is_told_and_no_more(store, tmp_path):
    world = World(kill_server=tmp_path / "killed")
    lab, instance, trials = arm_of(store, small(), world)
    run_arm(lab, instance, trials)
    failures = [m.failure for m in store.measurements(trials[0].run_id)]
    assert failures[0].startswith("the server died")
    assert failures[1] is None
    assert any("it had died before" in text for text in lab.progress.stages)


def test_the_server_is_kept_off_the_generators_cores(store, monkeypatch):
    cores = sorted(os.sched_getaffinity(0))
    asked = []
    monkeypatch.setattr(procedure_room, "keep_on", lambda pid, on: asked.append((pid, on)))
    plan = small()
    procedure = plan.procedure.model_copy(update={"pin": (cores[0],)})
    lab, instance, trials = arm_of(store, plan.model_copy(update={"procedure": procedure}), World())
    run_arm(lab, instance, trials)
    assert asked == [(instance.server.pid, cores[1:])]


def test_a_server_that_dies_between_two_trials_is_replaced(store):
    class Killing(Progress):
        def end(self, trial, measurement, seconds_left):
            super().end(trial, measurement, seconds_left)
            instance.server.process.kill()
            instance.server.process.wait()

    world = World()
    lab, instance, trials = arm_of(store, small(), world)
    lab.progress = Killing()
    run_arm(lab, instance, trials)
    assert [m.failure for m in store.measurements(trials[0].run_id)] == [None, None]
    assert [what for what, _ in world.calls] == ["snapshot", *["restore", "start"] * 2]
    assert any("it had died before" in text for text in lab.progress.stages)
