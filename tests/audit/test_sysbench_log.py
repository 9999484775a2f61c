"""Logs of every generation of sysbench are read as they were printed; nothing is guessed."""

from __future__ import annotations

import pytest

from dbdyno.errors import UsageError
from support.published_logs import FORK, V04, V05, V1, runs_in


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


def test_a_report_that_is_cut_off_before_its_rates_is_a_run_without_results():
    runs = runs_in(V1 + V04[V04.index("OLTP test") : V04.index("transactions:")], "a.log")
    assert [(run.has_report, run.tps) for run in runs] == [(True, "505.07"), (False, "")]


def test_a_line_that_is_cut_off_is_refused_with_its_number():
    broken = V1.replace("tps: 498.01 qps: 9961.20", "tp")
    with pytest.raises(UsageError) as refused:
        runs_in(broken, "a.log")
    assert "line 14 of a.log cannot be read" in str(refused.value)


def test_a_report_without_its_section_on_time_has_the_same_numbers_in_its_rates():
    start, end = V1.index("General statistics"), V1.index("Latency (ms)")
    (run,) = runs_in(V1[:start] + V1[end:], "a.log")
    assert (run.has_report, run.events, run.seconds) == (True, 1011, "2.0017")


def test_a_counter_that_fell_below_zero_is_no_rate():
    """As sysbench 0.5 printed after a checkpoint."""
    wrapped = "[  11s] threads: 8, tps: 18446842801212211200.00, reads: 18446842801212035072.00\n"
    head, rest = V05.split("OLTP test statistics", 1)
    (run,) = runs_in(f"{head}{wrapped}OLTP test statistics{rest}", "a.log")
    assert run.intervals == [(10.0, "125.30")]


def test_intervals_with_a_timestamp_of_percona_are_read():
    line = "[  10s] timestamp: 1386737086, threads: 8, tps: 125.30, response time: 77.24ms (95%)\n"
    (run,) = runs_in(line, "a.log")
    assert (run.threads, run.intervals) == (8, [(10.0, "125.30")])


@pytest.mark.parametrize(
    ("before", "test"),
    [
        ("+ sysbench --threads=8 /usr/share/sysbench/oltp_insert.lua run", "oltp_insert"),
        ("$ sysbench --test=tests/db/oltp.lua --num-threads=8 run", "oltp"),
        ("docker run x sysbench sysbench oltp_delete run", "oltp_delete"),
        ("sysbench oltp_insert \\\n  --threads=8 \\\n  run", "oltp_insert"),
        ("# Read/Write, 8 threads", "oltp_read_write"),
        ("sysbench oltp_insert prepare", ""),
        ("read_only                OFF", ""),
    ],
)
def test_commands_and_headings_name_the_test_of_the_next_run(before: str, test: str):
    (run,) = runs_in(f"{before}\n{V1}", "a.log")
    assert run.command.test == test


def test_options_of_connections_and_passwords_are_of_no_work():
    command = "sysbench oltp_insert --mysql-password=x --mysql_host=db --tables=4 --threads=8 run"
    (run,) = runs_in(f"{command}\n{V1}", "a.log")
    assert run.command.options == {"--tables=4"}
    assert run.command.server == "db"


def test_lines_that_grep_took_from_reports_are_runs():
    words = ("thds:", "transactions:", "95th")
    kept = "\n".join(line for line in V1.splitlines() if any(word in line for word in words))
    runs = runs_in(f"{kept}\n{kept.replace('505.07', '404.04')}", "a.log")
    assert [(run.threads, run.tps, run.latency("95"), run.has_report) for run in runs] == [
        (16, "505.07", "45.79", True),
        (16, "404.04", "45.79", True),
    ]


def test_a_command_tells_the_threads_of_a_run_without_its_head():
    report = V1[V1.index("SQL statistics") : V1.index("Threads fairness")]
    runs = runs_in(
        f"sysbench --num-threads=24 --test=oltp run\n{report}"
        f"sysbench oltp_insert --threads=$t run\n{report}"
        f"sysbench oltp_insert --threads=32 run\n{V1}{report}",
        "a.log",
    )
    assert [run.threads for run in runs] == [24, 0, 16, 0]
