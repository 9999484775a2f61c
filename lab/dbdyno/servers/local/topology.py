"""A system of several servers: a primary, its replicas, and the network between them.

All begin with one set of files. The primary is loaded alone; its stopped data is the snapshot of
the whole, from which each start's primary and replicas are copied. So no replica has to be filled
through replication, and each holds the very bytes of its primary. How servers are joined and asked
is the product's: `Replication`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

import psutil

from dbdyno.errors import ServerError
from dbdyno.files import remove_tree
from dbdyno.measurement import replication
from dbdyno.plan.settings import SettingValue
from dbdyno.plan.systems import TopologyPlan
from dbdyno.servers.base import STOP_S, Endpoint, Observer, Server, ServerSpec, observe
from dbdyno.servers.local.files import SNAPSHOT
from dbdyno.servers.local.network import BEHIND, Network
from dbdyno.servers.local.server import StartedInstance

REPLICA: Final = "replica-{}"
JOIN_S_MAX: Final = 60.0
LOOK_S: Final = 0.05

Keys = Mapping[str, SettingValue]


class Replication(Protocol):
    """How servers of one product become a primary with replicas."""

    def member(self, spec: ServerSpec, folder: Path, copy: Path | None) -> StartedInstance[Any]:
        """The primary's files; with a snapshot to begin with, those of a replica."""

    def loading_keys(self, asked: Keys) -> Keys:
        """Settings of the primary while it is loaded, over those `asked` of this start.

        Raises:
            UsageError: what is asked takes away what a topology needs.
        """

    def member_keys(self, asked: Keys) -> Sequence[Keys]:
        """As `loading_keys`, for each member of a start, the primary first."""

    def join(self, primary: Server, replicas: Sequence[Server], doors: Sequence[Endpoint]) -> None:
        """Have all replicas follow the primary, commits waiting as the plan says.

        Args:
            doors: where the servers reach each other, the primary first.

        Raises:
            ServerError: a replica did not follow; the server's own reason is quoted.
        """

    def state(self, primary: Server, replicas: Sequence[Server]) -> dict[str, float]:
        """By the names of `measurement.replication`, without CPU; ServerError if unknown."""

    def catch_up(self, primary: Server, replicas: Sequence[Server], ends_s: float) -> None:
        """Wait until all is applied that was committed by now, `ends_s` (monotonic) at most."""

    def before_stop(self, primary: Server) -> None:
        """What a primary whose replicas have ended would wait for as it stops."""


def wait_joined(joined: Callable[[], bool], server: Server, trouble: Callable[[], str]) -> None:
    """Wait until a server has joined its primary; ServerError, with its trouble, if it does not."""
    ends = time.monotonic() + JOIN_S_MAX
    while not joined():
        if time.monotonic() > ends or not server.alive():
            raise ServerError(
                f"{server.label}: it did not join its primary within {JOIN_S_MAX:.0f} s",
                found=f"{trouble()}; its last words: {server.last_words() or 'none'}",
                hint="take out the settings that its log complains of",
            )
        time.sleep(LOOK_S)


class TopologyInstance:
    """Made by `open.instance` for a system with replicas; as `Instance`."""

    def __init__(
        self,
        spec: ServerSpec,
        replication: Replication,
        folder: Path,
        report: Callable[[str], None],
    ) -> None:
        self.spec, self._replication = spec, replication
        self._alone = replace(spec, topology=TopologyPlan(), replica_ms=0.0)
        self._primary = replication.member(self._alone, folder, None)
        self.driver = self._primary.driver
        self.folder = self._primary.folder
        self._clear_replicas()  # a lab that died may have left its own
        self._replicas: list[StartedInstance[Any]] = []
        self._server: TopologyServer | None = None
        self._report = report

    def start(self, settings: Keys | None = None) -> Server:
        """Start all servers and join them; without a snapshot the primary alone, to be loaded.

        Raises:
            UsageError: a setting takes away what replication needs.
            ServerError: a server did not start or did not join; none is left running.
        """
        asked = settings or {}
        if not self.has_snapshot():
            loaded: Server = self._primary.start({**asked, **self._replication.loading_keys(asked)})
            return loaded
        self._lay_out_replicas()
        members = [self._primary, *self._replicas]
        keys_of_all = self._replication.member_keys(asked)
        is_delayed = self.spec.replica_ms > 0
        with ExitStack() as started:
            running: list[Server] = []
            for member, keys in zip(members, keys_of_all, strict=True):
                running.append(member.start({**asked, **keys}, BEHIND if is_delayed else None))
                started.callback(running[-1].kill)
            doors = tuple(server.endpoint for server in running)
            network = Network(doors, self.spec.replica_ms, self.folder) if is_delayed else None
            if network is not None:
                started.callback(network.close)
                doors = network.doors
            self._report(f"{self.spec.label}: joining its replicas, {len(self._replicas)} in all")
            self._replication.join(running[0], running[1:], doors)
            started.pop_all()
        self._server = TopologyServer(running[0], running[1:], self._replication, network)
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
        """End what runs and remove working data; a snapshot stays."""
        with ExitStack() as stack:
            if self._server is not None:
                stack.callback(self._server.close_network)
            for member in (self._primary, *self._replicas):
                stack.callback(member.close)
        self._clear_replicas()

    def _lay_out_replicas(self) -> None:
        """Makes the replicas' places, which begin as copies of the snapshot."""
        for number in range(len(self._replicas) + 1, self.spec.topology.replicas + 1):
            spec = replace(self._alone, label=f"{self.spec.label} replica {number}")
            folder, copy = self.folder / REPLICA.format(number), self.folder / SNAPSHOT
            self._replicas.append(self._replication.member(spec, folder, copy))

    def _clear_replicas(self) -> None:
        for left in self.folder.glob(REPLICA.format("*")):
            remove_tree(left)


class TopologyServer:
    """A running primary with its replicas, one server to the load; from `TopologyInstance.start`.

    Load, counters and settings are the primary's; `replication` has what the replicas do.
    """

    def __init__(
        self,
        primary: Server,
        replicas: Sequence[Server],
        replication: Replication,
        network: Network | None,
    ) -> None:
        self.driver = primary.driver
        self.label = primary.label
        self.pid = primary.pid
        self.endpoint = primary.endpoint
        self.credentials = primary.credentials
        self.database = primary.database
        self.replicas = tuple(replicas)
        self.pids = tuple(server.pid for server in (primary, *replicas))
        self._primary = primary
        self._replication = replication
        self._network = network

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
        """Whether the primary, all its replicas and the network between them still run."""
        has_network = self._network is None or self._network.alive()
        return has_network and all(server.alive() for server in self._all())

    def last_words(self) -> str:
        """The end of the error log of the first server that is dead, else of the primary."""
        dead = (server for server in self._all() if not server.alive())
        return next(dead, self._primary).last_words()

    def stop(self, patience_s: float = STOP_S) -> None:
        """Stop the replicas, then the primary; ServerError, the first one, when all were asked."""
        failures = []
        for server in (*self.replicas, self._primary):
            if server is self._primary:
                self._replication.before_stop(server)
            try:
                server.stop(patience_s)
            except ServerError as error:
                failures.append(error)
        self.close_network()
        if failures:
            raise failures[0]

    def kill(self) -> None:
        """End all of them at once; for servers whose data will not be used again."""
        for server in self._all():
            server.kill()
        self.close_network()

    def close_network(self) -> None:
        """End the network between the servers, if there is one."""
        if self._network is not None:
            self._network.close()

    def replication(self) -> dict[str, float]:
        """Replication status by the names of `measurement.replication`; ServerError if unknown."""
        used = {replication.REPLICAS_CPU_S: sum(_cpu_s(one.pid) for one in self.replicas)}
        if self._network is not None:
            used[replication.NETWORK_CPU_S] = _cpu_s(self._network.pid)
        state = self._replication.state(self._primary, self.replicas)
        return {**state, **used}

    def catch_up(self, cap_s: float) -> float:
        """Wait until the replicas have applied all that the primary committed until now.

        Returns:
            the seconds that took; `cap_s` or a little more when it did not come to an end.

        Raises:
            ServerError: a replica is gone.
        """
        began = time.monotonic()
        self._replication.catch_up(self._primary, self.replicas, began + cap_s)
        return time.monotonic() - began

    def _all(self) -> tuple[Server, ...]:
        return (self._primary, *self.replicas)


def _cpu_s(pid: int) -> float:
    """CPU seconds until now of a server's process and those it forked; 0 of one that is gone."""
    total = 0.0
    with suppress(psutil.Error):
        server = psutil.Process(pid)
        own = server.cpu_times()
        total = own.user + own.system + own.children_user + own.children_system
        for forked in server.children(recursive=True):
            with suppress(psutil.Error):  # it has ended, and is among the children's time
                times = forked.cpu_times()
                total += times.user + times.system
    return total
