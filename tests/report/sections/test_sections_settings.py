from __future__ import annotations

from dbdyno.report.parts import Table
from dbdyno.report.sections import settings
from support import making
from support.made_run import Run, facts


def test_settings_that_differ_are_shown_and_a_long_table_is_folded(made: Run) -> None:
    many = {f"variable_{i}": "b" for i in range(50)}
    seen = [
        making.measurement(making.A, settings=dict.fromkeys(many, "a")),
        making.measurement(making.B, settings=many),
    ]
    section = settings.settings(making.plan(), seen)
    assert [part.folded for part in section.parts if isinstance(part, Table)] == [True]
    section = settings.settings(made.plan, made.measurements)
    tables = [part for part in section.parts if isinstance(part, Table)]
    assert [table.folded for table in tables] == [False, False]
    assert tables[0].rows == (("sql_mode", "mode of mysql:5.7.22", "mode of mysql:8.0.15"),)


def test_the_environment_is_a_table_or_nothing() -> None:
    plan = making.plan()
    (table,) = settings.environment(facts(plan, environment={"disk": "nvme"})).parts
    assert isinstance(table, Table)
    assert table.rows == (("disk", "nvme"),)
    bare = facts(plan).model_copy(update={"environment": {}})
    assert settings.environment(bare).parts == ()
