"""Twice the generator's threads are tried once, at the end, and never at a trial's cost."""

from __future__ import annotations

import json

import pytest

from dbdyno.errors import Interrupted
from dbdyno.experiment import order, runner
from dbdyno.store.store import Store
from support import making
from support.fakes import Progress, World

SLICE_S = 2.5
WINDOW_S = 8 * SLICE_S


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path) as opened:
        yield opened


def small(**facts):
    return making.plan(
        **{"threads": (1, 8), "blocks": 1, "window_s": WINDOW_S, "warmup_s": 0, **facts}
    )


def run(store, plan, progress=None, stored=None, **options):
    """Runs a plan over fakes; its stored run, and what the engine was asked to run, in order."""
    log = store.path.parent / f"log-{len(store.runs())}"
    stored = stored or store.create_run(plan, "command", {}, len(order.trials_of(plan, "")))
    world = World(log=log, tick_s=0.001, **options)
    try:
        runner.run(plan, store, stored, store.path.parent, progress or Progress(), world.makers)
    finally:
        asked = [json.loads(line) for line in log.read_text().splitlines()]
        log.unlink()
    assert world.servers_left() == []
    return stored, [one for one in asked if one["do"] in ("run", "slices")]


def with_turns(store, stored):
    """Trials that hold slices, and those slices."""
    measured = store.measurements(stored.run_id)
    return [(m, seen) for m in measured for seen in m.evidence.doubled_threads]


def test_slices_come_by_turns_after_the_baselines_last_trial(store):
    stored, asked = run(store, small(blocks=2))
    ((holder, seen),) = with_turns(store, stored)
    ours = [m for m in store.measurements(stored.run_id) if m.trial.system == making.A]
    assert holder == ours[-1]
    slices = [one for one in asked if one["do"] == "slices"]
    assert [one["threads"] for one in slices] == [0, 1, 2, 2, 1, 1, 2, 2, 1]
    assert {one["connections"] for one in slices} == {8}
    assert {one["warmup_s"] for one in slices} == {0.5}
    assert len({one["seed"] for one in slices}) == len(slices)
    first = asked.index(slices[0])
    assert asked[first : first + 9] == slices
    assert asked[first - 1]["connections"] == holder.trial.cell.threads
    assert (seen.workload, seen.connections, seen.slice_s) == ("oltp_read_write", 8, SLICE_S)
    assert [one.threads for one in seen.slices] == [1, 2, 2, 1, 1, 2, 2, 1]
    assert {one.rate_per_s for one in seen.slices} == {100.0}


def test_each_workload_is_tried_once_and_controls_not_at_all(store):
    plan = small(
        workloads=("oltp_read_only", "oltp_read_write"), threads=(8,), blocks=5, controls=True
    )
    stored, _ = run(store, plan)
    found = with_turns(store, stored)
    assert [seen.workload for _, seen in found] == ["oltp_read_only", "oltp_read_write"]
    (holder,) = {m.trial.key: m for m, _ in found}.values()
    assert (holder.trial.block, holder.trial.system, holder.trial.control) == (4, making.A, "")


def test_a_run_that_may_end_early_tries_it_with_its_third_block_only(store):
    plan = small(threads=(8,), blocks=4)
    design = plan.design.model_copy(update={"stop": "decided"})
    stored, _ = run(store, plan.model_copy(update={"design": design}))
    assert [m.trial.block for m, _ in with_turns(store, stored)] == [2]


def test_rows_that_a_later_trial_begins_on_are_left_alone(store):
    plan = small(threads=(8,), blocks=4)
    changed = {
        "design": plan.design.model_copy(update={"stop": "decided"}),
        "procedure": plan.procedure.model_copy(update={"fresh_data": "once"}),
    }
    stored, _ = run(store, plan.model_copy(update=changed))
    assert [m.trial.block for m, _ in with_turns(store, stored)] == [3]


def test_an_engine_that_fails_costs_no_trial(store):
    stored, asked = run(store, small(), refuse_threads=2)
    measured = store.measurements(stored.run_id)
    assert [m.failure for m in measured] == [None] * 4
    assert with_turns(store, stored) == []
    assert [one["threads"] for one in asked if one["do"] == "slices"][:3] == [0, 1, 2]


def test_connections_that_are_too_few_for_twice_the_threads_are_left_after_one_slice(store):
    stored, asked = run(store, small(threads=(2,)), usual_threads=2)
    assert with_turns(store, stored) == []
    assert [one["threads"] for one in asked if one["do"] == "slices"] == [0]


def test_a_trial_that_failed_is_followed_by_no_slices_until_it_is_repeated(store, tmp_path):
    plan = small(threads=(8,), systems=(making.A,))
    stored, asked = run(store, plan, kill_server=tmp_path / "killed")
    assert [one["window_s"] for one in asked] == [WINDOW_S]
    assert with_turns(store, stored) == []
    _, asked = run(store, plan, stored=stored)
    assert [one["window_s"] for one in asked] == [WINDOW_S, *[SLICE_S] * 9]
    assert len(with_turns(store, stored)) == 1


def test_a_resumed_run_does_not_ask_again(store, tmp_path):
    plan = small(systems=(making.A,))
    stored, asked = run(store, plan, kill_server=tmp_path / "killed")
    assert len(with_turns(store, stored)) == 1
    _, asked = run(store, plan, stored=stored)
    assert [one["window_s"] for one in asked] == [WINDOW_S]
    assert len(with_turns(store, stored)) == 1


def test_ctrl_c_while_it_is_asked_keeps_the_trial(store):
    class Pressing(Progress):
        def stage(self, text):
            super().stage(text)
            if "twice the load's threads" in text:
                raise KeyboardInterrupt

    plan = small(systems=(making.A,))
    stored = store.create_run(plan, "command", {}, 2)
    with pytest.raises(Interrupted):
        run(store, plan, Pressing(), stored)
    assert [m.failure for m in store.measurements(stored.run_id)] == [None, None]
    assert with_turns(store, stored) == []
