"""A store's file is made when it is missing, and left alone when it is not ours."""

import multiprocessing
import sqlite3

import pytest

from dbdyno.errors import StoreError
from dbdyno.store import database
from dbdyno.store.database import APPLICATION_ID, VERSION, open_file
from dbdyno.store.store import FILE_NAME, Store


def test_a_new_file_is_ours_and_writes_through(tmp_path):
    connection = open_file(tmp_path / "s")
    pragmas = ("application_id", "user_version", "journal_mode", "synchronous", "foreign_keys")
    told = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    connection.close()
    assert told == [APPLICATION_ID, VERSION, "wal", 2, 1]


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


def test_a_newer_store_is_refused(tmp_path):
    with Store.open(tmp_path) as store:
        path = store.path
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(StoreError, match="newer dbdyno"):
        Store.open(tmp_path)


def test_a_file_that_is_a_folder_is_told(tmp_path):
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(StoreError, match="unable to open") as caught:
        Store.open(tmp_path)
    assert "readable" in caught.value.hint


def open_and_close(folder, ready, answers):
    ready.wait(30)
    try:
        Store.open(folder).close()
        answers.put("opened")
    except StoreError as error:
        answers.put(str(error))


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
    def slow(connection):
        monkeypatch.setattr(database, "_write_ahead", lambda _: None)
        open_file(tmp_path / "s").close()  # the other lab, between our look and our making

    monkeypatch.setattr(database, "_write_ahead", slow)
    connection = open_file(tmp_path / "s")
    assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    connection.close()
