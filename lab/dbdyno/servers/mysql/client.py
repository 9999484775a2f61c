"""dbdyno's own connection to a MySQL: one login as an administrator, kept open.

Never used for load. One connection serves all questions of a trial, so that asking does not add
connections to the counters that are read.

The server may be somebody else's, or not one at all. It gets no password in the clear, however it
asks; it has a time for each answer as a whole and a size for it; and whatever it says that cannot
be understood is a ServerError.
"""

from __future__ import annotations

import errno
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import pymysql
from pymysql.constants import CR, ER

from dbdyno.errors import ServerError
from dbdyno.servers.base import ANSWER_BYTES_MAX, Credentials, Endpoint, Observer, rows_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

CONNECT_S_MAX: Final = 10
"""For reaching the server and logging in."""
ANSWER_S_MAX: Final = 60
LOOK_S: Final = 0.1
NOT_READY: Final = frozenset(  # what a server says, or does not say, while it is coming up
    {CR.CR_CONNECTION_ERROR, CR.CR_CONN_HOST_ERROR, CR.CR_SERVER_LOST, ER.SERVER_SHUTDOWN}
)


class RefusedLogin:
    """Replaces a login plugin that would send the password in clear text, or weakly hidden."""

    def __init__(self, connection: object) -> None:
        pass

    def authenticate(self, packet: object) -> NoReturn:
        """Raises before anything is sent."""
        raise pymysql.err.OperationalError(
            CR.CR_AUTH_PLUGIN_CANNOT_LOAD,
            "it asks for the password in clear text or weakly hidden, which dbdyno does not send",
        )


REFUSED_LOGINS: Final[dict[str, Callable[[Any], Any]]] = {
    "mysql_clear_password": RefusedLogin,
    "dialog": RefusedLogin,
    "mysql_old_password": RefusedLogin,
}


class MysqlConnection(socket.socket):
    """A connection whose whole answer, not each piece of it, has a time and a size."""

    _ends = math.inf
    _bytes_left = ANSWER_BYTES_MAX

    def allow(self, seconds: float) -> None:
        """An answer may now take so long."""
        self._ends = time.monotonic() + seconds
        self._bytes_left = ANSWER_BYTES_MAX

    def recv_into(self, buffer: Buffer, nbytes: int | None = None, flags: int = 0) -> int:
        """As a socket's; TimeoutError or OSError when the answer takes too long or too much."""
        left_s = self._ends - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("no whole answer in time")
        self.settimeout(min(left_s, ANSWER_S_MAX))
        count = super().recv_into(buffer, nbytes or memoryview(buffer).nbytes, flags)
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise OSError(errno.EMSGSIZE, f"its answer is longer than {ANSWER_BYTES_MAX} bytes")
        return count


class _EncryptedConnection(MysqlConnection, ssl.SSLSocket):
    """What TLS makes of an open one in the midst of a login, whose time goes on."""

    def __new__(cls, **_: object) -> Self:  # by which `ssl` makes it; its __init__ does the rest
        made = super().__new__(cls)
        made.allow(CONNECT_S_MAX)
        return made


class Client:
    """Logs in when first needed; safe to ask from several threads."""

    def __init__(self, label: str, endpoint: Endpoint, who: Credentials) -> None:
        self.label = label
        self._endpoint = endpoint
        self._who = who
        self._connection: pymysql.Connection[Any] | None = None
        self._line: MysqlConnection | None = None
        self._is_closing = False
        self._lock = threading.Lock()

    def another(self) -> Client:
        """A second connection for the same user, whose questions need not wait for the first."""
        return Client(self.label, self._endpoint, self._who)

    def try_login(self) -> bool:
        """Whether a login works now; ServerError if the server refuses us for good."""
        with self._lock:
            try:
                self._connected()
            except OSError:
                return False
            except pymysql.err.OperationalError as error:
                is_tls = isinstance(getattr(error, "original_exception", None), ssl.SSLError)
                if error.args[0] in NOT_READY and not is_tls:
                    return False
                raise self._failed("refused the login", error) from error
            except Exception as error:
                raise self._failed("answered the login with what is none", error) from error
        return True

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """The answer, every value as text; ServerError if the server does not answer.

        After a lost connection it reconnects and asks once more.
        """
        with self._lock:
            ends = time.monotonic() + ANSWER_S_MAX
            try:
                return self._ask(sql)
            except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError) as error:
                self._drop()
                if self._is_closing or time.monotonic() >= ends:
                    raise self._failed(f"did not answer {sql!r}", error) from error
                return self._ask_again(sql)
            except Exception as error:
                self._drop()
                raise self._failed(f"did not answer {sql!r}", error) from error

    def close(self) -> None:
        """Log out; asking again logs in again. A question that still waits is given up."""
        self._is_closing = True
        while not self._lock.acquire(timeout=LOOK_S):
            if (line := self._line) is not None:
                with suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)
        try:
            self._is_closing = False
            self._drop()
        finally:
            self._lock.release()

    def _ask(self, sql: str) -> list[tuple[str, ...]]:
        with self._connected().cursor() as cursor:
            if self._line is not None:
                self._line.allow(ANSWER_S_MAX)
            try:
                cursor.execute(sql)
            except KeyboardInterrupt:
                self._drop()  # its answer would be taken for that of the next question
                raise
            return [tuple(_text(value) for value in row) for row in cursor.fetchall()]

    def _ask_again(self, sql: str) -> list[tuple[str, ...]]:
        try:
            return self._ask(sql)
        except Exception as error:
            self._drop()
            raise self._failed(f"did not answer {sql!r}", error) from error

    def _connected(self) -> pymysql.Connection[Any]:
        if self._connection is None:
            connection = pymysql.connect(
                host=self._endpoint.host,
                port=self._endpoint.port,
                user=self._who.user,
                password=self._who.password,
                autocommit=True,
                charset="utf8mb4",
                write_timeout=ANSWER_S_MAX,
                defer_connect=True,
                auth_plugin_map=REFUSED_LOGINS,
                **_transport(self._endpoint),
            )
            line = _line_to(self._endpoint)
            self._line = line
            if self._endpoint.socket is not None:
                # As PyMySQL says itself of a unix socket that it opened.
                connection._secure = True  # type: ignore[attr-defined]
            try:
                line.allow(CONNECT_S_MAX)
                connection.connect(line)
                if self._endpoint.encryption is not None:  # it wrapped the line
                    self._line = connection._sock  # type: ignore[attr-defined]
            except BaseException:
                line.close()
                raise
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
            f"{self.label}: the server {what} (user {self._who.user})",
            found=f"{type(error).__name__}: {error}",
        )


def _transport(endpoint: Endpoint) -> dict[str, Any]:
    """No TLS to our own servers: the line is a Unix socket, and old servers' TLS is refused."""
    asked = endpoint.encryption
    if asked is None:
        return {"ssl_disabled": True}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslsocket_class = _EncryptedConnection
    context.check_hostname = asked.mode == "verify_identity"
    context.verify_mode = ssl.CERT_NONE if asked.mode == "required" else ssl.CERT_REQUIRED
    if asked.ca is not None:
        context.load_verify_locations(asked.ca)
    return {"ssl": context}


def _line_to(endpoint: Endpoint) -> MysqlConnection:
    """A connected socket; PyMySQL would leave its own open when nobody listens yet."""
    if endpoint.socket is None:
        reached = socket.create_connection((endpoint.host, endpoint.port), CONNECT_S_MAX)
        line = MysqlConnection(fileno=reached.detach())
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return line
    line = MysqlConnection(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.settimeout(CONNECT_S_MAX)
        line.connect(str(endpoint.socket))
    except BaseException:
        line.close()
        raise
    return line


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


# What an observer asks for: the other counters would cost the server as much, and more on the way
# and in the store.


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
    *("Rpl_semi_sync_master_wait_sessions", "Rpl_semi_sync_source_wait_sessions"),
)
"""Counters and levels of MySQL and MariaDB; a version answers with those it has."""
COUNTERS_SQL: Final = "SHOW GLOBAL STATUS WHERE Variable_name IN ({})".format(
    ", ".join(f"'{name}'" for name in COUNTERS)
)


def observer_of(client: Client) -> Observer:
    """Reads `COUNTERS` on this connection, which is closed with it."""
    return Observer(lambda: numbers(rows_of(client, COUNTERS_SQL, 2)), client.close)


def numbers(rows: Iterable[tuple[str, ...]]) -> dict[str, float]:
    """Names with the values that are finite numbers; others (a version, NaN) are left out.

    Args:
        rows: each a name, its value, and whatever else.
    """
    found = {}
    for name, value, *_ in rows:
        with suppress(ValueError):
            found[name] = float(value)
    return {name: number for name, number in found.items() if math.isfinite(number)}
