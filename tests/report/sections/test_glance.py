"""The first screen: every change in its place, and the costs those of the table of costs."""

from __future__ import annotations

import math

from dbdyno.measurement.cost import COSTS
from dbdyno.measurement.measurement import Measurement
from dbdyno.report.numbers import NONE
from dbdyno.report.parts import Table
from dbdyno.report.rows import attempts
from dbdyno.report.sections.costs import costs
from dbdyno.report.sections.glance import matrices
from dbdyno.report.sections.tables import MAIN_COSTS, main_tables
from dbdyno.report.tell.measured import cost_label
from support import making
from support.made_run import Run, of_workloads, run, whole

LABELS = {str(cost_label(cost)): cost.name for cost in COSTS}
POSTGRES = {
    **dict.fromkeys(making.measurement().server.status, math.nan),
    "wal.wal_bytes": 3e7,
    "io.checkpointer.relation.normal.writes": 1000.0,
    "io.client backend.relation.normal.extends": 500.0,
}


def shown(made: Run) -> dict[tuple[str, str, str], str]:
    """The first screen's costs by cell, system and name of the cost."""
    names = {str(heading): cost for cost, heading in MAIN_COSTS.items()}
    return {
        (cell, str(column.heading), names[str(row[0])]): str(value)
        for table in main_tables(
            made.plan, attempts(made.measurements, made.judgement), made.judgement
        )
        for row in table.rows
        if str(row[0]) in names
        for column, value in list(zip(table.columns, row, strict=True))[-3:-1]
        for cell in [cell_of(table, row)]
    }


def cell_of(table: Table, row: tuple[str, ...]) -> str:
    """The cell of a row; a table of several levels has the level in its second column."""
    if len(table.columns) == 4:
        return str(table.caption)
    threads = int(row[1])
    return f"{table.caption}, {threads} thread{'s' * (threads > 1)}"


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


def test_every_cost_of_the_first_screen_is_that_of_the_table() -> None:
    known = set(MAIN_COSTS)
    for made, costs_shown in ((whole(), known), (of(POSTGRES, POSTGRES), known - {"syncs"})):
        seen, table = shown(made), tabled(made)
        used = {cost for (_, _, cost), value in table.items() if value != "0"}
        assert {cost for _, _, cost in seen} == costs_shown & used
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


SLOWER, ALIKE = (0.77, 0.76, 0.78), (1.0, 1.001, 0.999)


def matrix_of(workloads: tuple[str, ...], threads: tuple[int, ...]) -> tuple[Table, ...]:
    """Of a run in which the first workload is slower and the others are alike."""
    first, *others = workloads
    made = of_workloads({first: SLOWER, **dict.fromkeys(others, ALIKE)}, threads)
    return matrices(made.plan, made.judgement)


def test_a_single_system_has_its_load_levels_beside_each_other() -> None:
    (table,) = matrix_of(("oltp_read_write", "oltp_insert"), (1, 8, 16))
    assert [str(one.heading) for one in table.columns[1:]] == [
        "1 thread",
        "8 threads",
        "16 threads",
    ]
    assert [str(row[0]) for row in table.rows] == ["oltp_read_write", "oltp_insert"]
    assert all(str(cell).startswith("▼ −23.0 % [") for cell in table.rows[0][1:])
    assert table.looks_of_cells == (("", "worse", "worse", "worse"), ("", "", "", ""))


def test_workloads_of_one_level_are_rows_and_a_few_cells_have_no_table() -> None:
    names = ("oltp_read_write", "oltp_insert", "oltp_delete", "oltp_read_only", "oltp_update_index")
    (table,) = matrix_of(names, (8,))
    assert [str(one.heading) for one in table.columns[1:]] == [making.B]
    assert len(table.rows) == 5
    assert matrix_of(names[:2], (1, 8)) == ()
