"""CSV: names with units, one line for each whole interval."""

import csv
import io

import pytest


def rows(sysbench, line):
    assert sysbench(line) == 0
    return list(csv.DictReader(io.StringIO(sysbench.stdout)))


def test_a_line_is_an_interval_line_with_more(sysbench, engine):
    engine.intervals[0] |= {"backlog": 3, "in_flight": 2, "arrivals": 7}
    engine.intervals[0]["silence_ns_max"] = 2_500_000
    line = "oltp_read_write --threads=2 --time=2 --percentile=50,99.9 --output=csv run"
    first, second = rows(sysbench, line)
    assert first == {
        "time_s": "1",
        "interval_s": "1.000000",
        "threads": "2",
        "transactions_per_s": "4.000",
        "queries_per_s": "80.000",
        "reads_per_s": "56.000",
        "writes_per_s": "16.000",
        "others_per_s": "8.000",
        "errors_per_s": "1.000",
        "reconnects_per_s": "0.000",
        "restarts_per_s": "1.000",
        "due_per_s": "7.000",
        "backlog": "3",
        "in_flight": "2",
        "silence_ms_max": "2.500",
        "latency_ms_min": "1.000000",
        "latency_ms_mean": "2.500000",
        "latency_ms_max": "4.000000",
        "latency_ms_p50": first["latency_ms_p50"],
        "latency_ms_p99.9": "4.000000",
    }
    assert float(first["latency_ms_p50"]) == pytest.approx(2, rel=1e-3)
    assert second["time_s"] == "2"
    assert engine.specs[0]["tell_records"] is True


def test_a_run_that_fails_leaves_the_lines_it_had(sysbench, engine):
    engine.failure = {"code": 1062, "sqlstate": "23000", "message": "Dup", "statement": "x"}
    assert sysbench("oltp_read_write --output=csv run") == 1
    assert sysbench.stdout.count("\n") == 3
    assert "FATAL: `thread_run' function failed: " in sysbench.stderr
