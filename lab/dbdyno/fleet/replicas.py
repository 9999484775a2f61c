"""Replicas on other nodes than their primary's, which the primary's lab starts and asks as its own.

An actor on the replica's node holds an ordinary instance and its server; here stands for them what
a topology asks of its members. The data begin as a copy of the primary's snapshot, which is carried
to that node in pieces and stays there for later starts until another one takes its place. A replica
that is lost (its process, its node, its answers) is a `LostError`, and is placed anew at the next
start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import ray
from ray.exceptions import RayError
from ray.util.queue import Queue

from dbdyno.errors import DbdynoError, LoadError, LostError, ServerError
from dbdyno.files import remove_tree
from dbdyno.fleet import cluster
from dbdyno.fleet.cluster import ALIVE_EVERY_S, ANSWER_S, PATIENCE_S, SILENT_S, Installed, Node
from dbdyno.plan.plan import Plan
from dbdyno.servers import open, process
from dbdyno.servers.base import DATABASE, STOP_S, Credentials, Endpoint, ServerSpec
from dbdyno.servers.local import files
from dbdyno.servers.local.files import SNAPSHOT, Piece
from dbdyno.servers.local.server import StartedInstance
from dbdyno.servers.local.topology import Keys, cpu_s
from dbdyno.servers.process import Place

QUESTION_S: Final = 130.0
"""Its own client gives a server a minute for an answer, and asks once more at most."""


class Replica:
    """The actor on a replica's node. Its calls come one at a time, in its main thread.

    It is asked through `call` alone: Ray would write down the words of an error that is raised.

    Args:
        alive: takes its signs of life, one at a time.
    """

    def __init__(self, alive: Queue) -> None:
        cluster.tell_alive(partial(alive.put, None))
        self._held = ExitStack()
        self._folder = Path()
        self._instance: StartedInstance[Any] | None = None
        self._server: Any = None

    def call(self, what: str, *details: Any) -> Any:  # noqa: ANN401 - each method has its own
        """What a method gives, or the error with which it ended."""
        try:
            return getattr(self, what)(*details)
        except DbdynoError as error:
            return error
        except OSError as error:
            return ServerError(
                f"a replica's files cannot be kept in {self._folder} of its node",
                found=str(error),
                hint="check the folder's free space, inodes and owner",
            )

    def facts(self) -> tuple[Installed, dict[str, str]]:
        """What is installed here, and on which machine."""
        return cluster.node_facts()

    def free_port(self) -> int:
        """As `process.free_port`."""
        return process.free_port()

    def take(self, key: str, taken: int, name: str) -> bool:
        """Takes a place in this node's cache; whether the snapshot of that key is there already.

        Args:
            taken: bytes of the snapshot, for which and for a working copy of it there must be room.
            name: whose it is, for messages.
        """

        def has_it(folder: Path) -> bool:
            return files.key_of(folder / SNAPSHOT) == key

        self._folder = cluster.slot(self._held, "replicas", has_it)
        if has_it(self._folder):
            return True
        remove_tree(self._folder / SNAPSHOT)
        files.check_room(2 * taken, name, self._folder)
        return False

    def put(self, pieces: Sequence[Piece]) -> None:
        """As `files.put`."""
        files.put(self._folder / SNAPSHOT, pieces)

    def seal(self, name: str, checksums: bytes, marker: bytes) -> None:
        """As `files.seal`."""
        files.seal(name, self._folder / SNAPSHOT, checksums, marker)

    def lay(self, spec: ServerSpec) -> None:
        """Fetches the programs if need be, which have to be those that made the snapshot."""
        copy = self._folder / SNAPSHOT
        made = open.member(spec, self._folder, copy, lambda text: None)
        if not made.has_snapshot():
            raise ServerError(
                f"{spec.label}: its primary's data were made by other programs",
                wanted=f"{spec.reference} with the digest that it has on the primary's node",
                found=f"another one on {spec.address}",
                hint="give both nodes the same folder or archive",
            )
        self._instance = made

    def restore(self) -> None:
        """As `StartedInstance.restore`."""
        assert self._instance is not None
        self._instance.restore()

    def start(
        self, settings: Keys | None, place: Place | None
    ) -> tuple[str, Endpoint, Credentials]:
        """Starts the server; its driver, where it listens, and its load's user."""
        assert self._instance is not None
        self._server = server = self._instance.start(settings, place)
        return server.driver, replace(server.endpoint, socket=None), server.credentials

    def of_server(self, what: str, *details: Any) -> Any:  # noqa: ANN401 - each method has its own
        """What a method of the server that was started last gives."""
        return getattr(self._server, what)(*details)

    def cpu_s(self) -> float:
        """As `Apart.cpu_s`."""
        return cpu_s(self._server.pid)

    def close(self) -> None:
        """Ends the server and removes its working data; the snapshot stays."""
        if self._instance is not None:
            self._instance.close()
        self._held.close()


class Line:
    """What is said to one actor; each method raises LostError if it does not answer.

    Attributes:
        name: whose replica it is, and where, for messages.
        environment: what machine that is.

    Raises:
        LoadError: its node has another installation.
    """

    def __init__(self, node: Node, name: str) -> None:
        self.name, self.address = f"{name} on {node.address}", node.address
        there: dict[str, Any] = {"num_cpus": 0, "scheduling_strategy": cluster.on(node)}
        self._alive: Any = Queue(1, actor_options=there)
        make: Any = ray.remote(Replica)
        self._actor: Any = make.options(**there).remote(self._alive)
        try:
            installed, self.environment = self.ask("facts", within_s=PATIENCE_S)
            cluster.check_equal(self.name, installed)
        except BaseException:
            self.end()
            raise

    def ask(self, what: str, *details: Any, within_s: float | None = None) -> Any:  # noqa: ANN401
        """What the actor's method gives; its own errors are raised as they were there.

        Args:
            within_s: None for what takes as long as there are data: while it gives signs of life.
        """
        asked = self._actor.call.remote(what, *details)
        if within_s is None:
            self._wait(asked)
        found = cluster.answer(asked, self.name, within_s)
        if isinstance(found, DbdynoError):
            raise found
        return found

    def lives(self) -> bool:
        """Whether it answers at all."""
        try:
            self.ask("free_port", within_s=ANSWER_S)
        except LostError:
            return False
        return True

    def end(self) -> None:
        """Ends the actor, and with it what it started."""
        for actor in (self._actor, self._alive.actor):
            with suppress(RayError):
                ray.kill(actor)

    def _wait(self, asked: Any) -> None:  # noqa: ANN401 - Ray's
        """Until it has answered or ended; LostError if it gives no sign of life."""
        heard_s = time.monotonic()
        while not ray.wait([asked], timeout=ALIVE_EVERY_S)[0]:
            with suppress(RayError):  # there is none
                ray.get(self._alive.actor.get_nowait.remote(), timeout=ANSWER_S)
                heard_s = time.monotonic()
            if time.monotonic() - heard_s > SILENT_S:
                raise cluster.lost(f"{self.name} gave no sign of life for {SILENT_S:.0f} s")


class ReplicaInstance:
    """A `Member` on another node, placed when it is needed first, and anew when it was lost.

    Args:
        node_of: says on which; LoadError if there is none.
        copy: the primary's snapshot.
    """

    def __init__(
        self,
        node_of: Callable[[], Node],
        spec: ServerSpec,
        copy: Path,
        report: Callable[[str], None],
    ) -> None:
        self._node_of, self._spec, self._copy, self._report = node_of, spec, copy, report
        self._line: Line | None = None

    def place(self) -> Place:
        """Where its server will listen, and a port that is free there."""
        line = self._there()
        return Place(line.address, talk_port=line.ask("free_port", within_s=ANSWER_S))

    def restore(self) -> None:
        """Its data become the snapshot again."""
        self._there().ask("restore")

    def start(self, settings: Keys | None = None, place: Place | None = None) -> ReplicaServer:
        """Starts it where it is placed."""
        line = self._there()
        return ReplicaServer(line, self._spec.label, *line.ask("start", settings, place))

    def close(self) -> None:
        """Ends what runs; the snapshot stays there."""
        line, self._line = self._line, None
        if line is None:
            return
        try:
            with suppress(LostError):
                line.ask("close", within_s=PATIENCE_S)
        finally:
            line.end()

    def _there(self) -> Line:
        """The line to its actor, which lives and has the snapshot."""
        if self._line is not None:
            if self._line.lives():
                return self._line
            self._line.end()
            self._line = None
        line = Line(self._node_of(), self._spec.label)
        try:
            self._carry_to(line)
            self._report(f"{line.name}: laying out its data")
            line.ask("lay", replace(self._spec, address=line.address))
        except BaseException:
            line.end()
            raise
        self._line = line
        return line

    def _carry_to(self, line: Line) -> None:
        copy = self._copy
        if line.ask("take", files.key_of(copy), files.occupied_bytes(copy), line.name):
            return
        self._report(f"{line.name}: carrying its primary's data there")
        for pieces in files.pieces_of(copy):
            line.ask("put", pieces, within_s=PATIENCE_S)
        line.ask("seal", line.name, *files.seals_of(copy))


class ReplicaServer:
    """A running replica on another node: a `Server`, and `Apart`."""

    pid = 0
    database = DATABASE

    def __init__(
        self, line: Line, label: str, driver: str, endpoint: Endpoint, load: Credentials
    ) -> None:
        self._line, self.label, self.driver = line, label, driver
        self.endpoint, self.credentials = endpoint, load

    def version(self) -> str:
        """As `Server.version`."""
        return str(self._asked("version"))

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """As `Server.ask`."""
        return list(self._asked("ask", sql))

    def settings(self) -> dict[str, str]:
        """As `Server.settings`."""
        return dict(self._asked("settings"))

    def status(self) -> dict[str, float]:
        """As `Server.status`."""
        return dict(self._asked("status"))

    def cpu_s(self) -> float:
        """As `Apart.cpu_s`."""
        return float(self._line.ask("cpu_s", within_s=ANSWER_S))

    def follow(self, primary: Endpoint, who: Credentials, name: str) -> None:
        """As `PostgresStandby.follow`."""
        self._asked("follow", primary, who, name)

    def alive(self) -> bool:
        """Whether it runs; a lost one does not."""
        try:
            return bool(self._line.ask("of_server", "alive", within_s=ANSWER_S))
        except LostError:
            return False

    def last_words(self) -> str:
        """As `Server.last_words`; of a lost one the LostError."""
        return str(self._line.ask("of_server", "last_words", within_s=ANSWER_S))

    def stop(self, patience_s: float = STOP_S) -> None:
        """As `Server.stop`."""
        try:
            self._line.ask("of_server", "stop", patience_s, within_s=patience_s + PATIENCE_S)
        except LostError as error:
            raise ServerError(f"{self.label}: its machine was lost", found=error.found) from error

    def kill(self) -> None:
        """As `Server.kill`; what does not answer ends with its actor."""
        try:
            self._line.ask("of_server", "kill", within_s=PATIENCE_S)
        except LostError:
            self._line.end()

    def _asked(self, what: str, *details: Any) -> Any:  # noqa: ANN401 - each method has its own
        return self._line.ask("of_server", what, *details, within_s=QUESTION_S)


def apart(role: str, near: Collection[str]) -> list[Node]:
    """The nodes of that label, without those of these ids.

    Raises:
        LoadError: none has that label.
    """
    return [node for node in cluster.with_role(role) if node.node_id not in near]


class Replicas:
    """Deals out the replicas of the servers that this process starts.

    Args:
        role: label of their nodes.
    """

    def __init__(self, role: str) -> None:
        self._role = role
        self._near = ray.get_runtime_context().get_node_id()
        self._placed: dict[tuple[Path, int], str] = {}

    def member(
        self, spec: ServerSpec, number: int, copy: Path, report: Callable[[str], None]
    ) -> ReplicaInstance | None:
        """As `Elsewhere`; None where no node but the primary's has the label."""
        if not apart(self._role, [self._near]):
            return None
        return ReplicaInstance(partial(self._node, copy, number), spec, copy, report)

    def _node(self, copy: Path, number: int) -> Node:
        """The first of the nodes that have the fewest other replicas of this primary."""
        there = apart(self._role, [self._near])
        if not there:
            raise LoadError(
                "no node is left for a replica",
                wanted=f"one with the label {self._role} beside its primary's",
                found=cluster.in_words(cluster.nodes()),
                hint="start nodes, then resume the run; nothing stored is measured again",
            )
        taken = self._placed.items()
        others = [at for (of, which), at in taken if of == copy and which != number]
        node = min(there, key=lambda one: others.count(one.node_id))
        self._placed[copy, number] = node.node_id
        return node


def environment(plan: Plan, primaries: Sequence[Node]) -> dict[str, str]:
    """What a report says of the replicas' machines, as they are dealt out when a run begins.

    Args:
        primaries: the nodes of the servers that they follow.

    Raises:
        LoadError: no node has their label, or one has another installation; LostError: one does
            not answer.
    """
    most = max(system.topology.replicas for system in plan.systems)
    if not plan.fleet.place.replicas or not most:
        return {}
    there = apart(plan.fleet.place.replicas, [node.node_id for node in primaries])
    found = {}
    for number, node in enumerate((there * most)[:most], 1):
        line = Line(node, f"replica {number}")
        line.end()
        found[f"replica {number}"] = cluster.in_short(line.environment)
    return found
