from __future__ import annotations

import math

from dbdyno.judge.judgement import judge
from dbdyno.measurement.cost import HANDLER_READS
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import StatusSeries
from dbdyno.plan.plan import Plan
from dbdyno.report.numbers import NONE
from dbdyno.report.parts import Paragraph, Section, Table
from dbdyno.report.rows import attempts
from dbdyno.report.sections import costs
from dbdyno.report.sections.costs import flushes
from support import making
from support.made_profiles import profile, sampled_trials
from support.made_run import run
from support.making import A, B

HANDLERS = dict.fromkeys(HANDLER_READS, 5000.0)


def sections(plan: Plan, trials: list[Measurement]) -> tuple[Section, Section]:
    made = run(plan, trials)
    listed = attempts(trials, made.judgement)
    return costs.costs(plan, listed), costs.machine(plan, listed)


def rows_of(section: Section, place: int = 1) -> dict[str, tuple[str, ...]]:
    table = section.parts[place]
    return {row[0]: row[1:] for row in table.rows}


def test_trials_that_differ_give_a_range() -> None:
    trials = [
        making.measurement(making.A, block, tps=1000.0, server_cpu_s=cpu_s)
        for block, cpu_s in enumerate((4.0, 5.0, 9.0))
    ]
    section, _ = sections(making.plan(systems=(making.A,), blocks=3), trials)
    assert rows_of(section)["server CPU"][1] == "600.0 (400.0–900.0)"
    assert rows_of(section)["context switches"][1] == "36.00"


def test_a_cost_that_nobody_counted_has_no_row_and_one_that_one_lacks_a_dash() -> None:
    trials = making.pairs((1.0, 1.0, 1.0))
    without = {"process": None}
    trials = [
        m.model_copy(update={"server": m.server.model_copy(update=without)})
        if m.trial.system == making.B
        else m
        for m in trials
    ]
    rows = rows_of(sections(making.plan(blocks=3), trials)[0])
    assert rows["context switches"][1:3] == ("36.00", "—")
    bare = [m.model_copy(update={"server": m.server.model_copy(update=without)}) for m in trials]
    assert "context switches" not in rows_of(sections(making.plan(blocks=3), bare)[0])


def test_who_counted_is_named_and_is_the_same_for_all_where_it_can_be() -> None:
    mysql = making.measurement(making.A, status=HANDLERS)
    lacking = {"Innodb_rows_read": math.nan}
    mariadb = making.measurement(making.B, position=1, status={**HANDLERS, **lacking})
    rows = rows_of(sections(making.plan(blocks=1), [mysql, mariadb])[0])
    assert rows["rows read"][1:] == ("3.00", "3.00", "Handler_read_*")
    mysql = making.measurement(making.A)
    rows = rows_of(sections(making.plan(blocks=1), [mysql, mariadb])[0])
    assert rows["rows read"][1:] == (
        "414.0",
        "3.00",
        "Innodb_rows_read or Rows_read; Handler_read_*",
    )


def test_what_watching_cost_is_said_where_it_is_known() -> None:
    section, _ = sections(making.plan(blocks=1), [making.measurement(making.A)])
    last = section.parts[-1]
    assert "took 0.005 cores" in last.text
    assert "took 2.00 ms (median)" in last.text
    cut = StatusSeries(at_s=(0.5,), took_ms=(2.0,), trouble="no answer: timeout")
    trials = [making.measurement(making.A).model_copy(update={"status_seconds": cut})]
    said = sections(making.plan(blocks=1), trials)[0].parts[-1]
    assert said == Paragraph("Readings are missing in 1 trial: no answer: timeout.")
    blind = making.measurement(making.A).model_copy(update={"watch": (), "status_seconds": None})
    section, machine = sections(making.plan(blocks=1), [blind])
    assert isinstance(section.parts[-1], Table)
    assert [row[0] for row in machine.parts[1].rows if row[1] != NONE] == [
        "server, cores busy",
        "generator, cores busy",
    ]


def test_what_could_not_be_read_of_an_endpoint_is_a_dash() -> None:
    trials = [making.measurement(A), making.unseen(making.measurement(B, position=1, sequence=1))]
    _, machine = sections(making.plan(blocks=1), trials)
    rows = rows_of(machine)
    assert rows["server, cores busy"] == ("0.800", NONE)
    assert rows["server RSS, MB"] == ("500", NONE)
    assert rows["generator, cores busy"] == ("0.200", "0.200")


def test_means_of_the_machine_weigh_a_sample_by_its_time() -> None:
    made = making.measurement(making.A, window_s=10, warmup_s=0)
    late = {"at_s": 2.5, "length_s": 5.0, "disk_flushes_per_s": 250.0, "watch_cpu": 0.1}
    watch = (made.watch[0].model_copy(update=late), *made.watch[5:])
    plan = making.plan(systems=(making.A,), blocks=1)
    spent, machine = sections(plan, [making.changed(made, watch=watch)])
    assert rows_of(machine)["disk flushes/s"] == ("150.0",)
    assert "took 0.053 cores" in spent.parts[-1].text


def test_a_run_without_sound_trials_has_neither() -> None:
    for section in sections(making.plan(), [making.measurement(failure="died")]):
        assert section.parts == ()


# Flushes behind each commit: only where every event writes, with the promise beside them.


def table(trials, plan):
    section = flushes(plan, attempts(trials, judge(trials, plan)))
    tables = [part for part in section.parts if isinstance(part, Table)]
    return tables[0] if tables else None


def test_deeds_stand_beside_promises():
    trials = [
        making.measurement(A),
        making.measurement(
            B,
            settings={"innodb_flush_log_at_trx_commit": "2"},
            status={"Innodb_os_log_fsyncs": 10.0},
        ),
    ]
    found = table(trials, making.plan())
    cell = "oltp_read_write, 8 threads"
    assert found.rows == (
        (cell, A, "yes", "0.125", "0.400", "0.050"),
        (cell, B, "no", "0.125", "0.001", "0.050"),
    )


def test_flushes_counted_from_a_late_reading_on_are_per_commit_since_then():
    made = making.measurement(A, status={"Innodb_os_log_fsyncs": 2_000.0})
    late = made.server.model_copy(update={"status_at_s": (7.0, 7.0, 12.0, 12.0)})
    assert table([making.changed(made, server=late)], making.plan()).rows[0][4] == "0.400"


def test_an_unknown_count_is_a_dash_and_reads_need_no_flush():
    trials = [making.measurement(A, status={"Innodb_os_log_fsyncs": float("nan")})]
    assert table(trials, making.plan()).rows[0][4] == NONE
    trials = [making.measurement(A, workload="oltp_read_only")]
    assert table(trials, making.plan(workloads=("oltp_read_only",))) is None


def test_functions_that_differ_stand_in_a_table_and_what_was_sampled_above() -> None:
    below, above = profile({"spin": 50.0, "read": 20.0}), profile({"spin": 80.0, "read": 20.0})
    made = run(making.plan(blocks=3), sampled_trials(below, above))
    sampled, table = costs.functions(made.judgement, ()).parts
    assert isinstance(sampled, Paragraph)
    assert "perf sampled the servers' stacks" in sampled.text
    assert "Sampling used 5 % as much CPU as the servers." in sampled.text
    assert isinstance(table, Table)
    (row,) = table.rows
    assert row[:3] == ("spin", "50.00", "80.00")
    assert row[3].startswith("+30.00 [+")
    assert row[4:] == ("100 %", "execute ← handle_query")


def test_equal_functions_are_counted() -> None:
    same = profile({"spin": 50.0, "read": 20.0})
    made = run(making.plan(blocks=3), sampled_trials(same, same))
    _, told = costs.functions(made.judgement, ()).parts
    assert isinstance(told, Paragraph)
    assert told.text.endswith("none of 2 functions surely differs.")
    bare = run(making.plan(blocks=3), making.pairs((0.9,) * 3))
    assert costs.functions(bare.judgement, ()).parts == ()
