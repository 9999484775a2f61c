"""Running servers that test files take in turn, one of each version for a worker.

A file's `server` fixture asks for `shared_servers`; tests/conftest.py brings all tests with the
same server to one worker. Tests that kill or configure a server start their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from dbdyno.servers.base import MYSQL, PGSQL, Server
from support.real_server import started

OPEN: Final = {"local_infile": "ON", "performance_schema": "ON", "ssl": "ON"}
"""Every way in that a test of sessions asks for."""
SETTINGS: Final = {
    "mysql:5.7.22": {"local_infile": "ON"},
    "mysql:8.0.15": OPEN,
    "mysql:8.0.31": OPEN,
    "mariadb:11.4.5": {},
    "postgres:18.6": {"shared_buffers": "64MB"},
}

LISTS: Final = {
    MYSQL: {
        "TABLE": "SELECT CONCAT('`', table_schema, '`.`', table_name, '`')"
        " FROM information_schema.tables WHERE table_type = 'BASE TABLE'",
        "DATABASE": "SELECT CONCAT('`', schema_name, '`') FROM information_schema.schemata",
        "USER": "SELECT CONCAT(QUOTE(user), '@', QUOTE(host)) FROM mysql.user",
    },
    PGSQL: {"TABLE": "SELECT oid::regclass FROM pg_class WHERE relkind IN ('r', 'p')"},
}
"""Objects that a borrower may leave behind, by the word that drops them."""


def objects(server: Server, listing: str) -> set[str]:
    """Names of objects, quoted for a statement."""
    return {name for (name,) in server.ask(listing)}


class SharedServers:
    """Starts a version when it is first asked for; all end with `stack`."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._running: dict[str, Server] = {}

    @contextmanager
    def lent(self, reference: str) -> Iterator[Server]:
        """A server as it was started; databases, users and tables of its borrower go afterwards."""
        if reference not in self._running:
            server = started("shared", reference, SETTINGS[reference])
            self._running[reference] = self._stack.enter_context(server)
        server = self._running[reference]
        before = {kind: objects(server, sql) for kind, sql in LISTS[server.driver].items()}
        yield server
        for kind, sql in LISTS[server.driver].items():
            for name in objects(server, sql) - before[kind]:
                server.ask(f"DROP {kind} {name}")
