"""The control plane's connection to a MySQL: one login as an administrator, kept open.

Never used for load. One connection serves all questions of a trial, so that asking does not add
connections to the counters that are read.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, runtime_checkable

import pymysql
from pymysql.constants import CR, ER

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, Endpoint, Observer, Server

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


# Reads a running server's counters again and again, on a connection of its own.
#
# The administrator's connection answers whoever asks first; a reading that a slow server keeps
# waiting would make the readings at the window's edges wait too. So a server may hand out an
# `Observer`. MySQL and MariaDB are asked for the counters of `COUNTERS` alone: the others cost
# the same on the server, but more on the way and in the store. A server that hands out none is
# asked for its whole status on the connection it has.


COUNTERS: Final[tuple[str, ...]] = (
    *("Questions", "Queries", "Slow_queries", "Connections"),
    *("Aborted_clients", "Aborted_connects", "Bytes_received", "Bytes_sent"),
    *("Threads_connected", "Threads_running", "Threads_created", "Threadpool_threads"),
    *("Com_begin", "Com_commit", "Com_rollback", "Com_select", "Com_insert", "Com_update"),
    *("Com_delete", "Com_stmt_prepare", "Com_stmt_execute"),
    *("Created_tmp_tables", "Created_tmp_disk_tables", "Sort_rows", "Sort_merge_passes"),
    *("Handler_read_first", "Handler_read_key", "Handler_read_next", "Handler_read_prev"),
    *("Handler_read_rnd", "Handler_read_rnd_next", "Handler_commit", "Handler_rollback"),
    *("Handler_write", "Handler_update", "Handler_delete"),
    *("Rows_read", "Rows_sent", "Table_open_cache_misses", "Opened_tables"),
    *("Innodb_rows_read", "Innodb_rows_inserted", "Innodb_rows_updated", "Innodb_rows_deleted"),
    *("Innodb_data_read", "Innodb_data_reads", "Innodb_data_written", "Innodb_data_writes"),
    *("Innodb_data_fsyncs", "Innodb_data_pending_fsyncs", "Innodb_data_pending_writes"),
    *("Innodb_os_log_written", "Innodb_os_log_fsyncs", "Innodb_log_waits", "Innodb_log_writes"),
    *("Innodb_log_write_requests", "Innodb_dblwr_writes", "Innodb_dblwr_pages_written"),
    *("Innodb_buffer_pool_read_requests", "Innodb_buffer_pool_reads"),
    *("Innodb_buffer_pool_pages_data", "Innodb_buffer_pool_pages_dirty"),
    *("Innodb_buffer_pool_pages_free", "Innodb_buffer_pool_pages_flushed"),
    *("Innodb_buffer_pool_pages_total", "Innodb_buffer_pool_bytes_dirty"),
    *("Innodb_buffer_pool_wait_free", "Innodb_pages_read", "Innodb_pages_written"),
    *("Innodb_row_lock_time", "Innodb_row_lock_waits", "Innodb_row_lock_current_waits"),
    *("Innodb_deadlocks", "Innodb_history_list_length", "Innodb_checkpoint_age"),
    *("Innodb_redo_log_checkpoint_lsn", "Innodb_redo_log_current_lsn"),
    *("Binlog_cache_disk_use", "Binlog_cache_use", "Binlog_commits", "Binlog_group_commits"),
    *("Rpl_semi_sync_master_yes_tx", "Rpl_semi_sync_master_no_tx"),
    *("Rpl_semi_sync_source_yes_tx", "Rpl_semi_sync_source_no_tx"),
)
"""Counters and levels of MySQL and MariaDB; a version answers with those it has."""


@runtime_checkable
class Observable(Protocol):
    """A server that hands out observers with a connection each."""

    def observer(self) -> Observer:
        """A new one; it logs in when it is first asked."""


def observe(server: Server) -> Observer:
    """The server's own observer, or one that asks for its whole status."""
    return server.observer() if isinstance(server, Observable) else WholeStatus(server)


class WholeStatus:
    """Asks a server for all of its counters, on the connection that it has anyway."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def read(self) -> dict[str, float]:
        """Every numeric counter; ServerError if it is gone."""
        return self._server.status()

    def close(self) -> None:
        """Nothing to give up."""


class MysqlObserver:
    """Asks a MySQL or MariaDB for the counters of `COUNTERS`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        names = ", ".join(f"'{name}'" for name in COUNTERS)
        self._sql = f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})"

    def read(self) -> dict[str, float]:
        """Those of the counters that this version has; ServerError if it is gone."""
        return numbers(self._client.rows(self._sql))

    def close(self) -> None:
        """Log out."""
        self._client.close()


def numbers(rows: Iterable[tuple[str, ...]]) -> dict[str, float]:
    """Names with the values that are numbers; others (a version, a state) are left out."""
    found = {}
    for name, value, *_ in rows:
        try:
            found[name] = float(value)
        except ValueError:
            continue
    return found
