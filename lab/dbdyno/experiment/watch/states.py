"""Samples what the load's connections do within a trial's window, as the server itself says it.

    MySQL, MariaDB   the process list: executing, committing, waiting for the client; waits for row
                     locks by InnoDB's counter of their time
    PostgreSQL       pg_stat_activity: wait events by their names

A question costs the server some work each time, so states are sampled only together with stacks.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Final, Self

from dbdyno.errors import ServerError
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import (
    CLIENT,
    COMMIT,
    EXECUTING,
    ROW_LOCK,
    STATE_LENGTH_MAX,
    StateProfile,
    Step,
)
from dbdyno.servers.base import PGSQL, Server
from dbdyno.servers.client import Client

PERIOD_S: Final = 0.1
STEP: Final = "sample states"

PROCESSES: Final = (
    "SELECT id, command, state, LEFT(info, 6) FROM information_schema.processlist"
    " WHERE user = SUBSTRING_INDEX(USER(), '@', 1) AND id <> CONNECTION_ID()"
)
ROW_LOCK_MS: Final = "Innodb_row_lock_time"
BACKENDS: Final = (
    "SELECT pid, state, wait_event_type, wait_event FROM pg_stat_activity"
    " WHERE usename = current_user AND pid <> pg_backend_pid()"
)
COMMITTING: Final = ("waiting for handler commit", "query end", "commit", "starting commit")
"""MySQL's and MariaDB's states of a statement that commits its own transaction."""
ROW_LOCKS: Final = ("transactionid", "tuple", "spectoken")
"""PostgreSQL's wait events of type Lock for rows."""


def state_of_mysql(command: str, state: str, statement: str) -> str:
    """The state of a connection to MySQL or MariaDB; a wait for a row lock is part of executing."""
    said = state.lower()
    if command in ("Sleep", "Daemon"):
        return CLIENT
    if statement.upper() == "COMMIT" or said in COMMITTING:
        return COMMIT
    return said[:STATE_LENGTH_MAX] if said.startswith("waiting") else EXECUTING


def state_of_postgres(state: str, kind: str, event: str) -> str:
    """The state of a connection to PostgreSQL, by the names of its wait events."""
    if state != "active" or kind == "Client":
        return CLIENT
    if kind == "Lock" and event in ROW_LOCKS:
        return ROW_LOCK
    return f"{kind}: {event}"[:STATE_LENGTH_MAX] if kind else EXECUTING


class StateSampler:
    """Samples states from `begin` to the window's end; a context of the trial."""

    def __init__(self, server: Server) -> None:
        is_postgres = server.driver == PGSQL
        database = server.database if is_postgres else ""
        self._client = Client(
            server.label, server.driver, server.endpoint, server.credentials, database
        )
        self._state_of = state_of_postgres if is_postgres else state_of_mysql
        self._question = BACKENDS if is_postgres else PROCESSES
        self._others: set[str] = set()
        self._seen: Counter[str] = Counter()
        self._samples = 0
        self._why = "the window was never reached"
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Note the connections that are there before the load's."""
        try:
            self._others = {row[0] for row in self._client.ask(self._question)}
        except ServerError as error:
            self._why = error.found or error.message
        return self

    def __exit__(self, *error: object) -> None:
        self._end()
        self._client.close()

    def begin(self, window_s: float) -> None:
        """Start sampling for the rest of the window."""
        arguments = (time.monotonic() + window_s,)
        self._thread = threading.Thread(target=self._sample, args=arguments, daemon=True)
        self._thread.start()

    def added_to(self, measured: Measurement) -> Measurement:
        """The ended trial with its states, or with a step not done, and the reason."""
        self._end()
        if measured.failure is not None:
            return measured
        if not self._samples:
            step = Step(name=STEP, seconds=0.0, done=False, detail=self._why)
            return measured.model_copy(update={"procedure": (*measured.procedure, step)})
        means = {state: times / self._samples for state, times in sorted(self._seen.items())}
        if row_lock_ms := measured.server.status.get(ROW_LOCK_MS):
            executing = means.get(EXECUTING, 0.0)
            waiting = min(executing, row_lock_ms / 1e3 / measured.window_s)
            means |= {EXECUTING: executing - waiting, ROW_LOCK: waiting}
        profile = StateProfile(samples=self._samples, connections=means)
        return measured.model_copy(update={"states": profile})

    def _end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _sample(self, ends_s: float) -> None:
        while time.monotonic() < ends_s and not self._over.wait(PERIOD_S):
            try:
                rows = self._client.ask(self._question)
            except ServerError as error:
                self._why = error.found or error.message
                return
            own = [row for row in rows if row[0] not in self._others]
            self._seen.update(self._state_of(*row[1:4]) for row in own)
            self._samples += 1
