"""The control plane's connection to a MySQL: one login as an administrator, kept open.

Never used for load. One connection serves all questions of a trial, so that asking does not add
connections to the counters that are read.
"""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import pymysql
from pymysql.constants import CR, ER

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, Endpoint

CONNECT_S_MAX: Final = 10
ANSWER_S_MAX: Final = 60
NOT_READY: Final = frozenset(  # what a server says, or does not say, while it is coming up
    {CR.CR_CONNECTION_ERROR, CR.CR_CONN_HOST_ERROR, CR.CR_SERVER_LOST, ER.SERVER_SHUTDOWN}
)


class Client:
    """Logs in when first needed; safe to ask from several threads."""

    def __init__(self, label: str, endpoint: Endpoint, who: Credentials) -> None:
        self._label = label
        self._endpoint = endpoint
        self._who = who
        self._connection: pymysql.Connection[Any] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def another(self) -> Client:
        """A second connection for the same user, for somebody who must not wait for the first."""
        return Client(self._label, self._endpoint, self._who)

    def try_login(self) -> bool:
        """Whether a login works now; ServerError if the server refuses us for good."""
        with self._lock:
            try:
                self._connected()
            except pymysql.err.OperationalError as error:
                if error.args[0] in NOT_READY:
                    return False
                raise self._failed("refused the login", error) from error
            except OSError:
                return False
        return True

    def rows(self, sql: str) -> list[tuple[str, ...]]:
        """The answer, every value as text; ServerError if the server does not answer.

        A connection that was lost since the last question is made anew once.
        """
        with self._lock:
            try:
                return self._ask(sql)
            except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError):
                self._drop()
            try:
                return self._ask(sql)
            except (pymysql.err.MySQLError, OSError) as error:
                self._drop()
                raise self._failed(f"did not answer {sql!r}", error) from error

    def close(self) -> None:
        """Log out; asking again logs in again."""
        with self._lock:
            self._drop()

    def _ask(self, sql: str) -> list[tuple[str, ...]]:
        with self._connected().cursor() as cursor:
            cursor.execute(sql)
            return [tuple(_text(value) for value in row) for row in cursor.fetchall()]

    def _connected(self) -> pymysql.Connection[Any]:
        if self._connection is None:
            connection = pymysql.connect(
                host=self._endpoint.host,
                port=self._endpoint.port,
                user=self._who.user,
                password=self._who.password,
                autocommit=True,
                charset="utf8mb4",
                connect_timeout=CONNECT_S_MAX,
                read_timeout=ANSWER_S_MAX,
                write_timeout=ANSWER_S_MAX,
                defer_connect=True,
                ssl_disabled=True,  # the line is a unix socket, and old servers' TLS is refused
            )
            if self._endpoint.socket is None:
                connection.connect()
            else:
                line = _line_to(self._endpoint.socket)
                # As PyMySQL says itself of a unix socket that it opened.
                connection._secure = True  # type: ignore[attr-defined]
                connection.connect(line)
            self._connection = connection
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.open:
            try:
                connection.close()
            except (pymysql.err.MySQLError, OSError):
                return

    def _failed(self, what: str, error: Exception) -> ServerError:
        return ServerError(
            f"{self._label}: the server {what} (user {self._who.user})",
            found=f"{type(error).__name__}: {error}",
        )


def _line_to(path: Path) -> socket.socket:
    """A connected unix socket; PyMySQL would leave its own open when nobody listens yet."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.settimeout(CONNECT_S_MAX)
        line.connect(str(path))
    except BaseException:
        line.close()
        raise
    return line


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)
