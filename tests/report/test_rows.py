from __future__ import annotations

from dbdyno.judge.judgement import judge
from dbdyno.report.rows import State, attempts, cells_of, sound, systems_of, title_of
from support import making
from support.made_run import Run


def test_every_attempt_has_its_state_and_reason(made: Run) -> None:
    listed = attempts(made.measurements, made.judgement)
    assert [a.measurement.trial.sequence for a in listed] == sorted([*range(20), 6])
    states = {(a.measurement.trial.sequence, a.state, a.why) for a in listed if a.why}
    assert states == {
        (6, State.FAILED, "the server went away | <died>"),
        (7, State.VOID, "client-bound"),
    }
    assert [a.state for a in listed].count(State.SOUND) == 19


def test_a_trial_that_was_complete_before_does_not_count_again() -> None:
    twice = [making.measurement(), making.measurement()]
    listed = attempts(twice, judge(twice, making.plan()))
    assert [a.state for a in listed] == [State.SOUND, State.REPEATED]


def test_what_counts_here_is_what_the_judge_counted(made: Run) -> None:
    listed = attempts(made.measurements, made.judgement)
    for value in made.judgement.values:
        if value.metric == "transactions_per_s":
            assert len(sound(listed, value.cell, value.system)) == value.blocks


def test_an_imported_measurement_brings_its_own_cell_and_system() -> None:
    plan = making.plan()
    foreign = making.measurement("old log", workload="oltp_delete")
    assert cells_of(plan, [foreign])[-1].workload == "oltp_delete"
    assert systems_of(plan, [foreign]) == [making.A, making.B, "old log"]


def test_a_plan_without_a_title_is_called_by_its_systems() -> None:
    plan = making.plan().model_copy(update={"title": ""})
    assert title_of(plan) == "mysql:5.7.22 and mysql:8.0.15"
