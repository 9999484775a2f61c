"""Reads the server's counters once a second, in a thread and on a connection of its own.

Watching costs the server something, and how much is part of the result: each reading's time is
kept, and the server's CPU for one reading is measured before the load begins, when nobody else
asks. A server that stops answering ends the readings and says why; it never ends a trial.
"""

from __future__ import annotations

import statistics
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from dbdyno.errors import ServerError
from dbdyno.experiment.watch.proc import family, text_of
from dbdyno.measurement.parts import StatusSeries
from dbdyno.servers.base import Observer, Server
from dbdyno.servers.mysql.client import observe

PERIOD_S: Final = 1.0
READINGS_BEFORE: Final = 3
"""Readings whose CPU is measured; their median is not misled by a server's own work."""
FAREWELL_S: Final = 0.5
"""How long the end of a trial waits for an answer that is still open."""
PROC: Final = Path("/proc")


@dataclass(frozen=True)
class _Answer:
    at_s: float
    took_s: float
    counters: dict[str, float]


class StatusWatch:
    """Readings from entering the block to leaving it; the first are made on entering."""

    def __init__(self, server: Server, period_s: float = PERIOD_S) -> None:
        self._pid = server.pid
        self._observer: Observer = observe(server)
        self._period_s = period_s
        self._answers: list[_Answer] = []
        self._trouble: str | None = None
        self._server_cpu_ms: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="status", daemon=True)

    def __enter__(self) -> Self:
        self._server_cpu_ms = self._cost_ms()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join(FAREWELL_S)

    def series(self, origin_s: float) -> StatusSeries:
        """What was read since `origin_s` (monotonic clock): the moment the load began."""
        answers = [answer for answer in tuple(self._answers) if answer.at_s >= origin_s]
        names = sorted({name for answer in answers for name in answer.counters})
        return StatusSeries(
            at_s=tuple(round(answer.at_s - origin_s, 6) for answer in answers),
            took_ms=tuple(round(answer.took_s * 1e3, 3) for answer in answers),
            server_cpu_ms=self._server_cpu_ms,
            counters={name: tuple(a.counters.get(name) for a in answers) for name in names},
            trouble=self._trouble,
        )

    def _watch(self) -> None:
        due_s = time.monotonic()
        while self._trouble is None:
            answer = self._ask()
            if answer is not None:
                self._answers.append(answer)
            # A late answer skips seconds: catching up would load a server that is overloaded.
            now_s = time.monotonic()
            due_s = max(due_s + self._period_s, now_s)
            if self._over.wait(due_s - now_s):
                break
        self._observer.close()

    def _ask(self) -> _Answer | None:
        began_s = time.monotonic()
        try:
            counters = self._observer.read()
        except ServerError as error:
            self._trouble = f"the server's counters could not be read: {error.found or error}"
            return None
        took_s = time.monotonic() - began_s
        return _Answer(began_s + took_s / 2, took_s, counters)

    def _cost_ms(self) -> float | None:
        """The server's CPU for one reading, in ms; None if it cannot be told."""
        costs = []
        self._ask()  # logs in
        for _ in range(READINGS_BEFORE):
            before_s = scheduled_s(self._pid)
            if self._ask() is None:
                return None
            costs.append((scheduled_s(self._pid) - before_s) * 1e3)
        cost_ms = statistics.median(costs)
        return round(cost_ms, 3) if cost_ms > 0 else None


def scheduled_s(pid: int) -> float:
    """Seconds on a CPU of all threads of a process and those it forked, to the nanosecond."""
    total_ns = 0
    for member in family(pid):
        for path in (PROC / f"{member}/task").glob("*/schedstat"):
            words = text_of(path).split()
            total_ns += int(words[0]) if words and words[0].isdecimal() else 0
    return total_ns / 1e9
