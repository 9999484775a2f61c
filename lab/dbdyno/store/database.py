"""The store's file: opened, created where it is missing, refused where it is not ours.

All that SQLite and pydantic raise about the file becomes a StoreError here, in one place.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from dbdyno.errors import StoreError
from dbdyno.store.store_ledger import make_ledger
from dbdyno.store.store_schema import APPLICATION_ID, SCHEMA, VERSION
from dbdyno.store.store_views import make_views

WAIT_S: Final = 20.0
"""How long a writer waits for another lab's transaction in the same workspace."""


def open_file(path: Path) -> sqlite3.Connection:
    """A connection to the store `path`, its tables made if the file is new.

    Raises:
        StoreError: the file is no store, a newer dbdyno's, damaged or not writable.
    """
    with told(path):
        connection = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None)
        try:
            _set_up(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turns what SQLite and pydantic raise into a StoreError that says what to try."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(
            f"the store {path} cannot be used",
            found=str(error),
            hint=_hint(str(error)),
        ) from error
    except ValidationError as error:
        raise StoreError(
            f"the store {path} holds a value that this dbdyno cannot read",
            found=str(error.errors()[0]["msg"]),
            hint="read it with the dbdyno that wrote it",
        ) from error


def _hint(text: str) -> str:
    hints = {
        "not a database": "it is another program's file or damaged; move it away, keep a copy",
        "malformed": "it is damaged; `sqlite3 FILE .recover` saves what can be read",
        "locked": "another program holds it; close that and try again",
        "full": "free space on that filesystem, then resume the run: what was stored is intact",
        "readonly": "make the file and its folder writable for you",
        "unable to open": "make the folder readable and writable for you",
        "FOREIGN KEY": "create the run in this store first",
    }
    return next((hint for part, hint in hints.items() if part in text), "check the file's folder")


def _set_up(connection: sqlite3.Connection, path: Path) -> None:
    """Creates the tables in an empty file; refuses a file that is not ours."""
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN")  # one moment's facts, while another lab may make the tables
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    connection.execute("COMMIT")
    if application != APPLICATION_ID and (tables or application):
        raise StoreError(
            f"{path} is not a dbdyno store",
            wanted="a store written by dbdyno, or no file",
            found="an SQLite file of another program",
            hint="choose another folder with --workspace",
        )
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer dbdyno",
            wanted=f"schema version {VERSION} or below",
            found=f"schema version {version}",
            hint="upgrade dbdyno; this version does not touch the file",
        )
    _write_ahead(connection)
    if not tables:  # another lab may have made them meanwhile: each is made if it does not exist
        connection.executescript(
            f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id = {APPLICATION_ID};"
            f" PRAGMA user_version = {VERSION}; COMMIT;"
        )
    make_ledger(connection)
    make_views(connection)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switches to WAL; where another lab does so too, SQLite says "locked" without any wait."""
    ends = time.monotonic() + WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > ends:
                raise
        time.sleep(0.02)
