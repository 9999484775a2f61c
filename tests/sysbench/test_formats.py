"""One valid document, whatever became of the run."""

import json

import pytest

from support.made_intervals import encoded, interval, recorded

FAILURE = {
    "stage": "run",
    "code": 1062,
    "sqlstate": "23000",
    "message": "Dup",
    "statement": "inserts",
}


def document(sysbench, line, status=0):
    assert sysbench(f"oltp_read_write {line} --output=json run") == status
    return json.loads(sysbench.stdout)


def test_a_run_with_all_it_saw(sysbench, engine):
    engine.intervals[0]["histograms"] |= {
        "begin": encoded(recorded([1, 2])),
        "timer_lag": encoded(recorded([1])),
    }
    engine.intervals.insert(0, interval(0.0, 0.0, [900], "warmup"))
    engine.more = {"unserved": 5, "unfinished": 1}
    told = document(sysbench, "--threads=2 --time=2 --percentile=50,99.9 --rand-seed=7")
    assert (told["test"], told["seed"], told["exit_status"]) == ("oltp_read_write", 7, 0)
    assert (told["stopped_by"], told["failure"]) == ("time", None)
    assert told["environment"]["reactor"] == "io_uring"
    assert told["environment"]["server_version"] == "8.0.31"
    totals = told["totals"]
    assert (totals["events"], totals["queries"], totals["seconds"]) == (9, 180, 2.0125)
    assert (totals["errors_by_code"], totals["restarts"]) == ({"1213": 2}, 3)
    assert (totals["unserved"], totals["unfinished"]) == (5, 1)
    assert totals["latency_ms"]["min"] == 1
    assert totals["latency_ms"]["mean"] == pytest.approx(29 / 9)
    assert totals["latency_ms"]["percentiles"]["99.9"] == 10
    assert totals["timer_lag_ms"]["max"] == pytest.approx(1, rel=1e-3)
    assert totals["fairness"]["events_stddev"] == 0.5
    assert told["statements"]["begin"]["count"] == 2
    assert told["statements"]["begin"]["latency_ms"]["mean"] == pytest.approx(1.5, rel=1e-3)
    assert [(one["phase"], one["from_s"], one["to_s"]) for one in told["intervals"]] == [
        ("measured", 0.0, 1.0),
        ("measured", 1.0, 2.0),
        ("drain", 2.0, 2.0125),
    ]
    assert sum(one["events"] for one in told["intervals"]) == totals["events"]


def test_options_are_as_they_hold_and_typed(sysbench):
    options = document(sysbench, "--threads=2 --table-size=7 --report-interval=0.5")["options"]
    assert (options["threads"], options["table_size"], options["report-interval"]) == (2, 7, 0.5)
    assert (options["skip_trx"], options["percentile"]) == (False, ["95"])
    assert options["mysql-ignore-errors"] == ["1213", "1020", "1205"]


def test_no_password_is_in_it(sysbench, monkeypatch):
    monkeypatch.setenv("MYSQL_PWD", "of-the-environment")
    document(sysbench, "--time=2")
    assert "of-the-environment" not in sysbench.stdout
    told = document(sysbench, "--mysql-password=typed-secret")
    assert "typed-secret" not in sysbench.stdout + sysbench.stderr
    assert not [name for name in told["options"] if "password" in name]


def test_a_run_that_fails_half_way_tells_what_it_saw(sysbench, engine):
    engine.failure = FAILURE
    told = document(sysbench, "--time=2", status=1)
    assert (told["failure"]["code"], told["exit_status"]) == (1062, 1)
    assert (told["totals"]["events"], len(told["intervals"])) == (9, 3)
    assert "FATAL: " in sysbench.stderr


def test_a_run_that_never_began_tells_why(sysbench, engine):
    engine.raises = RuntimeError(json.dumps({**FAILURE, "stage": "connect", "code": 1045}))
    told = document(sysbench, "--time=2", status=1)
    assert (told["failure"]["code"], told["begun_at"], told["intervals"]) == (1045, None, [])
    assert told["totals"]["events"] == 0


def test_a_forced_shutdown_is_in_the_exit_status(sysbench, engine):
    engine.more = {"unfinished": 1}
    assert document(sysbench, "--forced-shutdown", status=2)["exit_status"] == 2
