from __future__ import annotations

from dbdyno.report.parts import Paragraph, Table
from dbdyno.report.sections.results import tables
from support import making
from support.made_run import Run, run


def test_rows_are_loads_and_columns_are_systems(made: Run) -> None:
    head, tps, *others = tables(made.plan, made.measurements, made.judgement).parts
    assert isinstance(head, Paragraph)
    assert "A change is against mysql:5.7.22" in head.text
    assert isinstance(tps, Table)
    assert tps.caption == "TPS, 1/s: oltp_read_write"
    assert [column.heading for column in tps.columns] == [
        "threads (connections)",
        making.A,
        making.B,
        "Change [95 %]",
    ]
    assert tps.rows[1] == ("8", "1\u202f000", "772.5", "−22.8 % [−23.8, −21.7]")
    captions = [table.caption for table in others if isinstance(table, Table)]
    assert [caption.partition(",")[0] for caption in captions] == ["QPS", "avg", "p95", "p99"]


def test_every_workload_has_its_tables_and_every_system_its_change() -> None:
    plan = making.plan(systems=("a", "b", "c"), workloads=("oltp_read_write", "oltp_delete"))
    trials = [making.measurement("a", workload=w.label) for w in plan.workloads]
    made = run(plan, trials)
    parts = tables(plan, trials, made.judgement).parts
    assert len(parts) == 1 + 2 * 5
    table = parts[1]
    assert isinstance(table, Table)
    assert table.columns[-1].heading == "c change [95 %]"
    assert table.rows == (("8", "1\u202f000", "—", "—", "—", "—"),)


def test_one_system_has_no_change_and_none_has_no_tables(empty: Run) -> None:
    alone = run(making.plan(systems=(making.A,)), [making.measurement()])
    parts = tables(alone.plan, alone.measurements, alone.judgement).parts
    assert isinstance(parts[1], Table)
    assert len(parts[1].columns) == 2
    assert tables(empty.plan, [], empty.judgement).parts == ()
