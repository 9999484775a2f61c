"""Where the servers are: named sockets, else the client library's own for localhost, else TCP.

Several hosts and several ports are every host with every port, the ports first, as in sysbench;
connections go to the addresses in turn.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from dbdyno.sysbench.options.refusal import fatal
from dbdyno.sysbench.options.values import Values

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
    """The servers' addresses for the engine (one, or a list), and how messages name them."""

    endpoint: dict[str, Any] | list[dict[str, Any]]
    described: str


def address(values: Values) -> Address:
    """The addresses of the options.

    Raises:
        Refusal: a port is none, or there is no host or port at all.
    """
    named = [({"socket": path}, f"socket '{path}'") for path in values.items("mysql-socket")]
    found = named or _of_hosts(values.items("mysql-host"), values.items("mysql-port"))
    endpoints = [endpoint for endpoint, _ in found]
    described = found[0][1]
    if len(found) == 1:
        return Address(endpoints[0], described)
    return Address(endpoints, f"{described} (the first of {len(found)})")


def _of_hosts(hosts: Sequence[str], ports: Sequence[str]) -> list[tuple[dict[str, Any], str]]:
    for what, items in (("hosts", hosts), ("ports", ports)):
        if not items:
            raise fatal(f"No MySQL {what} specified, aborting")
    return [_of_host(host, _port(port)) for host in hosts for port in ports]


def _of_host(host: str, port: int) -> tuple[dict[str, Any], str]:
    described = f"host '{host}', port {port}"
    if host == "localhost":
        return {"socket": default_socket()}, described
    return {"host": host, "port": port}, described


def default_socket() -> str:
    """The socket that localhost stands for: the environment's, or the first that is there."""
    if named := os.environ.get(SOCKET_VARIABLE):
        return named
    there = (path for path in DEFAULT_SOCKETS if os.path.exists(path))  # noqa: PTH110 - start-up
    return next(there, DEFAULT_SOCKETS[0])


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise fatal(f"Invalid value for --mysql-port: '{text}'. It must be from 1 to 65535.")
    return int(text)
