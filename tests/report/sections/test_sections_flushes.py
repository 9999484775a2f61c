"""Flushes behind each commit: only where every event writes, with the promise beside them."""

from __future__ import annotations

from dbdyno.judge.judgement import judge
from dbdyno.report.numbers import NONE
from dbdyno.report.parts import Table
from dbdyno.report.rows import attempts
from dbdyno.report.sections.costs import flushes
from support import making
from support.making import A, B


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


def test_an_unknown_count_is_a_dash():
    trials = [making.measurement(A, status={"Innodb_os_log_fsyncs": float("nan")})]
    assert table(trials, making.plan()).rows[0][4] == NONE


def test_reads_need_no_flush():
    trials = [making.measurement(A, workload="oltp_read_only")]
    assert table(trials, making.plan(workloads=("oltp_read_only",))) is None
