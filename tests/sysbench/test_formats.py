"""Results for machines: JSON whatever became of the run, CSV, HdrHistogram's log."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from tests.sysbench.test_commands import FAILURE

from dbdyno.audit.imported import imported
from dbdyno.audit.page.columns import Mapping
from dbdyno.errors import UsageError
from dbdyno.sysbench.formats import log
from support.sysbench import MS, encoded, interval, recorded


def document(sysbench, line, status=0):
    assert sysbench(f"oltp_read_write {line} --output=json run") == status
    return json.loads(sysbench.stdout)


@pytest.mark.parametrize("kind", ["json", "csv", "hlog"])
def test_an_import_knows_its_own_formats(sysbench, engine, tmp_path, kind):
    assert sysbench(f"oltp_read_write --threads=2 --time=2 --output={kind} run") == 0
    path = tmp_path / f"oltp_read_write_2.{kind}"
    path.write_text(sysbench.stdout)
    with pytest.raises(UsageError, match="was written by dbdyno itself"):
        imported([path], "x", Mapping())


def test_a_run_with_all_it_saw(sysbench, engine):
    engine.intervals[0]["histograms"] |= {
        "begin": encoded(recorded([1, 2])),
        "timer_lag": encoded(recorded([1])),
    }
    engine.intervals.insert(0, interval(0.0, 0.0, [900], "warmup"))
    engine.more = {"unserved": 5, "unfinished": 1}
    found = document(sysbench, "--threads=2 --time=2 --percentile=50,99.9 --rand-seed=7")
    assert (found["test"], found["seed"], found["exit_status"]) == ("oltp_read_write", 7, 0)
    assert (found["stopped_by"], found["failure"]) == ("time", None)
    assert found["environment"]["reactor"] == "io_uring"
    assert found["environment"]["server_version"] == "8.0.31"
    totals = found["totals"]
    assert (totals["events"], totals["queries"], totals["seconds"]) == (9, 180, 2.0125)
    assert (totals["errors_by_code"], totals["restarts"]) == ({"1213": 2}, 3)
    assert (totals["unserved"], totals["unfinished"]) == (5, 1)
    assert totals["latency_ms"]["min"] == 1
    assert totals["latency_ms"]["mean"] == pytest.approx(29 / 9)
    assert totals["latency_ms"]["percentiles"]["99.9"] == 10
    assert totals["timer_lag_ms"]["max"] == pytest.approx(1, rel=1e-3)
    assert totals["fairness"]["events_stddev"] == 0.5
    assert found["statements"]["begin"]["count"] == 2
    assert found["statements"]["begin"]["latency_ms"]["mean"] == pytest.approx(1.5, rel=1e-3)
    assert [(one["phase"], one["from_s"], one["to_s"]) for one in found["intervals"]] == [
        ("measured", 0.0, 1.0),
        ("measured", 1.0, 2.0),
        ("drain", 2.0, 2.0125),
    ]
    assert sum(one["events"] for one in found["intervals"]) == totals["events"]


def test_options_are_as_they_hold_and_typed(sysbench):
    options = document(sysbench, "--threads=2 --table-size=7 --report-interval=0.5")["options"]
    assert (options["threads"], options["table_size"], options["report-interval"]) == (2, 7, 0.5)
    assert (options["skip_trx"], options["percentile"]) == (False, ["95"])
    assert options["mysql-ignore-errors"] == ["1213", "1020", "1205"]


def test_no_password_is_in_it(sysbench, monkeypatch):
    monkeypatch.setenv("MYSQL_PWD", "of-the-environment")
    document(sysbench, "--time=2")
    assert "of-the-environment" not in sysbench.stdout
    found = document(sysbench, "--mysql-password=typed-secret")
    assert "typed-secret" not in sysbench.stdout + sysbench.stderr
    assert not [name for name in found["options"] if "password" in name]


def test_a_run_that_fails_half_way_has_what_it_measured(sysbench, engine):
    engine.failure = FAILURE
    found = document(sysbench, "--time=2", status=1)
    assert (found["failure"]["code"], found["exit_status"]) == (1062, 1)
    assert (found["totals"]["events"], len(found["intervals"])) == (9, 3)
    assert "FATAL: " in sysbench.stderr


def test_a_run_that_never_began_says_why(sysbench, engine):
    engine.raises = RuntimeError({**FAILURE, "stage": "connect", "code": 1045})
    found = document(sysbench, "--time=2", status=1)
    assert (found["failure"]["code"], found["begun_at"], found["intervals"]) == (1045, None, [])
    assert found["totals"]["events"] == 0


def test_a_forced_shutdown_is_in_the_exit_status(sysbench, engine):
    engine.more = {"unfinished": 1}
    assert document(sysbench, "--forced-shutdown", status=2)["exit_status"] == 2


# CSV: names with units, one line for each whole interval.


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
    assert (second["time_s"], second["interval_s"]) == ("2", "1.000000")
    assert engine.specs[0]["tell_records"] is True


def test_a_line_may_be_about_several_recorded_steps(sysbench, engine):
    line = "oltp_read_write --report-interval=2 --report-checkpoints=1 --output=csv run"
    (whole,) = rows(sysbench, line)
    assert (whole["time_s"], whole["transactions_per_s"]) == ("2", "4.000")


def test_a_run_that_fails_leaves_the_lines_it_had(sysbench, engine):
    engine.failure = {"code": 1062, "sqlstate": "23000", "message": "Dup", "statement": "x"}
    assert sysbench("oltp_read_write --output=csv run") == 1
    assert sysbench.stdout.count("\n") == 3
    assert "FATAL: `thread_run' function failed: " in sysbench.stderr


# HdrHistogram's log, read by its own tools for Python.


def read(text, tmp_path):
    file = tmp_path / "run.hlog"
    file.write_text(text)
    reader = HistogramLogReader(str(file), HdrHistogram(1, 3_600_000_000_000, 3))
    found = []
    while (one := reader.get_next_interval_histogram()) is not None:
        found.append(one)
    reader.close()
    return found


def test_its_own_tools_read_it(tmp_path):
    text = log([interval(3.0, 4.0, [1, 2, 3, 40], "measured")], 1_700_000_000.5, 3.0)
    assert text.splitlines()[1:4] == [
        "#[Histogram log format version 1.3]",
        "#[StartTime: 1700000003.500 (seconds since epoch), 2023-11-14T22:13:23Z]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    (found,) = read(text, tmp_path)
    assert found.get_total_count() == 4
    assert found.get_value_at_percentile(100) == pytest.approx(40 * MS, rel=1e-3)
    assert found.get_start_time_stamp() == 1_700_000_003_500


def test_every_other_histogram_has_its_name_as_tag(tmp_path):
    one = interval(0.0, 1.5, [1], "measured")
    one["histograms"] = {"begin": encoded(recorded([7])), **one["histograms"]}
    text = log([one], 0.0, 0.0)
    lines = text.splitlines()[4:]
    assert lines[0].startswith("0.000,1.500,1.000,HIST")
    assert lines[1].startswith("Tag=begin,0.000,1.500,7.0")
    assert [found.get_tag() for found in read(text, tmp_path)] == [None, "begin"]


def test_a_run_writes_it_without_its_warm_up(sysbench, engine, tmp_path):
    engine.intervals.insert(0, interval(0.0, 0.5, [900], "warmup"))
    assert sysbench("oltp_read_write --output=hlog run") == 0
    found = read(sysbench.stdout, tmp_path)
    assert [one.get_total_count() for one in found] == [4, 4, 1]


def test_a_run_that_never_began_is_an_empty_log(sysbench, engine):
    engine.raises = ValueError("spec")
    assert sysbench("oltp_read_write --output=hlog run") == 1
    assert sysbench.stdout.count("\n") == 4
    assert sysbench.stderr == "FATAL: spec\n"
