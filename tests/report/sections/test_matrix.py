"""The table of all changes: places, numbers and colours of known verdicts."""

from __future__ import annotations

from dbdyno.report.parts import Table
from dbdyno.report.sections.matrix import matrix
from support import making
from support.made_run import of_workloads

SLOWER, ALIKE = (0.77, 0.76, 0.78), (1.0, 1.001, 0.999)


def matrix_of(workloads: tuple[str, ...], threads: tuple[int, ...]) -> tuple[Table, ...]:
    """Of a run in which the first workload is slower and the others are alike."""
    first, *others = workloads
    made = of_workloads({first: SLOWER, **dict.fromkeys(others, ALIKE)}, threads)
    return matrix(made.plan, made.judgement)


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
