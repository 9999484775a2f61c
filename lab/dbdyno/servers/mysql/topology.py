"""MySQL and MariaDB as a primary with replicas: settings of each, state, and waiting.

The primary writes no binary log while it is loaded. `replication` has the versions' statements and
the joining of replicas.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError, UsageError
from dbdyno.measurement import replication
from dbdyno.plan.settings import SettingValue
from dbdyno.servers.base import Endpoint, Server, ServerSpec, odd_answer, row_of, rows_of
from dbdyno.servers.mysql.instance import MysqlInstance
from dbdyno.servers.mysql.replication import (
    MARIADB,
    MYSQL_KIND,
    Links,
    ReplicationDialect,
    behind,
    count_of_set,
    dialect_of,
    group_keys,
    loading_keys,
    member_keys,
    own_keys,
    plugins_of,
)
from dbdyno.servers.mysql.settings import is_local, normalise
from dbdyno.servers.process import LOOPBACK
from dbdyno.servers.programs.catalog import CatalogEntry
from dbdyno.servers.programs.identify import files_of

WAIT_S_MAX: Final = 10.0
"""Longest single question to a replica while it catches up."""


def check(spec: ServerSpec, entry: CatalogEntry) -> None:
    """Validate the topology for the version; fetches nothing.

    Raises:
        UsageError: this product or version cannot have it.
    """
    if entry.product not in (MARIADB, *MYSQL_KIND):
        raise UsageError(
            f"{entry.reference} cannot have replicas",
            wanted=f"one of {', '.join((MARIADB, *MYSQL_KIND))}, postgres",
            hint="leave topology out for it",
        )
    _words(spec, entry)


class MysqlReplication:
    """`local.topology.Replication` of MySQL and MariaDB.

    Raises:
        UsageError: its programs lack a plugin, or its settings the binary log.
    """

    def __init__(
        self, spec: ServerSpec, entry: CatalogEntry, home: Path, report: Callable[[str], None]
    ) -> None:
        self._spec, self._files, self._report = spec, (entry, home), report
        words = _words(spec, entry)
        _check_plugins(entry, home, plugins_of(spec.topology, words))
        own_keys(spec.settings)
        self._links = Links(spec.topology, words, entry.authentication, spec.replica_ms > 0)
        self._group = str(uuid.uuid4())

    def member(self, spec: ServerSpec, folder: Path, copy: Path | None) -> MysqlInstance:
        return MysqlInstance(spec, *self._files, folder, self._report, copy=copy)

    def loading_keys(self, requested: Mapping[str, SettingValue]) -> Mapping[str, SettingValue]:
        own = self._own(requested)
        plan = self._spec.topology
        return loading_keys(plan, self._links.words, own)

    def member_keys(
        self, requested: Mapping[str, SettingValue]
    ) -> Sequence[Mapping[str, SettingValue]]:
        """Each member's number, its binary log, and the commits' wait for acknowledgements."""
        own = self._own(requested)
        plan, words = self._spec.topology, self._links.words
        keys = [member_keys(plan, words, own, number) for number in range(plan.replicas + 1)]
        if plan.replication == "group":
            is_delayed = self._links.is_delayed
            host = LOOPBACK if is_delayed else self._spec.address
            keys = [{**member, **group_keys(self._group, host, is_delayed)} for member in keys]
        return keys

    def join(self, primary: Server, replicas: Sequence[Server], doors: Sequence[Endpoint]) -> None:
        self._links.join(primary, replicas, doors)

    def state(self, primary: Server, replicas: Sequence[Server]) -> dict[str, float]:
        """Replicas in operation, their lag, and the acknowledged commits."""
        committed = row_of(primary, self._links.words.position)[0]
        state = {
            replication.TRANSACTIONS_BEHIND: max(
                self._behind(committed, primary, replica) for replica in replicas
            ),
            replication.REPLICAS_RUNNING: self._links.running(primary, replicas),
        }
        if self._links.plan.replication == "semisync":
            state |= self._semisync(primary)
        return state

    def catch_up(self, primary: Server, replicas: Sequence[Server], ends_s: float) -> None:
        """Have each replica wait for the primary's position."""
        committed = row_of(primary, self._links.words.position)[0]
        for replica in replicas if committed else ():
            while (left_s := ends_s - time.monotonic()) > 0:
                sql = self._links.words.wait(committed, min(left_s, WAIT_S_MAX))
                if row_of(replica, sql)[0] == "0":
                    break

    def before_stop(self, primary: Server) -> None:
        """End the threads that send to replicas, for whose idle ones a primary waits 8 s."""
        with suppress(ServerError):
            if self._links.plan.replication == "semisync":
                off = self._links.words.variable("source", "enabled")
                primary.ask(f"SET GLOBAL {off} = OFF")
            for number, *_, command in (row[:5] for row in rows_of(primary, "SHOW PROCESSLIST", 5)):
                if command.startswith("Binlog Dump"):
                    primary.ask(f"KILL {number}")

    def _own(self, requested: Mapping[str, SettingValue]) -> dict[str, str]:
        if is_local(normalise({**self._spec.settings, **requested})):
            raise UsageError(
                f"{self._spec.label}: replicas need a network",
                found="skip_networking",
                hint="leave skip_networking out, or the replicas",
            )
        return own_keys(self._spec.settings, requested)

    def _behind(self, committed: str, primary: Server, replica: Server) -> float:
        applied = row_of(replica, self._links.words.applied)[0]
        if self._links.words.mariadb:
            return behind(committed, applied)
        left = row_of(primary, f"SELECT GTID_SUBTRACT('{committed}', '{applied}')")[0]
        return count_of_set(left)

    def _semisync(self, primary: Server) -> dict[str, float]:
        words = self._links.words
        status = f"SHOW GLOBAL STATUS LIKE '{words.counter('%')}'"
        variables = f"SHOW GLOBAL VARIABLES LIKE '{words.variable('source', '%')}'"
        rows = [row for sql in (status, variables) for row in rows_of(primary, sql, 2)]
        seen = {row[0].lower(): row[1] for row in rows}

        def counter(name: str) -> str:
            return seen[words.counter(name).lower()]

        try:
            return {
                replication.SEMISYNC_ON: float(counter("status") == "ON"),
                replication.SEMISYNC_REPLICAS: float(counter("clients")),
                replication.COMMITS_ACKNOWLEDGED: float(counter("yes_tx")),
                replication.COMMITS_NOT_ACKNOWLEDGED: float(counter("no_tx")),
                replication.TIMES_OFF: float(counter("no_times")),
                replication.AFTER_SYNC: float(
                    seen[words.variable("source", "wait_point")] == "AFTER_SYNC"
                ),
                replication.TIMEOUT_S: float(seen[words.variable("source", "timeout")]) / 1000,
            }
        except (KeyError, ValueError) as error:
            wanted = "counters and variables of semi-synchronous replication"
            raise odd_answer(primary.label, status, wanted, f"{error!r}") from error


def _words(spec: ServerSpec, entry: CatalogEntry) -> ReplicationDialect:
    return dialect_of(entry.reference, entry.product, entry.version_numbers, spec.topology)


def _check_plugins(entry: CatalogEntry, home: Path, files: tuple[str, ...]) -> None:
    folder = files_of(home / entry.program).plugins
    missing = [name for name in files if folder is None or not (folder / name).is_file()]
    if missing:
        raise UsageError(
            f"{entry.reference} as it is fetched cannot replicate so: its plugins are not in it",
            wanted=", ".join(sorted(set(missing))),
            found="no folder of plugins" if folder is None else f"not among those in {folder}",
            hint="use mysql:8.0.33, mysql:9.7.4 or MariaDB 10.11 and newer, or replication: async",
        )
