"""The ledger keeps what was noted first, for every run, and lets nobody improve it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dbdyno.store.store import Store
from support import making
from support.made_controls import outcome


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as opened:
        yield opened


def new_run(store: Store) -> str:
    return store.create_run(making.plan(), "dbdyno compare a b", {}, 10).run_id


def test_outcomes_of_all_runs_are_kept_and_one_can_be_left_out(store: Store) -> None:
    first, second = new_run(store), new_run(store)
    same, planted = outcome(), outcome(0.97, 0.99, kind="planted", word="worse")
    store.note_controls(first, [same, planted])
    store.note_controls(second, [same])
    assert store.controls() == [same, planted, same]
    assert store.controls(except_run=first) == [same]


def test_a_run_that_is_told_again_adds_and_changes_nothing(store: Store) -> None:
    run = new_run(store)
    store.note_controls(run, [outcome(word="worse")])
    store.note_controls(run, [outcome(), outcome(0.97, 0.99, kind="planted")])
    words = [(one.kind, one.word) for one in store.controls()]
    assert words == [("same", "worse"), ("planted", "equivalent")]


def test_an_outcome_without_an_interval_is_not_noted(store: Store) -> None:
    run = new_run(store)
    store.note_controls(run, [outcome().model_copy(update={"low": None, "high": None})])
    assert store.controls() == []


@pytest.mark.parametrize("statement", ["DELETE FROM controls", "UPDATE controls SET word = 'x'"])
def test_sqlite_itself_refuses_to_falsify_it(store: Store, statement: str) -> None:
    store.note_controls(new_run(store), [outcome()])
    with (
        closing(sqlite3.connect(store.path)) as other,
        pytest.raises(sqlite3.DatabaseError, match="never"),
    ):
        other.execute(statement)


def test_a_store_of_an_older_dbdyno_gets_a_ledger(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        run = new_run(store)
        path = store.path
    with closing(sqlite3.connect(path)) as other:
        other.executescript("DROP TRIGGER controls_stay; DROP TABLE controls;")
    with Store.open(tmp_path) as store:
        store.note_controls(run, [outcome()])
        assert len(store.controls()) == 1
