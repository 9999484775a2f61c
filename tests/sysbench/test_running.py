"""Whole runs against a fake engine: what is printed, to the blank, and where."""

import os
import signal
import time
from pathlib import Path

from dbdyno import __version__

GOLDEN = Path(__file__).parent.parent / "golden"


def interrupt(stop):
    os.kill(os.getpid(), signal.SIGTERM)
    deadline = time.monotonic() + 20
    while not stop.is_set() and time.monotonic() < deadline:
        time.sleep(0.01)


def golden(name):
    return (GOLDEN / name).read_text().replace("VERSION", __version__)


def test_a_whole_run_prints_what_sysbench_prints(sysbench):
    line = "oltp_read_write --threads=2 --time=2 --report-interval=1 --rand-seed=7 run"
    assert sysbench(line) == 0
    assert sysbench.stdout == golden("sysbench_run.txt")
    assert sysbench.stderr == ""


def test_without_percentile_and_report_interval(sysbench):
    line = "oltp_read_write --threads=2 --time=2 --percentile=0 --validate --rand-seed=7 run"
    assert sysbench(line) == 0
    assert sysbench.stdout == golden("sysbench_run_bare.txt")


def test_an_interval_cut_short_has_no_line(sysbench, engine):
    engine.intervals[1]["end_s"] = 1.5
    assert sysbench("oltp_read_only --time=2 --report-interval=1 run") == 0
    assert sysbench.stdout.count(" thds: ") == 1


def test_a_statement_that_is_never_prepared_fails_as_a_query(sysbench, engine):
    engine.failure = {"code": 1062, "sqlstate": "23000", "message": "Dup", "statement": "inserts"}
    for test, call in (
        ("bulk_insert", "mysql_drv_query()"),
        ("oltp_insert", "mysql_drv_query()"),
        ("oltp_read_write", "mysql_stmt_execute()"),
    ):
        assert sysbench(f"{test} run") == 1
        assert f"FATAL: {call} returned error 1062 (Dup)" in sysbench.stdout


def test_verbosity_zero_prints_nothing(sysbench):
    assert sysbench("oltp_read_write --verbosity=0 --report-interval=1 run") == 0
    assert sysbench.stdout == ""


def test_an_endless_run_is_warned_of(sysbench):
    sysbench("oltp_read_write --time=0 run")
    warning = "WARNING: Both event and time limits are disabled, running an endless test\n"
    assert warning in sysbench.stdout


def test_a_signal_ends_the_run_with_its_report(sysbench, engine):
    engine.before_end = interrupt
    before = signal.getsignal(signal.SIGTERM)
    assert sysbench("oltp_read_write --time=0 --events=0 run") == 128 + signal.SIGTERM
    assert "    transactions:                        9      (4.47 per sec.)" in sysbench.stdout
    assert signal.getsignal(signal.SIGTERM) == before
