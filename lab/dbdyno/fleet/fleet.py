"""Machines of a run: makers on a cluster in place of this machine's, while the run lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import NamedTuple

import ray

from dbdyno.experiment.context import Makers
from dbdyno.fleet import cluster
from dbdyno.fleet.hosts import Hosts, generators_of, makers_of
from dbdyno.plan.plan import Plan


class Fleet(NamedTuple):
    """Machines of a run on a cluster.

    Attributes:
        environment: each machine's description for the report.
    """

    makers: Makers
    environment: dict[str, str]


@contextmanager
def machines(plan: Plan, address: str) -> Iterator[Fleet]:
    """Connect and start the plan's hosts and generators; all ends with the block.

    Raises:
        LoadError: no cluster answers, it has too few nodes, or an installation differs.
    """
    wanted = plan.fleet
    with ExitStack() as stack:
        stack.enter_context(cluster.connected(address))
        if wanted.has_hosts:
            count = None if wanted.spread else 1
            references = [system.reference for system in plan.systems]
            hosts = Hosts(wanted.place.primary, count, references=references)
            stack.callback(hosts.close)
            yield Fleet(replace(Makers(), hosts=hosts), hosts.environment())
            return
        generators = generators_of(plan, _of_servers(plan), stack)
        about = {} if generators is None else generators.environment()
        yield Fleet(makers_of(generators), about)


def _of_servers(plan: Plan) -> list[cluster.Node]:
    """The node of this machine, if servers run on it."""
    if all(system.is_endpoint for system in plan.systems):
        return []
    own = ray.get_runtime_context().get_node_id()
    return [node for node in cluster.nodes() if node.node_id == own]
