from __future__ import annotations

from dbdyno.report.sections.limits import limits
from support import making
from support.made_run import Run, run


def told(made: Run) -> str:
    return "\n".join(limits(made.plan, made.measurements, made.judgement, made.facts))


def test_a_small_incomplete_run_says_what_it_cannot_show() -> None:
    plan = making.plan(threads=(1, 8), blocks=3)
    text = told(run(plan, making.pairs((1.0, 1.0)), complete=False))
    for limit in (
        "incomplete",
        "3 blocks only",
        "no A/A control",
        "2 cells hold together",
        "one server start",
        "too short",
        "up to 63 %",
        "loopback",
        "fits into the buffer pool (256 MiB)",
        "hides stalls",
    ):
        assert limit in text


def test_limits_that_do_not_hold_are_not_claimed() -> None:
    plan = making.plan(systems=(making.A, making.B), blocks=10, window_s=60)
    aa = plan.system(making.A).model_copy(update={"label": "control"})
    plan = plan.model_copy(update={"systems": (plan.systems[0], aa)})
    pool = {"innodb_buffer_pool_size": str(2**20)}
    trials = making.pairs((1.0,) * 10, systems=(making.A, "control"), settings=pool)
    text = told(run(plan, trials))
    assert "larger than the buffer pool (1 MiB)" in text
    for limit in ("incomplete", "only", "A/A", "verdicts", "one server start", "too short"):
        assert limit not in text


def test_trials_without_a_usable_measurement_are_a_limit(made: Run) -> None:
    assert "1 trial of 20 gave no usable measurement." in told(made)
