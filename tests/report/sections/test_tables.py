"""The tables of a workload: each number once, with the verdict's words where it is judged."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.report.parts import Paragraph, Table
from dbdyno.report.rows import attempts, title_of
from dbdyno.report.sections.tables import main_tables, numbers
from support import making
from support.made_run import Run, of_workloads, run

METRICS = ["TPS", "QPS", "latency avg, ms", "latency p50, ms", "latency p95, ms", "latency p99, ms"]
METRICS += ["latency p99.9, ms", "latency max, ms", "server CPU per query, µs", "errors / retries"]


def all_numbers(made: Run) -> list[Table]:
    tried = attempts(made.measurements, made.judgement)
    return [p for p in numbers(made.plan, tried, made.judgement).parts if isinstance(p, Table)]


def main(made: Run) -> list[Table]:
    return main_tables(made.plan, attempts(made.measurements, made.judgement), made.judgement)


def rows(table: Table) -> Mapping[str, tuple[str, ...]]:
    return {str(row[0]): tuple(map(str, row[1:])) for row in table.rows}


def test_every_workload_has_one_table_and_every_system_its_change() -> None:
    plan = making.plan(systems=("a", "b", "c"), workloads=("oltp_read_write", "oltp_delete"))
    tables = all_numbers(
        run(plan, [making.measurement("a", workload=w.label) for w in plan.workloads])
    )
    assert [str(one.caption) for one in tables] == [
        "oltp_read_write, 8 threads",
        "oltp_delete, 8 threads",
    ]
    assert [str(column.heading) for column in tables[0].columns] == [
        "Measured",
        *("a", "b", "c"),
        "b change [95 %]",
        "c change [95 %]",
    ]
    assert rows(tables[0])["TPS"] == ("1\u202f000", "—", "—", "no verdict", "no verdict")
    (alone,) = all_numbers(run(making.plan(systems=(making.A,)), [making.measurement()]))
    assert len(alone.columns) == 2, "one system has no change"


def test_load_levels_are_rows_of_each_number(made: Run) -> None:
    (table,) = all_numbers(made)
    assert list(dict.fromkeys(str(row[0]) for row in table.rows)) == METRICS
    assert [tuple(map(str, row[:3])) for row in table.rows[:2]] == [
        ("TPS", "1", "300.0"),
        ("TPS", "8", "1\u202f000"),
    ]


def test_the_judged_number_has_the_verdict_and_the_others_their_change() -> None:
    made = of_workloads({"oltp_read_only": (0.77, 0.76, 0.78), "oltp_insert": (1.0, 1.001, 0.999)})
    slower, alike = main(made)
    assert rows(slower)["TPS"][2].startswith("slower: −23.0 % [")
    assert rows(alike)["TPS"][2].startswith("same: ")
    assert slower.looks_of_cells[0] == ("", "", "", "worse")
    assert rows(slower)["QPS"][2].startswith("−23.0 % [")
    assert {look for row in slower.looks_of_cells[1:] for look in row} == {""}


def test_a_ratio_on_fewer_blocks_than_the_verdict_says_so() -> None:
    trials = making.pairs((1.0, 1.0, 1.0), tps=995)
    slow = {"block": 0, "sequence": 0, "tps": 2000.0, "rates": (2000.0,) * 10}
    trials[:2] = [making.measurement(s, **slow) for s in (making.A, making.B)]
    (table,) = all_numbers(run(making.plan(), trials))
    assert rows(table)["latency p99, ms"][-1] == "0.0 % (1 block)"


def test_errors_and_retries_are_counted_over_all_sound_trials() -> None:
    trials = making.pairs((1.0, 1.0, 1.0), errors={"1213": 2}, restarts=1)
    (table,) = main(run(making.plan(), trials))
    assert rows(table)["errors / retries"][:2] == ("6 / 3", "6 / 3")


def test_a_cost_has_the_factor_between_the_systems() -> None:
    trials = [
        making.changed(one, server=one.server.model_copy(update={"cpu_s": cpu_s}))
        for one in making.pairs((1.0, 1.0, 1.0))
        for cpu_s in [4.0 if one.trial.system == making.A else 10.0]
    ]
    (table,) = main(run(making.plan(), trials))
    assert rows(table)["CPU per transaction, µs"] == ("400.0", "1\u202f000", "× 2.5")


def test_the_settings_that_are_compared_stand_in_table_and_title() -> None:
    plan = making.plan(systems=("safe", "fast"))
    safe, fast = plan.systems
    asked = fast.model_copy(update={"settings": {"innodb_flush_log_at_trx_commit": 2}})
    made = run(
        plan.model_copy(update={"systems": (safe, asked), "title": ""}),
        [
            making.measurement(one.label, settings={"innodb_flush_log_at_trx_commit": "1"})
            for one in plan.systems
        ],
    )
    (table,) = main(made)
    assert rows(table)["innodb_flush_log_at_trx_commit"][:2] == ("1", "2")
    assert title_of(made.plan) == "safe and fast (innodb_flush_log_at_trx_commit)"


def test_new_orders_and_kinds_of_events_are_rows() -> None:
    shares = {"payment": 0.4, "new_order": 0.5}
    trials = [making.with_kinds(one, shares) for one in making.pairs((0.8, 0.8, 0.8))]
    (table,) = all_numbers(run(making.plan(), trials))
    orders = rows(table)["NOPM"]
    assert orders[:2] == ("30\u202f000", "24\u202f000")
    assert orders[2].startswith("−20.0 % [")
    assert rows(table)["new_order, 1/s"][0] == "500.0"
    assert rows(table)["payment, 1/s"][0] == "400.0"
    assert "payment, latency p95, ms" in rows(table)


def test_no_number_is_said(empty: Run) -> None:
    (said,) = numbers(empty.plan, [], empty.judgement).parts
    assert said == Paragraph("No trial is valid, so there are no numbers.")
