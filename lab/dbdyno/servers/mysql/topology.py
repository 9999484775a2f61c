"""A system of several servers: a primary, its replicas, and the network between them.

All begin with one set of files. The primary is loaded alone and writes no binary log meanwhile; its
stopped data is the snapshot of the whole, from which each start's primary and replicas are copied.
So no replica has to be filled through replication, and each holds the very bytes of its primary.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import psutil

from dbdyno.errors import ServerError, UsageError
from dbdyno.measurement import replication
from dbdyno.plan.plan import NetworkPlan
from dbdyno.plan.settings import SettingValue
from dbdyno.plan.systems import TopologyPlan
from dbdyno.servers import process
from dbdyno.servers.base import (
    MYSQL,
    STOP_S,
    Observer,
    Server,
    ServerSpec,
    observe,
    odd_answer,
    row_of,
    rows_of,
)
from dbdyno.servers.local import network
from dbdyno.servers.local.network import Network, wanted
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
from dbdyno.servers.process import Place
from dbdyno.servers.programs.catalog import CatalogEntry
from dbdyno.servers.programs.identify import files_of

REPLICA: Final = "replica-{}"
UNUSED: Final = ReplicationDialect(mariadb=False, source="source", replica="replica")
GROUP_PORT: Final = 33061  # in a network of its own; elsewhere a free one is taken


def check(spec: ServerSpec, entry: CatalogEntry) -> None:
    """The version can have such a topology, and the machine such a network; nothing is fetched.

    Raises:
        UsageError: this product or version cannot.
        ServerError: this machine cannot delay the network.
    """
    if entry.product not in (MARIADB, *MYSQL_KIND):
        raise UsageError(
            f"{entry.reference} cannot have replicas or a delayed network",
            wanted=f"one of {', '.join((MARIADB, *MYSQL_KIND))}",
            hint="leave topology and network out for it",
        )
    _words(spec, entry)
    network.check(spec.network)


class TopologyInstance:
    """Made by `open.instance` for a system with replicas or with a network; as `Instance`."""

    driver = MYSQL

    def __init__(
        self,
        spec: ServerSpec,
        entry: CatalogEntry,
        home: Path,
        folder: Path,
        report: Callable[[str], None],
    ) -> None:
        self.spec = spec
        plan = spec.topology
        words = _words(spec, entry)
        if plan.replicas:
            _check_plugins(entry, home, plugins_of(plan, words))
            own_keys(spec.settings)
        self._links = Links(plan, words, entry.authentication)
        self._alone = replace(spec, topology=TopologyPlan(), network=NetworkPlan())
        self._primary = MysqlInstance(self._alone, entry, home, folder, report)
        self.folder = self._primary.folder
        for left in self.folder.glob(REPLICA.format("*")):  # by a lab that died
            shutil.rmtree(left, ignore_errors=True)
        self._files = (entry, home)
        self._replicas: list[MysqlInstance] = []
        self._server: TopologyServer | None = None
        self._network: Network | None = None
        self._group = str(uuid.uuid4())
        self._report = report

    def start(self, settings: Mapping[str, SettingValue] | None = None) -> Server:
        """Start all servers and join them; without a snapshot the primary alone, to be loaded.

        Raises:
            UsageError: a setting takes away what replication needs.
            ServerError: a server did not start or did not join; none is left running.
        """
        plan, asked = self.spec.topology, settings or {}
        if is_local(normalise({**self.spec.settings, **asked})):
            raise UsageError(
                f"{self.spec.label}: replicas and delays need a network",
                found="skip_networking",
                hint="leave skip_networking out, or replicas and delays",
            )
        if not self.has_snapshot():
            own = own_keys(self.spec.settings, asked) if plan.replicas else {}
            keys = loading_keys(plan, self._links.words, own) if plan.replicas else {}
            return self._primary.start({**asked, **keys})
        self._open()
        client, places = self._places()
        members = [self._primary, *self._replicas]
        keys_of_all = self._keys(asked, places)
        with ExitStack() as started:
            running = []
            for member, keys, place in zip(members, keys_of_all, places, strict=True):
                running.append(member.start({**asked, **keys}, place))
                started.callback(_end, running[-1])
            if plan.replicas:
                self._report(f"{self.spec.label}: joining its replicas, {plan.replicas} in all")
                self._links.join(running[0], running[1:])
            started.pop_all()
        self._server = TopologyServer(running[0], running[1:], self._links, client)
        return self._server

    def snapshot(self) -> None:
        """Copy the stopped primary's data aside; it is what all begin with."""
        self._primary.snapshot()

    def has_snapshot(self) -> bool:
        """Whether a complete snapshot exists of this reference and format-deciding settings."""
        return self._primary.has_snapshot()

    def restore(self) -> None:
        """All data directories become the snapshot again; ServerError if there is none."""
        self._primary.restore()
        for replica in self._replicas:
            replica.restore()

    def data_bytes(self) -> int:
        """Bytes on disk of the primary's loaded tables; ServerError without a snapshot."""
        return self._primary.data_bytes()

    def close(self) -> None:
        """End what runs, remove working data and network; a snapshot stays."""
        with ExitStack() as stack:
            if self._network is not None:
                stack.callback(self._network.close)
            for member in (self._primary, *self._replicas):
                stack.callback(member.close)
        for replica in self._replicas:
            shutil.rmtree(replica.folder, ignore_errors=True)

    def discard(self) -> None:
        """End what runs, and remove all, the snapshot too."""
        self.close()
        self._primary.discard()

    def _open(self) -> None:
        """Makes the replicas' places, which begin as copies of the snapshot, and the network."""
        for number in range(len(self._replicas) + 1, self.spec.topology.replicas + 1):
            label = f"{self.spec.label} replica {number}"
            folder = self.folder / REPLICA.format(number)
            spec, copy = replace(self._alone, label=label), self.folder / "snapshot"
            replica = MysqlInstance(spec, *self._files, folder, self._report, copy=copy)
            self._replicas.append(replica)
        if self._network is None and wanted(self.spec.network):
            members = 1 + len(self._replicas)
            self._network = Network(self.spec.network, members, self.folder)

    def _places(self) -> tuple[Path | None, tuple[Place, ...]]:
        if self._network is None:
            return None, (Place(self.spec.address),) * (1 + len(self._replicas))
        return self._network.client.namespace, self._network.members

    def _keys(
        self, asked: Mapping[str, SettingValue], places: tuple[Place, ...]
    ) -> list[dict[str, SettingValue]]:
        plan, words = self.spec.topology, self._links.words
        if not plan.replicas:
            return [{}]
        own = own_keys(self.spec.settings, asked)
        keys = [member_keys(plan, words, own, number) for number in range(len(places))]
        if plan.replication == "group":
            talk = [f"{place.address}:{_group_port(place)}" for place in places]
            keys = [{**k, **group_keys(self._group, talk, n)} for n, k in enumerate(keys)]
        return keys


def _words(spec: ServerSpec, entry: CatalogEntry) -> ReplicationDialect:
    if not spec.topology.replicas:
        return UNUSED
    return dialect_of(entry.reference, entry.product, entry.version_numbers, spec.topology)


def _group_port(place: Place) -> int:
    return process.free_port() if place.namespace is None else GROUP_PORT


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


def _end(server: Server) -> None:
    """Ends a server whose start came to nothing; how it ends does not matter any more."""
    try:
        server.stop()
    except ServerError:
        return


WAIT_S_MAX = 10.0
"""Longest single question to a replica while it catches up."""


class TopologyServer:
    """A running primary with its replicas, one server to the load; from `TopologyInstance.start`.

    Load, counters and settings are the primary's; `replication` has what the replicas do.
    """

    driver = MYSQL

    def __init__(
        self, primary: Server, replicas: Sequence[Server], links: Links, client: Path | None
    ) -> None:
        self.label = primary.label
        self.pid = primary.pid
        self.endpoint = replace(primary.endpoint, namespace=client)
        self.credentials = primary.credentials
        self.database = primary.database
        self.replicas = tuple(replicas)
        self.pids = (primary.pid, *(replica.pid for replica in replicas))
        self._primary = primary
        self._links = links

    def version(self) -> str:
        """The primary's; ServerError if it is gone."""
        return self._primary.version()

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """The administrator's question or order to the primary; ServerError if refused."""
        return self._primary.ask(sql)

    def settings(self) -> dict[str, str]:
        """The primary's effective global variables; ServerError if it is gone."""
        return self._primary.settings()

    def status(self) -> dict[str, float]:
        """The primary's numeric status counters; ServerError if it is gone."""
        return self._primary.status()

    def observer(self) -> Observer:
        """Reads the primary's counters on a connection of its own."""
        return observe(self._primary)

    def alive(self) -> bool:
        """Whether the primary and all its replicas still run."""
        return all(server.alive() for server in self._all())

    def last_words(self) -> str:
        """The end of the error log of the first server that is dead, else of the primary."""
        dead = (server for server in self._all() if not server.alive())
        return next(dead, self._primary).last_words()

    def stop(self, patience_s: float = STOP_S) -> None:
        """Stop the replicas, then the primary; ServerError, the first one, when all were asked."""
        failures = []
        for server in (*self.replicas, self._primary):
            if server is self._primary:
                self._end_sendings()
            try:
                server.stop(patience_s)
            except ServerError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def kill(self) -> None:
        """End all of them at once; for servers whose data will not be used again."""
        for server in self._all():
            server.kill()

    def replication(self) -> dict[str, float]:
        """Replication status by the names of `measurement.replication`; ServerError if unknown."""
        if not self.replicas:
            return {}
        committed = row_of(self._primary, self._links.words.position)[0]
        found = {
            replication.TRANSACTIONS_BEHIND: max(self._behind(committed, r) for r in self.replicas),
            replication.REPLICAS_RUNNING: self._links.running(self._primary, self.replicas),
            replication.REPLICAS_CPU_S: sum(_cpu_s(server.pid) for server in self.replicas),
        }
        if self._links.plan.replication == "semisync":
            found |= self._semisync()
        return found

    def catch_up(self, cap_s: float) -> float:
        """Wait until the replicas have applied all that the primary committed until now.

        Returns:
            the seconds that took; `cap_s` or a little more when it did not come to an end.

        Raises:
            ServerError: a replica is gone.
        """
        began = time.monotonic()
        position = self._links.words.position
        committed = row_of(self._primary, position)[0] if self.replicas else ""
        if committed:
            for replica in self.replicas:
                while (left_s := began + cap_s - time.monotonic()) > 0:
                    sql = self._links.words.wait(committed, min(left_s, WAIT_S_MAX))
                    if row_of(replica, sql)[0] == "0":
                        break
        return time.monotonic() - began

    def _end_sendings(self) -> None:
        """Ends the threads that send to replicas, for whose idle ones a primary waits 8 s."""
        with suppress(ServerError):
            if self._links.plan.replication == "semisync":
                off = self._links.words.variable("source", "enabled")
                self._primary.ask(f"SET GLOBAL {off} = OFF")
            for number, *_, command in (
                row[:5] for row in rows_of(self._primary, "SHOW PROCESSLIST", 5)
            ):
                if command.startswith("Binlog Dump"):
                    self._primary.ask(f"KILL {number}")

    def _all(self) -> tuple[Server, ...]:
        return (self._primary, *self.replicas)

    def _behind(self, committed: str, replica: Server) -> float:
        applied = row_of(replica, self._links.words.applied)[0]
        if self._links.words.mariadb:
            return behind(committed, applied)
        left = row_of(self._primary, f"SELECT GTID_SUBTRACT('{committed}', '{applied}')")[0]
        return count_of_set(left)

    def _semisync(self) -> dict[str, float]:
        words = self._links.words
        status = f"SHOW GLOBAL STATUS LIKE '{words.counter('%')}'"
        variables = f"SHOW GLOBAL VARIABLES LIKE '{words.variable('source', '%')}'"
        rows = [row for sql in (status, variables) for row in rows_of(self._primary, sql, 2)]
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
            raise odd_answer(self.label, status, wanted, f"{error!r}") from error


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process until now; 0 for one that is gone."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system
