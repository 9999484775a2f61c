"""Odd runs and possible bad restarts, as a reader sees them."""

from __future__ import annotations

from dbdyno.judge.judgement import Judgement, judge
from dbdyno.report.parts import Items
from dbdyno.report.sections import shape
from support import making
from support.made_run import Run
from support.making import A

RATES = (1000.0, 1004.0, 997.0, 700.0, 995.0, 1002.0)


def test_an_outlying_run_is_named_and_its_restart_counted() -> None:
    made = [making.measurement(A, block, tps=rate) for block, rate in enumerate(RATES)]
    judged = judge(made, making.plan(systems=(A,), blocks=6))
    items = shape.outliers(judged).parts[1]
    assert isinstance(items, Items)
    assert items.items == (
        "mysql:5.7.22, oltp_read_write, 8 threads, block 4: TPS −30.0 % against its other 5 runs.",
        "mysql:5.7.22: bad restarts 1 of 6; up to 58.2 % of its restarts are not excluded.",
    )
    assert judged.value(made[0].trial.cell, A, "transactions_per_s").blocks == 6  # none dropped


def test_without_one_it_is_said_and_bounded_for_each_system(made: Run) -> None:
    items = shape.outliers(made.judgement).parts[1]
    assert isinstance(items, Items)
    assert items.items == (
        "No run lies apart.",
        "mysql:5.7.22: bad restarts 0 of 5; up to 45.1 % of its restarts are not excluded.",
        "mysql:8.0.15: bad restarts 0 of 5; up to 45.1 % of its restarts are not excluded.",
    )


def test_a_setting_is_named_beside_its_system() -> None:
    made = [making.measurement(A, b, setting="double-1") for b in range(5)]
    judged = judge(made, making.plan(systems=(A,)))
    items = shape.outliers(judged).parts[1]
    assert isinstance(items, Items)
    assert items.items[-1].startswith("mysql:5.7.22, double-1: bad restarts 0 of 5; up to 45.1 %")


def test_three_runs_are_too_few_to_call_none_of_them_odd() -> None:
    made = [making.measurement(A, block) for block in range(3)]
    items = shape.outliers(judge(made, making.plan(systems=(A,), blocks=3))).parts[1]
    assert items == Items(("There are too few runs to say how many restarts were bad.",))


def test_nothing_measured_is_no_section() -> None:
    nothing = Judgement(findings=(), values=(), estimates=(), verdicts=())
    assert shape.outliers(nothing).parts == ()
