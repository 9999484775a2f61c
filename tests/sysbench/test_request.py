"""Command lines as people publish them, and the engine's specs they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.sysbench.options.values import Refusal
from dbdyno.sysbench.request import General, Pace
from support.sysbench import options

LOGIN = {
    **{"endpoint": {"host": "db", "port": 3306}, "user": "sbtest", "password": ""},
    **{"database": "sbtest"},
}
SPECIAL = {"name": "special", "iterations": 12, "percent": 1, "result": 75}


def spec_of(sysbench, engine, line):
    status = sysbench(line)
    assert status == 0, sysbench.stdout + sysbench.stderr
    return engine.specs[-1]


def test_the_defaults_are_those_of_sysbench(sysbench, engine):
    spec = spec_of(sysbench, engine, "oltp_read_write --mysql-host=db run")
    seed = spec.pop("seed")
    assert 0 <= seed < 2**63
    assert spec == {
        **LOGIN,
        "connections": 1,
        "window_s": 10,
        "events": 0,
        "interval_s": 60,
        "tell_begin": True,
        "drain_s": 0,
        "seeding": "streams",
        "prepared": True,
        "workload": {
            "name": "oltp_read_write",
            "options": {
                "auto_inc": True,
                "create_secondary": True,
                "delete_inserts": 1,
                "distinct_ranges": 1,
                "index_updates": 1,
                "mysql_storage_engine": "innodb",
                "non_index_updates": 1,
                "order_ranges": 1,
                "point_selects": 10,
                "range_selects": True,
                "range_size": 100,
                "secondary": False,
                "simple_ranges": 1,
                "skip_trx": False,
                "sum_ranges": 1,
                "table_size": 10000,
                "tables": 1,
            },
        },
        "distribution": SPECIAL,
        "ignore_errors": [1213, 1020, 1205],
        "percentiles": [95],
    }


PUBLISHED = {
    # A blog about MySQL 5.7 and 8.0: options in any order, hyphens for underscores.
    "oltp_read_write --threads=16 --events=0 --time=300 --mysql-user=sysbench"
    " --mysql-password=password --mysql-port=3306 --mysql-host=127.0.0.1 --tables=10"
    " --table-size=1000000 --range_size=100 --db-ps-mode=disable --report-interval=1 run": {
        "connections": 16,
        "window_s": 300,
        "user": "sysbench",
        "password": "password",
        "prepared": False,
    },
    "--db-driver=mysql --mysql-socket=/tmp/s.sock --mysql-db=sbt oltp_read_only"
    " --rand-type=uniform --skip-trx=on --range-selects=off --percentile=99 run": {
        "endpoint": {"socket": "/tmp/s.sock"},
        "database": "sbt",
        "distribution": {"name": "uniform"},
        "percentiles": [99],
    },
    "oltp_point_select --mysql-ignore-errors=all --rand-type=pareto --rand-seed=42"
    " --histogram=off --rate=0 --mysql-ssl=off --forced-shutdown=off run": {
        "ignore_errors": "all",
        "distribution": {"name": "pareto", "h": 0.2},
        "seed": 42,
        "seeding": "sysbench",
    },
    "oltp_read_only --rand-spec-iter=3 --rand-spec-pct=2 --rand-spec-res=50 run": {
        "distribution": {"name": "special", "iterations": 3, "percent": 2, "result": 50},
    },
    "oltp_read_only --rand-seed=-1 run": {"seed": 2**32 - 1},
    "oltp_read_only --rand-seed=0 run": {"seeding": "streams"},
    "oltp_write_only --mysql-ignore-errors=1062,1213 --rand-type=zipfian"
    " --rand-zipfian-exp=0.99 --percentile=0 --threads=4 --threads=8 run": {
        "ignore_errors": [1062, 1213],
        "distribution": {"name": "zipfian", "exponent": 0.99},
        "percentiles": [],
        "connections": 8,
    },
}


@pytest.mark.parametrize("line", PUBLISHED)
def test_published_command_lines(sysbench, engine, line):
    spec = spec_of(sysbench, engine, line)
    expected = PUBLISHED[line]
    assert {name: spec[name] for name in expected} == expected


def test_options_of_the_test_reach_the_engine_as_numbers_and_flags(sysbench, engine):
    line = "oltp_read_write --table_size=1e6 --tables=0x10 --skip-trx --secondary=1 run"
    options = spec_of(sysbench, engine, line)["workload"]["options"]
    assert (options["table_size"], options["tables"]) == (1_000_000, 16)
    assert (options["skip_trx"], options["secondary"]) == (True, True)


def test_random_selects_have_options_of_their_own(sysbench, engine):
    options = spec_of(sysbench, engine, "select_random_points run")["workload"]["options"]
    assert (options["random_points"], options["table_size"]) == (10, 10000)
    assert "delta" not in options
    line = "select_random_ranges --number-of-ranges=3 --delta=7 run"
    options = spec_of(sysbench, engine, line)["workload"]["options"]
    assert (options["number_of_ranges"], options["delta"]) == (3, 7)
    assert sysbench("oltp_read_only --delta=7 run") == 1
    assert sysbench.stderr.startswith("invalid option: --delta=7\n")


def test_bulk_insert_has_a_table_for_each_connection(sysbench, engine):
    cleanup = {**LOGIN, "tables": 3}
    line = "bulk_insert --mysql-host=db --threads=3 --tables=9 --table-size=7 "
    assert spec_of(sysbench, engine, line + "cleanup") == cleanup
    assert spec_of(sysbench, engine, line + "prepare") == {
        **cleanup,
        "layout": "bulk_insert",
        "table_size": 0,
        "create_secondary": False,
        "seed": 1,
        "threads": 1,
    }
    assert spec_of(sysbench, engine, line + "run")["workload"]["name"] == "bulk_insert"


def test_a_prepare_has_the_tables_options(sysbench, engine):
    line = (
        "oltp_read_write --mysql-host=db --auto-inc=off --secondary --create_secondary=off"
        " --mysql-storage-engine=myisam --tables=3 --table-size=7 --threads=2 --rand-seed=9 prepare"
    )
    assert spec_of(sysbench, engine, line) == {
        **LOGIN,
        "tables": 3,
        "table_size": 7,
        "distribution": SPECIAL,
        "seed": 1,
        "threads": 2,
        "auto_inc": False,
        "secondary": True,
        "create_secondary": False,
        "engine": "myisam",
    }


def test_the_password_comes_from_the_environment_unless_typed(sysbench, engine, monkeypatch):
    monkeypatch.setenv("MYSQL_PWD", "from the environment")
    assert spec_of(sysbench, engine, "oltp_read_only run")["password"] == "from the environment"
    for typed in ("typed", ""):
        spec = spec_of(sysbench, engine, f"oltp_read_only --mysql-password={typed} run")
        assert spec["password"] == typed
        assert "typed" not in sysbench.stdout


# Rates and pauses: what is accepted, and what the engine gets.


def pace(**typed):
    return Pace.of(options(**typed))


@pytest.mark.parametrize(
    ("typed", "spec"),
    [
        ({}, {}),
        ({"rate": "0", "think_time": "0"}, {}),
        ({"rate": "50"}, {"rate_per_s": 50, "arrival": "poisson"}),
        ({"rate": "50", "arrival": "uniform"}, {"rate_per_s": 50, "arrival": "uniform"}),
        ({"think_time": "5"}, {"think_time_ms": [5.0, 5.0]}),
        ({"think_time": "0-2.5"}, {"think_time_ms": [0.0, 2.5]}),
    ],
)
def test_a_pace_is_a_rate_a_pause_or_none(typed, spec):
    assert (pace(**typed).spec(), pace(**typed).is_set()) == (spec, spec != {})


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"rate": "-5"}, "Invalid value for --rate: -5. It must be 0 or more."),
        ({"rate": "x"}, "Invalid value for the 'rate' option: 'x'"),
        ({"rate": "5", "arrival": "zip"}, "Invalid value for --arrival: 'zip'."),
        ({"arrival": "uniform"}, "give --rate=N with it"),
        ({"think_time": "9-5"}, "the lesser first"),
        ({"think_time": "-5"}, "Invalid value for --think-time: '-5'"),
        ({"think_time": "5ms"}, "Invalid value for --think-time: '5ms'"),
    ],
)
def test_what_makes_no_sense_is_refused(typed, said):
    with pytest.raises(Refusal) as refused:
        pace(**typed)
    assert said in refused.value.lines[0]


@given(st.text(alphabet="0123456789.-e ", max_size=9))
def test_any_pause_is_in_order_or_refused(text):
    try:
        pause_ms, said = pace(think_time=text).think_time_ms, ""
    except Refusal as refusal:
        pause_ms, said = (1.0, 0.0), refusal.lines[0]
    assert 0 <= pause_ms[0] <= pause_ms[1] or "--think-time" in said


# General options as numbers in their ranges; each mistake's words are in test_entry.


def general(**typed):
    return General.of(options(**typed))


@pytest.mark.parametrize(
    ("typed", "time", "seconds"),
    [
        ("off", "10", None),
        ("OFF", "10", None),
        (None, "10", 0.5),
        ("", "10", 0.5),
        ("20%", "10", 2.0),
        ("3", "10", 3),
        ("0", "10", 0),
        ("3", "0", None),
    ],
)
def test_a_forced_shutdown_is_seconds_or_a_share_of_the_time(typed, time, seconds):
    assert general(forced_shutdown=typed, time=time).forced_shutdown_s == seconds


@pytest.mark.parametrize("text", ["abc", "-3", "3x", "5%%", "%"])
def test_a_forced_shutdown_that_is_none_is_refused(text):
    with pytest.raises(Refusal) as refused:
        general(forced_shutdown=text)
    assert refused.value.lines == (f"FATAL: Invalid value for --forced-shutdown: '{text}'",)


def test_a_warm_up_and_a_forced_shutdown_are_in_the_spec_only_where_asked_for():
    assert {"warmup_s", "rate_per_s", "tell_records"}.isdisjoint(general().spec())
    assert general().spec()["drain_s"] == 0
    asked = general(warmup_time="3", forced_shutdown="0", rate="9").spec()
    assert (asked["warmup_s"], asked["drain_s"], asked["rate_per_s"]) == (3, 0.001, 9)


@given(st.text(max_size=6))
def test_threads_are_at_least_one_or_refused(text):
    try:
        threads, said = general(threads=text).threads, ""
    except Refusal as refusal:
        threads, said = 0, refusal.lines[0]
    assert threads >= 1 or "threads" in said
