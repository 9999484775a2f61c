"""A running primary with its replicas: one server for the load, with the proof of what replicated.

The load, its counters and its settings are the primary's. What the replicas do is told by
`replication`, read at both edges of each window.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from dbdyno.errors import ServerError
from dbdyno.measurement import replication
from dbdyno.servers.base import STOP_S, Server
from dbdyno.servers.mysql import transactions
from dbdyno.servers.mysql.observer import Observer, observe
from dbdyno.servers.mysql.replication import Links

WAIT_S_MAX = 10.0
"""Longest single question to a replica while it catches up."""


class TopologyServer:
    """Made by `TopologyInstance.start`."""

    def __init__(
        self, primary: Server, replicas: Sequence[Server], links: Links, client: Path | None
    ) -> None:
        self.label = primary.label
        self.pid = primary.pid
        self.endpoint = replace(primary.endpoint, namespace=client)
        self.credentials = primary.credentials
        self.database = primary.database
        self.replicas = tuple(replicas)
        self.pids = (primary.pid, *(replica.pid for replica in replicas))
        self._primary = primary
        self._links = links

    def version(self) -> str:
        """The primary's; ServerError if it is gone."""
        return self._primary.version()

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """The administrator's question or order to the primary; ServerError if refused."""
        return self._primary.ask(sql)

    def settings(self) -> dict[str, str]:
        """The primary's effective global variables; ServerError if it is gone."""
        return self._primary.settings()

    def status(self) -> dict[str, float]:
        """The primary's numeric status counters; ServerError if it is gone."""
        return self._primary.status()

    def observer(self) -> Observer:
        """Somebody who reads the primary's counters on a connection of his own."""
        return observe(self._primary)

    def alive(self) -> bool:
        """Whether the primary and all its replicas still run."""
        return all(server.alive() for server in self._all())

    def last_words(self) -> str:
        """The end of the error log of the first server that is dead, else of the primary."""
        dead = (server for server in self._all() if not server.alive())
        return next(dead, self._primary).last_words()

    def stop(self, patience_s: float = STOP_S) -> None:
        """Stop the replicas, then the primary; ServerError, the first one, when all were asked."""
        failures = []
        for server in (*self.replicas, self._primary):
            if server is self._primary:
                self._end_sendings()
            try:
                server.stop(patience_s)
            except ServerError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def kill(self) -> None:
        """End all of them at once; for servers whose data will not be used again."""
        for server in self._all():
            server.kill()

    def replication(self) -> dict[str, float]:
        """How replication stands, by the names of `dbdyno.measurement.replication`; ServerError if unknown."""
        if not self.replicas:
            return {}
        committed = self._primary.ask(self._links.words.position)[0][0]
        found = {
            replication.TRANSACTIONS_BEHIND: max(self._behind(committed, r) for r in self.replicas),
            replication.REPLICAS_RUNNING: self._links.running(self._primary, self.replicas),
            replication.REPLICAS_CPU_S: sum(_cpu_s(server.pid) for server in self.replicas),
        }
        if self._links.plan.replication == "semisync":
            found |= self._semisync()
        return found

    def catch_up(self, cap_s: float) -> float:
        """Wait until the replicas have applied all that the primary committed until now.

        Returns:
            the seconds that took; `cap_s` or a little more when it did not come to an end.

        Raises:
            ServerError: a replica is gone.
        """
        began = time.monotonic()
        committed = "" if not self.replicas else self._primary.ask(self._links.words.position)[0][0]
        if committed:
            for replica in self.replicas:
                while (left_s := began + cap_s - time.monotonic()) > 0:
                    sql = self._links.words.wait(committed, min(left_s, WAIT_S_MAX))
                    if replica.ask(sql)[0][0] == "0":
                        break
        return time.monotonic() - began

    def _end_sendings(self) -> None:
        """Ends the threads that send to replicas, for whose idle ones a primary waits 8 s."""
        with suppress(ServerError):
            if self._links.plan.replication == "semisync":
                off = self._links.words.variable("source", "enabled")
                self._primary.ask(f"SET GLOBAL {off} = OFF")
            for number, *_, command in (row[:5] for row in self._primary.ask("SHOW PROCESSLIST")):
                if command.startswith("Binlog Dump"):
                    self._primary.ask(f"KILL {number}")

    def _all(self) -> tuple[Server, ...]:
        return (self._primary, *self.replicas)

    def _behind(self, committed: str, replica: Server) -> float:
        applied = replica.ask(self._links.words.applied)[0][0]
        if self._links.words.mariadb:
            return transactions.behind(committed, applied)
        left = self._primary.ask(f"SELECT GTID_SUBTRACT('{committed}', '{applied}')")[0][0]
        return transactions.count_of_set(left)

    def _semisync(self) -> dict[str, float]:
        words = self._links.words
        told = self._primary.ask(f"SHOW GLOBAL STATUS LIKE '{words.counter('%')}'")
        told += self._primary.ask(f"SHOW GLOBAL VARIABLES LIKE '{words.variable('source', '%')}'")
        seen = {name.lower(): value for name, value in told}

        def counter(name: str) -> str:
            return seen[words.counter(name).lower()]

        return {
            replication.SEMISYNC_ON: float(counter("status") == "ON"),
            replication.SEMISYNC_REPLICAS: float(counter("clients")),
            replication.COMMITS_ACKNOWLEDGED: float(counter("yes_tx")),
            replication.COMMITS_NOT_ACKNOWLEDGED: float(counter("no_tx")),
            replication.TIMES_OFF: float(counter("no_times")),
            replication.AFTER_SYNC: float(
                seen[words.variable("source", "wait_point")] == "AFTER_SYNC"
            ),
            replication.TIMEOUT_S: float(seen[words.variable("source", "timeout")]) / 1000,
        }


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process until now; 0 for one that is gone."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system
