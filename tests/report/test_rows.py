from __future__ import annotations

from dbdyno.judge.judgement import cells_of, judge
from dbdyno.measurement.measurement import Cell
from dbdyno.report.rows import (
    ALWAYS_DIFFER,
    State,
    attempts,
    compare,
    effective,
    ladders,
    level_of,
    sound,
    systems_of,
    title_of,
)
from dbdyno.report.tell.measured import load_words
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
    assert [a.state for a in listed].count(State.VALID) == 19


def test_a_trial_that_was_complete_before_does_not_count_again() -> None:
    twice = [making.measurement(), making.measurement()]
    listed = attempts(twice, judge(twice, making.plan()))
    assert [a.state for a in listed] == [State.VALID, State.REPEATED]


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


def test_cells_of_a_workload_and_setting_rise_by_load() -> None:
    cells = [Cell(workload="a", threads=n, setting=s) for s in ("default", "x") for n in (8, 1, 8)]
    first, second = ladders(cells)
    assert first.levels == ["1", "8"]
    assert (first.title, second.title) == ("a", "a, x")
    assert second.place(Cell(workload="a", threads=8, setting="x")) == 1
    assert second.place(cells[0]) is None
    # an open loop stands on a ladder of its own
    closed = Cell(workload="a", threads=16)
    rates = [Cell(workload="a", threads=16, rate_per_s=rate) for rate in (1500, 500)]
    first, second = ladders([closed, *rates])
    assert not first.is_open
    assert second.is_open
    assert second.title == "a, open loop"
    assert second.levels == ["500", "1\u202f500"]
    assert second.load_title == "transactions due per second"
    setting = Cell(workload="a", threads=1, setting="s", rate_per_s=1)
    assert ladders([setting])[0].title == "a, s, open loop"


def test_a_load_in_words() -> None:
    assert load_words(Cell(workload="a", threads=1)) == "1 thread"
    assert load_words(Cell(workload="a", threads=2)) == "2 threads"
    assert load_words(Cell(workload="a", threads=2, rate_per_s=50)) == "50/s over 2 threads"
    assert level_of(Cell(workload="a", threads=2)) == "2"


def test_variables_are_sorted_into_differing_partial_ignored_and_equal() -> None:
    seen = [
        making.measurement(making.A, settings={"sync_binlog": "1", "old": "x", "port": "1"}),
        making.measurement(making.B, settings={"sync_binlog": "0", "new": "", "port": "2"}),
    ]
    found = compare(seen, [making.A, making.B, "never ran"])
    assert found.systems == (making.A, making.B)
    assert found.differing == (("sync_binlog", "1", "0"),)
    assert found.partial == (("new", "(not there)", "(empty)"), ("old", "x", "(not there)"))
    assert found.ignored == ("port",)
    assert found.equal == len(making.SETTINGS) - 1


def test_a_value_that_changed_between_trials_shows_both() -> None:
    seen = [making.measurement(block=b, settings={"sync_binlog": str(b)}) for b in range(2)]
    assert effective(seen, making.A)["sync_binlog"] == "0 then 1"


def test_no_password_is_ever_shown() -> None:
    seen = [
        making.measurement(system, settings={"report_password": f"secret of {system}"})
        for system in (making.A, making.B)
    ]
    found = compare(seen, [making.A, making.B])
    assert found.ignored == ("report_password",)
    assert "report_password" not in effective(seen, making.A)


def test_what_tells_instances_apart_is_ignored_and_configurations_are_not() -> None:
    instance = "datadir socket pid_file server_uuid version version_comment port"
    assert all(ALWAYS_DIFFER.fullmatch(name) for name in instance.split())
    chosen = "innodb_file_per_table tls_version sql_mode innodb_io_capacity log_bin"
    assert not any(ALWAYS_DIFFER.fullmatch(name) for name in chosen.split())
