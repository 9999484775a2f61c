"""Reads the server's counters once a second, in a thread and on a connection of its own.

Reading costs the server CPU, so the result includes that cost: the time of each reading, and the
server's CPU for one reading, measured before the load begins. If the server stops answering, the
readings end with the reason; the trial goes on.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from dbdyno.errors import ServerError
from dbdyno.experiment.watch.host import next_due_s
from dbdyno.experiment.watch.proc import family, text_of
from dbdyno.measurement.parts import StatusSeries
from dbdyno.servers.base import Answering, Observer, Server, observe, rows_of
from dbdyno.servers.foreign.endpoint import EndpointServer

PERIOD_S: Final = 1.0
READINGS_BEFORE: Final = 3
"""Readings whose CPU is measured; the median ignores a server's own work now and then."""
LAST_ANSWER_S: Final = 0.5
"""Longest wait at the end of a trial for an open reading."""
PROC: Final = Path("/proc")
PROCESSES: Final = "SHOW PROCESSLIST"


@dataclass(frozen=True)
class _Reading:
    at_s: float
    took_s: float
    counters: dict[str, float]


class StatusWatch:
    """Readings from entering the block to leaving it; the first are made on entering."""

    def __init__(self, server: Server, period_s: float = PERIOD_S) -> None:
        self._pid = server.pid
        self._observer: Observer = observe(server)
        self._period_s = period_s
        self._readings: list[_Reading] = []
        self._error: str | None = None
        self._server_cpu_ms: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="status", daemon=True)

    def __enter__(self) -> Self:
        self._server_cpu_ms = self._reading_cpu_ms()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(LAST_ANSWER_S)

    @property
    def latest(self) -> dict[str, float]:
        """The counters of the last reading, by name; empty before the first."""
        return self._readings[-1].counters if self._readings else {}

    def series(self, origin_s: float) -> StatusSeries:
        """Readings since `origin_s` (monotonic clock), the begin of the load."""
        readings = [one for one in tuple(self._readings) if one.at_s >= origin_s]
        names = sorted({name for one in readings for name in one.counters})
        return StatusSeries(
            at_s=tuple(round(one.at_s - origin_s, 6) for one in readings),
            took_ms=tuple(round(one.took_s * 1e3, 3) for one in readings),
            server_cpu_ms=self._server_cpu_ms,
            counters={name: tuple(one.counters.get(name) for one in readings) for name in names},
            trouble=self._error,
        )

    def _watch(self) -> None:
        due_s = time.monotonic()
        while self._error is None:
            reading = self._read()
            if reading is not None:
                self._readings.append(reading)
            now_s = time.monotonic()
            due_s = next_due_s(due_s, now_s, self._period_s)
            if self._over.wait(due_s - now_s):
                break
        self._observer.close()

    def _read(self) -> _Reading | None:
        began_s = time.monotonic()
        try:
            counters = self._observer.read()
        except ServerError as error:
            self._error = f"the server's counters could not be read: {error.found or error}"
            return None
        took_s = time.monotonic() - began_s
        return _Reading(began_s + took_s / 2, took_s, counters)

    def _reading_cpu_ms(self) -> float | None:
        """The server's CPU for a reading, in ms; None if unknown."""
        costs = []
        self._read()  # logs in
        for _ in range(READINGS_BEFORE):
            before_s = scheduled_s(self._pid)
            if self._read() is None:
                return None
            costs.append((scheduled_s(self._pid) - before_s) * 1e3)
        cost_ms = statistics.median(costs)
        return round(cost_ms, 3) if cost_ms > 0 else None


def waiting_statements(server: Server) -> dict[str, int] | None:
    """Number of statements of the load's sessions running now, by kind and wait state.

    None if the server does not report them. Only the first word of a statement is kept. On an
    endpoint each server is asked, and the asking session has the load's user.
    """
    waiting: Counter[str] = Counter()
    try:
        for session in server.sessions if isinstance(server, EndpointServer) else (server,):
            waiting.update(_waiting(session, server.credentials.user))
    except ServerError:
        return None
    return dict(waiting)


def _waiting(session: Answering, load_user: str) -> Iterator[str]:
    """Kind and wait state of each statement of the load in a server's list of sessions."""
    sessions, own = rows_of(session, PROCESSES, 8), session.ask("SELECT CONNECTION_ID()")
    for number, user, _, _, command, _, state, info, *_ in sessions:
        is_own = [(number,)] == own or info.upper() == PROCESSES
        if user == load_user and not is_own and command != "Sleep" and (info.strip() or state):
            kind = (info.split() or [command])[0].upper()
            yield f"{kind}: {state}" if state else kind


def scheduled_s(pid: int) -> float:
    """CPU seconds of all threads of a process and its descendants, to the nanosecond."""
    total_ns = 0
    for member in family(pid):
        for path in (PROC / f"{member}/task").glob("*/schedstat"):
            words = text_of(path).split()
            total_ns += int(words[0]) if words and words[0].isdecimal() else 0
    return total_ns / 1e9
