"""The costs of the first screen are those of the table of costs, by one counter or not at all."""

from __future__ import annotations

import math

from dbdyno.measurement.cost import COSTS
from dbdyno.measurement.measurement import Measurement
from dbdyno.report.numbers import NONE
from dbdyno.report.parts import Table
from dbdyno.report.rows import attempts
from dbdyno.report.sections.costs import costs
from dbdyno.report.sections.glance import SHORT, grid
from dbdyno.report.tell.measured import cost_label
from support import making
from support.made_run import Run, run, whole

LABELS = {str(cost_label(cost)): cost.name for cost in COSTS}
POSTGRES = {
    **dict.fromkeys(making.measurement().server.status, math.nan),
    "wal.wal_bytes": 3e7,
    "io.checkpointer.relation.normal.writes": 1000.0,
    "io.client backend.relation.normal.extends": 500.0,
}


def shown(made: Run) -> dict[tuple[str, str, str], str]:
    """The grid's costs by cell, system and name of the cost."""
    (table,) = grid(made.plan, attempts(made.measurements, made.judgement), made.judgement)
    headings = [str(column.heading) for column in table.columns]
    places = {cost: headings.index(str(h)) for cost, h in SHORT.items() if str(h) in headings}
    return {
        (str(row[0]), str(row[1]), cost): str(row[at])
        for row in table.rows
        for cost, at in places.items()
    }


def tabled(made: Run) -> dict[tuple[str, str, str], str]:
    """The same of the tables of costs, without their ranges."""
    section = costs(made.plan, attempts(made.measurements, made.judgement))
    return {
        (str(table.caption), str(column.heading), LABELS[str(row[0])]): str(value).split(" (")[0]
        for table in section.parts
        if isinstance(table, Table)
        for row in table.rows
        for column, value in list(zip(table.columns, row, strict=True))[2:-1]
    }


def of(status: dict[str, float], others: dict[str, float]) -> Run:
    """A run of a system with that status beside one with others."""
    trials: list[Measurement] = [
        making.measurement(system, block, status=counters)
        for block in range(3)
        for system, counters in ((making.A, status), (making.B, others))
    ]
    return run(making.plan(blocks=3), trials)


def test_every_cost_of_the_grid_is_that_of_the_table() -> None:
    known = set(SHORT)
    for made, costs_shown in ((whole(), known), (of(POSTGRES, POSTGRES), known - {"syncs"})):
        seen, table = shown(made), tabled(made)
        assert {cost for _, _, cost in seen} == costs_shown
        assert seen == {place: table[place] for place in seen}


def test_written_is_what_the_server_wrote_and_not_the_pages_of_its_process() -> None:
    assert {value for (_, _, cost), value in shown(whole()).items() if cost == "written_kb"} == {
        "9.00"
    }


def test_a_cost_that_one_system_cannot_count_is_shown_of_none() -> None:
    older = {name: n for name, n in POSTGRES.items() if not name.startswith("io.")}
    for made in (of({}, POSTGRES), of(POSTGRES, older), of({}, {"Innodb_data_written": math.nan})):
        assert "written_kb" not in {cost for _, _, cost in shown(made)}
        assert "written_kb" in {cost for _, _, cost in tabled(made)}
    partly = [*of({}, {}).measurements]
    more = [making.measurement(making.A, block, threads=1, status=older) for block in range(3)]
    made = run(making.plan(threads=(8, 1), blocks=3), [*partly, *more])
    values = {cell: value for (cell, _, cost), value in shown(made).items() if cost == "written_kb"}
    assert sorted(values.values()) == ["9.00", NONE]
