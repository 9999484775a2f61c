"""The part of a plan that says which machines make the load, hold the servers and share the blocks.

It says what is wanted of a cluster, not which one: its address is given when the run begins
(``--fleet``). Machines are meant by their label ``dbdyno``, which whoever starts a node gives it.
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
    """On which machines what runs, by their label.

    Attributes:
        primary: the servers; unless given they run where dbdyno was started.
        generators: those of `FleetPlan.generators`.
    """

    primary: Role = ""
    generators: Role = ""


class FleetPlan(FiniteNoun):
    """What is wanted of a cluster of machines (docs/how-to/fleet.md).

    Attributes:
        generators: so many machines make the load together, one generator each, apart from the
            servers; 0 for a generator beside them.
        spread: ``blocks`` for whole blocks on several equal machines at once, as many as
            `place.primary` means.
        place: which machines.
    """

    generators: Annotated[int, Field(ge=0, le=GENERATORS_MAX), WHOLE] = 0
    spread: Literal["", "blocks"] = ""
    place: PlacePlan = PlacePlan()

    def check(self, load: LoadPlan, has_delays: bool, scripts: Collection[str]) -> None:
        """ValueError if the rest of the plan cannot have generators apart.

        Args:
            has_delays: the network between load and server is one of the lab's making.
            scripts: labels of workloads that are scripts.
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
        """Whether servers run on other machines than the one where dbdyno was started."""
        return bool(self.spread or self.place.primary)

    @property
    def is_wanted(self) -> bool:
        """Whether it takes a cluster."""
        return bool(self.generators) or self.has_hosts
