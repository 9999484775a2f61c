"""An arm's server is fresh, kept off the generator's cores, and never left behind."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from dbdyno.errors import CellError, LoadError, LostError, ServerError, StoreError, UsageError
from dbdyno.experiment import arm
from dbdyno.experiment import procedure as procedure_room
from dbdyno.experiment.arm import never_begun, reason
from dbdyno.experiment.context import RunContext
from dbdyno.experiment.data import disk
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.experiment.schedule.schedule import TrialQueue
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Step
from dbdyno.plan.settings import SettingsPlan
from dbdyno.servers.base import ServerSpec
from support import making
from support.fakes import Progress
from support.world import World


def arm_of(store, plan, world):
    """A lab, an instance with a snapshot, and the first arm's trials."""
    stored = store.create_run(plan, "command", {}, 2)
    trials = [t for t in trials_of(plan, stored.run_id) if t.position == 0 and t.block == 0]
    folder = store.path.parent
    schedule = TrialQueue(plan, trials, 2)
    context = RunContext(stored.run_id, schedule, store, folder, Progress(), world.makers)
    instance = world.open(
        ServerSpec(trials[0].system, "mysql:5.7.22"), folder / "i", context.progress.stage
    )
    instance.snapshot()
    return context, instance, trials


def run_arm(context, instance, trials):
    with instance.world.lab():
        arm.run_arm(context, instance, trials)


def small(**facts):
    return making.plan(**{"threads": (1, 8), "blocks": 1, "window_s": 2, "warmup_s": 0, **facts})


def test_the_ladder_runs_on_one_fresh_server_which_is_ended(store):
    world = World()
    context, instance, trials = arm_of(store, small(), world)
    run_arm(context, instance, trials)
    measured = store.measurements(trials[0].run_id)
    assert [m.trial for m in measured] == trials
    assert len({m.server.pid for m in measured}) == 1
    assert world.calls == [
        ("snapshot", trials[0].system),
        ("restore", trials[0].system),
        ("start", trials[0].system),
    ]
    assert (instance.server.killed, instance.server.stopped) == (1, 0)
    assert context.schedule.left == []


def test_an_endpoint_is_not_said_to_be_started_or_stopped(store):
    context, instance, trials = arm_of(store, small(), World())
    instance.spec = replace(instance.spec, reference="mysql://u@h:1/d")
    run_arm(context, instance, trials)
    stages = [stage.partition(": ")[2] for stage in context.progress.stages]
    assert "looking at the tables" in stages
    assert stages[-1] == "logging out"
    assert not any("start" in stage or "stop" in stage for stage in stages)


def test_a_server_whose_data_stays_is_stopped_so_that_they_can(store):
    world = World()
    plan = small(procedure={"fresh_data": "once"})
    context, instance, trials = arm_of(store, plan, world)
    run_arm(context, instance, trials)
    assert (instance.server.killed, instance.server.stopped) == (0, 1)
    assert context.as_loaded == {trials[0].system}


def test_a_trial_that_cannot_be_stored_ends_the_arm_and_its_server(store, monkeypatch):
    def refuse(measurement):
        raise StoreError("disk full")

    world = World()
    context, instance, trials = arm_of(store, small(), world)
    monkeypatch.setattr(store, "append", refuse)
    with pytest.raises(StoreError, match="disk full"):
        run_arm(context, instance, trials)
    assert world.running() == []
    assert context.schedule.left == trials


def test_a_server_that_ends_uncleanly_is_reported_and_no_more(store):
    world = World(kills={0})
    context, instance, trials = arm_of(store, small(), world)
    run_arm(context, instance, trials)
    failures = [m.failure for m in store.measurements(trials[0].run_id)]
    assert failures[0].startswith("the server died")
    assert failures[1] is None
    assert any("it had died before" in text for text in context.progress.stages)


def test_the_server_is_kept_off_the_generators_cores(store, monkeypatch):
    cores = sorted(os.sched_getaffinity(0))
    asked = []
    monkeypatch.setattr(procedure_room, "set_affinity", lambda pid, on: asked.append((pid, on)))
    plan = small(procedure={"pin": (cores[0],)})
    context, instance, trials = arm_of(store, plan, World())
    run_arm(context, instance, trials)
    assert asked == [(instance.server.pid, cores[1:])]


def test_a_server_that_dies_between_two_trials_is_replaced(store):
    class Killing(Progress):
        def end(self, trial, measurement, seconds_left):
            super().end(trial, measurement, seconds_left)
            instance.server.is_alive = False

    world = World()
    context, instance, trials = arm_of(store, small(), world)
    context.progress = Killing()
    run_arm(context, instance, trials)
    assert [m.failure for m in store.measurements(trials[0].run_id)] == [None, None]
    assert [what for what, _ in world.calls] == ["snapshot", *["restore", "start"] * 2]
    assert any("it had died before" in text for text in context.progress.stages)


@pytest.mark.parametrize("step", ["start", "restore"])
def test_a_machine_that_is_lost_before_a_load_voids_its_trial_and_the_next_goes_on(
    store, monkeypatch, step
):
    world = World()
    context, instance, trials = arm_of(store, small(), world)
    do, times = getattr(instance, step), []

    def lose(*asked):
        times.append(asked)
        if len(times) == 1:
            raise LostError("a machine of the fleet was lost", found="replica 1 on 10.0.0.3")
        return do(*asked)

    monkeypatch.setattr(instance, step, lose)
    run_arm(context, instance, trials)
    first, second = store.measurements(trials[0].run_id)
    assert "lost; found replica 1 on 10.0.0.3" in first.failure
    assert (first.lost, first.impossible, first.events) == (True, False, 0)
    assert (second.failure, second.lost) == (None, False)
    assert world.running() == []


def varied(**axes):
    return small(settings=SettingsPlan(**axes))


def test_the_server_is_started_with_the_keys_of_its_setting(store):
    world = World()
    context, instance, trials = arm_of(store, varied(durability=("0/2",)), world)
    run_arm(context, instance, trials)
    assert instance.started_with == [{"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0}]
    first, second = store.measurements(trials[0].run_id)
    assert [step.name for step in first.procedure] == ["restore", "start"]
    assert second.procedure == ()
    assert first.trial.cell.setting == "default"  # the only one, so it needs no name


def test_a_setting_that_a_version_cannot_have_is_void_and_starts_nothing(store):
    world = World()
    context, instance, trials = arm_of(store, varied(thread_pool=("on",)), world)
    run_arm(context, instance, trials)
    measured = store.measurements(trials[0].run_id)
    assert [(m.impossible, m.events) for m in measured] == [(True, 0)] * 2
    assert all("has no thread pool" in m.failure for m in measured)
    assert world.calls == [("snapshot", trials[0].system)]
    assert store.done(trials[0].run_id) == {t.key for t in trials}
    assert store.done(trials[0].run_id, impossible=False) == set()
    assert context.schedule.left == []


def test_a_load_that_is_too_much_is_void_once_found_out_and_the_rest_goes_on(store):
    world = World(connections_max={making.A: 5, making.B: 5})
    plan = small(threads=(1, 8), blocks=2)
    context, instance, trials = arm_of(store, plan, world)
    run_arm(context, instance, trials)
    again = [t for t in trials_of(plan, trials[0].run_id) if t.system == trials[0].system][2:]
    context.schedule.left = [*again]
    run_arm(context, instance, again)
    measured = store.measurements(trials[0].run_id)
    failures = {(m.trial.block, m.trial.cell.threads): m.failure for m in measured}
    assert failures[0, 1] is failures[1, 1] is None
    assert "max_connections is 5, 8 are wanted" in failures[0, 8]
    assert failures[1, 8] == failures[0, 8]
    assert instance.server.killed == 1


def test_a_server_that_a_setting_keeps_from_starting_fails_its_arm_only(store):
    plan = varied(durability=("0/2",))
    world = World()
    context, instance, trials = arm_of(store, plan, world)
    world.broken = (trials[0].system,)
    run_arm(context, instance, trials)
    measured = store.measurements(trials[0].run_id)
    assert [m.impossible for m in measured] == [False, False]
    assert all(m.failure.startswith(f"{trials[0].system}: it does not start") for m in measured)
    assert [what for what, _ in world.calls].count("start") == 1
    assert store.done(trials[0].run_id) == set()


@pytest.mark.parametrize("kind", [ServerError, UsageError])
def test_a_key_of_one_workload_that_fails_voids_no_cell_of_the_others(store, monkeypatch, kind):
    ours, others = "oltp_read_only", "oltp_read_write"
    plan = small(workloads=(ours, others), procedure={"restart": "cell"})
    own = {"workload_settings": {ours: {"sort_buffer_size": "1 lot"}}}
    systems = tuple(system.model_copy(update=own) for system in plan.systems)
    context, instance, trials = arm_of(store, making.with_parts(plan, systems=systems), World())
    start = instance.start

    def refuse(settings):
        if "sort_buffer_size" in settings:
            raise kind("unknown value")
        return start(settings)

    monkeypatch.setattr(instance, "start", refuse)
    run_arm(context, instance, sorted(trials, key=lambda trial: trial.cell.workload))
    measured = store.measurements(trials[0].run_id)
    failures = [(m.trial.cell.workload, m.failure) for m in measured]
    assert failures == [(ours, "unknown value")] * 2 + [(others, None)] * 2


def test_a_disk_that_fills_up_fails_the_trial_and_ends_the_run(store, monkeypatch):
    context, instance, trials = arm_of(store, small(threads=(1, 8)), World())

    class Filling(Progress):
        def interval(self, trial, interval, seconds_left):
            context.folders = [store.path.parent]
            monkeypatch.setattr(disk, "FLOOR_BYTES", 1 << 60)

    context.progress = Filling()
    with pytest.raises(LoadError, match="nearly full"):
        run_arm(context, instance, trials)
    (measured,) = store.measurements(trials[0].run_id)
    assert measured.failure.startswith("the disk is nearly full: ")
    assert measured.intervals
    assert not instance.server.alive()


def test_data_that_is_used_on_is_restored_after_a_failure_only(store):
    once = {"fresh_data": "once", "restart": "cell"}
    plan, world = small(threads=(1, 8, 16), procedure=once), World(kills={0})
    context, instance, trials = arm_of(store, plan, world)
    run_arm(context, instance, trials)
    assert [what for what, _ in world.calls] == [
        "snapshot",
        *("restore", "start"),
        *("restore", "start"),  # the first trial's server was killed
        "start",
    ]


def test_a_system_that_once_started_and_then_does_not_fails_an_arm_and_not_the_run(store):
    plan = small(threads=(1, 8), blocks=2)
    world = World()
    context, instance, trials = arm_of(store, plan, world)
    run_arm(context, instance, trials)
    again = [t for t in trials_of(plan, trials[0].run_id) if t.system == trials[0].system][2:]
    context.schedule.left = [*again]
    world.broken = (trials[0].system,)
    run_arm(context, instance, again)
    failures = [m.failure for m in store.measurements(trials[0].run_id)]
    assert failures[:2] == [None, None]
    assert all("it does not start" in failure for failure in failures[2:])
    assert len(failures) == 4


# A trial that was never begun is a measurement with its reason and nothing else.


PLAN = making.plan()
TRIAL = trials_of(PLAN, "r")[0]


def test_it_has_its_reason_its_steps_and_no_second_of_load():
    step = Step(name="restore", seconds=1.5)
    made = never_begun(PLAN, TRIAL, "no thread pool", impossible=True, steps=[step])
    assert (made.failure, made.impossible, made.procedure) == ("no thread pool", True, (step,))
    assert (made.trial, made.window_s, made.events, made.server.version) == (TRIAL, 0.0, 0, "")
    assert Measurement.model_validate_json(made.model_dump_json()) == made


def test_a_reason_is_one_sentence_with_all_that_the_error_says():
    error = CellError("too many", wanted="9 connections", found="8", hint="fewer threads")
    assert reason(error) == "too many; wanted 9 connections; found 8; try fewer threads"
    assert reason(CellError("too many.")) == "too many"
