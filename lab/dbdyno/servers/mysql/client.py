"""dbdyno's own connection to a MySQL, and the counters read on it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from dbdyno.servers.base import MYSQL, Credentials, Endpoint, Observer, rows_of
from dbdyno.servers.client import Client

ORDERS: Final = ("SET NAMES utf8mb4", "SET autocommit = 1")
"""Set at login, to be independent of the server's settings."""


class MysqlClient(Client):
    """A session that enters its database, if any is given, as soon as it exists.

    Some servers refuse statements without a default database, even where they name it.
    """

    def __init__(
        self, label: str, endpoint: Endpoint, who: Credentials, database: str = ""
    ) -> None:
        entry = f"USE `{database}`" if database else ""
        super().__init__(label, MYSQL, endpoint, who, orders=ORDERS, entry=entry)

    def another(self) -> MysqlClient:
        """A second connection for the same user, whose questions need not wait for the first."""
        return MysqlClient(self.label, self._endpoint, self._who)


# Counters for an observer: the others would cost the server as much, and more in transit and in the
# store.


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
"""Counters and levels of MySQL and MariaDB; a version answers with its own subset."""
COUNTERS_SQL: Final = "SHOW GLOBAL STATUS WHERE Variable_name IN ({})".format(
    ", ".join(f"'{name}'" for name in COUNTERS)
)


def observer_of(client: MysqlClient) -> Observer:
    """Reader of `COUNTERS` on this connection, which is closed with it."""
    return Observer(lambda: numbers(rows_of(client, COUNTERS_SQL, 2)), client.close)


def numbers(rows: Iterable[tuple[str, ...]]) -> dict[str, float]:
    """Finite numbers by name; other values (a version, NaN) are left out.

    Args:
        rows: each a name, its value, and further columns.
    """
    values = {}
    for name, value, *_ in rows:
        with suppress(ValueError):
            values[name] = float(value)
    return {name: value for name, value in values.items() if math.isfinite(value)}
