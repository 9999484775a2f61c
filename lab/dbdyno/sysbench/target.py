"""Addresses of the servers, and TLS and compression of the connections to them."""

from __future__ import annotations

import os
import stat
import sys

from dbdyno import _engine
from dbdyno.sysbench.options.table import unsupported
from dbdyno.sysbench.options.values import Values, argument_error, boolean, fatal
from dbdyno.sysbench.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

DEFAULT_SOCKETS = (
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/tmp/mysql.sock",  # noqa: S108 - where MySQL's own builds put it
    "/var/lib/mysql/mysql.sock",
)
"""Default sockets of the libraries of Debian, MySQL's own builds and Red Hat."""
DEFAULT_PORT = "3306"


class Address(NamedTuple):
    """The servers' addresses for the engine (one, or a list), and their names in messages."""

    endpoint: dict[str, Any] | list[dict[str, Any]]
    names: tuple[str, ...]

    def named(self, server: str) -> str:
        """The name of the address that the engine calls `server`; the first if it is not told."""
        endpoints = self.endpoint if isinstance(self.endpoint, list) else [self.endpoint]
        called = [_called(endpoint) for endpoint in endpoints]
        if server in called:
            return self.names[called.index(server)]
        count = len(self.names)
        return self.names[0] if count == 1 else f"{self.names[0]} (the first of {count})"


def _called(endpoint: dict[str, Any]) -> str:
    """An address in the engine's messages."""
    if "socket" in endpoint:
        return str(endpoint["socket"])
    host = endpoint["host"]
    return f"[{host}]:{endpoint['port']}" if ":" in host else f"{host}:{endpoint['port']}"


def address(values: Values) -> Address:
    """The addresses: named sockets, else the client library's socket for localhost, else TCP.

    Several hosts and several ports are every host with every port, the ports first, as in sysbench;
    connections go to the addresses in turn.

    Raises:
        Refusal: a port is none, or there is no host or port at all.
    """
    named = [({"socket": path}, f"socket '{path}'") for path in values.items("mysql-socket")]
    addresses = named or _of_hosts(values.items("mysql-host"), values.items("mysql-port"))
    endpoints, names = zip(*addresses, strict=True)
    return Address(endpoints[0] if len(names) == 1 else list(endpoints), names)


def port_notes(values: Values) -> list[str]:
    """A note on a typed port without effect: localhost is a socket, as for MySQL's own clients."""
    ports = ",".join(values.items("mysql-port"))
    is_socket = "localhost" in values.items("mysql-host") and not values.items("mysql-socket")
    is_other = values.text("db-driver") == PGSQL or values.flag("mysql-dry-run")
    if is_other or not is_socket or ports in ("", DEFAULT_PORT):
        return []
    return [
        f"localhost is the Unix socket {default_socket()}: --mysql-port={ports} has no effect;"
        " write --mysql-host=127.0.0.1 for TCP"
    ]


def _of_hosts(hosts: Sequence[str], ports: Sequence[str]) -> list[tuple[dict[str, Any], str]]:
    for option, items in (("hosts", hosts), ("ports", ports)):
        if not items:
            raise fatal(f"No MySQL {option} specified, aborting")
    return [
        (
            {"socket": default_socket()} if host == "localhost" else {"host": host, "port": port},
            f"host '{host}', port {port}",
        )
        for host in hosts
        for port in map(_port, ports)
    ]


def default_socket() -> str:
    """The socket for localhost: the client library's variable, else the first existing default."""
    if named := os.environ.get("MYSQL_UNIX_PORT"):
        return named
    there = (path for path in DEFAULT_SOCKETS if os.path.exists(path))  # noqa: PTH110 - start-up
    return next(there, DEFAULT_SOCKETS[0])


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise fatal(f"Invalid value for --mysql-port: '{text}'. It must be from 1 to 65535.")
    return int(text)


MODES = ("disabled", "preferred", "required", "verify_ca", "verify_identity")
_is_there = os.path.isfile  # pathlib costs a fifth of the start-up time
_FILES_OF_1_0 = {"ca": "cacert.pem", "cert": "client-cert.pem", "key": "client-key.pem"}


class Transport(NamedTuple):
    """Fields of the engine's specs, and notes for the user about them."""

    fields: dict[str, Any]
    notes: tuple[str, ...]


def transport(values: Values) -> Transport:
    """``--mysql-ssl*``, ``--mysql-compression*``: the fields that differ from a plain connection.

    In sysbench 1.0 ``--mysql-ssl`` is a switch and takes three files from the working directory; in
    1.1 it is a mode and the files are options. Both spellings work in both.

    Raises:
        Refusal: a mode is unknown, or a named file is not there.
    """
    tls, notes = _tls(values)
    fields: dict[str, Any] = {} if tls is None else {"tls": tls}
    if _compresses(values):
        fields["compression"] = True
    return Transport(fields, notes)


def _tls(values: Values) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    mode, is_switch = _mode(values)
    if mode == "disabled":
        return None, ()
    files = {name: values.text(f"mysql-ssl-{name}") or None for name in _FILES_OF_1_0}
    for name, path in files.items():
        if path and not _is_there(path):
            raise fatal(f"Invalid value for --mysql-ssl-{name}: there is no file '{path}'.")
    notes: tuple[str, ...] = ()
    if is_switch and not any(files.values()):
        there = {name: path for name, path in _FILES_OF_1_0.items() if _is_there(path)}
        if not {"cert", "key"} <= set(there):
            there = {name: path for name, path in there.items() if name == "ca"}
        files = {name: there.get(name) for name in _FILES_OF_1_0}
        if missing := [path for name, path in _FILES_OF_1_0.items() if name not in there]:
            notes = (f"--mysql-ssl: encrypted without {', '.join(missing)} in this folder",)
    return {"mode": mode, **files, "ciphers": values.text("mysql-ssl-cipher")}, notes


def _mode(values: Values) -> tuple[str, bool]:
    """The mode, and whether it was given as 1.0's switch."""
    raw = values.raw("mysql-ssl")
    switch = boolean(raw)
    if switch is not None:
        return ("required" if switch else "disabled"), True
    mode = (raw or "").lower()
    if mode not in MODES:
        hint = f"  hint: it takes on, off, {', '.join(MODES)}"
        raise argument_error(f"invalid option: --mysql-ssl={raw}", hint)
    return mode, False


def _compresses(values: Values) -> bool:
    if not values.flag("mysql-compression"):
        return False
    algorithms = values.items("mysql-compression-algorithms")
    if "zlib" not in algorithms:
        named = f"--mysql-compression-algorithms={','.join(algorithms)}"
        raise unsupported(named, "compression by other algorithms than zlib")
    return True


MYSQL, PGSQL = "mysql", "pgsql"
_SOCKET_FOLDERS = ("/var/run/postgresql", "/tmp")  # noqa: S108 - where libpq looks
_SSL_MODES = {
    "disable": None,
    "allow": "preferred",
    "prefer": "preferred",
    "require": "required",
    "verify-ca": "verify_ca",
    "verify-full": "verify_identity",
}
"""libpq's modes as the engine's; `allow` differs in which way is tried first only."""


def driver(values: Values) -> str:
    """``--db-driver``: mysql or pgsql; Refusal for any other."""
    name = values.text("db-driver") or MYSQL
    if name not in (MYSQL, PGSQL):
        raise fatal(f"invalid database driver name: '{name}'")
    return name


def postgres_address(values: Values) -> Address:
    """The address of a PostgreSQL, as libpq reads host and port; Refusal if the port is none."""
    host, port = values.text("pgsql-host"), values.integer("pgsql-port")
    if not 1 <= port <= 65535:
        raise fatal(f"Invalid value for --pgsql-port: '{port}'. It must be from 1 to 65535.")
    if host and not host.startswith("/"):
        return Address({"host": host, "port": port}, (f"host '{host}', port {port}",))
    folders = (host,) if host else _SOCKET_FOLDERS
    paths = [f"{folder}/.s.PGSQL.{port}" for folder in folders]
    there = (path for path in paths if os.path.exists(path))  # noqa: PTH110 - start-up
    path = next(there, paths[0])
    return Address({"socket": path}, (f"socket '{path}'",))


def postgres_password(values: Values) -> str:
    """The password that was not typed: libpq's variable, else its file; empty without any."""
    return os.environ.get("PGPASSWORD") or _password_in_file(values)


def _password_in_file(values: Values) -> str:
    """The password in PGPASSFILE, else ~/.pgpass, by libpq's rules.

    A file that others may read is passed over, with a warning. A socket in the usual folder is
    called localhost there.
    """
    usual = os.path.expanduser("~/.pgpass")  # noqa: PTH111 - start-up
    path = os.environ.get("PGPASSFILE") or usual
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - start-up
        if not stat.S_ISREG(mode):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return ""
    if mode & 0o077:
        _warn(f"{path} is not read for a password, as others may read it: chmod 600 {path}")
        return ""
    host = values.text("pgsql-host")
    host = "localhost" if host in ("", *_SOCKET_FOLDERS) else host
    port, user = values.integer("pgsql-port"), values.text("pgsql-user")
    return _engine.password_in_file(text, host, port, values.text("pgsql-db") or user, user)


_warned: set[str] = set()


def _warn(text: str) -> None:
    """Print a warning once: a script's command asks for the password several times."""
    if text not in _warned:
        _warned.add(text)
        sys.stderr.write(f"WARNING: {text}\n")


def postgres_transport(values: Values) -> dict[str, Any]:
    """``--pgsql-sslmode``, with libpq's trusted certificates; Refusal for an unknown mode.

    As with libpq, ``require`` verifies the certificate if there is a file of authorities.
    """
    ssl_mode = values.text("pgsql-sslmode") or "prefer"
    if ssl_mode not in _SSL_MODES:
        hint = f"  hint: it takes {', '.join(_SSL_MODES)}"
        raise argument_error(f"invalid option: --pgsql-sslmode={ssl_mode}", hint)
    mode = _SSL_MODES[ssl_mode]
    if mode is None:
        return {}
    usual = os.path.expanduser("~/.postgresql/root.crt")  # noqa: PTH111 - start-up
    ca = os.environ.get("PGSSLROOTCERT") or usual
    if mode == "required" and _is_there(ca):
        mode = "verify_ca"
    return {"tls": {"mode": mode, "ca": ca} if mode.startswith("verify") else {"mode": mode}}
