"""A system of several servers: a primary, its replicas, and the network between them.

All begin with the same files. The primary is loaded alone; its stopped data is the snapshot of the
whole, from which each start's primary and replicas are copied. So no replica has to be filled
through replication, and each holds the very bytes of its primary. `Replication` has the product's
way to join and question servers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from dbdyno.errors import ServerError
from dbdyno.files import remove_tree
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
    """A product's way to make servers a primary with replicas."""

    def member(self, spec: ServerSpec, folder: Path, copy: Path | None) -> StartedInstance[Any]:
        """The primary's files; with a snapshot to begin with, a replica's."""

    def loading_keys(self, requested: Keys) -> Keys:
        """Settings of the primary while it is loaded, over `requested`, the start's own.

        UsageError if a setting of the start contradicts the topology.
        """

    def member_keys(self, requested: Keys) -> Sequence[Keys]:
        """As `loading_keys`, for each member of a start, the primary first."""

    def join(self, primary: Server, replicas: Sequence[Server], doors: Sequence[Endpoint]) -> None:
        """Have all replicas follow the primary, commits waiting as the plan says.

        Args:
            doors: addresses at which the servers reach each other, the primary first.

        Raises:
            ServerError: a replica did not follow; the server's own reason is quoted.
        """

    def state(self, primary: Server, replicas: Sequence[Server]) -> dict[str, float]:
        """Status by the names of `measurement.replication`, without CPU; else ServerError."""

    def catch_up(self, primary: Server, replicas: Sequence[Server], ends_s: float) -> None:
        """Wait until every commit up to now is applied, `ends_s` (monotonic) at most."""

    def before_stop(self, primary: Server) -> None:
        """Lift the waits that would hold up a primary's stop after its replicas have ended."""


def wait_joined(joined: Callable[[], bool], server: Server, trouble: Callable[[], str]) -> None:
    """Wait until a server has joined its primary; ServerError with its trouble if it does not."""
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
    """`Instance` of a system with replicas; made by `open.instance`."""

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

        If a server does not start or join, all are ended.
        """
        requested = settings or {}
        if not self.has_snapshot():
            loaded: Server = self._primary.start(
                {**requested, **self._replication.loading_keys(requested)}
            )
            return loaded
        self._lay_out_replicas()
        members = [self._primary, *self._replicas]
        keys_of_all = self._replication.member_keys(requested)
        is_delayed = self.spec.replica_ms > 0
        with ExitStack() as started:
            running: list[Server] = []
            for member, keys in zip(members, keys_of_all, strict=True):
                running.append(member.start({**requested, **keys}, BEHIND if is_delayed else None))
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
        self._primary.snapshot()

    def has_snapshot(self) -> bool:
        return self._primary.has_snapshot()

    def restore(self) -> None:
        """Put the snapshot's data back in all data directories; ServerError without a snapshot."""
        self._primary.restore()
        for replica in self._replicas:
            replica.restore()

    def loading_keys(self) -> Keys:
        return self._primary.loading_keys()

    def data_bytes(self) -> int:
        return self._primary.data_bytes()

    def close(self) -> None:
        with ExitStack() as stack:
            if self._server is not None:
                stack.callback(self._server.close_network)
            for member in (self._primary, *self._replicas):
                stack.callback(member.close)
        self._clear_replicas()

    def _lay_out_replicas(self) -> None:
        """Make the replicas' places, which begin as copies of the snapshot."""
        for number in range(len(self._replicas) + 1, self.spec.topology.replicas + 1):
            spec = replace(self._alone, label=f"{self.spec.label} replica {number}")
            folder, copy = self.folder / REPLICA.format(number), self.folder / SNAPSHOT
            self._replicas.append(self._replication.member(spec, folder, copy))

    def _clear_replicas(self) -> None:
        for left in self.folder.glob(REPLICA.format("*")):
            remove_tree(left)


class TopologyServer:
    """A running primary with its replicas, a single server to the load.

    Load, counters and settings are the primary's; `replication` covers the replicas.
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
        self.pids = tuple(part.pid for part in (primary, *replicas, network) if part is not None)
        self._primary = primary
        self._replication = replication
        self._network = network

    def version(self) -> str:
        return self._primary.version()

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        return self._primary.ask(sql)

    def settings(self) -> dict[str, str]:
        return self._primary.settings()

    def status(self) -> dict[str, float]:
        return self._primary.status()

    def observer(self) -> Observer:
        return observe(self._primary)

    def alive(self) -> bool:
        """True while the primary, all replicas and the network between them run."""
        has_network = self._network is None or self._network.alive()
        return has_network and all(server.alive() for server in self._all())

    def last_words(self) -> str:
        """The end of the error log of the first dead server, else of the primary."""
        dead = (server for server in self._all() if not server.alive())
        return next(dead, self._primary).last_words()

    def stop(self, patience_s: float = STOP_S) -> None:
        """Stop the replicas, then the primary; the first ServerError is raised at the end."""
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
        for server in self._all():
            server.kill()
        self.close_network()

    def close_network(self) -> None:
        if self._network is not None:
            self._network.close()

    def replication(self) -> dict[str, float]:
        return self._replication.state(self._primary, self.replicas)

    def catch_up(self, cap_s: float) -> float:
        """Wait for the replicas; gives `cap_s` or a little more if they did not catch up."""
        began = time.monotonic()
        self._replication.catch_up(self._primary, self.replicas, began + cap_s)
        return time.monotonic() - began

    def _all(self) -> tuple[Server, ...]:
        return (self._primary, *self.replicas)
