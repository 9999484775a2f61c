"""A Ray cluster: its nodes by label, and a check for the same dbdyno on all of them.

Ray only starts and ends processes on the nodes and carries their messages. A node is chosen by its
label `dbdyno` (``ray start --labels dbdyno=db``).
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import ray
from ray.exceptions import GetTimeoutError, RayError

import dbdyno
from dbdyno import _engine
from dbdyno.errors import DbdynoError, LoadError, LostError, StoreError, UsageError
from dbdyno.experiment import certify
from dbdyno.experiment.watch import environment
from dbdyno.files import locked, restrict_umask
from dbdyno.plan.fleet import LABEL
from dbdyno.servers import process
from dbdyno.servers.programs.places import make_cache_folder

AUTO: Final = "auto"
ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9._-]*):[0-9]{1,5}")
PLACE_S: Final = 20.0
"""How long Ray may take to find nodes that have room; a machine that was lost may come back."""
CONNECT_S: Final = 60.0
"""How long it may take to connect, whatever answers at the address."""
PATIENCE_S: Final = 60.0
"""How long a node may take to start a process of ours."""
HELLO: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
"""Preface of HTTP/2, with empty settings."""
ANSWER_S: Final = 10.0
"""After so long without an answer a machine is lost."""
ALIVE_EVERY_S: Final = 2.0
SILENT_S: Final = 30.0
"""A process that gives no sign of life for so long is lost, whatever it is at."""
SLOTS: Final = 64
"""So many processes of a kind may work in one machine's cache."""
PINGS: Final = 20
SHOWN: Final = ("cpu", "cores", "memory", "kernel", "virtualisation")
"""What a report says of each node."""


class Node(NamedTuple):
    """A node of the cluster.

    Attributes:
        node_id: Ray's id, new after each start of the node.
        role: its label `dbdyno`; empty without a label.
    """

    node_id: str
    address: str
    role: str
    cpus: float


class Installed(NamedTuple):
    """Installation on a node, to be equal on all nodes.

    Attributes:
        lab, engine: SHA-256 of dbdyno's Python files, and of the engine's library.
    """

    dbdyno: str
    lab: str
    engine: str
    python: str
    ray: str


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Connect to a cluster during the block.

    Output is suppressed meanwhile: Ray prints every change of a node at length.

    Args:
        address: of its head (``10.0.0.1:6379``), or ``auto`` for this machine's cluster.

    Raises:
        UsageError: it has another form; Ray would take some for a wish to start a cluster.
        LoadError: the address does not answer.
    """
    if address != AUTO and ADDRESS.fullmatch(address) is None:
        raise UsageError(
            f"{address!r} is no address of a cluster",
            wanted="HOST:PORT of its head, or auto for this machine's cluster",
        )
    host = address.rpartition(":")[0]
    own: dict[str, Any] = {"_node_ip_address": host} if host.startswith("127.") else {}
    try:
        if address != AUTO:
            _await_answer(host.strip("[]"), int(address.rpartition(":")[2]))
        with chdir("/"):  # Ray lets its workers import from the working folder of the driver
            _connect(address, own)
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        raise LoadError(
            f"no cluster answers at {address}",
            wanted="a cluster that this machine is a node of",
            found=str(error).partition("\n")[0],
            hint="begin one with ray start --head, and name its address, or auto",
        ) from error
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
            yield
    finally:
        ray.shutdown()


def _await_answer(host: str, port: int) -> None:
    """Say hello as gRPC does and wait for any answer; Ray would wait for it for minutes.

    Raises:
        OSError, OverflowError: nobody answers in time, or there is no such port.
    """
    with socket.create_connection((host, port), ANSWER_S) as line:
        line.sendall(HELLO)
        line.recv(1)


def _connect(address: str, own: Mapping[str, Any]) -> None:
    """Connect within a time, on a thread: Ray waits for an answer without end, and hears no signal.

    Raises:
        TimeoutError: the time is over. The thread ends with the process.
    """
    failures: list[BaseException] = []

    def work() -> None:
        try:
            ray.init(
                address=address,
                log_to_driver=False,
                configure_logging=False,
                namespace="dbdyno",
                **own,
            )
        except BaseException as error:
            failures.append(error)

    logging.getLogger("ray").setLevel(logging.ERROR)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(CONNECT_S)
    if thread.is_alive():
        raise TimeoutError(f"no connection within {CONNECT_S:.0f} s")
    for failure in failures:
        raise failure


def nodes() -> list[Node]:
    """Living nodes, by address and label."""
    living = [
        Node(
            one["NodeID"],
            one["NodeManagerAddress"],
            (one.get("Labels") or {}).get(LABEL, ""),
            one["Resources"].get("CPU", 0.0),
        )
        for one in ray.nodes()  # type: ignore[no-untyped-call]
        if one["Alive"]
    ]
    return sorted(living, key=lambda node: (node.role, node.address, node.node_id))


def with_role(role: str) -> list[Node]:
    """Usable nodes of a label; of any label for an empty role; LoadError if no node qualifies."""
    there = [node for node in nodes() if node.cpus >= 1]
    meant = [node for node in there if role in {"", node.role}]
    if not meant:
        raise LoadError(
            f"the cluster has no node with the label {LABEL}={role}",
            found=in_words(there),
            hint=f"give it when the node is started: ray start --labels {LABEL}={role}",
        )
    return meant


def in_words(there: Sequence[Node]) -> str:
    """The nodes with their labels, for a message."""
    named = (f"{node.address} ({node.role or 'no label'})" for node in there)
    return ", ".join(named) or "no node with a free CPU"


@cache
def installed() -> Installed:
    """Installation of the calling machine."""
    folder = Path(dbdyno.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return Installed(
        dbdyno=dbdyno.__version__,
        lab=digest.hexdigest()[:16],
        engine=hashlib.sha256(Path(_engine.__file__).read_bytes()).hexdigest()[:16],
        python=platform.python_version(),
        ray=ray.__version__,
    )


def tell_alive(tell: Callable[[], None]) -> None:
    """Gives signs of life from a thread of its own, until this process or who listens has ended."""

    def go_on() -> None:
        with suppress(RayError):
            while True:
                tell()
                time.sleep(ALIVE_EVERY_S)

    threading.Thread(target=go_on, daemon=True).start()


def check_equal(where: str, there: object) -> None:
    """LoadError if a node would run anything else than this machine.

    Args:
        there: its `Installed`; of another installation perhaps another object.
    """
    here = installed()
    theirs = {name: getattr(there, name, "unknown") for name in here._fields}
    differ = [name for name in here._fields if getattr(here, name) != theirs[name]]
    if differ:
        raise LoadError(
            f"{where} has another installation than the machine where the run was begun",
            wanted=", ".join(f"{name} {getattr(here, name)}" for name in differ),
            found=", ".join(f"{name} {theirs[name]}" for name in differ),
            hint="install one version on all nodes",
        )


def check_programs(where: str, here: Mapping[str, str], there: Mapping[str, str]) -> None:
    """Raise LoadError unless a plan's programs have the digests of the first machine's."""
    differ = [reference for reference in here if here[reference] != there[reference]]
    if differ:
        raise LoadError(
            f"{where} has other programs than the first machine in the same place",
            wanted=", ".join(f"{name} with SHA-256 {here[name][:16]}" for name in differ),
            found=", ".join(there[name][:16] for name in differ),
            hint="put the same programs on all nodes",
        )


def in_short(about: dict[str, str]) -> str:
    """A node's description for the report, from its environment."""
    return ", ".join(about[name] for name in SHOWN if name in about)


def node_facts() -> tuple[Installed, dict[str, str]]:
    """Installation of the calling machine, with the machine's identity."""
    return installed(), environment.describe()


def on(node: Node) -> Any:  # noqa: ANN401 - Ray's own type differs from version to version
    """Ray's scheduling strategy for pinning an actor to the node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415

    return NodeAffinitySchedulingStrategy(node_id=node.node_id, soft=False)


def slot(held: ExitStack, kind: str) -> Path:
    """Folder of this process alone below `kind` in the cache; LoadError if all are taken."""
    restrict_umask()  # Ray's process has that of its cluster
    for folder in (make_cache_folder(kind, str(number)) for number in range(1, SLOTS + 1)):
        with suppress(StoreError):
            held.enter_context(locked(folder / "slot.lock", f"{kind} {folder.name}"))
            return folder
    raise LoadError(f"{SLOTS} processes are at work in {kind} on this machine", hint="end some")


def answer(call: Any, who: str, *kinds: type, timeout_s: float = ANSWER_S) -> Any:  # noqa: ANN401 - Ray's
    """Result of a Ray call; LostError with the machine's name if it fails.

    Args:
        kinds: of the result: a node with another installation may answer differently.
    """
    try:
        result = ray.get(call, timeout=timeout_s)
    except GetTimeoutError:
        state = f"{who} did not answer for {timeout_s:.0f} s"
    except RayError as error:
        state = f"{who}: {reason(error)}"
    else:
        if isinstance(result, kinds):
            return result
        state = f"{who} gave an answer of another kind: {type(result).__name__}"
    raise lost(state)


def lost(state: str) -> LostError:
    """LostError for a machine without answers, by its name and the time of silence."""
    return LostError(
        "a machine of the fleet was lost",
        found=state,
        hint="look at the machines: dbdyno fleet check",
    )


class Clock(NamedTuple):
    """Offset of a node's monotonic clock from this machine's.

    Attributes:
        ahead_ns: its reading less ours at the same moment.
        within_ns: largest error of the offset: half the fastest round trip.
    """

    ahead_ns: int
    within_ns: int


def read_clock(ask_ns: Callable[[], int]) -> Clock:
    """Measure a node's clock offset by the fastest of several round trips."""
    readings = []
    for _ in range(PINGS):
        asked_ns = time.monotonic_ns()
        there_ns = ask_ns()
        within_ns = (time.monotonic_ns() - asked_ns) // 2
        readings.append(Clock(there_ns - asked_ns - within_ns, within_ns))
    return min(readings, key=lambda one: one.within_ns)


def reason(error: BaseException) -> str:
    """Ray's message on a single line, without its traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:300]


# What `dbdyno fleet check` looks at: every node, what it can run, its clock.


class Seen(NamedTuple):
    """Result of checking a node.

    Attributes:
        clock_ms, within_ms: offset of its monotonic clock from this machine's and its largest
            error; such clocks start with their machines.
        runs: its capabilities, or the reason for lacking them.
    """

    node: Node
    clock_ms: float | None
    within_ms: float | None
    machine: str
    runs: str


class NodeProbe:
    """The actor for checking a node."""

    def facts(self) -> tuple[Installed, str, str]:
        """The node's installation, identity and capabilities."""
        installed, about = node_facts()
        return installed, in_short(about), _can_do()

    def clock_ns(self) -> int:
        """This node's monotonic clock."""
        return time.monotonic_ns()


def _can_do() -> str:
    """A node's capabilities in words."""
    known = certify.known()
    state = "certified" if known.digest and not known.failed else "no certificate: dbdyno certify"
    if known.failed:
        state = "certificate failed: dbdyno certify"
    try:
        process.server_user()
    except DbdynoError as error:
        return f"generator ({state}); no servers: {error.message}"
    caches = "" if os.geteuid() == 0 else ", without dropping caches (not root)"
    return f"generator ({state}), servers{caches}"


def look() -> list[Seen]:
    """All nodes of the cluster."""
    there = nodes()
    make: Any = ray.remote(NodeProbe)
    probes = [make.options(num_cpus=0, scheduling_strategy=on(node)).remote() for node in there]
    seen = [_seen(node, probe) for node, probe in zip(there, probes, strict=True)]
    for probe in probes:
        with suppress(RayError):
            ray.kill(probe)
    return seen


def _seen(node: Node, probe: Any) -> Seen:  # noqa: ANN401 - Ray's proxy
    try:
        facts = answer(probe.facts.remote(), "it", tuple, timeout_s=PATIENCE_S)
        installed, machine, runs = (*facts, "", "", "")[:3]
        clock = read_clock(lambda: answer(probe.clock_ns.remote(), "it", int))
    except LostError as error:
        return Seen(node, None, None, "", f"nothing: {error.found}")
    try:
        check_equal("this node", installed)
    except DbdynoError as error:
        runs = f"nothing: another installation ({error.found}; here {error.wanted})"
    return Seen(node, clock.ahead_ns / 1e6, clock.within_ns / 1e6, machine, runs)
