"""What was disturbed is measured again: at once, on all systems, within a bound, after a kill."""

import pytest
from tests.experiment.test_runner import after, created, interrupt_in, small, start

from dbdyno.experiment import arm
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.measurement import disturbance
from dbdyno.measurement.disturbance import Disturbance, current
from dbdyno.plan.fleet import FleetPlan
from dbdyno.store import evidence
from support import making
from support.fakes import Progress
from support.world import World


def disturbing(monkeypatch, *keys):
    """Others use a quarter of the host beside the trials of these keys, and nothing elsewhere."""

    def seen(measurement):
        others = 0.25 if measurement.trial.key in keys else 0.01
        return Disturbance(others, 0.0, 0.0, 2.0, is_attributed=True)

    monkeypatch.setattr(disturbance, "disturbance_of", seen)


def keys_of(store, stored):
    return [m.trial.key for m in store.measurements(stored.run_id)]


def test_a_disturbed_cell_is_measured_again_at_once_on_all_systems(store, monkeypatch):
    plan, world, progress = small(threads=(8,), blocks=3), World(), Progress()
    planned = [trial.key for trial in trials_of(plan, "")]
    disturbing(monkeypatch, planned[2])
    stored = start(store, plan, world, progress)
    again = [f"{key}/again=1" for key in planned[2:4]]
    assert keys_of(store, stored) == [*planned[:4], *again, *planned[4:]]
    seeds = {m.trial.seed for m in store.measurements(stored.run_id) if m.trial.block == 1}
    assert len(seeds) == 1
    arm = store.measurements(stored.run_id)[2].trial.system
    assert (
        f"block 2 was disturbed: others had 25.0% of the host's CPU beside {arm} (limit 10 %);"
        " measured again on all systems: oltp_read_write/threads=8"
    ) in progress.stages
    assert store.done(stored.run_id) == {*planned[:2], *again, *planned[4:]}
    assert evidence.completion(store, stored.run_id) == (6, 6, True)
    assert progress.begun[-1] == (8, 8)


def test_other_cells_of_the_block_stay_as_they_are(store, monkeypatch):
    plan, progress = small(threads=(1, 8), blocks=2), Progress()
    planned = [trial.key for trial in trials_of(plan, "")]
    loud = next(key for key in planned if key.startswith("0/") and "threads=8" in key)
    disturbing(monkeypatch, loud)
    stored = start(store, plan, progress=progress)
    again = [f"{key}/again=1" for key in planned[:4] if "threads=8" in key]
    assert keys_of(store, stored) == [*planned[:4], *again, *planned[4:]]
    assert evidence.completion(store, stored.run_id) == (8, 8, True)
    assert len(current(store.measurements(stored.run_id))) == 8


def test_no_more_blocks_are_measured_again_than_the_bound(store, monkeypatch):
    plan, progress = small(threads=(8,), blocks=3), Progress()
    planned = [trial.key for trial in trials_of(plan, "")]
    loud = [planned[0], f"{planned[0]}/again=1", planned[4]]
    disturbing(monkeypatch, *loud, f"{planned[0]}/again=2")
    stored = start(store, plan, progress=progress)
    assert len(keys_of(store, stored)) == 6 + 4
    assert [text for text in progress.stages if "its repeats are used" in text] != []
    assert evidence.completion(store, stored.run_id).complete


def test_without_the_rule_nothing_is_measured_again(store, monkeypatch):
    plan = making.with_parts(small(threads=(8,)), design={"disturbance_max": 1.0})
    planned = [trial.key for trial in trials_of(plan, "")]
    disturbing(monkeypatch, *planned)
    assert keys_of(store, start(store, plan)) == planned


def test_a_resumed_run_goes_on_with_the_repeat_that_was_begun(store, monkeypatch):
    plan = small(threads=(8,), blocks=2)
    planned = [trial.key for trial in trials_of(plan, "")]
    disturbing(monkeypatch, planned[1])
    again = [f"{key}/again=1" for key in planned[:2]]
    stored = created(store, plan)

    def press(trial, interval):
        if trial.key == again[1] and interval["phase"] == "measured":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start(store, plan, progress=Progress(press), stored=stored)
    assert not evidence.completion(store, stored.run_id).complete
    start(store, plan, stored=stored)
    assert keys_of(store, stored) == [*planned[:2], *again, again[1], *planned[2:]]


def test_a_run_that_was_killed_before_its_repeat_owes_it(store, monkeypatch):
    plan, stored = small(threads=(8,), blocks=2), None
    planned = [trial.key for trial in trials_of(plan, "")]
    with monkeypatch.context() as patch:
        patch.setattr(store, "finish", lambda run_id: None)
        stored = start(store, plan)
    assert evidence.completion(store, stored.run_id).complete
    disturbing(monkeypatch, planned[3])
    assert not evidence.completion(store, stored.run_id).complete
    start(store, plan, stored=stored)
    assert keys_of(store, stored) == [*planned, *(f"{key}/again=1" for key in planned[2:])]
    assert evidence.completion(store, stored.run_id).complete


def test_a_resumed_run_owes_what_any_block_owed(store, monkeypatch):
    """Blocks on several machines end beside each other: one may have been begun after another."""
    plan = small(threads=(8,), blocks=2)
    planned = [trial.key for trial in trials_of(plan, "")]
    with monkeypatch.context() as patch:
        patch.setattr(store, "finish", lambda run_id: None)
        stored = start(store, plan)
    disturbing(monkeypatch, planned[0], planned[3])
    start(store, plan, stored=stored)
    assert keys_of(store, stored) == [*planned, *(f"{key}/again=1" for key in planned)]
    assert evidence.completion(store, stored.run_id).complete


def test_a_repeat_is_ended_before_it_is_asked_whether_there_is_enough(store, monkeypatch):
    plan = small(threads=(8,), blocks=5, design={"stop": "decided"})
    planned = [trial.key for trial in trials_of(plan, "")]
    disturbing(monkeypatch, planned[3])
    enough, asked = after(2)
    stored = start(store, plan, enough=enough)
    assert asked == [2, 6]
    assert len(keys_of(store, stored)) == 6


def losing_machine(monkeypatch, key):
    """The trial of this key loses a machine."""
    real = arm.run_trial

    def losing(plan, trial, *others):
        found = real(plan, trial, *others)
        if trial.key != key:
            return found
        return found.model_copy(update={"failure": "a machine was lost", "lost": True})

    monkeypatch.setattr(arm, "run_trial", losing)


def test_a_trial_that_lost_a_machine_is_measured_again_on_all_systems(store, monkeypatch):
    plan, progress = small(threads=(8,), blocks=2), Progress()
    planned = [trial.key for trial in trials_of(plan, "")]
    losing_machine(monkeypatch, planned[0])
    stored = start(store, plan, progress=progress)
    again = [f"{key}/again=1" for key in planned[:2]]
    assert keys_of(store, stored) == [*planned[:2], *again, *planned[2:]]
    told = "block 1: a machine was lost; measured again on all systems: oltp_read_write/threads=8"
    assert told in progress.stages
    assert evidence.completion(store, stored.run_id) == (4, 4, True)


def test_a_machine_that_is_lost_takes_back_what_was_done_before_the_run_was_resumed(
    store, monkeypatch
):
    plan = small(threads=(8,), blocks=1, fleet=FleetPlan(generators=1))
    plan = making.with_parts(plan, design={"disturbance_max": 1.0})
    planned = [trial.key for trial in trials_of(plan, "")]
    stored = created(store, plan)
    with pytest.raises(KeyboardInterrupt):
        start(store, plan, progress=interrupt_in(1), stored=stored)
    losing_machine(monkeypatch, planned[1])
    start(store, plan, stored=stored)
    again = [f"{key}/again=1" for key in planned]
    assert keys_of(store, stored) == [planned[0], planned[1], planned[1], *again]
