"""Each refusal says what was wanted, what the server said, and what to try."""

import pytest

from dbdyno.errors import CellError, LoadError
from dbdyno.experiment.engine.record import describe, died, refused


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (1045, "password"),
        (1040, "max_connections"),
        (1049, "database"),
        (1114, "free space"),
        (1021, "free space"),
        (1146, "load the dataset"),
        (1461, "max_prepared_stmt_count"),
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


def test_limits_are_told_on_one_line_with_what_to_set():
    found = {"stage": "limits", "code": 1461, "message": "one is low: set it\ntwo is low: set it"}
    error = refused({"kind": "refused", **found}, "run", "mysql:5.7.22")
    assert error.wanted == "to open all connections within the limits"
    assert error.found == "error 1461: one is low: set it; two is low: set it"
    assert "settings" in error.hint


def test_the_limit_of_open_files_is_this_machines():
    told = "9 connections need 73 open files, and this process may have 64"
    error = refused({"kind": "refused", "stage": "limits", "message": told}, "run", "")
    assert error.found == told
    assert "open files" in error.hint


def test_the_servers_words_come_with_code_and_statement():
    told = {"code": 1114, "sqlstate": "HY000", "message": "is full", "statement": "INSERT INTO t"}
    assert describe(told) == "error 1114 (HY000): is full in INSERT INTO t"
    assert describe({"message": "gone"}) == "gone"
    assert describe({}) == "no reason given"


def test_a_death_tells_how_and_the_last_lines():
    error = died("it was killed by SIGKILL", "run", "a", ["one", "two"])
    assert error.found == "it was killed by SIGKILL; its last words: one | two"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"kind": "invalid", "message": "no such option"}, CellError),
        ({"kind": "refused", "stage": "limits", "code": None, "message": "open files"}, CellError),
        ({"kind": "refused", "stage": "connect", "code": 1040, "message": "full"}, CellError),
        ({"kind": "refused", "stage": "connect", "code": 1045, "message": "no"}, LoadError),
    ],
)
def test_what_only_this_load_is_too_much_for_is_the_cells_error(error, kind):
    assert type(refused(error, "run", "a")) is kind
