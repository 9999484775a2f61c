"""A schedule follows the store: what is left, what comes next, and what is measured again."""

from __future__ import annotations

from dbdyno.experiment.schedule.order import trials_of
from dbdyno.experiment.schedule.schedule import Schedule
from support import making


def scheduled(store, stored, **asked):
    """A schedule over a run of the store, and what it tells."""
    told = []
    return Schedule(stored, store, told.append, **asked), told


def measured(store, trials):
    for trial in trials:
        made = making.measurement(trial.system, threads=trial.cell.threads)
        store.append(made.model_copy(update={"trial": trial}))


def test_the_store_is_replayed_when_a_run_goes_on(store):
    plan = making.plan(threads=(1, 8), blocks=3)
    stored = store.create_run(plan, "dbdyno compare", {}, 12)
    every = trials_of(plan, stored.run_id)
    measured(store, every[:5])
    again, _ = scheduled(store, stored)
    assert (again.left, again.total, again.number) == (every[5:], 12, 6)
    assert again.next() == every[5:8]  # what is left of the second block
    again.ended(every[5])
    assert (again.number, again.next()) == (7, every[6:8])
    assert again.next(running=(1,)) == every[8:]


def test_a_trial_that_was_never_left_ends_without_a_trace(store):
    plan = making.plan(threads=(1,), blocks=1)
    stored = store.create_run(plan, "dbdyno compare", {}, 2)
    schedule, _ = scheduled(store, stored)
    pilot = schedule.left[0].model_copy(update={"is_pilot": True})
    schedule.ended(pilot)
    assert (len(schedule.left), schedule.number) == (2, 1)


def test_a_block_whose_machine_is_gone_is_measured_whole_in_a_repeat(store):
    plan = making.plan(threads=(1,), blocks=3)
    stored = store.create_run(plan, "dbdyno compare", {}, 6)
    every = trials_of(plan, stored.run_id)
    measured(store, every[:3])
    schedule, _ = scheduled(store, stored)
    again = schedule.repeat_block(1)
    assert [(one.block, one.repeat) for one in again] == [(1, 1), (1, 1)]
    assert schedule.left == [*again, *every[4:]]
    assert (schedule.total, schedule.number) == (7, 4)


def test_a_run_is_decided_between_blocks_only_and_says_so(store):
    plan = making.plan(threads=(1,), blocks=6, design={"stop": "decided"})
    stored = store.create_run(plan, "dbdyno compare", {}, 12)
    every = trials_of(plan, stored.run_id)
    measured(store, every[:7])
    begun, _ = scheduled(store, stored, enough=lambda measurements, plan: True)
    assert not begun.is_decided()
    measured(store, every[7:8])
    whole, told = scheduled(store, stored, enough=lambda measurements, plan: True)
    whole.begin_again()
    assert whole.left == []
    assert told == ["ended after 4 of at most 6 blocks: more would change no verdict"]
