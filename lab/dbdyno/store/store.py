"""The workspace's store: every run as it was asked for, every trial the moment it ended.

One SQLite file that any `sqlite3` can read. It is only added to: a trial is one transaction that is
on the disk before the next trial begins (WAL, synchronous=FULL), failed trials keep their reason,
and triggers refuse change and deletion. So a run can go on after a crash, and a verdict can be made
again years later.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from dbdyno import __version__
from dbdyno.errors import StoreError
from dbdyno.files import locked
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.outcome import ControlOutcome
from dbdyno.plan.controls import as_begun
from dbdyno.plan.pilot import NO_BLOCK, resolved
from dbdyno.plan.plan import Plan
from dbdyno.store import database
from dbdyno.store.database import open_file, told

FILE_NAME: Final = "dbdyno.sqlite"


@dataclass(frozen=True)
class StoredRun:
    """A run as it was asked for.

    Attributes:
        created_at, finished_at: ISO 8601 with offset; finished_at is None until every trial of the
            plan had its turn, or the blocks so far decided.
        plan: with the rates that its pilot found, once it has found them.
        command: the command line that began it.
        trials_planned: how many trials the plan makes at most; foreseen where a pilot decides it.
    """

    run_id: str
    created_at: str
    finished_at: str | None
    plan: Plan
    command: str
    dbdyno_version: str
    environment: dict[str, str]
    trials_planned: int


class Store:
    """An open store; a context manager that closes it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @classmethod
    def open(cls, folder: Path) -> Store:
        """Opens the store of a workspace folder, and creates both where they are missing.

        Raises:
            StoreError: the folder cannot be made, the file is no store, or a newer dbdyno's.
        """
        path = folder / FILE_NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"the workspace folder {folder} cannot be made",
                found=str(error),
                hint="choose another folder with --workspace",
            ) from error
        return cls(open_file(path), path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; what was appended is on the disk already."""
        self._connection.close()

    def create_run(
        self, plan: Plan, command: str, environment: Mapping[str, str], trials_planned: int
    ) -> StoredRun:
        """Stores a new run under a new id, which begins with the time: `20261121-071500-9f3a`."""
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
        row = {
            "run_id": run.run_id,
            "created_at": run.created_at,
            "plan_hash": plan.hash(),
            "plan": plan.model_dump_json(),
            "command": command,
            "dbdyno_version": run.dbdyno_version,
            "environment": json.dumps(run.environment, sort_keys=True),
            "trials_planned": trials_planned,
        }
        with self._transaction() as connection:
            connection.execute(
                f"INSERT INTO runs ({', '.join(row)}) VALUES ({', '.join(':' + k for k in row)})",
                row,
            )
        return run

    def run(self, run_id: str) -> StoredRun:
        """The run of that id; StoreError naming those known if there is none."""
        runs = self.runs()
        for run in runs:
            if run.run_id == run_id:
                return run
        raise StoreError(
            f"no run {run_id} in this workspace",
            wanted=f"a run stored in {self.path.name}",
            found=", ".join(run.run_id for run in runs) or "an empty store",
            hint="give one of the ids above, or the workspace of the run with --workspace",
        )

    def runs(self) -> list[StoredRun]:
        """All runs, the newest first."""
        with told(self.path):
            rows = self._connection.execute(
                "SELECT run_id, created_at, finished_at, plan, command, dbdyno_version,"
                " environment, trials_planned FROM runs ORDER BY rowid DESC"
            ).fetchall()
            return [self._run(row) for row in rows]

    def _run(self, row: tuple[Any, ...]) -> StoredRun:
        run_id, created_at, finished_at, asked, command, version, environment, planned = row
        plan = as_begun(asked)
        if plan.load.needs_pilot:
            plan = resolved(plan, self.pilots(run_id))
        return StoredRun(
            run_id=run_id,
            created_at=created_at,
            finished_at=finished_at,
            plan=plan,
            command=command,
            dbdyno_version=version,
            environment=json.loads(environment),
            trials_planned=planned,
        )

    def append(self, measurement: Measurement) -> None:
        """Stores what one trial saw, in one transaction that is on the disk on return.

        Raises:
            StoreError: the trial is stored as complete already, its run is unknown, or the disk
                does not take it.
        """
        trial = measurement.trial
        with self._transaction() as connection:
            attempts, complete = connection.execute(
                "SELECT count(*), count(*) - count(failure) FROM measurements"
                " WHERE run_id = ? AND trial_key = ?",
                (trial.run_id, trial.key),
            ).fetchone()
            if complete and measurement.failure is None:
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
                    attempts,
                    trial.sequence,
                    trial.block,
                    trial.system,
                    trial.cell.key,
                    measurement.started_at,
                    measurement.failure,
                    measurement.model_dump_json(),
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

    def measurements(self, run_id: str) -> list[Measurement]:
        """All measurements of a run in the order stored, failed attempts and histograms too."""
        return self._measurements("run_id = ?", run_id)

    def pilots(self, run_id: str) -> list[Measurement]:
        """Those of the run's pilot, in the order stored."""
        return self._measurements("run_id = ? AND block = ?", run_id, NO_BLOCK)

    def _measurements(self, wanted: str, *values: str | int) -> list[Measurement]:
        blobs: dict[int, dict[int, dict[str, bytes]]] = {}
        with told(self.path):
            stored = self._connection.execute(
                "SELECT measurement_id, interval, name, hdr_v2 FROM histograms WHERE measurement_id"
                f" IN (SELECT id FROM measurements WHERE {wanted})",
                values,
            )
            for identity, interval, name, blob in stored:
                blobs.setdefault(identity, {}).setdefault(interval, {})[name] = blob
            rows = self._connection.execute(
                f"SELECT id, measurement FROM measurements WHERE {wanted} ORDER BY id", values
            ).fetchall()
            return [_measurement(text, blobs.get(identity, {})) for identity, text in rows]

    def done(self, run_id: str, *, impossible: bool = True) -> set[str]:
        """Keys of the trials that need not run again: those with a measurement without failure.

        Args:
            impossible: count those too of which it is stored that they cannot be run.
        """
        with told(self.path):
            rows = self._connection.execute(
                "SELECT trial_key FROM measurements WHERE run_id = ? AND (failure IS NULL"
                " OR (? AND json_extract(measurement, '$.impossible')))",
                (run_id, impossible),
            )
            return {key for (key,) in rows}

    def blocks_begun(self, run_id: str) -> int:
        """How many blocks there are up to the last one of which a trial is stored."""
        with told(self.path):
            (last,) = self._connection.execute(
                "SELECT max(block) FROM measurements WHERE run_id = ?", (run_id,)
            ).fetchone()
        return 0 if last is None else int(last) + 1

    def finish(self, run_id: str) -> None:
        """Notes that every trial had its turn or is not wanted; after a resume the later time."""
        now = datetime.now().astimezone().isoformat("T", "seconds")
        with self._transaction() as connection:
            connection.execute("UPDATE runs SET finished_at = ? WHERE run_id = ?", (now, run_id))

    def note_controls(self, run_id: str, outcomes: Iterable[ControlOutcome]) -> None:
        """Adds what a complete run's controls came to to the ledger, unless it is there."""
        with self._transaction() as connection:
            database.note(connection, run_id, outcomes)

    def controls(self, *, except_run: str = "") -> list[ControlOutcome]:
        """What the controls of all complete runs came to, of one run apart, in their order."""
        with told(self.path):
            return database.noted(self._connection, except_run)

    def locked(self, run_id: str) -> AbstractContextManager[None]:
        """Keeps other labs from working on the run; StoreError if one does already."""
        return locked(self.path.parent / "locks" / f"{run_id}.lock", f"run {run_id}")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with told(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def _measurement(text: str, blobs: Mapping[int, dict[str, bytes]]) -> Measurement:
    bare = Measurement.model_validate_json(text)
    intervals = tuple(
        interval.model_copy(update={"histograms": blobs.get(index, {})})
        for index, interval in enumerate(bare.intervals)
    )
    return bare.model_copy(update={"intervals": intervals})


# Finds what a person names: a workspace's store that is there, and one of its runs.
#
# Apart from `store` because only readers need it: a command that only reads must not make a folder.


LATEST: Final = "latest"
"""Stands for the newest run of a workspace wherever a run is named."""


def opened(workspace: Path) -> Store:
    """The store of a workspace that is there.

    Raises:
        StoreError: there is none, or it cannot be read.
    """
    if not (workspace / FILE_NAME).is_file():
        raise StoreError(
            "this workspace holds no run yet",
            wanted=f"a folder with {FILE_NAME}",
            found=f"none in {workspace}",
            hint="name the run's folder with --workspace",
        )
    return Store.open(workspace)


def find(store: Store, run_id: str) -> StoredRun:
    """The run of that id, or the newest for `latest`; StoreError if there is none."""
    if run_id != LATEST:
        return store.run(run_id)
    runs = store.runs()
    if not runs:
        raise StoreError("this workspace holds no run yet", hint="dbdyno compare --help")
    return runs[0]
