"""The store's SQLite file: opened, created if missing, refused if foreign.

Schema and chain of digests are below; `reading` gives the values their meaning.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from dbdyno import __version__
from dbdyno.budget import CPU_S, limit, too_much
from dbdyno.errors import StoreError
from dbdyno.files import refuse_shared
from dbdyno.plan.plan import ChosenDesign
from dbdyno.store.reading import read_elsewhere, readable

WAIT_S: Final = 20.0
"""How long a writer waits for another lab's transaction in the same workspace."""
LOOK_S: Final = 0.2
"""How long SQLite waits by itself."""
VALUE_BYTES_MAX: Final = 2**28
STEPS: Final = 100_000
"""Of SQLite's machine between two looks at the time."""


def open_file(path: Path, *, make: bool = True) -> StoreConnection:
    """A connection to the store; StoreError if foreign or damaged.

    Where the file or its folder cannot be written, it is for reading only.

    Args:
        make: make a missing or empty store; else StoreError.
    """
    for name in (path.name, *(f"{path.name}-{kind}" for kind in ("wal", "shm", "journal"))):
        _refuse_others(path.with_name(name))
    connection = StoreConnection(path, _mode(path, make=make))
    try:
        with connection.errors():
            _set_up(connection, path, make=make)
    except BaseException:
        connection.close()
        raise
    return connection


def _mode(path: Path, *, make: bool) -> str:
    """SQLite's mode for the file: on a read-only medium it must make no file beside it."""
    if not path.exists() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return "mode=rwc" if make else "mode=rw"
    log = path.with_name(f"{path.name}-wal")
    return "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"


def _refuse_others(path: Path) -> None:
    """Raise StoreError for a file that others can change, or a link, which SQLite would follow."""
    if path.is_symlink():
        raise StoreError(
            f"{path} is a link, through which nothing is written",
            wanted="a file",
            found=f"a link to {path.readlink()}",
            hint="name the folder with the store itself by --workspace, or remove the link",
        )
    with suppress(FileNotFoundError):
        refuse_shared(path, "the store")


class StoreConnection(sqlite3.Connection):
    """Waits for a lock in short steps, as no signal is heard while SQLite waits.

    The file may be a stranger's, so the CPU time of a statement has a limit.
    """

    def __init__(self, path: Path, mode: str) -> None:
        self._path, self._ends_s = path, math.inf
        place = f"{path.absolute().as_uri()}?{mode}"
        with self.errors():
            super().__init__(place, uri=True, timeout=LOOK_S, isolation_level=None)
        self.text_factory = partial(str, encoding="utf-8", errors="replace")
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
        self.set_progress_handler(self._is_over, STEPS)

    def _is_over(self) -> bool:
        """Ends a statement after its time; also the place where SQLite hears signals."""
        return time.thread_time() > self._ends_s

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise StoreError with a remedy for SQLite's errors."""
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                if self._is_over():
                    raise too_much(f"the store {self._path}", CPU_S, StoreError) from error
                raise KeyboardInterrupt from error  # a signal's exception ended in `_is_over`
            raise StoreError(
                f"the store {self._path} cannot be used",
                found=str(error),
                hint=_hint(str(error)),
            ) from error

    def execute(
        self,
        sql: str,
        parameters: Any = (),  # noqa: ANN401 - as sqlite3 has it
        /,
    ) -> sqlite3.Cursor:
        self._ends_s = time.thread_time() + limit(CPU_S)
        return _unlocked(partial(super().execute, sql, parameters))

    def executescript(self, sql_script: str, /) -> sqlite3.Cursor:
        return _unlocked(partial(super().executescript, sql_script))


def _unlocked(work: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
    """Result of a statement, after waiting for other labs' transactions."""
    ends = time.monotonic() + WAIT_S
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            is_locked = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_locked or time.monotonic() > ends:
                raise
        time.sleep(0.02)


def _hint(text: str) -> str:
    hints = {
        "not a database": "it is another program's file or damaged; move it away, keep a copy",
        "malformed": "it is damaged; `sqlite3 FILE .recover` saves what can be read",
        "locked": "another program holds it; close that and try again",
        "full": "free space on that filesystem, then resume the run: what was stored is intact",
        "readonly": "make the file and its folder writable for you",
        "unable to open": "make the folder readable and writable for you",
        "too big": f"no value of a store has more than {VALUE_BYTES_MAX >> 20} MiB",
        "FOREIGN KEY": "create the run in this store first",
    }
    return next((hint for part, hint in hints.items() if part in text), "check the file's folder")


def _set_up(connection: sqlite3.Connection, path: Path, *, make: bool) -> None:
    """Create the tables in an empty file if `make`; refuse another program's file."""
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN")  # one moment's facts, while another lab may make the tables
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    stored = connection.execute("PRAGMA user_version").fetchone()[0]
    tables, foreign = connection.execute(
        "SELECT count(*), total(type = 'view' OR sql LIKE 'CREATE VIRTUAL%') FROM sqlite_master"
    ).fetchone()
    connection.execute("COMMIT")
    if foreign or (application != APPLICATION_ID and (tables or application)):
        raise StoreError(
            f"{path} is not a dbdyno store",
            wanted="a store written by dbdyno, or no file",
            found="an SQLite file of another program",
            hint="choose another folder with --workspace",
        )
    if tables and stored != FORMAT:
        raise StoreError(
            f"{path} was written by {_writer(connection)} in another format",
            wanted=f"format {FORMAT}, that of dbdyno {__version__}",
            found=f"format {stored}",
            hint="read it with the version that wrote it, or give another --workspace",
        )
    if not tables and not make:
        raise StoreError(f"the store {path} is empty", hint="begin a run: dbdyno compare --help")
    connection.execute("PRAGMA journal_mode = WAL")
    if not tables:  # another lab may have made them meanwhile: each is made if it does not exist
        connection.executescript(
            f"BEGIN IMMEDIATE; {SCHEMA} {DESIGNS} {CHAIN}"
            f" PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT}; COMMIT;"
        )


def _writer(connection: sqlite3.Connection) -> str:
    """Version of the file's dbdyno; the oldest, which were never released, did not note it."""
    try:
        (version,) = connection.execute("SELECT dbdyno_version FROM meta").fetchone()
    except (sqlite3.OperationalError, TypeError):
        return "an unreleased dbdyno"
    return f"dbdyno {version}"


# SQLite enforces that a stored trial cannot be changed or deleted (triggers), cannot be complete
# twice (a partial unique index), and belongs to a run (a foreign key). The columns beside the JSON
# are for queries at the `sqlite3` prompt.

APPLICATION_ID: Final = 0x6462_6479  # "dbdy": marks our files
FORMAT: Final = 1
"""Raised when a stored value changes its meaning or goes; format 1 is read by every later version.

A new optional field does not raise it (docs/reference/compatibility.md). The next is 3: versions
before the first release wrote 2.
"""


def _kept(table: str, subject: str) -> str:
    """Triggers against deleting or changing rows."""
    return f"""\
CREATE TRIGGER IF NOT EXISTS {table}_stay BEFORE DELETE ON {table}
    BEGIN SELECT RAISE(ABORT, '{subject} is never deleted'); END;
CREATE TRIGGER IF NOT EXISTS {table}_stay_as_they_are BEFORE UPDATE ON {table}
    BEGIN SELECT RAISE(ABORT, '{subject} is never changed'); END;"""


SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS meta (dbdyno_version TEXT NOT NULL);
INSERT INTO meta SELECT '{__version__}' WHERE NOT EXISTS (SELECT 1 FROM meta);
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
{_kept("measurements", "a stored measurement")}
{_kept("histograms", "a stored histogram")}
CREATE TRIGGER IF NOT EXISTS runs_stay BEFORE DELETE ON runs
    BEGIN SELECT RAISE(ABORT, 'a stored run is never deleted'); END;
CREATE TRIGGER IF NOT EXISTS runs_stay_as_they_are
    BEFORE UPDATE OF run_id, created_at, plan_hash, plan, command, dbdyno_version, environment,
    trials_planned ON runs
    BEGIN SELECT RAISE(ABORT, 'of a stored run only finished_at changes'); END;
"""


# What a run with a time chose after its first blocks, and a row more for each time added to it.

DESIGNS: Final = f"""
CREATE TABLE IF NOT EXISTS designs (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    additions INTEGER NOT NULL,
    noted_at TEXT NOT NULL,
    design TEXT NOT NULL,
    PRIMARY KEY (run_id, additions)
);
{_kept("designs", "a chosen design")}
"""


# The chain: SHA-256 of a run as it was asked for, then of each measurement with all its histograms,
# of each design that it chose and of its end, with the link before it. What is changed, lost or
# slipped in by hand is found when it is read; whoever makes the chain anew as well is not.

CHAIN: Final = f"""
CREATE TABLE IF NOT EXISTS chain (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    place INTEGER NOT NULL,
    measurement_id INTEGER REFERENCES measurements (id),
    digest TEXT NOT NULL,
    PRIMARY KEY (run_id, place)
);
{_kept("chain", "a link of a chain")}
"""
OF_RUN: Final = "created_at, plan_hash, plan, command, dbdyno_version, environment, trials_planned"
OF_MEASUREMENT: Final = (
    "id, trial_key, attempt, sequence, block, system, cell, started_at, failure, measurement"
)
END: Final = "end"
"""The link of a run's end; in the first link of a run, as runs of older versions have no end."""
GONE: Final = "its chain of digests is gone"


def begin_chain(connection: sqlite3.Connection, run_id: str) -> None:
    """Store the first link of a new run."""
    row = (run_id, 0, None, _digest("", [*_request(connection, run_id), END]))
    connection.execute("INSERT INTO chain VALUES (?, ?, ?, ?)", row)


def add_link(connection: sqlite3.Connection, run_id: str, measurement_id: int) -> None:
    """Store the link of a measurement."""
    _add_link(connection, run_id, _measurement(connection, measurement_id), measurement_id)


def _add_link(
    connection: sqlite3.Connection,
    run_id: str,
    values: Iterable[object],
    measurement_id: int | None = None,
) -> None:
    last = connection.execute(
        "SELECT place, digest FROM chain WHERE run_id = ? ORDER BY place DESC LIMIT 1", (run_id,)
    ).fetchone()
    if last is None:
        raise _changed(run_id, GONE)
    row = (run_id, last[0] + 1, measurement_id, _digest(last[1], values))
    connection.execute("INSERT INTO chain VALUES (?, ?, ?, ?)", row)


def finish(connection: sqlite3.Connection, run_id: str) -> None:
    """Store the time of a run's end and its link, unless nothing was stored since the last end."""
    before, last = ["", "", *(digest for _, digest in _links(connection, run_id))][-2:]
    if last == _digest(before, [END]):
        return
    now = datetime.now().astimezone().isoformat("T", "seconds")
    connection.execute("UPDATE runs SET finished_at = ? WHERE run_id = ?", (now, run_id))
    _add_link(connection, run_id, [END])


def check_chain(connection: sqlite3.Connection, run_id: str) -> str:
    """Last digest of a run, after checking each row; StoreError naming an altered trial."""
    links = _links(connection, run_id)
    if not links:
        raise _changed(run_id, GONE)
    request = _request(connection, run_id)
    has_ends = links[0] == (None, _digest("", [*request, END]))
    if not has_ends and links[0] != (None, _digest("", request)):
        raise _changed(run_id, "its plan, command or environment")
    stored = connection.execute(
        "SELECT id, trial_key FROM measurements WHERE run_id = ? ORDER BY id", (run_id,)
    ).fetchall()
    names = dict(stored)
    linked = [identity for identity, _ in links[1:] if identity is not None]
    if [identity for identity, _ in stored] != linked:
        other = next((f"trial {key}" for at, key in stored if at not in linked), "a trial is gone")
        raise _changed(run_id, other)
    designs, is_ended = iter(_designs(connection, run_id)), False
    for (_, before), (identity, digest) in pairwise(links):
        if identity is not None:
            if _digest(before, _measurement(connection, identity)) != digest:
                raise _changed(run_id, f"trial {names[identity]}")
        elif _digest(before, [END]) == digest:
            is_ended = True
        elif _digest(before, next(designs, ())) == digest:
            is_ended = False
        else:
            raise _changed(run_id, "the design that it chose")
    if next(designs, None) is not None:
        raise _changed(run_id, "the design that it chose")
    if has_ends and is_ended != _is_finished(connection, run_id):
        raise _changed(run_id, "its end, or what was stored last")
    return str(links[-1][1])


def _links(connection: sqlite3.Connection, run_id: str) -> list[tuple[int | None, str]]:
    """The measurement, if any, and the digest of each link, in order."""
    return connection.execute(
        "SELECT measurement_id, digest FROM chain WHERE run_id = ? ORDER BY place", (run_id,)
    ).fetchall()


def _changed(run_id: str, difference: str) -> StoreError:
    return StoreError(
        f"run {run_id} is not as it was stored",
        wanted="what was measured, unchanged",
        found=f"changed: {difference}",
        hint="take the workspace's file, or a bundle of the run, from a copy",
    )


def _request(connection: sqlite3.Connection, run_id: str) -> list[object]:
    """Values of a run as it was asked for."""
    row = connection.execute(f"SELECT {OF_RUN} FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    return [run_id, *row]


def _is_finished(connection: sqlite3.Connection, run_id: str) -> bool:
    (time,) = connection.execute(
        "SELECT finished_at FROM runs WHERE run_id = ?", (run_id,)
    ).fetchone()
    return time is not None


def _measurement(connection: sqlite3.Connection, measurement_id: int) -> list[object]:
    """Values of a measurement: every column and every histogram."""
    row = connection.execute(
        f"SELECT {OF_MEASUREMENT} FROM measurements WHERE id = ?", (measurement_id,)
    ).fetchone()
    histograms = connection.execute(
        "SELECT interval, name, hdr_v2 FROM histograms WHERE measurement_id = ?"
        " ORDER BY interval, name",
        (measurement_id,),
    )
    return [*row[1:], *(value for one in histograms for value in one)]


def _designs(connection: sqlite3.Connection, run_id: str) -> list[tuple[object, ...]]:
    """Designs chosen by a run, in order."""
    return connection.execute(
        "SELECT additions, noted_at, design FROM designs WHERE run_id = ? ORDER BY additions",
        (run_id,),
    ).fetchall()


def _digest(before: str, values: Iterable[object]) -> str:
    """SHA-256 of the link before and of the values, each with its kind and its length."""
    digest = sha256(before.encode())
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode()
        digest.update(f"{type(value).__name__}:{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


# Taking a run out is what the triggers are there against, so they are made anew in the same
# transaction.

SIZES: Final = """
SELECT run_id, sum(bytes) FROM (
    SELECT run_id, length(measurement) AS bytes FROM measurements
    UNION ALL SELECT run_id, length(hdr_v2) FROM histograms
    JOIN measurements ON measurements.id = measurement_id
) GROUP BY run_id
"""
PARTS: Final = {
    "histograms": "measurement_id IN (SELECT id FROM measurements WHERE run_id = ?)",
    "chain": "run_id = ?",
    "measurements": "run_id = ?",
    "designs": "run_id = ?",
    "runs": "run_id = ?",
}
"""The tables that hold a run, in the order in which its rows may go."""


def remove(connection: sqlite3.Connection, run_id: str) -> None:
    """Delete a run's rows in a transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        stays = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name LIKE '%_stay'"
        ).fetchall()
        for trigger, _ in stays:
            connection.execute(f"DROP TRIGGER {trigger}")
        for part, wanted in PARTS.items():
            connection.execute(f"DELETE FROM {part} WHERE {wanted}", (run_id,))
        for _, sql in stays:
            connection.execute(sql)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    with suppress(sqlite3.OperationalError):  # it takes room and quiet: without, room is used again
        connection.execute("VACUUM")


def add_design(connection: sqlite3.Connection, run_id: str, design: ChosenDesign) -> None:
    """Store a run's chosen design and reopen the run; SQLite refuses a second choice."""
    now = datetime.now().astimezone().isoformat("T", "seconds")
    row = (run_id, design.additions, now, design.model_dump_json())
    connection.execute("INSERT INTO designs VALUES (?, ?, ?, ?)", row)
    _add_link(connection, run_id, _designs(connection, run_id)[-1])
    connection.execute("UPDATE runs SET finished_at = NULL WHERE run_id = ?", (run_id,))


def design_of(connection: sqlite3.Connection, run_id: str) -> ChosenDesign | None:
    """A run's chosen design, if any, with the last added time."""
    row = connection.execute(
        "SELECT design, dbdyno_version FROM designs JOIN runs USING (run_id) WHERE run_id = ?"
        " ORDER BY additions DESC LIMIT 1",
        (run_id,),
    ).fetchone()
    if row is None:
        return None
    with readable(f"the design of run {run_id} cannot be read", read_elsewhere(row[1])):
        return ChosenDesign.model_validate_json(row[0])
