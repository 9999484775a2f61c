from __future__ import annotations

from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.judgement import Judgement
from dbdyno.measurement.metric import TABLE
from dbdyno.report.parts import Paragraph, Table
from dbdyno.report.rows import attempts
from dbdyno.report.sections import results
from dbdyno.report.sections.results import tables
from support import making
from support.made_run import Run, run


def test_every_verdict_is_an_entry_with_its_meaning(made: Run) -> None:
    (entries,) = results.verdicts(made.judgement).parts
    assert [(e.mark, e.heading) for e in entries.entries] == [
        ("equivalent", "oltp_read_write, 1 thread"),
        ("worse", "oltp_read_write, 8 threads"),
    ]
    assert entries.entries[1].lines[-1] == "1 void trial left out: client-bound."


def test_a_cell_has_a_row_for_each_metric_and_a_change_for_each_system(made: Run) -> None:
    parts = results.numbers(made.plan, made.measurements, made.judgement).parts
    tables = [part for part in parts if isinstance(part, Table)]
    assert len(tables) == 2
    assert [row[0] for row in tables[1].rows] == [metric.label for metric in TABLE]
    assert tables[1].rows[0] == ("TPS", "1/s", "1\u202f000", "772.5", "−22.8 % [−23.8, −21.7]")
    by_label = {row[0]: row for row in tables[1].rows}
    assert by_label["p99.9"][2:] == ("not enough requests",) * 3


def test_a_ratio_on_fewer_blocks_than_the_verdict_says_so() -> None:
    trials = making.pairs((1.0, 1.0, 1.0), tps=995)
    slow = {"block": 0, "sequence": 0, "tps": 2000.0, "rates": (2000.0,) * 10}
    trials[:2] = [making.measurement(s, **slow) for s in (making.A, making.B)]
    made = run(making.plan(), trials)
    table = results.numbers(made.plan, trials, made.judgement).parts[1]
    p99 = next(row for row in table.rows if row[0] == "p99")
    assert p99[-1] == "0.0 % (1 block)"


def test_cpu_is_total_over_total_of_trials_that_count(made: Run) -> None:
    listed = attempts(made.measurements, made.judgement)
    (table,) = results.server_cpu(made.plan, listed).parts
    assert table.rows[0][1:5] == (making.A, "40.0", "800.0", "0.240")
    assert len(table.rows) == 4


def test_findings_come_gravest_first_and_alike_ones_together() -> None:
    def finding(level: Level, evidence: str) -> Finding:
        return Finding(check="check", level=level, evidence=evidence, advice="act")

    notes = [finding(Level.NOTE, f"seen {i}") for i in range(9)]
    judgement = Judgement(
        findings=(*notes, finding(Level.VOID, "broken")), values=(), estimates=(), verdicts=()
    )
    head, entries = results.findings(judgement).parts
    assert head.text.startswith("10 findings: 1 void, 0 doubtful, 9 note.")
    assert [(e.mark, e.heading) for e in entries.entries] == [
        ("void", "check"),
        ("note", "check (9×)"),
    ]
    assert entries.entries[1].lines[-1] == "and 7 more, all in report.json"


def test_no_finding_and_no_number_are_said(empty: Run) -> None:
    nothing = Judgement(findings=(), values=(), estimates=(), verdicts=())
    assert results.findings(nothing).parts == (Paragraph("No check found anything to object to."),)
    (said,) = results.numbers(empty.plan, [], empty.judgement).parts
    assert said == Paragraph("No trial is usable, so there are no numbers.")


def test_rows_are_loads_and_columns_are_systems(made: Run) -> None:
    head, tps, *others = tables(made.plan, made.measurements, made.judgement).parts
    assert "A change is against mysql:5.7.22" in head.text
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
    assert table.columns[-1].heading == "c change [95 %]"
    assert table.rows == (("8", "1\u202f000", "—", "—", "—", "—"),)


def test_one_system_has_no_change_and_none_has_no_tables(empty: Run) -> None:
    alone = run(making.plan(systems=(making.A,)), [making.measurement()])
    parts = tables(alone.plan, alone.measurements, alone.judgement).parts
    assert len(parts[1].columns) == 2
    assert tables(empty.plan, [], empty.judgement).parts == ()
