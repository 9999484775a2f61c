"""The store's tables: what SQLite itself enforces, so that no code can forget it.

A trial that was stored cannot be changed or deleted (triggers), cannot be complete twice (a partial
unique index), and cannot belong to no run (a foreign key). Columns beside the JSON repeat what a
person asks for at the `sqlite3` prompt.
"""

from __future__ import annotations

from typing import Final

APPLICATION_ID: Final = 0x6462_6479  # "dbdy": tells our file from another program's
VERSION: Final = 1

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS runs (
    run_id TEXT PRIMARY KEY,
    created_at TEXT NOT NULL,
    finished_at TEXT,
    plan_hash TEXT NOT NULL,
    plan TEXT NOT NULL,
    command TEXT NOT NULL,
    dbdyno_version TEXT NOT NULL,
    environment TEXT NOT NULL,
    trials_planned INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS measurements (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    trial_key TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    block INTEGER NOT NULL,
    system TEXT NOT NULL,
    cell TEXT NOT NULL,
    started_at TEXT NOT NULL,
    failure TEXT,
    measurement TEXT NOT NULL,
    UNIQUE (run_id, trial_key, attempt)
);
CREATE UNIQUE INDEX IF NOT EXISTS complete_once
    ON measurements (run_id, trial_key) WHERE failure IS NULL;
CREATE TABLE IF NOT EXISTS histograms (
    measurement_id INTEGER NOT NULL REFERENCES measurements (id),
    interval INTEGER NOT NULL,
    name TEXT NOT NULL,
    hdr_v2 BLOB NOT NULL,
    PRIMARY KEY (measurement_id, interval, name)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS measurements_stay BEFORE DELETE ON measurements
    BEGIN SELECT RAISE(ABORT, 'a stored measurement is never deleted'); END;
CREATE TRIGGER IF NOT EXISTS measurements_stay_as_they_are BEFORE UPDATE ON measurements
    BEGIN SELECT RAISE(ABORT, 'a stored measurement is never changed'); END;
CREATE TRIGGER IF NOT EXISTS histograms_stay BEFORE DELETE ON histograms
    BEGIN SELECT RAISE(ABORT, 'a stored histogram is never deleted'); END;
CREATE TRIGGER IF NOT EXISTS histograms_stay_as_they_are BEFORE UPDATE ON histograms
    BEGIN SELECT RAISE(ABORT, 'a stored histogram is never changed'); END;
CREATE TRIGGER IF NOT EXISTS runs_stay BEFORE DELETE ON runs
    BEGIN SELECT RAISE(ABORT, 'a stored run is never deleted'); END;
CREATE TRIGGER IF NOT EXISTS runs_stay_as_they_are
    BEFORE UPDATE OF run_id, created_at, plan_hash, plan, command, dbdyno_version, environment,
    trials_planned ON runs
    BEGIN SELECT RAISE(ABORT, 'of a stored run only finished_at changes'); END;
"""
