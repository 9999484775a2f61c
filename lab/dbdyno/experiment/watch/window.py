"""Reads the server's counters at the two edges of the measured window, and nothing in between.

The engine reports each interval when it ends, with its time since the load began; from that the lab
works out on its own clock when an edge is due. A reading takes as long as the server needs to list
its counters: some milliseconds, more when it is overloaded. Without a warm-up the first reading is
made before the engine logs in, so that logins are counted too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.experiment.watch.proc import ProcessReading, SwitchCounter, Switches, read_process
from dbdyno.measurement.parts import ProcessWork
from dbdyno.measurement.replication import over_window
from dbdyno.servers.base import Replicated, Server

EARLY_S: Final = 0.005
"""A wait may end this much too early."""
STATEMENTS: Final = "Questions"
"""A counter that only grows, a sum over sessions."""


@dataclass(frozen=True)
class Edge:
    """The server's own counters and those of its process at one moment.

    Attributes:
        asked_s, answered_s: between them the server's were read, monotonic clock; those of its
            process just before.
    """

    asked_s: float
    answered_s: float
    status: dict[str, float]
    process: ProcessReading
    switches: Switches | None
    replication: dict[str, float]


class WindowCounters:
    """The two readings of one trial, and how much each counter grew between them.

    Attributes:
        origin_s: when the load began, monotonic clock; None until the first interval was reported.
        error: why a reading failed; None if none did.
    """

    def __init__(self, server: Server, warmup_s: float, window_s: float) -> None:
        self._server = server
        self._due_s = [warmup_s, warmup_s + window_s]
        self._edges: list[Edge] = []
        self._switches = SwitchCounter(server.pid)
        self.origin_s: float | None = None
        self.error: str | None = None
        if warmup_s == 0:
            self._read()

    def interval_ended(self, at_s: float) -> None:
        """The engine reported just now an interval that ended `at_s` seconds into the load."""
        origin_s = time.monotonic() - at_s
        # Messages come late, never early: the earliest origin is the most precise.
        self.origin_s = origin_s if self.origin_s is None else min(self.origin_s, origin_s)

    def read_if_due(self) -> None:
        """Reads the counters if an edge is due."""
        left_s = self.seconds_to_edge()
        if left_s is not None and left_s <= EARLY_S:
            self._read()

    def seconds_to_edge(self) -> float | None:
        """Seconds until the next reading; None if it is not known, or nothing is left to read."""
        if self.origin_s is None or self.error or len(self._edges) == 2:
            return None
        return self.origin_s + self._due_s[len(self._edges)] - time.monotonic()

    def close(self) -> None:
        """Makes the second reading now if the window was cut short, and checks it if it was not.

        Does nothing if the window had not begun. To be called when the load's sessions have ended.
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

    def read_at_s(self) -> tuple[float, ...]:
        """Seconds of load at which each reading was asked for and answered: four numbers.

        Empty without both readings. The origin is that of the message with the least delay of all,
        so this is more precise than what made the readings due.
        """
        if len(self._edges) < 2 or self.origin_s is None:
            return ()
        return tuple(
            round(at_s - self.origin_s, 6)
            for edge in self._edges
            for at_s in (edge.asked_s, edge.answered_s)
        )

    def replication(self) -> dict[str, float]:
        """What primary and replicas reported over the window; empty without replicas."""
        if len(self._edges) < 2:
            return {}
        return over_window(*(edge.replication for edge in self._edges))

    def cpu_s(self) -> float:
        """The server process's CPU seconds over the window; 0 without both readings."""
        if len(self._edges) < 2:
            return 0.0
        return max(0.0, self._edges[1].process.cpu_s - self._edges[0].process.cpu_s)

    def process(self) -> ProcessWork | None:
        """What the server's process read, wrote and waited for; None without both readings."""
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

    def _check_again(self) -> None:
        """Takes another reading if the second one counted sessions twice.

        MySQL adds a session's counters to those of ended ones before it leaves the list of
        sessions. Whoever adds up all of them in that moment, when the load logs out, has it twice.
        A sum that has shrunk since then tells.
        """
        asked_s = time.monotonic()
        try:
            status = self._server.status()
        except ServerError:
            return  # it has served its load; what becomes of it now is seen elsewhere
        end = self._edges[1]
        if status.get(STATEMENTS, 0.0) < end.status.get(STATEMENTS, 0.0):
            answered_s = time.monotonic()
            self._edges[1] = replace(end, status=status, asked_s=asked_s, answered_s=answered_s)

    def _replication(self) -> dict[str, float]:
        return self._server.replication() if isinstance(self._server, Replicated) else {}


def _growth(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)
