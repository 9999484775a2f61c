"""Each piece of evidence is taken when it disturbs nobody, and once where that is enough."""

from __future__ import annotations

import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment import runner
from dbdyno.store.store import Store
from support import making
from support.fakes import Progress, World


@pytest.fixture
def ran(tmp_path):
    """Everything that a small run over two fakes stored."""
    plan = making.plan(threads=(1, 8), blocks=2, window_s=2, warmup_s=0)
    world = World()
    asked = []

    def ceiling(of, trial):
        asked.append((trial.cell.workload, [i.server is not None for i in world.instances]))
        return 10_000.0

    world.makers = type(world.makers)(world.makers.open_instance, world.makers.command, ceiling)
    with Store.open(tmp_path) as store:
        run = store.create_run(plan, "command", {}, 8)
        runner.run(plan, store, run, tmp_path, Progress(), world.makers)
        yield store.measurements(run.run_id), asked


def test_the_ceiling_is_taken_once_for_a_workload(ran):
    measured, asked = ran
    assert [workload for workload, _ in asked] == ["oltp_read_write"]
    assert {m.evidence.ceiling_per_s for m in measured} == {10_000.0}
    assert {m.evidence.ceiling_threads for m in measured} == {64}


def test_each_arm_has_a_probe_of_its_own(ran):
    measured, _ = ran
    arms = {(m.trial.system, m.trial.block): m.evidence.probe for m in measured}
    assert len(arms) == 4
    assert all(probe is not None and probe.cpu_ms > 0 for probe in arms.values())
    for m in measured:
        assert m.evidence.probe == arms[m.trial.system, m.trial.block]


def test_rows_are_counted_after_the_last_trial_of_a_system_only(ran):
    measured, _ = ran
    counted = [m for m in measured if m.evidence.rows_after]
    assert sorted(m.trial.system for m in counted) == sorted({m.trial.system for m in measured})
    for system in {m.trial.system for m in measured}:
        last = [m for m in measured if m.trial.system == system][-1]
        assert last in counted
        assert set(last.evidence.rows_after.values()) == {1000}
        assert last.evidence.dataset_after == last.dataset != ""


def test_a_run_that_may_end_early_counts_rows_from_its_third_block_on(tmp_path):
    plan = making.plan(threads=(1, 8), blocks=4, window_s=1, warmup_s=0)
    design = plan.design.model_copy(update={"stop": "decided"})
    plan = plan.model_copy(update={"design": design})
    with Store.open(tmp_path) as store:
        run = store.create_run(plan, "command", {}, 16)
        runner.run(plan, store, run, tmp_path, Progress(), World().makers)
        measured = store.measurements(run.run_id)
    counted = [m.trial.block for m in measured if m.evidence.rows_after]
    assert sorted(counted) == [2, 2, 3, 3]


def test_a_server_that_does_not_answer_ends_no_run(tmp_path, monkeypatch):
    def silent(plan, server):
        raise ServerError("gone")

    monkeypatch.setattr("dbdyno.experiment.dataset.tables", silent)
    plan = making.plan(threads=(1,), blocks=1, window_s=2, warmup_s=0)
    with Store.open(tmp_path) as store:
        run = store.create_run(plan, "command", {}, 2)
        runner.run(plan, store, run, tmp_path, Progress(), World().makers)
        measured = store.measurements(run.run_id)
    assert [m.failure for m in measured] == [None, None]
    assert all(m.evidence.rows_after == {} for m in measured)
