"""The engine's record becomes intervals and facts, whole where it is whole."""

from __future__ import annotations

import pytest

from dbdyno._engine import Histogram
from dbdyno.errors import CellError, LoadError
from dbdyno.experiment.engine.record import (
    describe,
    died,
    engine_facts,
    engine_facts_unknown,
    intervals_from_messages,
    intervals_of,
    refused,
)
from dbdyno.measurement.parts import Phase
from support.world import histogram

INTERVAL = {
    "phase": "measured",
    "start_s": 1.0,
    "end_s": 2.0,
    "events": 100,
    "reads": 1400,
    "writes": 400,
    "others": 200,
    "errors": {"1213": 2},
    "restarts": 2,
    "reconnects": 0,
    "arrivals": 101,
    "backlog": 3,
    "in_flight": 8,
    "silence_ns_max": 7,
    "bytes_received": 10,
    "bytes_sent": 5,
    "latency_ns_sum": 1000,
    "latency_ns_min": 5,
    "latency_ns_max": 20,
}
RECORD = {
    "engine_version": "0.1.0",
    "reactor": "io_uring",
    "threads": 2,
    "distribution": {"name": "uniform"},
    "prepared": True,
    "measured": {"cpu_s": 1.5, "cpu_share_max": 0.4},
}


def test_counts_and_histograms_are_taken_over():
    (interval,) = intervals_of(
        {"intervals": [{**INTERVAL, "histograms": {"event": histogram(100, 80_000_000)}}]}
    )
    assert interval.model_dump(mode="json") == INTERVAL
    assert Histogram.decode(interval.histograms["event"]).count() == 100


def test_what_a_newer_engine_adds_is_ignored():
    (interval,) = intervals_of({"intervals": [{**INTERVAL, "news": 1}]})
    assert interval.events == 100


def test_what_an_older_engine_did_not_tell_is_nothing():
    newer = {"arrivals", "backlog", "in_flight", "silence_ns_max"}
    (interval,) = intervals_of({"intervals": [{k: INTERVAL[k] for k in INTERVAL.keys() - newer}]})
    assert (interval.arrivals, interval.silence_ns_max) == (0, 0)


def test_interval_messages_stand_in_for_a_missing_record():
    message = {
        "at_s": 3.0,
        "seconds": 1.0,
        "phase": "measured",
        "events": 9,
        "reads": 1,
        "writes": 2,
    }
    message |= {"others": 3, "errors": 4, "reconnects": 5, "queries": 6}
    (interval,) = intervals_from_messages([message])
    assert (interval.start_s, interval.end_s, interval.phase) == (2.0, 3.0, Phase.MEASURED)
    assert (interval.events, interval.queries, interval.errors) == (9, 6, {"unknown": 4})
    assert interval.histograms == {}


def test_facts_name_the_distribution_with_its_parameters():
    assert engine_facts(RECORD).distribution == "uniform"
    pareto = {**RECORD, "distribution": {"name": "pareto", "h": 0.2}}
    assert engine_facts(pareto).distribution == "pareto (h=0.2)"
    assert engine_facts(RECORD).cpu_share_max == 0.4
    assert engine_facts_unknown("uniform", True).reactor == "unknown"


# Each refusal says what was wanted, what the server said, and what to try.


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (1045, "password"),
        (1049, "database"),
        (1114, "free space"),
        (1021, "free space"),
        (1146, "load the dataset"),
        (1040, "after_start"),
        (1461, "settings"),
        (2003, "listening"),
        (4711, "error log"),
        (None, "error log"),
    ],
)
def test_codes_have_their_hints(code, word):
    error = refused({"kind": "refused", "code": code, "message": "m"}, "run", "mysql:5.7.22")
    assert word in error.hint
    assert error.message == "mysql:5.7.22: the engine could not drive the load"


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("Connection refused (os error 111)", "running"),
        ("No space left on device", "free space"),
        ("Too many open files", "ulimit"),
        ("the server has said nothing for 60 s", "a pooler before it may wait"),
        ('prepared statement "s1" does not exist', "--no-prepared"),
    ],
)
def test_messages_without_a_code_have_hints_too(message, word):
    assert word in refused({"kind": "refused", "message": message}, "prepare", "").hint


def test_the_stage_says_what_was_wanted():
    error = refused({"kind": "refused", "message": "m", "stage": "connect"}, "run", "")
    assert error.wanted == "to log in"
    assert (
        refused({"kind": "refused", "message": "m"}, "prepare", "").wanted == "to load the dataset"
    )


def test_nonsense_in_a_spec_points_to_the_plan():
    error = refused({"kind": "invalid", "message": "no option `tabels`"}, "run", "b")
    assert error.found == "no option `tabels`"
    assert "plan" in error.hint


def test_an_error_of_several_lines_is_reported_on_one():
    found = {"stage": "spec", "message": "one is low: set it\ntwo is low: set it"}
    error = refused({"kind": "refused", **found}, "run", "mysql:5.7.22")
    assert error.found == "one is low: set it; two is low: set it"


def test_the_limit_of_open_files_is_this_machines():
    message = "9 connections need 73 open files, and this process may have 64"
    error = refused({"kind": "refused", "stage": "limits", "message": message}, "run", "")
    assert error.found == message
    assert "open files" in error.hint


def test_the_servers_words_come_with_code_and_statement():
    message = {
        "code": 1114,
        "sqlstate": "HY000",
        "message": "is full",
        "statement": "INSERT INTO t",
    }
    assert describe(message) == "error 1114 (HY000): is full in INSERT INTO t"
    whole = {"message": 'h:1: wanted the answer to "INSERT", found', "statement": "INSERT"}
    assert describe(whole) == whole["message"]
    assert describe({"message": "gone"}) == "gone"
    assert describe({}) == "no reason given"


def test_a_death_is_reported_with_how_and_the_last_lines():
    error = died("it was killed by SIGKILL", "run", "a", ["one", "two"])
    assert error.found == "it was killed by SIGKILL; its last words: one | two"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"kind": "invalid", "message": "no such option"}, CellError),
        ({"kind": "refused", "stage": "limits", "code": None, "message": "open files"}, CellError),
        ({"kind": "refused", "stage": "connect", "code": 1040, "message": "full"}, CellError),
        ({"kind": "refused", "stage": "connect", "sqlstate": "53300", "message": "x"}, CellError),
        ({"kind": "refused", "message": "no more connections allowed (max)"}, CellError),
        ({"kind": "refused", "stage": "connect", "code": 1045, "message": "no"}, LoadError),
    ],
)
def test_what_only_this_load_is_too_much_for_is_the_cells_error(error, kind):
    assert type(refused(error, "run", "a")) is kind
