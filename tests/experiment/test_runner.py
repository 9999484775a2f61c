"""Whole runs over fake servers and a fake engine: complete, cut short, resumed, broken."""

import os
import signal

import pytest

from dbdyno.errors import (
    CellError,
    LoadError,
    ServerError,
    StoreError,
)
from dbdyno.experiment.context import Makers
from dbdyno.experiment.engine.process import STOP_GRACE_S
from dbdyno.experiment.runner import run
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.experiment.schedule.timed import begun
from dbdyno.measurement.metric import BY_NAME
from dbdyno.plan.plan import DatasetPlan, DesignPlan, TrialPlan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.store.resolved import resolved_run
from support import making
from support.fakes import Progress, SideBySide
from support.world import World

A, B = making.A, making.B


def small(**facts):
    return making.plan(**{"threads": (1, 8), "blocks": 2, "window_s": 3, "warmup_s": 1, **facts})


def created(store, plan):
    return store.create_run(plan, "dbdyno compare", {}, len(trials_of(plan, "")))


def start(store, plan, world=None, progress=None, stored=None, **asked):
    """Runs a plan; returns the stored run."""
    stored, world = stored or created(store, plan), world or World()
    progress = progress or Progress()
    try:
        with world.lab():
            run(store, stored, store.path.parent, progress, world.makers, **asked)
    finally:
        assert world.running() == []
    return stored


def interrupt_in(sequence):
    """Progress of which the user stops the run in that trial's window."""

    def press(trial, interval):
        if trial.sequence == sequence and interval["phase"] == "measured":
            raise KeyboardInterrupt

    return Progress(press)


def test_a_complete_run_stores_every_trial_in_its_order(store):
    plan, world, progress = small(), World(), Progress()
    stored = start(store, plan, world, progress)
    measured = store.measurements(stored.run_id)
    assert [m.trial for m in measured] == trials_of(plan, stored.run_id)
    assert all(m.failure is None for m in measured)
    assert store.run(stored.run_id).finished_at is not None
    assert progress.begun == [(n, 8) for n in range(1, 9)]
    assert progress.ended == measured
    assert progress.left[-1] == 0.0


def test_a_trial_holds_what_engine_and_server_reported(store):
    stored = start(store, small(blocks=1))
    measured = store.measurements(stored.run_id)[0]
    assert (measured.warmup_s, measured.window_s, len(measured.intervals)) == (1.0, 3.0, 4)
    assert measured.value(BY_NAME["transactions_per_s"]) == 100.0
    little_ms = 10.0 * measured.trial.cell.threads
    assert measured.value(BY_NAME["latency_ms_p50"]) == pytest.approx(little_ms, rel=0.001)
    assert measured.engine.version == "fake"
    assert measured.engine.distribution == "uniform"
    assert measured.server.version == "8.0.15-fake"
    assert measured.server.settings == making.SETTINGS
    assert measured.server.status == {"Questions": 3 * 2000.0, "Uptime": 3.0}


def test_datasets_come_first_and_every_arm_begins_on_a_restored_one(store):
    world = World()
    start(store, small(), world)
    datasets, arms = world.calls[:4], world.calls[4:-2]
    assert datasets == [("start", A), ("snapshot", A), ("start", B), ("snapshot", B)]
    assert [what for what, _ in arms] == ["restore", "start"] * 4
    assert sorted(world.calls[-2:]) == [("close", A), ("close", B)]


def test_a_restart_for_each_cell_when_the_plan_asks_for_it(store):
    world = World()
    stored = start(store, small(blocks=1, procedure={"restart": "cell"}), world)
    assert [what for what, _ in world.calls[4:-2]] == ["restore", "start"] * 4
    assert len({m.server.pid for m in store.measurements(stored.run_id)}) == 4


def test_all_systems_of_a_block_get_the_same_seeds(store):
    world = World()
    start(store, small(blocks=1), world)
    runs = world.requests[4:]
    seeds = [(spec["connections"], spec["seed"]) for spec in runs]
    assert seeds[:2] == seeds[2:]
    assert len(set(seeds)) == 2


def test_a_resumed_run_repeats_no_finished_trial(store):
    plan = small()
    stored = created(store, plan)
    with pytest.raises(KeyboardInterrupt):
        start(store, plan, World(), interrupt_in(2), stored)
    assert len(store.done(stored.run_id)) == 2
    assert store.run(stored.run_id).finished_at is None
    progress = Progress()
    start(store, plan, World(), progress, stored)
    assert progress.begun == [(n, 8) for n in range(3, 9)]
    assert [m.trial.sequence for m in store.measurements(stored.run_id)] == [0, 1, 2, *range(2, 8)]
    assert len(store.done(stored.run_id)) == 8


def test_a_finished_run_does_nothing_more(store):
    plan = small(blocks=1)
    stored = start(store, plan)
    world = World()
    start(store, plan, world, stored=stored)
    assert world.calls == []
    assert len(store.measurements(stored.run_id)) == 4


@pytest.mark.parametrize("deaf", [False, True])
def test_ctrl_c_ends_the_trial_within_a_second_and_keeps_its_intervals(store, deaf):
    pressed = []

    def press(trial, interval):
        if interval["phase"] == "measured":
            pressed.append(world.clock.now_s)
            os.kill(os.getpid(), signal.SIGINT)

    plan = small(window_s=300)
    world = World(deaf=deaf)
    stored = created(store, plan)
    with pytest.raises(KeyboardInterrupt):
        start(store, plan, world, Progress(press), stored)
    assert world.clock.now_s - pressed[0] <= STOP_GRACE_S
    (measured,) = store.measurements(stored.run_id)
    assert measured.failure == "interrupted by the user"
    assert len(measured.intervals) == 2 + deaf
    assert measured.events == 100 * len(measured.measured) > 0
    assert measured.intervals[0].histograms.keys() == (set() if deaf else {"event"})
    assert store.done(stored.run_id) == set()


def test_a_server_that_dies_in_the_window_fails_its_trial_only(store):
    world = World(kills={0})
    stored = start(store, small(), world)
    first, *rest = store.measurements(stored.run_id)
    assert "the server died" in first.failure
    assert "error 2013: Lost connection" in first.failure
    assert "got signal 9" in first.failure
    assert [i.phase for i in first.intervals] == ["warmup", "measured"]
    assert first.server.status == {}
    assert len(rest) == 7
    assert all(m.failure is None for m in rest)
    system = first.trial.system
    assert rest[0].trial.system == system
    assert rest[0].server.pid != first.server.pid
    assert [what for what, _ in world.calls[4:8]] == ["restore", "start"] * 2
    assert store.done(stored.run_id) == {m.trial.key for m in rest}
    start(store, small(), stored=stored)
    assert len(store.done(stored.run_id)) == 8


def test_an_engine_that_dies_fails_its_trial_with_its_last_words(store):
    stored = start(store, small(threads=(8,), blocks=1), World(dies=True))
    one, other = store.measurements(stored.run_id)
    assert "SIGKILL" in one.failure
    assert "thread panicked" in one.failure
    assert one.engine.reactor == "unknown"
    assert len(one.intervals) == len(other.intervals) == 2


def test_a_wrong_password_ends_the_run_with_its_cause(store):
    error = {
        "kind": "refused",
        "code": 1045,
        "sqlstate": "28000",
        "message": "Access denied for user 'load'@'localhost' (using password: YES)",
        "stage": "connect",
    }
    world = World(fail={"run": error})
    stored = created(store, small())
    with pytest.raises(LoadError) as caught:
        start(store, small(), world, stored=stored)
    assert caught.value.wanted == "to log in"
    assert "error 1045 (28000): Access denied" in caught.value.found
    assert "password" in caught.value.hint
    assert "secret-4711" not in str(caught.value)
    assert store.measurements(stored.run_id) == []


@pytest.mark.parametrize("code", [1114, 1021])
def test_a_full_disk_while_loading_is_reported_and_leaves_no_snapshot(store, code):
    error = {"kind": "refused", "code": code, "message": "The table 'sbtest1' is full"}
    world = World(fail={"prepare": error})
    with pytest.raises(LoadError, match="could not load the dataset") as caught:
        start(store, small(), world)
    assert "is full" in caught.value.found
    assert "free space" in caught.value.hint
    assert ("snapshot", A) not in world.calls
    assert sorted(world.calls[-2:]) == [("close", A), ("close", B)]


def test_a_server_that_does_not_start_ends_the_run_and_keeps_the_rest(store):
    plan = small(blocks=2)
    stored = created(store, plan)
    with pytest.raises(KeyboardInterrupt):
        start(store, plan, progress=interrupt_in(4), stored=stored)
    with pytest.raises(ServerError, match="does not start"):
        start(store, plan, World(broken=(A, B)), stored=stored)
    assert len(store.done(stored.run_id)) == 4


def test_two_labs_do_not_run_one_run(store):
    plan = small()
    stored = created(store, plan)
    world = World()
    with store.locked(stored.run_id), pytest.raises(StoreError, match="another dbdyno"):
        start(store, plan, world, stored=stored)
    assert world.calls == []


def test_two_runs_at_once_do_not_share_a_systems_files(store):
    begun = []

    def begin_another(trial, interval):
        if not begun:
            begun.append(start(store, small(blocks=1)))

    first = start(store, small(blocks=1), World(), Progress(begin_another))
    loads = [{m.load for m in store.measurements(run.run_id)} for run in (first, *begun)]
    assert len(loads) == 2
    assert not loads[0] & loads[1]


def test_the_password_reaches_neither_store_nor_arguments(store):
    start(store, small(blocks=1))
    kept = b"".join(p.read_bytes() for p in store.path.parent.glob("dbdyno.sqlite*"))
    assert b"secret-4711" not in kept
    assert b"8.0.15-fake" in kept


def varied(blocks=1, **axes):
    return small(threads=(8,), blocks=blocks, settings=SettingsPlan(**axes))


def test_every_setting_is_an_arm_and_a_share_is_of_the_baselines_data(store):
    world = World()
    plan = varied(buffer_pool=("25%", "50%"))
    stored = start(store, plan, world)
    measured = store.measurements(stored.run_id)
    assert [m.trial for m in measured] == trials_of(plan, stored.run_id)
    pools = {
        instance.spec.label: sorted(
            keys["innodb_buffer_pool_size"] >> 20 for keys in instance.started_with if keys
        )
        for instance in world.instances
    }
    assert pools == {A: [16, 32], B: [16, 32]}  # of 64 MiB


def test_a_resumed_run_of_the_other_system_still_knows_the_baselines_data(store):
    plan = varied(buffer_pool=("25%",))
    stored = created(store, plan)
    with pytest.raises(KeyboardInterrupt):
        start(store, plan, World(), interrupt_in(1), stored)
    world = World()
    start(store, plan, world, stored=stored)
    keys = [keys for i in world.instances for keys in i.started_with]
    assert [k["innodb_buffer_pool_size"] >> 20 for k in keys] == [16]
    assert len(store.done(stored.run_id)) == 2


def test_a_cell_that_cannot_be_is_void_and_a_resumed_run_leaves_it_unless_asked(store):
    plan = varied(thread_pool=("off", "on"))
    stored = start(store, plan)
    measured = store.measurements(stored.run_id)
    assert len(measured) == 4
    assert {m.trial.cell.setting for m in measured if m.impossible} == {"thread_pool on"}
    assert {m.trial.cell.setting for m in measured if not m.failure} == {"thread_pool off"}
    start(store, plan, stored=stored)
    assert len(store.measurements(stored.run_id)) == 4
    start(store, plan, stored=stored, retry=True)
    assert len(store.measurements(stored.run_id)) == 6


def test_a_plan_of_which_nothing_can_be_run_is_a_mistake(store):
    plan = varied(3, thread_pool=("on",))
    world = World()
    stored = created(store, plan)
    with pytest.raises(CellError, match="no cell of the plan can be run") as caught:
        start(store, plan, world, stored=stored)
    assert "has no thread pool" in caught.value.found
    assert len(store.measurements(stored.run_id)) == 6


def test_a_disk_that_is_too_small_is_reported_before_anything_is_started(store):
    world = World()
    plan = small(dataset=DatasetPlan(tables=1000, rows=2_000_000_000))
    with pytest.raises(LoadError, match="too small for this plan"):
        start(store, plan, world)
    assert [what for what, _ in world.calls] == ["close", "close"]


def test_the_rows_of_all_systems_are_distinguished_by_a_digest(store):
    stored = start(store, small(blocks=1))
    digests = {m.dataset for m in store.measurements(stored.run_id)}
    assert len(digests) == 1
    assert len(digests.pop()) == 16
    again = start(store, small(blocks=1), World())  # the snapshots are there already
    assert {len(m.dataset) for m in store.measurements(again.run_id)} == {16}


def after(blocks):
    """Enough is what so many blocks gave; and how often it was asked, and of how many trials."""
    asked = []

    def enough(measurements, plan):
        asked.append(len(measurements))
        return len({m.trial.block for m in measurements if m.failure is None}) >= blocks

    return enough, asked


def until_decided(blocks):
    return small(threads=(8,), blocks=blocks, design={"stop": "decided"})


def test_no_block_is_begun_once_it_is_enough(store):
    plan, world, progress = until_decided(5), World(), Progress()
    enough, asked = after(3)
    stored = start(store, plan, world, progress, enough=enough)
    assert asked == [2, 4, 6]
    assert [m.trial for m in store.measurements(stored.run_id)] == trials_of(plan, stored.run_id)[
        :6
    ]
    assert "ended after 3 of at most 5 blocks: more would change no verdict" in progress.stages
    assert store.run(stored.run_id).finished_at is not None
    assert store.blocks_begun(stored.run_id) == 3


def test_fixed_blocks_are_judged_after_each_and_all_run(store):
    enough, asked = after(2)
    stored = start(store, small(threads=(8,), blocks=4), enough=enough)
    assert asked == [2, 4, 6]
    assert store.blocks_begun(stored.run_id) == 4


def test_a_resumed_run_that_has_enough_starts_nothing(store):
    plan = until_decided(5)
    enough, _ = after(2)
    stored, world = start(store, plan, enough=enough), World()
    start(store, plan, world, stored=stored, enough=enough)
    assert world.calls == []
    assert len(store.measurements(stored.run_id)) == 4


def test_a_resumed_run_ends_the_block_that_was_begun_before_it_asks(store):
    plan = until_decided(5)
    stored = created(store, plan)
    with pytest.raises(KeyboardInterrupt):
        start(store, plan, World(), interrupt_in(3), stored)
    enough, asked = after(1)
    start(store, plan, stored=stored, enough=enough)
    assert asked == [5]  # the trial that was cut short is stored, too
    assert len(store.done(stored.run_id)) == 4


def test_the_last_block_is_not_asked_about(store):
    plan = until_decided(2)
    enough, asked = after(99)
    stored = start(store, plan, enough=enough)
    assert asked == [2]
    assert len(store.done(stored.run_id)) == 4


def timed(time_s=40):
    plan = small(threads=(8,))
    design = DesignPlan.model_validate({"time_s": time_s})
    return plan.model_copy(update={"design": design, "trial": TrialPlan()})


def test_a_run_with_a_time_chooses_after_two_blocks_and_stores_it(store):
    plan, progress = timed(100), Progress()
    stored = start(store, plan, progress=progress)
    found = resolved_run(store, stored).plan
    assert found.design.chosen is not None
    assert found.hash() == plan.hash()
    measured = store.measurements(stored.run_id)
    assert [m.trial for m in measured] == trials_of(found, stored.run_id)
    first_s = {m.window_s for m in measured if m.trial.block < 2}
    later_s = {m.window_s for m in measured if m.trial.block >= 2}
    assert first_s == {int(begun(plan).trial.window_s)}
    assert later_s == {int(found.trial.window_s)}
    assert found.design.blocks > begun(plan).design.blocks, "a start costs nothing here"
    assert any("blocks at most" in stage for stage in progress.stages)


def test_machines_beside_each_other_have_that_time_each(store):
    plan, makers = timed(100), Makers(hosts=SideBySide(3))
    stored = created(store, plan)
    run(store, stored, store.path.parent, Progress(), makers)
    design = resolved_run(store, stored).plan.design
    assert design.blocks == 2 + 3 * int((100 - 12) / design.chosen.block_s)
    assert len(store.done(stored.run_id)) == 2 * design.blocks


def test_a_resumed_run_keeps_the_design_it_chose(store):
    plan = timed()
    stored = created(store, plan)
    with pytest.raises(KeyboardInterrupt):
        start(store, plan, progress=interrupt_in(5), stored=stored)
    found = resolved_run(store, stored).plan
    start(store, plan, stored=stored)
    assert resolved_run(store, stored).plan == found
    assert store.done(stored.run_id) == {trial.key for trial in trials_of(found, "")}


def test_a_run_that_was_stopped_before_it_chose_chooses_when_it_is_resumed(store):
    plan = timed()
    stored = created(store, plan)
    with pytest.raises(KeyboardInterrupt):
        start(store, plan, progress=interrupt_in(2), stored=stored)
    assert resolved_run(store, stored).plan.design.chosen is None
    start(store, plan, stored=stored)
    assert resolved_run(store, stored).plan.design.chosen is not None
    assert store.run(stored.run_id).finished_at is not None


class Words(Progress):
    def __init__(self):
        super().__init__()
        self.words = []

    def stage(self, text):
        self.words.append(text)

    def begin(self, trial, number, total, seconds_left):
        self.words.append(f"begin {trial.system} {number}/{total}")

    def interval(self, trial, interval, seconds_left):
        self.words.append(f"{interval['phase']} {interval['at_s']:.0f}")

    def end(self, trial, measurement, seconds_left):
        self.words.append("end")


def test_progress_reports_an_arm_step_by_step(store):
    words = Words()
    start(store, small(systems=("mysql:5.7.22",), threads=(8,), blocks=1), World(), words)
    assert words.words == [
        "mysql:5.7.22: loading the dataset",
        "mysql:5.7.22: loading rows, 25 %",
        "mysql:5.7.22: loading rows, 50 %",
        "mysql:5.7.22: loading rows, 75 %",
        "mysql:5.7.22: loading rows, 100 %",
        "mysql:5.7.22: taking a digest of the rows",
        "mysql:5.7.22: writing out the loaded rows",
        "begin mysql:5.7.22 1/1",
        "oltp_read_write: measuring the load generator alone",
        "mysql:5.7.22: restoring the dataset",
        "mysql:5.7.22: starting the server",
        "warmup 1",
        "measured 2",
        "measured 3",
        "measured 4",
        "mysql:5.7.22: counting the rows that are left",
        "end",
        "mysql:5.7.22: stopping the server",
    ]
