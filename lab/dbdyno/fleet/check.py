"""Looks at a cluster before a run does: its nodes, their clocks, the way between each two of them.

Round trips and bandwidth are those of Ray's calls, by which words and records go. A load's own
connections do not use them, so this is what a run's control has, not what a server can be sent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import permutations
from typing import Any, Final, NamedTuple

import ray
from ray.exceptions import RayError

from dbdyno.errors import DbdynoError
from dbdyno.experiment import certify
from dbdyno.fleet import cluster
from dbdyno.fleet.cluster import PATIENCE_S, PINGS, Installed, Node
from dbdyno.servers import process

BYTES: Final = 8 * 2**20
ASK_S: Final = 10.0


class Seen(NamedTuple):
    """A node as it was found.

    Attributes:
        clock_ms, within_ms: how far its monotonic clock is ahead of this machine's, and how far
            from the truth that may be; clocks count from a machine's own start.
        runs: what it can do, or why it cannot.
    """

    node: Node
    clock_ms: float | None
    within_ms: float | None
    machine: str
    runs: str


class Way(NamedTuple):
    """The way from one node to another and back, by their numbers; None where there is none."""

    start: int
    end: int
    round_trip_ms: float | None
    megabytes_per_s: float | None


class NodeProbe:
    """The actor on a node that is looked at."""

    def facts(self) -> tuple[Installed, str, str]:
        """What is installed, on which machine, and what that can do."""
        installed, about = cluster.node_facts()
        return installed, cluster.in_short(about), _can_do()

    def clock_ns(self) -> int:
        """This node's monotonic clock."""
        return time.monotonic_ns()

    def take(self, data: bytes) -> int:
        """Receives that many bytes."""
        return len(data)

    def way_to(self, other: Any) -> tuple[float, float]:  # noqa: ANN401 - Ray's proxy
        """Milliseconds to another node and back, and megabytes a second to it."""
        trips = []
        for _ in range(PINGS):
            began_ns = time.perf_counter_ns()
            ray.get(other.clock_ns.remote(), timeout=ASK_S)
            trips.append(time.perf_counter_ns() - began_ns)
        data, began_s = os.urandom(BYTES), time.perf_counter()
        ray.get(other.take.remote(data), timeout=PATIENCE_S)
        return min(trips) / 1e6, BYTES / 1e6 / (time.perf_counter() - began_s)


def _can_do() -> str:
    """What a node can do, in words."""
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


def look() -> tuple[list[Seen], list[Way]]:
    """All nodes of the cluster, and the ways between those that answer."""
    nodes = cluster.nodes()
    make: Any = ray.remote(NodeProbe)
    probes = [
        make.options(num_cpus=0, scheduling_strategy=cluster.on(node)).remote() for node in nodes
    ]
    seen = [_seen(node, probe) for node, probe in zip(nodes, probes, strict=True)]
    alive = [number for number, one in enumerate(seen) if one.clock_ms is not None]
    ways = list(_ways(probes, alive))
    for probe in probes:
        with suppress(RayError):
            ray.kill(probe)
    return seen, ways


def _seen(node: Node, probe: Any) -> Seen:  # noqa: ANN401 - Ray's proxy
    try:
        installed, machine, runs = ray.get(probe.facts.remote(), timeout=PATIENCE_S)
        clock = cluster.read_clock(lambda: ray.get(probe.clock_ns.remote(), timeout=ASK_S))
    except RayError as error:
        return Seen(node, None, None, "", f"nothing: {cluster.reason(error)}")
    try:
        cluster.check_equal("this node", installed)
    except DbdynoError as error:
        runs = f"nothing: another installation ({error.found}; here {error.wanted})"
    return Seen(node, clock.ahead_ns / 1e6, clock.within_ns / 1e6, machine, runs)


def _ways(probes: Sequence[Any], alive: Sequence[int]) -> Iterator[Way]:
    for start, end in permutations(alive, 2):
        asked = probes[start].way_to.remote(probes[end])
        try:
            way = ray.get(asked, timeout=2 * PATIENCE_S)
        except RayError:  # what stands between the two lets neither reach the other
            way = (None, None)
        yield Way(start + 1, end + 1, *way)
