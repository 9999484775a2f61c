from __future__ import annotations

from dbdyno.judge.judgement import judge
from dbdyno.measurement import measurement, replication
from dbdyno.measurement.parts import Step
from dbdyno.report.parts import Code, Table
from dbdyno.report.rows import attempts
from dbdyno.report.sections import method
from dbdyno.report.tell.measured import cell_title
from support import making
from support.made_run import Run, facts


def test_the_load_generator_and_the_rules_of_statistics_are_told(made: Run) -> None:
    _, items = method.how_measured(made.plan, made.measurements).parts
    text = "\n".join(items.items)
    for words in ("uniform", "slower server gets fewer requests", "never averaged", "epoll"):
        assert words in text


def test_a_run_without_its_command_is_repeated_from_its_bundle(made: Run) -> None:
    code = method.repeat(made.plan, made.facts).parts[1]
    assert code == Code("dbdyno compare mysql:5.7.22 mysql:8.0.15 --threads 1,8")
    bare = facts(made.plan).model_copy(update={"command": ""})
    (typed,) = (p for p in method.repeat(made.plan, bare).parts if isinstance(p, Code))
    assert typed.text.startswith("dbdyno bundle 20261121-060000-made\n")


def test_trials_of_a_pilot_have_neither_a_number_nor_a_block() -> None:
    before = making.measurement(block=-1, sequence=-100_000)
    pilot = before.trial.model_copy(update={"is_pilot": True})
    trials = [making.changed(before, trial=pilot), *making.pairs((0.7, 0.7))]
    judged = judge(trials, making.plan())
    (order,) = method.trial_order(attempts(trials, judged), judged.known).parts
    assert isinstance(order, Table)
    places = [row[:2] for row in order.rows]
    assert places == [("—", "pilot"), ("1", "1"), ("2", "1"), ("3", "2"), ("4", "2")]


RESTORE = Step(name="restore", seconds=1.0)
SLOW = Step(name="restore", seconds=3.0)
UNDONE = Step(name="drop caches", seconds=0.5, done=False, detail="refused")


def test_steps_are_counted_and_timed_for_each_system() -> None:
    measured = [
        making.measurement(making.A).model_copy(update={"procedure": (RESTORE, UNDONE)}),
        making.measurement(making.A, 1).model_copy(update={"procedure": (SLOW,)}),
        making.measurement(making.B).model_copy(update={"procedure": (RESTORE,)}),
    ]
    table = method.procedure_table(making.plan(), measured)
    assert table.rows == (
        (making.A, "restore", "2", "0", "2.0", "3.0", "4.0"),
        (making.A, "drop caches", "1", "1", "0.500", "0.500", "0.500"),
        (making.B, "restore", "1", "0", "1.0", "1.0", "1.0"),
    )
    shown = method.how_measured(making.plan(), measured).parts
    assert table in shown


def test_without_steps_there_is_no_table() -> None:
    assert method.procedure_table(making.plan(), [making.measurement()]) is None
    parts = method.how_measured(making.plan(), [making.measurement()]).parts
    assert len([part for part in parts if isinstance(part, Table)]) == 1


SEEN = {
    replication.COMMITS_ACKNOWLEDGED: 9_990.0,
    replication.COMMITS_NOT_ACKNOWLEDGED: 10.0,
    replication.TRANSACTIONS_BEHIND: 3.0,
}


def measured(system: str, block: int, **changed: float) -> measurement.Measurement:
    made = making.measurement(system, block)
    server = made.server.model_copy(update={"replication": {**SEEN, **changed}})
    return making.with_replicas(making.changed(made, server=server), cpu=2.0 / made.window_s)


def test_commits_are_counted_by_system_and_cell() -> None:
    trials = [
        measured(making.A, 0),
        measured(making.A, 1, transactions_behind=8.0),
        making.measurement(making.B),
    ]
    table = method.replicas_table(making.plan(), trials)
    title = cell_title(trials[0].trial.cell)
    thin = "\N{NARROW NO-BREAK SPACE}"
    assert table.rows == ((making.A, title, "2", f"19{thin}980", "20", "8", "200.0"),)
    assert table in method.how_measured(making.plan(), trials).parts


def test_what_was_not_counted_is_a_dash_and_nothing_is_no_table() -> None:
    made = making.measurement(making.A)
    server = made.server.model_copy(update={"replication": {replication.REPLICAS_RUNNING: 1.0}})
    table = method.replicas_table(making.plan(), [making.changed(made, server=server)])
    assert table.rows[0][3:] == ("—", "—", "0", "—")
    assert method.replicas_table(making.plan(), [made]) is None
