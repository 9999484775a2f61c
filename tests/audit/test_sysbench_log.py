"""Logs of every generation of sysbench are read as they were printed; nothing is guessed."""

from __future__ import annotations

import pytest

from dbdyno.audit.sysbench_log import runs_in
from dbdyno.errors import UsageError
from support.published_logs import FORK, V04, V05, V1


def test_a_log_of_1_0_is_read_to_its_last_number():
    (run,) = runs_in(V1, "a.log")
    assert (run.version, run.threads, run.first_line) == ("1.0.20", 16, 4)
    assert (run.has_report, run.events, run.seconds) == (True, 1011, "2.0012")
    assert (run.tps, run.qps) == ("505.07", "10101.47")
    assert run.counts == {"read": 14154, "write": 4044, "other": 2022, "total": 20220}
    assert run.latency_ms == {
        "min": "10.11",
        "avg": "31.62",
        "max": "90.30",
        "95": "45.79",
        "sum": "31967.82",
    }
    assert run.intervals == [(1.0, "512.33"), (2.0, "498.01")]


@pytest.mark.parametrize(
    ("text", "version", "tps", "qps", "p95", "avg"),
    [
        (V05, "0.5", "125.42", "2508.32", "78.11", "63.70"),
        (V04, "0.4.12", "166.63", "3499.19", "36.49", "24.00"),
    ],
)
def test_older_reports_have_their_queries_in_two_lines(text, version, tps, qps, p95, avg):
    (run,) = runs_in(text, "old.log")
    assert (run.version, run.tps, run.qps) == (version, tps, qps)
    assert (run.latency_ms["95"], run.latency_ms["avg"]) == (p95, avg)
    assert run.has_report


def test_the_interval_line_of_0_5_and_of_a_fork():
    (old,) = runs_in(V05, "old.log")
    assert old.intervals == [(10.0, "125.30")]
    (run,) = runs_in(f"Number of threads: 2\n{FORK}\n", "fork.log")
    assert run.intervals == [(3.0, "9.00")]
    assert not run.has_report


def test_several_runs_of_several_versions_stand_in_one_file():
    text = "echo begins\n" + V05 + "sleep 10\n" + V1.replace("\n", "\r\n") + V04
    runs = runs_in(text, "all.log")
    assert [(run.version, run.threads) for run in runs] == [
        ("0.5", 8),
        ("1.0.20", 16),
        ("0.4.12", 4),
    ]
    assert [run.tps for run in runs] == ["125.42", "505.07", "166.63"]


def test_half_a_log_has_its_lines_and_no_report():
    (run,) = runs_in(V1[: V1.index("SQL statistics")], "half.log")
    assert len(run.intervals) == 2
    assert not run.has_report
    assert (run.tps, run.events) == ("", None)


def test_a_line_that_is_cut_off_is_refused_with_its_number():
    broken = V1.replace("tps: 498.01 qps: 9961.20", "tp")
    with pytest.raises(UsageError) as refused:
        runs_in(broken, "a.log")
    assert "line 14 of a.log cannot be read" in str(refused.value)
