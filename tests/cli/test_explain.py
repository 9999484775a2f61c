"""`dbdyno explain`: which cell of a run it takes, its plan, and its run beside the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno import __main__
from dbdyno.cli.explain import BLOCKS, WINDOW_S_MIN, chosen, explaining
from dbdyno.errors import UsageError
from dbdyno.judge.judgement import judge
from dbdyno.judge.verdict import Verdict
from dbdyno.measurement.measurement import Cell
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DesignPlan, Plan, cells, comparisons
from dbdyno.plan.settings import SettingsPlan, setting_names
from dbdyno.plan.systems import SystemPlan
from dbdyno.store.store import Store
from support import made_run, making
from support.made_run import Run
from support.stored_run import store_made
from support.world import World


@pytest.fixture(scope="module")
def made() -> Run:
    """With 1 thread the systems are alike, with 8 the second is slower."""
    return made_run.whole()


def test_the_largest_difference_is_explained_unless_a_cell_is_named(made: Run) -> None:
    verdicts = made.judgement.verdicts
    assert chosen(verdicts, None).cell.threads == 8
    for name in ("oltp_read_write, 1 thread", "threads=1", "oltp_read_write/threads=1/default"):
        assert chosen(verdicts, name).cell.threads == 1


def test_a_name_of_no_cell_or_of_several_is_an_error_with_all_names(made: Run) -> None:
    for name, words in (("oltp_insert", "no cells"), ("oltp_read_write", "2 cells")):
        with pytest.raises(UsageError, match=f"^{words} of this run are called {name}") as error:
            chosen(made.judgement.verdicts, name)
        assert error.value.found is not None
        assert "oltp_read_write, 8 threads" in error.value.found


def test_without_a_difference_a_cell_has_to_be_named() -> None:
    alike = judge(making.pairs((1.0, 1.001, 0.999)), making.plan(blocks=3)).verdicts
    with pytest.raises(UsageError, match="no verdict of this run says faster or slower"):
        chosen(alike, None)
    assert chosen(alike, "8 threads") in alike


def verdict(plan: Plan, cell: Cell, pair: int = 0) -> Verdict:
    """Some verdict on a cell, for the plan's comparison of that number."""
    (some,) = judge(making.pairs((0.7, 0.71, 0.69)), making.plan(blocks=3)).verdicts
    baseline, system = comparisons(plan)[pair].labels
    return some.model_copy(update={"cell": cell, "baseline": baseline, "system": system})


def test_the_plan_has_the_same_systems_and_data_and_one_cell() -> None:
    design = DesignPlan(time_s=600.0, margin=0.05)
    plan = making.plan(
        workloads=("oltp_read_only", "oltp_insert"),
        threads=(1, 8),
        window_s=3,
        design=design,
        seed=7,
        title="upgrade",
    )
    cell = cells(plan)[1]
    why = explaining(plan, verdict(plan, cell))
    assert cells(why) == [cell]
    assert (why.systems, why.dataset, why.seed) == (plan.systems, plan.dataset, 7)
    assert (why.trial.warmup_s, why.trial.window_s) == (plan.trial.warmup_s, WINDOW_S_MIN)
    assert (why.design.blocks, why.design.stop, why.design.time_s) == (BLOCKS, "blocks", None)
    assert (why.design.margin, why.procedure.sample_stacks) == (0.05, True)
    assert why.title == f"Why: upgrade ({cell.key})"
    assert comparisons(why) == comparisons(plan)


def test_a_rate_of_an_open_loop_is_a_rate_without_a_pilot() -> None:
    plan = making.plan(load=LoadPlan(rates=("70%",), connections=16))
    cell = Cell(workload="oltp_read_write", threads=16, rate_per_s=712.5)
    why = explaining(plan, verdict(plan, cell))
    assert cells(why) == [cell]
    assert not why.load.needs_pilot


def test_settings_beside_the_cell_are_left_out() -> None:
    systems = tuple(
        SystemPlan(
            label=name,
            reference=name,
            workload_settings={"oltp_read_only": {"back_log": 9}, "oltp_insert": {"back_log": 8}},
        )
        for name in (making.A, making.B)
    )
    plan = making.plan(
        workloads=("oltp_read_only", "oltp_insert"),
        systems=(making.A, making.B),
        settings=SettingsPlan(durability=("double-1", "0/2"), buffer_pool=("1G", "4G")),
        procedure={"restart": "cell"},
    ).model_copy(update={"systems": systems})
    cell = Cell(workload="oltp_insert", threads=8, setting="durability 0/2, buffer_pool 4G")
    why = explaining(plan, verdict(plan, cell))
    assert why.settings == SettingsPlan(durability=("0/2",), buffer_pool=("4G",))
    assert [one.workload_settings for one in why.systems] == [{"oltp_insert": {"back_log": 8}}] * 2


def test_two_settings_of_a_system_stay_two() -> None:
    flushing = {"lazy": {"innodb_io_capacity": 200}, "eager": {"innodb_io_capacity": 9000}}
    varied = {"durability": ["double-1", "0/2"], "own": {"flushing": flushing}}
    plan = making.plan(systems=(making.A,), settings=SettingsPlan.model_validate(varied))
    of_flushing = next(
        number
        for number, one in enumerate(comparisons(plan))
        if one.labels == ("flushing lazy", "flushing eager")
    )
    cell = Cell(workload="oltp_read_write", threads=8, setting="durability 0/2")
    why = explaining(plan, verdict(plan, cell, of_flushing))
    assert setting_names(why.settings) == ["flushing lazy", "flushing eager"]
    assert why.settings.durability == ("0/2",)
    assert [one.labels for one in comparisons(why)] == [("flushing lazy", "flushing eager")]


def test_it_is_a_run_of_its_own_and_says_what_it_lacks(
    tmp_path: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    first = store_made(tmp_path, (0.7, 0.701, 0.699))
    typed = ["explain", "latest", "--workspace", str(tmp_path)]
    assert __main__.main(typed) == 0
    said = capsys.readouterr().out
    assert "mysql:8.0.15 is slower" in said
    assert "step-undone" in said  # the servers here are no processes
    with Store.open(tmp_path) as store:
        newest, before = store.runs()
        assert before.run_id == first.run_id
        assert len(store.measurements(first.run_id)) == 6
        trials = store.measurements(newest.run_id)
    assert newest.plan.procedure.sample_stacks
    assert [len(trials), newest.plan.design.blocks] == [2 * BLOCKS, BLOCKS]
    undone = {step.name for one in trials for step in one.procedure if not step.done}
    assert undone == {"sample stacks", "sample states"}


def test_a_strangers_plan_is_explained_only_when_trusted(
    tmp_path: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    systems = tuple(
        SystemPlan(label=name, reference=name, settings={"init_file": "/tmp/x"})
        for name in (making.A, making.B)
    )
    plan = making.plan(blocks=3).model_copy(update={"systems": systems})
    store_made(tmp_path, (0.7, 0.701, 0.699), plan=plan)
    typed = ["explain", "latest", "--workspace", str(tmp_path)]
    assert __main__.main(typed) == 2
    assert "add --trust" in capsys.readouterr().err
    assert __main__.main([*typed, "--trust"]) == 0
