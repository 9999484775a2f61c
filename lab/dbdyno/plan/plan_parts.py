"""Smaller parts of a plan, which no other part looks at: rows touched, network, publication."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dbdyno.measurement.measurement_parts import Noun


class DistributionPlan(Noun):
    """Which rows are touched.

    Attributes:
        name: sysbench's distributions; `uniform` unless said otherwise.
    """

    name: Literal["uniform", "gaussian", "special", "pareto", "zipfian"] = "uniform"


class NetworkPlan(Noun):
    """What the network adds to each round trip, in milliseconds; 0 for nothing.

    Attributes:
        client_ms: between the load and the server.
        replica_ms: between a primary and each replica.
    """

    client_ms: Annotated[float, Field(ge=0, le=10_000)] = 0
    replica_ms: Annotated[float, Field(ge=0, le=10_000)] = 0


class PublishedPlan(Noun):
    """The published experiment that a plan follows, so that a report can say what differs.

    Attributes:
        source: who published it, when, under which title.
        setup: what it used, by topic: systems, machine, data, load, window, repeats…
        differences: what this plan does otherwise whatever its scale, and why.
    """

    source: Annotated[str, Field(min_length=1)]
    setup: dict[str, str] = {}
    differences: tuple[str, ...] = ()
