"""The same work from the same state, each way of not doing so, and rows that are kept."""

from __future__ import annotations

import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.checks import work
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import judge
from dbdyno.judge.verdict import Word
from dbdyno.measurement.parts import Step, TrialEvidence
from support import making
from support.making import A, B

PLAN = making.plan()
ROWS = PLAN.dataset.rows


@pytest.mark.parametrize(
    ("again", "level"), [(0, None), (1, Level.NOTE), (10, Level.NOTE), (11, Level.DOUBTFUL)]
)
def test_events_begun_again_are_doubtful_above_a_thousandth(again, level):
    finding = work.retries(making.measurement(restarts=again), PLAN)
    assert (finding and finding.level) == level


def planned(system, **ways):
    return making.changed(making.measurement(system), evidence=TrialEvidence(query_plans=ways))


def test_another_way_through_the_tables_is_noted():
    trials = [
        planned(A, point_selects="const PRIMARY", order_ranges="range PRIMARY, Using filesort"),
        planned(B, point_selects="const PRIMARY", order_ranges="range PRIMARY"),
    ]
    (finding,) = work.unequal_plans(trials, PLAN)
    assert (finding.level, finding.system) == (Level.NOTE, B)
    assert (finding.values["differing"], finding.values["kinds"]) == (1, 2)
    assert finding.values["plans"] == {
        "order_ranges": {A: "range PRIMARY, Using filesort", B: "range PRIMARY"}
    }


def test_equal_ways_and_unknown_ones_are_not_reported():
    same = [planned(A, point_selects="const PRIMARY"), planned(B, point_selects="const PRIMARY")]
    assert list(work.unequal_plans(same, PLAN)) == []
    assert list(work.unequal_plans([same[0], planned(B)], PLAN)) == []


def left(system=A, rows=ROWS, digest="new", workload="oltp_read_write"):
    made = making.measurement(system, workload=workload)
    evidence = TrialEvidence(rows_after={"sbtest1": rows, "sbtest2": ROWS}, dataset_after=digest)
    return making.changed(made, dataset="loaded", evidence=evidence)


@pytest.mark.parametrize(
    ("workload", "rows", "digest", "void"),
    [
        ("oltp_read_write", ROWS, "new", False),
        ("oltp_read_write", ROWS - 1, "new", True),
        ("oltp_read_only", ROWS, "loaded", False),
        ("oltp_read_only", ROWS, "new", True),
        ("oltp_update_index", ROWS + 1, "new", True),
        ("oltp_insert", ROWS + 7, "new", False),
        ("oltp_delete", ROWS - 7, "new", False),
    ],
)
def test_rows_are_those_that_the_workload_leaves(workload, rows, digest, void):
    plan = making.plan(workloads=(workload,))
    made = left(rows=rows, digest=digest, workload=workload)
    assert bool(list(work.rows_not_kept([made], plan))) == void


def test_a_system_that_lost_a_row_has_no_sound_trial():
    audited = audit([making.measurement(A), left(B, rows=ROWS - 1)], PLAN)
    assert {one.trial.system for one in audited.sound} == {A}
    (finding,) = (f for f in audited.findings if f.check == "rows-not-kept")
    assert finding.values == {"rows": ROWS, "tables": {"sbtest1": ROWS - 1}}


def made(**facts):
    return making.measurement().model_copy(update=facts)


def test_a_cell_that_cannot_run_is_void_with_its_reason():
    found = work.cell_cannot_run(made(failure="no thread pool", impossible=True), PLAN)
    assert (found.level, found.values["reason"]) == (Level.VOID, "no thread pool")
    assert work.cell_cannot_run(made(failure="the server died"), PLAN) is None


def test_it_is_said_once_and_neither_as_a_trial_that_failed_nor_as_one_that_is_missing():
    plan = making.plan(blocks=1)
    failed = making.measurement(B, failure="no thread pool")
    audited = audit([made(), failed.model_copy(update={"impossible": True})], plan)
    assert [f.check for f in audited.findings if f.level is Level.VOID] == ["cell-cannot-run"]
    assert {one.trial.system for one in audited.sound} == {A}
    assert "incomplete-run" not in {f.check for f in audited.findings}
    assert "incomplete-run" in {f.check for f in audit([made(), failed], plan).findings}


def test_steps_that_were_not_done_are_reported_with_their_reasons():
    steps = (
        Step(name="restore", seconds=1),
        Step(name="drop caches", seconds=0, done=False, detail="Permission denied"),
        Step(name="settle", seconds=60, done=False, detail="dirty pages 5000 to 900"),
    )
    found = work.step_undone(made(procedure=steps), PLAN)
    assert found.level is Level.DOUBTFUL
    assert found.values["steps"] == {
        "drop caches": "Permission denied",
        "settle": "dirty pages 5000 to 900",
    }
    assert work.step_undone(made(procedure=steps[:1]), PLAN) is None


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
    assert found.values["digests"] == ["b"]
    assert found.values["digests_of_baseline"] == ["a"]
    judged = judge(measured, making.plan(blocks=3))
    assert [verdict.word for verdict in judged.verdicts] == [Word.VOID]


def test_a_system_that_lacks_rows_is_blamed_though_it_is_the_baseline():
    lacking = [
        making.changed(one, rows_short={"sbtest1": 375}) if one.dataset == "a" else one
        for one in with_rows(*("a", "b") * 3)
    ]
    (found,) = work.unequal_dataset(lacking, PLAN)
    assert (found.level, found.system) == (Level.VOID, making.A)
    short = {"case": "short", "tables": {"sbtest1": 375}, "sent": PLAN.dataset.rows}
    assert found.values == {**short, "system": making.A}
    # servers that number rows with gaps hold the same ones
    assert list(work.unequal_dataset([lacking[0], lacking[2]], PLAN)) == []


def test_rows_that_changed_within_the_run_take_it_away():
    found = list(work.unequal_dataset(with_rows("a", "a", "a", "a", "c", "a"), PLAN))
    assert [finding.system for finding in found] == [making.A, making.B]


@pytest.mark.parametrize("digests", [("a",) * 6, ("",) * 6, ("a", "") * 3, ("", "a") * 3])
def test_equal_rows_and_rows_nobody_looked_at_are_left_alone(digests):
    assert list(work.unequal_dataset(with_rows(*digests), PLAN)) == []
