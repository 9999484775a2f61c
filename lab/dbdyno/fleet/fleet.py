"""Machines of a run: makers on a cluster in place of this machine's, while the run lasts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import ray

from dbdyno.experiment.context import Makers
from dbdyno.fleet import cluster
from dbdyno.fleet.hosts import Hosts, generators_of, makers_of
from dbdyno.plan.fleet import FleetPlan
from dbdyno.plan.systems import SystemPlan


@contextmanager
def machines(
    wanted: FleetPlan, systems: Sequence[SystemPlan], address: str
) -> Iterator[tuple[Makers, dict[str, str]]]:
    """Connect and start the plan's hosts and generators; all ends with the block.

    Yields:
        the makers, and each machine's description for the report.

    Raises:
        LoadError: no cluster answers, it has too few nodes, or an installation differs.
    """
    with ExitStack() as stack:
        stack.enter_context(cluster.connected(address))
        if wanted.has_hosts:
            count = None if wanted.spread else 1
            references = [system.reference for system in systems]
            hosts = Hosts(wanted.place.primary, count, references=references)
            stack.callback(hosts.close)
            yield replace(Makers(), hosts=hosts), hosts.environment()
            return
        generators = generators_of(wanted, _of_servers(systems), stack)
        about = {} if generators is None else generators.environment()
        yield makers_of(generators), about


def _of_servers(systems: Sequence[SystemPlan]) -> list[cluster.Node]:
    """The node of this machine, if servers run on it."""
    if all(system.is_endpoint for system in systems):
        return []
    own = ray.get_runtime_context().get_node_id()
    return [node for node in cluster.nodes() if node.node_id == own]
