"""SQLite itself refuses what would falsify a store, whoever asks."""

import sqlite3

import pytest

from dbdyno.store.database import open_file

RUN = "INSERT INTO runs VALUES ('r', 'now', NULL, 'hash', '{}', 'command', '0', '{}', 1)"
TRIAL = """INSERT INTO measurements
    (run_id, trial_key, attempt, sequence, block, system, cell, started_at, failure, measurement)
    VALUES ('r', 'key', ?, 0, 0, 's', 'c', 'now', ?, '{}')"""


@pytest.fixture
def connection(tmp_path):
    opened = open_file(tmp_path / "s")
    opened.execute(RUN)
    opened.execute(TRIAL, (0, None))
    opened.execute("INSERT INTO histograms VALUES (1, 0, 'event', x'01')")
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM measurements",
        "UPDATE measurements SET failure = NULL",
        "DELETE FROM histograms",
        "UPDATE histograms SET hdr_v2 = x'00'",
        "DELETE FROM runs",
        "UPDATE runs SET plan = '{}'",
    ],
)
def test_what_is_stored_cannot_be_changed_or_deleted(connection, statement):
    with pytest.raises(sqlite3.IntegrityError, match="stored"):
        connection.execute(statement)
    tables = ("runs", "measurements", "histograms")
    assert all(connection.execute(f"SELECT count(*) FROM {t}").fetchone() == (1,) for t in tables)


def test_only_a_runs_end_may_be_noted(connection):
    connection.execute("UPDATE runs SET finished_at = 'later'")
    assert connection.execute("SELECT finished_at FROM runs").fetchone() == ("later",)


def test_a_trial_is_complete_once_and_may_fail_often(connection):
    connection.execute(TRIAL, (1, "it died"))
    connection.execute(TRIAL, (2, "it died again"))
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        connection.execute(TRIAL, (3, None))


def test_an_attempt_is_stored_once(connection):
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        connection.execute(TRIAL, (0, "again"))
