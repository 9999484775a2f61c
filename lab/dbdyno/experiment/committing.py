"""Sessions of the load user for commits that count one by one, and the syncs that they cost.

Not for load that is measured: Python is far too slow for that. An answer of `rows` means that the
server said yes; after a lost connection the same row is asked for once more, which its key makes
harmless, and the server is gone by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from dbdyno.servers.base import Endpoint, Server
from dbdyno.servers.mysql.client import Client
from dbdyno.servers.postgres.client import PostgresClient
from dbdyno.servers.postgres.server import PostgresServer

INNODB: Final = "Innodb_os_log_fsyncs"
POSTGRES_LOG: Final = ("io.", ".wal.", ".fsyncs")


class _Asked(Protocol):
    def rows(self, sql: str) -> list[tuple[str, ...]]: ...
    def close(self) -> None: ...


class Session:
    """One login of the load user.

    Args:
        prefix: what goes before a table's name so that this product finds it.
    """

    def __init__(self, asked: _Asked, prefix: str) -> None:
        self._asked = asked
        self._prefix = prefix

    def rows(self, sql: str) -> list[tuple[str, ...]]:
        """The answer, every value as text; ServerError if the server refuses or is gone."""
        return self._asked.rows(sql)

    def qualified(self, table: str) -> str:
        """The table in the load's database."""
        return f"{self._prefix}{table}"

    def close(self) -> None:
        """Log out."""
        self._asked.close()


def sessions(server: Server, count: int) -> list[Session]:
    """So many logins of the load user, made when they are first asked."""
    line = Endpoint(server.endpoint.host, server.endpoint.port, None)  # as a load comes in
    if isinstance(server, PostgresServer):
        return [
            Session(PostgresClient(server.label, line, server.credentials, server.database), "")
            for _ in range(count)
        ]
    prefix = f"`{server.database}`."
    place = server.endpoint
    return [Session(Client(server.label, place, server.credentials), prefix) for _ in range(count)]


def log_syncs(status: Mapping[str, float]) -> float | None:
    """Syncs of the log that a server has counted so far; None if it counts none."""
    if INNODB in status:
        return status[INNODB]
    if "wal.wal_sync" in status:  # PostgreSQL until 17
        return status["wal.wal_sync"]
    first, middle, last = POSTGRES_LOG
    found = [
        value
        for name, value in status.items()
        if name.startswith(first) and middle in name and name.endswith(last)
    ]
    return sum(found) if found else None
