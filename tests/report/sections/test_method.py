from __future__ import annotations

from dbdyno.report.parts import Code, Items, Table
from dbdyno.report.rows import attempts
from dbdyno.report.sections import method
from support import making
from support.made_run import Run, facts


def test_systems_workloads_and_procedure_are_told(made: Run) -> None:
    plan = making.plan(options={"range_selects": False, "tables": 4})
    systems, workloads, items = method.how_measured(plan, made.measurements).parts
    assert isinstance(systems, Table)
    assert systems.rows[1] == (making.B, making.B, "8.0.15", "—")
    assert isinstance(workloads, Table)
    assert workloads.rows[0][2] == "range_selects=off, tables=4"
    assert isinstance(items, Items)
    text = "\n".join(items.items)
    for words in ("uniform", "seed 1", "at saturation", "never averaged", "epoll", "5 blocks"):
        assert words in text


def test_a_system_that_never_ran_is_listed_as_such() -> None:
    systems = method.how_measured(making.plan(), []).parts[0]
    assert isinstance(systems, Table)
    assert systems.rows[0][2] == "(never ran)"


def test_every_attempt_has_a_row(made: Run) -> None:
    listed = attempts(made.measurements, made.judgement)
    (table,) = method.trial_order(listed).parts
    assert isinstance(table, Table)
    assert len(table.rows) == 21
    assert table.rows[6][-1] == "failed: the server went away | <died>"
    assert table.rows[8][-1] == "void: client-bound"


def test_a_run_can_be_repeated_even_without_its_command(made: Run) -> None:
    code = method.repeat(made.plan, made.facts).parts[1]
    assert code == Code("dbdyno compare mysql:5.7.22 mysql:8.0.15 --threads 1,8")
    bare = facts(made.plan).model_copy(update={"command": ""})
    assert method.repeat(made.plan, bare).parts[1] == Code("dbdyno report 20261121-060000-made")
