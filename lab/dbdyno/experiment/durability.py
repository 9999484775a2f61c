"""Kills a server under load and counts the acknowledged commits that survive.

Several connections send single commits, each row numbered by its connection, and the lab records
the acknowledged numbers. Then SIGKILL ends the server's processes, which start again on the same
files. Every acknowledged row must be there, including those of earlier rounds.

A kill leaves the operating system running, with all written but unsynced data. So flushes are
counted by the server and by the machine's disks: they show the loss after a power failure.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from dbdyno.errors import ServerError, UsageError
from dbdyno.experiment.context import OpenInstance
from dbdyno.experiment.data import dataset
from dbdyno.experiment.watch.host import flushes
from dbdyno.experiment.watch.proc import family
from dbdyno.measurement.parts import Kill, KilledServer
from dbdyno.measurement.syncs import log_syncs
from dbdyno.servers import open
from dbdyno.servers.base import PGSQL, Endpoint, Server, ServerSpec
from dbdyno.servers.mysql.client import MysqlClient
from dbdyno.servers.postgres.client import PostgresClient
from dbdyno.servers.reference import EndpointReference, ImageReference, parse

# Sessions of the load user; too slow for measured load. After a lost connection the client
# sends a row once more, which its primary key makes harmless.


class Session(Protocol):
    """A login of the load user, opened at its first use."""

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """The answer, every value as text; ServerError if the server refuses or is gone."""

    def close(self) -> None:
        """Log out."""


def sessions(server: Server, count: int) -> list[Session]:
    """So many logins of the load user."""
    if server.driver == PGSQL:
        line = Endpoint(server.endpoint.host, server.endpoint.port, None)  # as a load comes in
        login = (server.label, line, server.credentials, server.database)
        return [PostgresClient(*login) for _ in range(count)]
    return [MysqlClient(server.label, server.endpoint, server.credentials) for _ in range(count)]


TABLE: Final = "dbdyno_commits"
CONNECTIONS: Final = 4
LOAD_S: Final = 1.5
"""Load before the kill: long enough to catch a log written once a second behind."""
UNEVEN_S: Final = 0.37
"""Seconds added in each round, so kills do not fall in step with flushes."""
FIRST_COMMIT_S_MAX: Final = 30.0

Report = Callable[[str], None]


@dataclass
class _Load:
    """A round's commits during the load; `answered` is by connection."""

    table: str
    number: int
    sessions: list[Session]
    answered: list[int] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        self.answered = [0] * len(self.sessions)
        for place in range(len(self.sessions)):
            thread = threading.Thread(target=self._send, args=(place,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def end(self) -> None:
        """Wait until every connection has noticed the server's end."""
        self.over.set()
        for thread in self.threads:
            thread.join()
        for session in self.sessions:
            session.close()

    def _send(self, place: int) -> None:
        session = self.sessions[place]
        with suppress(ServerError):
            while not self.over.is_set():
                row = self.answered[place] + 1
                session.ask(f"INSERT INTO {self.table} VALUES ({self.number}, {place}, {row})")
                self.answered[place] = row


def prove(
    spec: ServerSpec,
    folder: Path,
    report: Report,
    *,
    kills: int = 3,
    connections: int = CONNECTIONS,
    load_s: float = LOAD_S,
    open_instance: OpenInstance = open.instance,
) -> KilledServer:
    """Run `kills` rounds of load, SIGKILL and restart on a private server, and count rows.

    Raises:
        UsageError: dbdyno does not start this system's processes itself.
        ServerError: it did not start, not even after the kill; or it took no commit.
        ProvisionError: its programs could not be got.
    """
    if isinstance(parse(spec.reference), EndpointReference | ImageReference):
        raise UsageError(
            f"{spec.label}: dbdyno kills only servers that it has started as processes itself",
            wanted="a reference such as mysql:8.0.15",
            found=spec.reference,
            hint="name the version; its settings are given with --set",
        )
    instance = open_instance(spec, folder, report)
    try:
        server = instance.start()
        version, settings = server.version(), server.settings()
        table = dataset.quoted_table(server, TABLE)
        _make(server, table)
        rounds: list[Kill] = []
        promised: list[list[int]] = []
        for number in range(kills):
            report(f"{spec.label}: round {number + 1} of {kills}: commits, then SIGKILL")
            load = _Load(table, number, sessions(server, connections))
            seen = _load_and_kill(server, settings, load, load_s + number * UNEVEN_S)
            promised.append(load.answered)
            report(f"{spec.label}: starting it again on what is left")
            began_s = time.monotonic()
            server = instance.start()
            recovery_s = time.monotonic() - began_s
            rounds.append(_counted(server, table, promised, seen, recovery_s, rounds))
        server.stop()
    finally:
        with suppress(ServerError):
            instance.close()
    return KilledServer(
        system=spec.label,
        version=version,
        settings=settings,
        connections=connections,
        kills=tuple(rounds),
    )


@dataclass(frozen=True)
class _LoadReading:
    """Counters read while a round's load ran."""

    load_s: float
    counted: int
    server_flushes: float | None
    disk_flushes: float | None


def _make(server: Server, table: str) -> None:
    """An empty table for the rows."""
    with closing(sessions(server, 1)[0]) as session:
        session.ask(
            f"CREATE TABLE {table} (turn INT NOT NULL, client INT NOT NULL, place BIGINT NOT NULL"
            ", PRIMARY KEY (turn, client, place))"
        )


def _load_and_kill(
    server: Server, settings: Mapping[str, str], load: _Load, seconds: float
) -> _LoadReading:
    """Send commits for `seconds` and kill the server in the midst of them."""

    def read() -> tuple[int, float | None, float | None]:
        return sum(load.answered), log_syncs(server.status(), settings), flushes()

    load.begin()
    try:
        _wait_for_the_first(server, load)
        began_s = time.monotonic()
        before = read()
        time.sleep(seconds)
        after = read()
        load_s = time.monotonic() - began_s
        _kill(server)
    except BaseException:
        server.kill()  # so that nobody waits for its answers
        raise
    finally:
        load.end()
    return _LoadReading(
        load_s=load_s,
        counted=after[0] - before[0],
        server_flushes=_grown(before[1], after[1]),
        disk_flushes=_grown(before[2], after[2]),
    )


def _wait_for_the_first(server: Server, load: _Load) -> None:
    ends = time.monotonic() + FIRST_COMMIT_S_MAX
    while not all(load.answered):
        if time.monotonic() > ends or not any(t.is_alive() for t in load.threads):
            raise ServerError(
                f"{server.label}: the server took no commit",
                wanted=f"one of each of {len(load.sessions)} connections",
                found=server.last_words() or None,
            )
        time.sleep(0.005)


def _kill(server: Server) -> None:
    """Send SIGKILL to the server and its descendants, and to no other process."""
    for pid in family(server.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    server.kill()  # waits for its end, and removes what a dead server leaves beside its files


def _counted(
    server: Server,
    table: str,
    promised: list[list[int]],
    seen: _LoadReading,
    recovery_s: float,
    before: list[Kill],
) -> Kill:
    """Surviving rows of this round; later losses of earlier rounds count here."""
    held = _held(server, table, promised)
    kept, unanswered = held[-1]
    earlier = sum(one.kept for one in before)
    vanished = earlier - sum(count for count, _ in held[:-1])
    return Kill(
        acknowledged=sum(promised[-1]),
        kept=kept - vanished,
        unanswered=unanswered,
        load_s=seen.load_s,
        recovery_s=recovery_s,
        counted=seen.counted,
        server_flushes=seen.server_flushes,
        disk_flushes=seen.disk_flushes,
    )


def _held(server: Server, table: str, promised: list[list[int]]) -> list[tuple[int, int]]:
    """Of each round: how many promised rows are there, and how many besides."""
    with closing(sessions(server, 1)[0]) as session:
        missing = []
        for number, answered in enumerate(promised):
            kept = besides = 0
            for client, last in enumerate(answered):
                rows = session.ask(
                    f"SELECT COUNT(*), COUNT(CASE WHEN place <= {last} THEN 1 END)"
                    f" FROM {table} WHERE turn = {number} AND client = {client}"
                )
                total, within = (int(value) for value in rows[0])
                kept, besides = kept + within, besides + total - within
            missing.append((kept, besides))
        return missing


def _grown(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0.0, after - before)
