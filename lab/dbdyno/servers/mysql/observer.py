"""Reads a running server's counters again and again, on a connection of its own.

The administrator's connection answers whoever asks first; a reading that a slow server keeps
waiting would make the readings at the window's edges wait too. So a server may hand out an
`Observer`. MySQL and MariaDB are asked for the counters of `COUNTERS` alone: the others cost the
same on the server, but more on the way and in the store. A server that hands out none is asked for
its whole status on the connection it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol, runtime_checkable

from dbdyno.servers.base import Server
from dbdyno.servers.mysql.client import Client

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


class Observer(Protocol):
    """Somebody who may be asked for counters from a thread of his own."""

    def read(self) -> dict[str, float]:
        """The counters now, by name; ServerError if the server does not answer."""

    def close(self) -> None:
        """Give up the connection."""


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


class PostgresObserver:
    """Asks a PostgreSQL for its statistics views.

    ``pg_stat_io`` has a thousand numbers, most of which stay 0: those are left out.

    Args:
        ask: all numbers of the views, by name; raises ServerError if it is gone.
        log_out: ends the session that is asked.
    """

    def __init__(self, ask: Callable[[], dict[str, float]], log_out: Callable[[], None]) -> None:
        self._ask = ask
        self.close = log_out

    def read(self) -> dict[str, float]:
        """Every number but zeros of ``pg_stat_io``; ServerError if it is gone."""
        return {n: value for n, value in self._ask().items() if value or not n.startswith("io.")}


def numbers(rows: Iterable[tuple[str, ...]]) -> dict[str, float]:
    """Names with the values that are numbers; others (a version, a state) are left out."""
    found = {}
    for name, value, *_ in rows:
        try:
            found[name] = float(value)
        except ValueError:
            continue
    return found
