"""The part of a plan about machines: they make the load, hold the servers, or share the blocks.

A plan states its needs; the address of a cluster is given when the run begins (``--fleet``).
Machines are found by the label ``dbdyno`` of their node, which is set by whoever starts it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Final, Literal

from pydantic import Field

from dbdyno.measurement.parts import FiniteNoun
from dbdyno.plan.load import GENERATORS_MAX, LoadPlan
from dbdyno.plan.spelling import WHOLE

LABEL: Final = "dbdyno"
"""The node label by which `PlacePlan` means machines."""

ROLE_PATTERN: Final = r"^[A-Za-z0-9]?[A-Za-z0-9._-]*$"
Role = Annotated[str, Field(max_length=63, pattern=ROLE_PATTERN)]
"""A value of the label; empty for any machine."""


class PlacePlan(FiniteNoun):
    """Machines for servers and generators, found by the value of their node label `dbdyno`.

    Attributes:
        primary: label value of the machines for servers; by default, servers run where dbdyno was
            started.
        generators: label value of the machines for `fleet.generators`; by default, any machine.
    """

    primary: Role = ""
    generators: Role = ""


class FleetPlan(FiniteNoun):
    """Needs of a run on several machines (docs/how-to/fleet.md).

    Attributes:
        generators: number of machines that make the load together, one generator each, apart from
            the servers; 0, the default, for a generator on the servers' machine.
        spread: ``blocks`` to run whole blocks on several equal machines at once: all machines
            selected by `place.primary`.
        place: labels of the machines for servers and generators.
    """

    generators: Annotated[int, Field(ge=0, le=GENERATORS_MAX), WHOLE] = 0
    spread: Literal["", "blocks"] = ""
    place: PlacePlan = PlacePlan()

    def check(self, load: LoadPlan, has_delays: bool, scripts: Collection[str]) -> None:
        """Check the rest of the plan against generators on machines of their own.

        Args:
            has_delays: the lab adds delays between load and server.
            scripts: labels of workloads that are scripts.

        Raises:
            ValueError: `load.generators` differs, a level has fewer connections than generators,
                or the plan has scripts or delays.
        """
        if not self.generators:
            return
        if load.generators not in {1, self.generators}:
            raise ValueError(
                f"fleet: generators: {self.generators} machines, but load: generators:"
                f" {load.generators}; each machine has one generator, so leave the latter out"
            )
        if scripts:
            raise ValueError(
                f"fleet: generators: a script's threads share one process; leave it out for"
                f" {', '.join(scripts)}"
            )
        if has_delays:
            raise ValueError(
                "fleet: generators: delays of the network (network) are made on one machine; leave"
                " them out where the generators have machines of their own"
            )
        if self.generators > load.connections_min:
            raise ValueError(
                f"fleet: generators: each needs a connection: {self.generators} generators, but a"
                f" level of {load.connections_min}"
            )

    @property
    def has_hosts(self) -> bool:
        """True if servers run on other machines than the machine where dbdyno was started."""
        return bool(self.spread or self.place.primary)

    @property
    def is_wanted(self) -> bool:
        """True if the plan needs a cluster."""
        return bool(self.generators) or self.has_hosts
