"""Servers that somebody else runs, one or several behind one system, seen through logins alone.

dbdyno can ask them and load them. It cannot restart them, read their processes' counters or look at
their logs: what a controlled server would know of itself is empty here, and findings say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.servers.base import STOP_S, Credentials, Endpoint
from dbdyno.servers.mysql.client import Client
from dbdyno.servers.mysql.observer import numbers

NOT_OURS: Final = 0
"""The pid of a server that dbdyno did not start; no process has it."""
LEAST: Final = frozenset({"Uptime", "Uptime_since_flush_status"})
"""Counters of which the smallest of all servers counts: one that was restarted shows."""


class EndpointServer:
    """Ready for logins when `EndpointInstance.start` hands it out."""

    pid = NOT_OURS

    def __init__(
        self, label: str, endpoint: Endpoint, credentials: Credentials, database: str
    ) -> None:
        self.label = label
        self.endpoint = endpoint
        self.credentials = credentials
        self.database = database
        self._clients = [
            Client(_named(label, place), place, credentials) for place in _places(endpoint)
        ]

    def login(self) -> None:
        """Every server answers and says the same version; ServerError if not."""
        for client, place in zip(self._clients, _places(self.endpoint), strict=True):
            if not client.try_login():
                raise ServerError(
                    f"{self.label}: nobody answers at {place.host}:{place.port}",
                    wanted="a server that is up and can be reached from here",
                    hint="look at the address, the server and what stands between",
                )
        versions = [client.rows("SELECT VERSION()")[0][0] for client in self._clients]
        if len(set(versions)) > 1:
            raise ServerError(
                f"{self.label}: its servers are of different versions",
                wanted="one version behind one system",
                found=", ".join(versions),
                hint="make a system of each",
            )

    def version(self) -> str:
        """What the first server says of itself; ServerError if it is gone."""
        return self.ask("SELECT VERSION()")[0][0]

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """The first server's answer to the load user, every value as text; ServerError if none."""
        return self._clients[0].rows(sql)

    def settings(self) -> dict[str, str]:
        """Every effective global variable of the first server; ServerError if it is gone."""
        return {row[0].lower(): row[1] for row in self.ask("SHOW GLOBAL VARIABLES")}

    def status(self) -> dict[str, float]:
        """Every numeric global status counter, added up; ServerError if a server is gone."""
        return added([client.rows("SHOW GLOBAL STATUS") for client in self._clients])

    def alive(self) -> bool:
        """Whether every server answers now."""
        try:
            return all(client.rows("SELECT 1") == [("1",)] for client in self._clients)
        except ServerError:
            return False

    def last_words(self) -> str:
        """Nothing: its log is not ours to read."""
        return ""

    def stop(self, patience_s: float = STOP_S) -> None:
        """Log out; the servers go on."""
        self._log_out()

    def kill(self) -> None:
        """Log out; the servers are not ours to end."""
        self._log_out()

    def _log_out(self) -> None:
        for client in self._clients:
            client.close()


def added(answers: Sequence[Sequence[tuple[str, ...]]]) -> dict[str, float]:
    """The sum of each numeric counter that all have; of uptimes the smallest."""
    counters = [numbers(rows) for rows in answers]
    shared = [name for name in counters[0] if all(name in each for each in counters)]
    return {
        name: (min if name in LEAST else sum)([each[name] for each in counters]) for name in shared
    }


def _places(endpoint: Endpoint) -> tuple[Endpoint, ...]:
    return (endpoint, *endpoint.others)


def _named(label: str, place: Endpoint) -> str:
    return f"{label} ({place.host}:{place.port})"
