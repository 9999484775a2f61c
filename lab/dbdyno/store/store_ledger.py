"""The workspace's ledger: what each run's controls came to, one row a run and kind, never changed.

Over many runs it shows how often the lab's verdicts err, which no single run can. A row is written
when its run is complete; telling that run again, by whatever dbdyno, adds nothing, so that a result
cannot be improved by judging once more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from dbdyno.measurement.outcome import ControlOutcome

TABLE: Final = """
CREATE TABLE IF NOT EXISTS controls (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    kind TEXT NOT NULL,
    noted_at TEXT NOT NULL,
    cell TEXT NOT NULL,
    ratio REAL,
    low REAL,
    high REAL,
    blocks INTEGER NOT NULL,
    word TEXT NOT NULL,
    truth REAL NOT NULL,
    outcome TEXT NOT NULL,
    PRIMARY KEY (run_id, kind)
);
CREATE TRIGGER IF NOT EXISTS controls_stay BEFORE DELETE ON controls
    BEGIN SELECT RAISE(ABORT, 'an outcome of a control is never deleted'); END;
CREATE TRIGGER IF NOT EXISTS controls_stay_as_they_are BEFORE UPDATE ON controls
    BEGIN SELECT RAISE(ABORT, 'an outcome of a control is never changed'); END;
"""


def make_ledger(connection: sqlite3.Connection) -> None:
    """Makes the table where an older dbdyno made the store."""
    found = "SELECT 1 FROM sqlite_master WHERE name = 'controls_stay_as_they_are'"
    if connection.execute(found).fetchone() is None:
        connection.executescript(f"BEGIN IMMEDIATE; {TABLE} COMMIT;")


def note(connection: sqlite3.Connection, run_id: str, outcomes: Iterable[ControlOutcome]) -> None:
    """Adds those outcomes of a run that say something; one that is there already stays as it is."""
    now = datetime.now().astimezone().isoformat("T", "seconds")
    for outcome in outcomes:
        if outcome.counts:
            connection.execute(
                "INSERT OR IGNORE INTO controls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(run_id, outcome.kind, now, outcome.cell.key),
                    *(outcome.ratio, outcome.low, outcome.high, outcome.blocks),
                    *(outcome.word, outcome.truth, outcome.model_dump_json()),
                ),
            )


def noted(connection: sqlite3.Connection, except_run: str) -> list[ControlOutcome]:
    """The outcomes of all runs but one, in the order in which they were noted."""
    rows = connection.execute(
        "SELECT outcome FROM controls WHERE run_id <> ? ORDER BY rowid", (except_run,)
    )
    return [ControlOutcome.model_validate_json(text) for (text,) in rows]
