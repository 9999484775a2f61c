"""The workspace's store of runs with their plans, and of trials, each stored at its end.

It is an append-only SQLite file: a trial is a transaction, on disk before the next trial begins
(WAL, synchronous=FULL), failed trials keep their reason, and triggers refuse change and deletion.
So a run can go on after a crash, and a verdict can be made again years later.
"""

from __future__ import annotations

import json
import secrets
import shlex
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final, Self

from dbdyno import __version__
from dbdyno.errors import StoreError
from dbdyno.files import locked, make_folder, refuse_shared
from dbdyno.measurement.disturbance import BlockLoad, repeats_of
from dbdyno.measurement.measurement import NO_BLOCK, Measurement
from dbdyno.plan.plan import ChosenDesign, Plan
from dbdyno.store import database
from dbdyno.store.database import StoreConnection, open_file
from dbdyno.store.reading import StoredRun, UnreadableRun, measurement_of, run_of, text_of

FILE_NAME: Final = "dbdyno.sqlite"
FEED_NAME: Final = "live.jsonl"
"""In a run's folder: its progress, a line for each event."""
PLACES: Final = "CAST(block AS INTEGER), CAST(cell AS TEXT), CAST(trial_key AS TEXT)"
"""What `repeats_of` takes of a trial, whatever a damaged row has there."""


def lock_path(workspace: Path, name: str) -> Path:
    """The lock of a run, or of a system's files, in a workspace."""
    return workspace / "locks" / f"{name}.lock"


class Store:
    """An open store; a context manager."""

    def __init__(self, connection: StoreConnection, path: Path) -> None:
        self._connection, self.path = connection, path
        self._files = _files(path)

    @classmethod
    def open(cls, folder: Path) -> Store:
        """Opens the store of a workspace folder, and creates both where they are missing.

        Raises:
            StoreError: the folder cannot be made or others can change it, the file is no store, or
                of another format.
        """
        path = folder / FILE_NAME
        try:
            make_folder(folder)
        except OSError as error:
            raise StoreError(
                f"the workspace folder {folder} cannot be made",
                found=str(error),
                hint="choose another folder with --workspace",
            ) from error
        refuse_shared(folder, "the workspace")
        return cls(open_file(path), path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; all appended rows are on disk already."""
        self._connection.close()

    def create_run(
        self, plan: Plan, command: str, environment: Mapping[str, str], trials_planned: int
    ) -> StoredRun:
        """Store a new run under an id such as `20261121-071500-9f3a`; StoreError as `append`."""
        now = datetime.now().astimezone()
        run = StoredRun(
            run_id=f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}",
            created_at=now.isoformat("T", "seconds"),
            finished_at=None,
            plan=plan,
            command=command,
            dbdyno_version=__version__,
            environment=dict(environment),
            trials_planned=trials_planned,
        )
        self.begin(run)
        return run

    def begin(self, run: StoredRun) -> None:
        """Store another lab's run under its own id, for measuring a part of it here."""
        row = {
            "run_id": run.run_id,
            "created_at": run.created_at,
            "plan_hash": run.plan.hash(),
            "plan": text_of(run.plan),
            "command": run.command,
            "dbdyno_version": run.dbdyno_version,
            "environment": json.dumps(run.environment, sort_keys=True),
            "trials_planned": run.trials_planned,
        }
        with self._transaction() as connection:
            connection.execute(
                f"INSERT INTO runs ({', '.join(row)}) VALUES ({', '.join(':' + k for k in row)})",
                row,
            )
            database.begin_chain(connection, run.run_id)

    def run(self, run_id: str) -> StoredRun:
        """The run of an id, its plan as written; StoreError with the known ids, or its fault."""
        with self._connection.errors():
            row = self._connection.execute(
                "SELECT created_at, finished_at, plan, command, dbdyno_version, environment,"
                " trials_planned FROM runs WHERE run_id = ?",
                (run_id,),
            ).fetchone()
        if row is None:
            raise StoreError(
                f"no run {run_id} in this workspace",
                wanted=f"a run stored in {self.path.name}",
                found=", ".join(self.run_ids()) or "an empty store",
                hint="give one of the ids above, or the workspace of the run with --workspace",
            )
        return run_of(run_id, row)

    def run_ids(self) -> list[str]:
        """The ids of all runs, the newest first."""
        with self._connection.errors():
            rows = self._connection.execute("SELECT run_id FROM runs ORDER BY rowid DESC")
            return [run_id for (run_id,) in rows]

    def listed(self, part: slice = slice(None)) -> list[StoredRun | UnreadableRun]:
        """All runs or a part of them, newest first, unreadable runs too."""
        return [self._run_or_reason(run_id) for run_id in self.run_ids()[part]]

    def runs(self) -> list[StoredRun]:
        """Readable runs, newest first."""
        return [run for run in self.listed() if isinstance(run, StoredRun)]

    def _run_or_reason(self, run_id: str) -> StoredRun | UnreadableRun:
        try:
            return self.run(run_id)
        except StoreError as error:
            with self._connection.errors():
                (created_at,) = self._connection.execute(
                    "SELECT created_at FROM runs WHERE run_id = ?", (run_id,)
                ).fetchone()
            return UnreadableRun(run_id, str(created_at), error.found or error.message)

    def choose(self, run_id: str, design: ChosenDesign) -> None:
        """Store the chosen design of a run with a time, or its extension."""
        with self._transaction() as connection:
            database.add_design(connection, run_id, design)

    def design(self, run_id: str) -> ChosenDesign | None:
        """The last design that a run with a time chose; None before, StoreError if unreadable."""
        with self._connection.errors():
            return database.design_of(self._connection, run_id)

    def append(self, measurement: Measurement) -> None:
        """Store a trial's measurement in a transaction, on disk at return.

        Raises:
            StoreError: the trial is stored as complete already, its run is unknown, the value could
                not be read again, or the disk does not take it.
        """
        trial, text = measurement.trial, text_of(measurement)
        repeats = [trial.model_copy(update={"repeat": n}).key for n in range(trial.repeat + 1)]
        with self._transaction() as connection:
            stored = connection.execute(
                "SELECT trial_key, failure FROM measurements"
                f" WHERE run_id = ? AND trial_key IN ({', '.join('?' * len(repeats))})",
                (trial.run_id, *repeats),
            ).fetchall()
            if (trial.key, None) in stored and measurement.failure is None:
                raise StoreError(
                    f"trial {trial.key} of run {trial.run_id} is stored already",
                    wanted="one complete measurement of a trial",
                    found="a second one",
                    hint="begin a new run to measure it again",
                )
            cursor = connection.execute(
                "INSERT INTO measurements (run_id, trial_key, attempt, sequence, block, system,"
                " cell, started_at, failure, measurement) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    trial.run_id,
                    trial.key,
                    len(stored),
                    trial.sequence,
                    trial.block,
                    trial.system,
                    trial.cell.key,
                    measurement.started_at,
                    measurement.failure,
                    text,
                ),
            )
            connection.executemany(
                "INSERT INTO histograms VALUES (?, ?, ?, ?)",
                [
                    (cursor.lastrowid, index, name, blob)
                    for index, interval in enumerate(measurement.intervals)
                    for name, blob in interval.histograms.items()
                ],
            )
            database.add_link(connection, trial.run_id, int(cursor.lastrowid or 0))

    def measurements(self, run_id: str) -> list[Measurement]:
        """All of a run in stored order, failed attempts too; StoreError naming an altered trial."""
        self.verified(run_id)
        return self._measurements("run_id = ?", run_id)

    def last_link(self, run_id: str) -> str:
        """The last digest of a run's chain, unchecked; a stored trial or design adds another."""
        with self._connection.errors():
            row = self._connection.execute(
                "SELECT digest FROM chain WHERE run_id = ? ORDER BY place DESC LIMIT 1", (run_id,)
            ).fetchone()
        return str(row and row[0])

    def verified(self, run_id: str) -> str:
        """The digest of a run and its measurements; StoreError if altered (`check_chain`)."""
        with self._connection.errors():
            self._connection.execute("BEGIN")  # one moment's rows, while a lab may add to them
            try:
                return database.check_chain(self._connection, run_id)
            finally:
                self._connection.execute("COMMIT")

    def pilots(self, run_id: str) -> list[Measurement]:
        """The measurements of the run's pilot, in the order stored."""
        return self.block(run_id, NO_BLOCK)

    def block(self, run_id: str, block: int) -> list[Measurement]:
        """Measurements of a block of the run, with its repeats."""
        return self._measurements("run_id = ? AND block = ?", run_id, block)

    def _measurements(self, wanted: str, *values: str | int) -> list[Measurement]:
        blobs: dict[int, dict[int, dict[str, bytes]]] = {}
        with self._connection.errors():
            stored = self._connection.execute(
                "SELECT measurement_id, interval, name, hdr_v2 FROM histograms WHERE measurement_id"
                f" IN (SELECT id FROM measurements WHERE {wanted})",
                values,
            )
            for identity, interval, name, blob in stored:
                blobs.setdefault(identity, {}).setdefault(interval, {})[name] = blob
            rows = self._connection.execute(
                "SELECT id, run_id, trial_key, measurement, (SELECT dbdyno_version FROM runs"
                " WHERE runs.run_id = measurements.run_id) FROM measurements"
                f" WHERE {wanted} ORDER BY id",
                values,
            ).fetchall()
        return [
            measurement_of(run_id, version, key, text, blobs.get(identity, {}))
            for identity, run_id, key, text, version in rows
        ]

    def done(self, run_id: str, *, impossible: bool = True) -> set[str]:
        """Keys of the trials not to be run again: measured without failure.

        Repeated trials count by their last repeat only.

        Args:
            impossible: include trials stored as impossible to run.
        """
        latest = self.repeats(run_id)
        with self._connection.errors():
            rows = self._connection.execute(
                f"SELECT {PLACES} FROM measurements WHERE run_id = ?"
                " AND (failure IS NULL OR (?"
                " AND json_valid(measurement) AND json_extract(measurement, '$.impossible')))",
                (run_id, impossible),
            )
            return {row[2] for row in rows if repeats_of([row]).items() <= latest.items()}

    def repeats(self, run_id: str) -> dict[BlockLoad, int]:
        """Number of repeats of each stored place of a run."""
        with self._connection.errors():
            rows = self._connection.execute(
                f"SELECT {PLACES} FROM measurements WHERE run_id = ?", (run_id,)
            )
            return repeats_of(rows)

    def blocks_begun(self, run_id: str) -> int:
        """Number of blocks up to the last block with a stored trial."""
        with self._connection.errors():
            (last,) = self._connection.execute(
                "SELECT max(CAST(block AS INTEGER)) FROM measurements WHERE run_id = ?", (run_id,)
            ).fetchone()
        return 0 if last is None else int(last) + 1

    def finish(self, run_id: str) -> None:
        """Store the time at which no trial was left to run; later, if a resume stored more."""
        with self._transaction() as connection:
            database.finish(connection, run_id)

    def sizes(self) -> dict[str, int]:
        """Bytes of each run's measurements and histograms."""
        with self._connection.errors():
            return dict(self._connection.execute(database.SIZES).fetchall())

    def remove(self, run_id: str) -> None:
        """Takes a run out; StoreError if the store cannot be written."""
        with self._connection.errors():
            database.remove(self._connection, run_id)

    def locked(self, run_id: str) -> AbstractContextManager[None]:
        """Lock the run against other labs; StoreError if another lab works on it."""
        return locked(lock_path(self.path.parent, run_id), f"run {run_id}")

    def _exchanged(self) -> StoreError | None:
        """The error to raise if another file took the store's place; a copy takes over.

        The connection still has the old file, which nobody could open again: its rows go to a new
        folder. Its log would be taken for the new file's, so the log goes.
        """
        now, before = _files(self.path), self._files
        if now[""] == before[""]:
            return None
        store = self.path
        folder = store.parent / f"exchanged-{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        self.path = folder / FILE_NAME
        make_folder(folder)
        with self._connection.errors():
            with closing(sqlite3.connect(self.path)) as copy:
                self._connection.backup(copy)
            self._connection.close()
            self._connection = open_file(self.path)
        self._files = _files(self.path)
        for ending in ("-wal", "-shm"):
            if now[ending] is not None and now[ending] == before[ending]:
                store.with_name(f"{store.name}{ending}").unlink()
        return StoreError(
            f"the store {store} was {'exchanged' if now[''] else 'removed'} while it was in use",
            wanted="the file that was there before",
            found=f"{'another file' if now[''] else 'no file'}; all that was stored is in {folder}",
            hint=f"go on there, with --workspace {shlex.quote(str(folder))}",
        )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        exchanged = self._exchanged()
        with self._connection.errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        if exchanged is not None:
            raise exchanged


def _files(store: Path) -> dict[str, tuple[int, int] | None]:
    """Device and inode of the store and of SQLite's files beside it; None for a missing file."""
    files: dict[str, tuple[int, int] | None] = {}
    for ending in ("", "-wal", "-shm"):
        try:
            facts = store.with_name(f"{store.name}{ending}").stat()
            files[ending] = facts.st_dev, facts.st_ino
        except FileNotFoundError:
            files[ending] = None
    return files


# For commands that only read, and must not create a workspace.

LATEST: Final = "latest"
"""Names the newest run of a workspace."""


def opened(workspace: Path) -> Store:
    """Open the store of an existing workspace; StoreError if it is missing or cannot be read."""
    path = workspace / FILE_NAME
    if not path.is_file():
        raise StoreError(
            "this workspace holds no run yet",
            wanted=f"a folder with {FILE_NAME}",
            found=f"none in {workspace}",
            hint="name the workspace with --workspace, or begin a run: dbdyno compare --help",
        )
    refuse_shared(workspace, "the workspace")
    return Store(open_file(path, make=False), path)


def find(store: Store, run_id: str) -> StoredRun:
    """A run by its id, or the newest for `latest`, even if that cannot be read; else StoreError."""
    if run_id != LATEST:
        return store.run(run_id.encode(errors="replace").decode())  # bytes typed may be no UTF-8
    known = store.run_ids()
    if not known:
        raise StoreError("this workspace holds no run yet", hint="dbdyno compare --help")
    return store.run(known[0])
