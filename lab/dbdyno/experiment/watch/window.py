"""Reads the server's counters at the two edges of the measured window.

The engine reports each interval when it ends, with its time since the load began; from these times
the lab computes on its own clock when an edge is due. A reading takes as long as the server needs
to list its counters: some milliseconds, more under overload. Without a warm-up the first reading is
made before the engine logs in, so that logins are counted too.

Threads of the server are read a hundredth of the window before each edge: sessions end with the
load, right after the window, and their threads with them. For a window of 10 s that is 100 ms, and
a reading may take as much CPU. If the first takes more, as with some thousands of threads, the
second is left out. A second reading that ends after the window is dropped: sessions may have ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.experiment.watch.proc import (
    SHARE_MAX,
    ProcessReading,
    SwitchCounter,
    Switches,
    read_process,
)
from dbdyno.experiment.watch.threads import ThreadReading, read_threads, work_between
from dbdyno.measurement.parts import ProcessWork, ThreadWork
from dbdyno.measurement.replication import over_window
from dbdyno.servers.base import Replicated, Server, ThreadPerSession

EARLY_S: Final = 0.005
"""A wait may end this much too early."""
UPTIME: Final = "Uptime"
STATEMENTS: Final = "Questions"
"""A counter that only grows, a sum over sessions."""


@dataclass(frozen=True)
class Edge:
    """Counters of the server and of its process at a moment.

    Attributes:
        asked_s, answered_s: monotonic times around the reading of the server's counters; those of
            its process are read just before.
    """

    asked_s: float
    answered_s: float
    status: dict[str, float]
    process: ProcessReading
    switches: Switches | None
    replication: dict[str, float]


class WindowCounters:
    """The two readings of a trial, and each counter's growth between them.

    Attributes:
        origin_s: begin of the load, monotonic clock; None before the first interval was reported.
        error: reason of a failed reading, else None.
    """

    def __init__(
        self,
        server: Server,
        warmup_s: float,
        window_s: float,
        begun: Callable[[float, float], None] = lambda at_s, left_s: None,
    ) -> None:
        """Makes the first reading now if there is no warm-up.

        Args:
            begun: called after the first reading with the present second of the load and the
                seconds left of the window.
        """
        self._server = server
        self._due_s = [warmup_s, warmup_s + window_s]
        self._edges: list[Edge] = []
        self._begun = begun
        self._switches = SwitchCounter(server.pid)
        self._threads: list[dict[int, ThreadReading]] = []
        self._reads_threads = read_process(server.pid).threads > 0
        self._lead_s = SHARE_MAX * window_s
        self.origin_s: float | None = None
        self.error: str | None = None
        if warmup_s == 0:
            if self._threads_come_next():
                self._read_threads()
            self._read()

    def interval_ended(self, at_s: float) -> None:
        """Note the engine's report of an interval that ended `at_s` seconds into the load."""
        origin_s = time.monotonic() - at_s
        # Messages come late, never early: the earliest origin is the most precise.
        self.origin_s = origin_s if self.origin_s is None else min(self.origin_s, origin_s)

    def read_if_due(self) -> None:
        """Makes each reading that is due; in the window reads switches too, as threads may end."""
        if self._is_due() and self._threads_come_next():
            self._read_threads()
        if self._is_due():
            self._read()
        elif self._edges and self.seconds_to_edge() is not None:
            self._switches.read_if_due()

    def seconds_to_edge(self) -> float | None:
        """Seconds until the next reading; None if unknown or if no reading is left."""
        if self.origin_s is None or self.error or len(self._edges) == 2:
            return None
        due_s = self._due_s[len(self._edges)]
        if self._threads_come_next():
            due_s -= self._lead_s
        return self.origin_s + due_s - time.monotonic()

    def close(self) -> None:
        """Make the second reading now if the window was cut short, else check it.

        Without effect before the window begins. Call it after the end of the load's sessions.
        """
        if len(self._edges) == 1 and not self.error:
            self._read()
        elif len(self._edges) == 2:
            self._check_again()

    def status(self) -> dict[str, float]:
        """By how much each counter grew over the window; empty without both readings."""
        if len(self._edges) < 2:
            return {}
        begin, end = self._edges
        return {
            name: value - begin.status[name]
            for name, value in end.status.items()
            if name in begin.status
        }

    def uptime_s(self) -> float | None:
        """Seconds since the server's start at the last reading; None if unknown."""
        return self._edges[-1].status.get(UPTIME) if self._edges else None

    def read_at_s(self) -> tuple[float, ...]:
        """Seconds of load of each reading's request and answer: four numbers.

        Empty without both readings. The origin comes from the message with the least delay, so
        these times are more precise than the due times of the readings.
        """
        if len(self._edges) < 2 or self.origin_s is None:
            return ()
        return tuple(
            round(at_s - self.origin_s, 6)
            for edge in self._edges
            for at_s in (edge.asked_s, edge.answered_s)
        )

    def replication(self) -> dict[str, float]:
        """Counters of primary and replicas over the window; empty without replicas."""
        if len(self._edges) < 2:
            return {}
        return over_window(*(edge.replication for edge in self._edges))

    def cpu_s(self) -> float:
        """The server process's CPU seconds over the window; 0 without both readings."""
        if len(self._edges) < 2:
            return 0.0
        return max(0.0, self._edges[1].process.cpu_s - self._edges[0].process.cpu_s)

    def process(self) -> ProcessWork | None:
        """The server's process: reads, writes and waits; None without both readings."""
        if len(self._edges) < 2:
            return None
        begin, end = self._edges
        both = begin.switches is not None and end.switches is not None
        return ProcessWork(
            read_bytes=_growth(begin.process.read_bytes, end.process.read_bytes),
            written_bytes=_growth(begin.process.written_bytes, end.process.written_bytes),
            switches_voluntary=self._switches.total.voluntary if both else None,
            switches_involuntary=self._switches.total.involuntary if both else None,
        )

    def threads(self) -> dict[str, ThreadWork]:
        """Work of the server's threads by group; empty unless both edges and threads were read.

        A group loses the work of threads that ended within the window.
        """
        if len(self._edges) < 2 or len(self._threads) < 2:
            return {}
        return work_between(*self._threads)

    def _is_due(self) -> bool:
        left_s = self.seconds_to_edge()
        return left_s is not None and left_s <= EARLY_S

    def _threads_come_next(self) -> bool:
        """True if the next reading is of threads, before the next edge."""
        return self._reads_threads and len(self._threads) == len(self._edges)

    def _read_threads(self) -> None:
        began_cpu_s = time.thread_time()
        ready_s = self._server.ready_s if isinstance(self._server, ThreadPerSession) else None
        self._threads.append(read_threads(self._server.pid, ready_s))
        self._reads_threads = time.thread_time() - began_cpu_s <= self._lead_s
        left_s = self.seconds_to_edge()
        if self._edges and left_s is not None and left_s < 0:
            self._threads.clear()  # sessions may have ended, and their work would be missing

    def _read(self) -> None:
        process, switches = read_process(self._server.pid), self._switches.read()
        asked_s = time.monotonic()
        try:
            status = self._server.status()
            answered_s = time.monotonic()
            replication = self._replication()
        except ServerError as error:
            self.error = f"the server's counters could not be read: {error.found or error}"
            return
        self._edges.append(Edge(asked_s, answered_s, status, process, switches, replication))
        if len(self._edges) == 1:
            at_s = 0.0 if self.origin_s is None else time.monotonic() - self.origin_s
            self._begun(at_s, self._due_s[1] - at_s)

    def _check_again(self) -> None:
        """Repeat the second reading if it counted sessions twice.

        MySQL adds a session's counters to the total of ended sessions before it removes the session
        from its list. A sum taken at this moment, while the load logs out, counts the session
        twice. A sum that has shrunk since then shows it. Servers without this sum are not asked.
        """
        end = self._edges[1]
        if STATEMENTS not in end.status:
            return
        asked_s = time.monotonic()
        try:
            status = self._server.status()
        except ServerError:
            return  # it has served its load; what becomes of it now is seen elsewhere
        if status.get(STATEMENTS, 0.0) < end.status[STATEMENTS]:
            answered_s = time.monotonic()
            self._edges[1] = replace(end, status=status, asked_s=asked_s, answered_s=answered_s)

    def _replication(self) -> dict[str, float]:
        return self._server.replication() if isinstance(self._server, Replicated) else {}


def _growth(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)
