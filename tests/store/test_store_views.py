"""The store's file answers SQL about every second, without dbdyno and while it is open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars
import pytest

from dbdyno.experiment.order import trials_of
from dbdyno.measurement.parts import Interval, WatchSample
from dbdyno.store.database import VIEWS, make_views
from dbdyno.store.store import Store
from support import making


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    plan = making.plan(blocks=1)
    with Store.open(tmp_path) as store:
        run = store.create_run(plan, "dbdyno compare a b", {}, 2)
        for trial in trials_of(plan, run.run_id):
            store.append(making.measurement(trial.system).model_copy(update={"trial": trial}))
        yield store


def test_seconds_are_rows_with_every_field_as_a_column(store: Store) -> None:
    with closing(sqlite3.connect(store.path)) as other:
        watch = other.execute("SELECT * FROM watch_seconds")
        columns = {column[0] for column in watch.description}
        assert WatchSample.model_fields.keys() - {"disks", "networks"} <= columns
        assert len(watch.fetchall()) == 2 * 12
        intervals = other.execute("SELECT * FROM interval_seconds")
        columns = {column[0] for column in intervals.description}
        assert Interval.model_fields.keys() - {"histograms", "errors"} <= columns
        total = other.execute(
            "SELECT system, sum(events) FROM interval_seconds WHERE phase = 'measured'"
            " GROUP BY system ORDER BY system"
        )
        assert total.fetchall() == [(making.A, 10_000), (making.B, 10_000)]


def test_counters_are_rows_with_their_name_and_moment(store: Store) -> None:
    with closing(sqlite3.connect(store.path)) as other:
        rows = other.execute(
            "SELECT at_s, value FROM status_seconds WHERE name = 'Questions' AND system = ?"
            " ORDER BY at_s",
            (making.A,),
        ).fetchall()
    assert rows[:3] == [(0.5, 0.0), (1.5, 20_000.0), (2.5, 40_000.0)]


def test_polars_reads_the_store_itself(store: Store) -> None:
    with closing(sqlite3.connect(store.path)) as other:
        frame = polars.read_database("SELECT host_cpu_user FROM watch_seconds", other)
    assert frame.height == 24
    assert frame["host_cpu_user"].dtype == polars.Float64


def test_a_trial_that_was_not_watched_has_no_rows(tmp_path: Path) -> None:
    plan = making.plan(blocks=1)
    with Store.open(tmp_path) as store:
        run = store.create_run(plan, "dbdyno compare a b", {}, 2)
        trial = trials_of(plan, run.run_id)[0]
        blind = {"trial": trial, "watch": (), "status_seconds": None, "intervals": ()}
        store.append(making.measurement().model_copy(update=blind))
        with closing(sqlite3.connect(store.path)) as other:
            for view in VIEWS:
                assert other.execute(f"SELECT * FROM {view}").fetchall() == []


def test_an_older_dbdynos_views_are_made_anew_and_its_own_are_left_alone(store: Store) -> None:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("DROP VIEW watch_seconds")
        other.execute("CREATE VIEW watch_seconds AS SELECT 1 AS at_s")
        other.execute("CREATE VIEW mine AS SELECT 2 AS two")
        make_views(other)
        make_views(other)
        assert len(other.execute("SELECT * FROM watch_seconds").fetchall()) == 24
        assert other.execute("SELECT two FROM mine").fetchall() == [(2,)]


def test_controls_can_be_left_out(tmp_path: Path) -> None:
    plan = making.plan(controls=True)
    with Store.open(tmp_path) as store:
        run = store.create_run(plan, "dbdyno compare a b", {}, 20)
        for trial in trials_of(plan, run.run_id):
            store.append(making.measurement().model_copy(update={"trial": trial}))
        with closing(sqlite3.connect(store.path)) as other:
            rows = other.execute("SELECT control, count(*) FROM watch_seconds GROUP BY control")
            assert rows.fetchall() == [("", 120), ("planted", 60), ("same", 60)]
