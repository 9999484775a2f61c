"""Where the server is: a named socket, else the client library's own for localhost, else TCP."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from dbdyno.sysbench.not_yet import refusal
from dbdyno.sysbench.refusal import fatal
from dbdyno.sysbench.values import Values

SOCKET_VARIABLE = "MYSQL_UNIX_PORT"
"""Environment variable by which MySQL's client libraries let their default socket be set."""

DEFAULT_SOCKETS = (
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/tmp/mysql.sock",  # noqa: S108 - where MySQL's own builds put it
    "/var/lib/mysql/mysql.sock",
)
"""Default sockets of the libraries of Debian, MySQL's own builds and Red Hat."""


class Address(NamedTuple):
    """A server's address for the engine, and how sysbench names it in messages."""

    endpoint: dict[str, Any]
    described: str


def address(values: Values) -> Address:
    """The one address of the options.

    Raises:
        Refusal: a port is none, or there are several addresses to spread the load over.
    """
    socket = _only(values, "mysql-socket")
    if socket:
        return Address({"socket": socket}, f"socket '{socket}'")
    host, port_text = _only(values, "mysql-host"), _only(values, "mysql-port")
    for what, text in (("hosts", host), ("ports", port_text)):
        if not text:
            raise fatal(f"No MySQL {what} specified, aborting")
    port = _port(port_text)
    described = f"host '{host}', port {port}"
    if host == "localhost":
        return Address({"socket": default_socket()}, described)
    return Address({"host": host, "port": port}, described)


def default_socket() -> str:
    """The socket that localhost stands for: the environment's, or the first that is there."""
    if named := os.environ.get(SOCKET_VARIABLE):
        return named
    there = (path for path in DEFAULT_SOCKETS if os.path.exists(path))  # noqa: PTH110 - start-up
    return next(there, DEFAULT_SOCKETS[0])


def _only(values: Values, name: str) -> str:
    items = values.items(name)
    if len(items) > 1:
        raise refusal(f"--{name}={','.join(items)}", "spreading connections over several servers")
    return items[0] if items else ""


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise fatal(f"Invalid value for --mysql-port: '{text}'. It must be from 1 to 65535.")
    return int(text)
