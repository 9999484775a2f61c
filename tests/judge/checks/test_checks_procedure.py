"""Did every trial begin as planned? One that did, and one for each way of not doing so."""

from __future__ import annotations

import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.checks import work
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import judge
from dbdyno.judge.verdict import Word
from dbdyno.measurement.parts import Step, WarmUp
from support import making

PLAN = making.plan()


def made(**facts):
    return making.measurement().model_copy(update=facts)


def test_a_cell_that_cannot_run_is_void_with_its_reason():
    found = work.cell_cannot_run(made(failure="no thread pool", impossible=True), PLAN)
    assert (found.level, found.evidence) == (Level.VOID, "no thread pool")
    assert work.cell_cannot_run(made(failure="the server died"), PLAN) is None


def test_it_is_said_once_and_not_as_a_trial_that_failed():
    audited = audit([made(failure="no thread pool", impossible=True)], PLAN)
    assert [f.check for f in audited.findings if f.level is Level.VOID] == ["cell-cannot-run"]
    assert audited.sound == ()


def test_a_cell_that_cannot_run_is_not_missing_from_the_run():
    plan = making.plan(blocks=1)
    other = making.measurement(making.B).model_copy(update={"failure": "no", "impossible": True})
    assert "incomplete-run" not in {f.check for f in audit([made(), other], plan).findings}
    failed = making.measurement(making.B, failure="no")
    assert "incomplete-run" in {f.check for f in audit([made(), failed], plan).findings}


def test_steps_that_were_not_done_are_told_with_their_reasons():
    steps = (
        Step(name="restore", seconds=1),
        Step(name="drop caches", seconds=0, done=False, detail="Permission denied"),
        Step(name="settle", seconds=60, done=False, detail="dirty pages 5000 to 900"),
    )
    found = work.step_undone(made(procedure=steps), PLAN)
    assert found.level is Level.DOUBTFUL
    assert found.evidence.endswith(
        "drop caches: Permission denied; settle: dirty pages 5000 to 900"
    )
    assert work.step_undone(made(procedure=steps[:1]), PLAN) is None


@pytest.mark.parametrize(
    ("warmed", "doubted"),
    [
        (None, False),
        (WarmUp(seconds=120, cut_s=30, why="steady since second 30 of 120"), False),
        (WarmUp(seconds=300, cut_s=None, why="it still changed by +3.0%"), True),
    ],
)
def test_a_load_that_never_became_steady_throws_doubt(warmed, doubted):
    found = work.no_steady_state(made(until_steady=warmed), PLAN)
    assert (found is not None) is doubted
    if found:
        assert found.level is Level.DOUBTFUL
        assert found.evidence.startswith("after 300 s of warm-up the load was not steady: it still")


def with_rows(*digests):
    pairs = making.pairs((1.0, 1.01, 0.99))
    return [
        one.model_copy(update={"dataset": digest})
        for one, digest in zip(pairs, digests, strict=True)
    ]


def test_other_rows_take_a_system_away():
    measured = with_rows(*("a", "b") * 3)
    (found,) = work.unequal_dataset(measured, PLAN)
    assert (found.level, found.system) == (Level.VOID, making.B)
    assert found.evidence == f"digest of the rows of {making.B}: b; of {making.A}: a"
    judged = judge(measured, making.plan(blocks=3))
    assert [verdict.word for verdict in judged.verdicts] == [Word.VOID]


def test_rows_that_changed_within_the_run_take_it_away():
    found = list(work.unequal_dataset(with_rows("a", "a", "a", "a", "c", "a"), PLAN))
    assert [finding.system for finding in found] == [making.A, making.B]


@pytest.mark.parametrize("digests", [("a",) * 6, ("",) * 6, ("a", "") * 3, ("", "a") * 3])
def test_equal_rows_and_rows_nobody_looked_at_are_left_alone(digests):
    assert list(work.unequal_dataset(with_rows(*digests), PLAN)) == []
