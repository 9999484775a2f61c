"""A store's file is made when it is missing, and left alone when it is not ours."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dbdyno import __version__
from dbdyno.errors import StoreError
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.store import database
from dbdyno.store.database import APPLICATION_ID, FORMAT, open_file
from dbdyno.store.store import FILE_NAME, Store
from support import making


def test_a_new_file_is_ours_and_writes_through(tmp_path):
    connection = open_file(tmp_path / "s")
    pragmas = ("application_id", "user_version", "journal_mode", "synchronous", "foreign_keys")
    values = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    connection.close()
    assert values == [APPLICATION_ID, FORMAT, "wal", 2, 1]


def test_a_foreign_file_is_refused_and_left_alone(tmp_path):
    (tmp_path / FILE_NAME).write_text("this is no database, whatever its name says" * 50)
    with pytest.raises(StoreError, match="not a database") as caught:
        Store.open(tmp_path)
    assert caught.value.hint


def test_another_programs_database_is_refused(tmp_path):
    other = sqlite3.connect(tmp_path / FILE_NAME)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(StoreError, match="not a dbdyno store"):
        Store.open(tmp_path)


@pytest.mark.parametrize(
    ("edits", "writer"),
    [
        ("PRAGMA user_version = 99; UPDATE meta SET dbdyno_version = '7.1'", "dbdyno 7.1"),
        ("PRAGMA user_version = 2; DROP TABLE meta", "an unreleased dbdyno"),
        ("PRAGMA user_version = 2; DELETE FROM meta", "an unreleased dbdyno"),
    ],
)
def test_a_store_of_another_format_is_refused_with_its_writer_and_left_alone(
    tmp_path, edits, writer
):
    with Store.open(tmp_path) as store:
        path = store.path
    with closing(sqlite3.connect(path)) as other:
        other.executescript(edits)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=f"was written by {writer} in another format") as caught:
        Store.open(tmp_path)
    assert caught.value.wanted == f"format {FORMAT}, that of dbdyno {__version__}"
    assert path.read_bytes() == before


def test_a_file_that_is_a_folder_is_reported(tmp_path):
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(StoreError, match="unable to open") as caught:
        Store.open(tmp_path)
    assert "readable" in caught.value.hint


def open_and_close(folder, ready, answers):
    ready.wait(30)
    try:
        Store.open(folder).close()
    except StoreError as error:
        answers.put(str(error))
    else:
        answers.put("opened")


def test_labs_that_make_one_store_at_the_same_moment_all_get_it(tmp_path):
    spawning = multiprocessing.get_context("spawn")
    ready, answers = spawning.Barrier(4), spawning.Queue()
    labs = [
        spawning.Process(target=open_and_close, args=(tmp_path, ready, answers)) for _ in range(4)
    ]
    for lab in labs:
        lab.start()
    assert [answers.get(timeout=60) for _ in labs] == ["opened"] * 4
    for lab in labs:
        lab.join()


def test_tables_that_another_lab_made_meanwhile_are_taken(tmp_path, monkeypatch):
    class Slow(database.StoreConnection):
        def execute(self, sql, *values):
            if "journal_mode" in sql:
                monkeypatch.undo()
                open_file(tmp_path / "s").close()  # the other lab, between our look and our making
            return super().execute(sql, *values)

    monkeypatch.setattr(database, "StoreConnection", Slow)
    connection = open_file(tmp_path / "s")
    assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    connection.close()


def test_who_waits_for_another_writer_hears_a_signal(store):
    run = store.create_run(making.plan(), "dbdyno compare a b", {}, 10)
    ctrl_c = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        ctrl_c.start()
        with pytest.raises(KeyboardInterrupt):
            store.finish(run.run_id)
        assert 0.4 < time.monotonic() - began < database.WAIT_S / 2
    ctrl_c.join()
    store.finish(run.run_id)
    assert store.run(run.run_id).finished_at is not None


# SQLite itself refuses what would falsify a store, whoever asks.


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
    for attempt in ((3, None), (2, "stored already")):
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            connection.execute(TRIAL, attempt)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    plan = making.plan(blocks=1)
    with Store.open(tmp_path) as store:
        run = store.create_run(plan, "dbdyno compare a b", {}, 2)
        for trial in trials_of(plan, run.run_id):
            store.append(making.measurement(trial.system).model_copy(update={"trial": trial}))
        yield store
