"""Machines of a run: this machine, or the nodes of a cluster while the run lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from dbdyno.cli.progress import note
from dbdyno.errors import UsageError
from dbdyno.experiment.context import Makers
from dbdyno.plan.plan import Plan


class Machines(NamedTuple):
    """Makers of servers and load for a run; by default of this machine.

    Attributes:
        address: of the cluster; empty without one.
        environment: descriptions of a cluster's machines.
        release: gives them back, which ends measuring.
    """

    makers: Makers = Makers(shares_loads=True)
    address: str = ""
    environment: dict[str, str] = {}
    release: Callable[[], None] = lambda: None


HERE: Final = Machines()


@contextmanager
def machines_of(plan: Plan, address: str) -> Iterator[Machines]:
    """The machines for a plan, which are given back at the end of the block at the latest.

    Raises:
        UsageError: an address without a plan for it, or a plan without an address.
        LoadError: the cluster cannot carry the plan.
    """
    if not address and not plan.fleet.is_wanted:
        yield HERE
        return
    if not address or not plan.fleet.is_wanted:
        raise UsageError(
            "a run on many machines takes a cluster, and a plan that says what for",
            wanted="--fleet ADDRESS, and fleet: in the plan",
            found=f"--fleet {address} alone" if address else "no --fleet",
            hint="see docs/how-to/fleet.md for both; dbdyno fleet check shows what a cluster has",
        )
    # Imported only here: Ray takes seconds to import, and is not installed everywhere.
    from dbdyno.fleet import fleet  # noqa: PLC0415 - see above

    with ExitStack() as stack:
        makers, environment = stack.enter_context(fleet.machines(plan.fleet, plan.systems, address))
        for named, about in environment.items():
            note(f"{named}: {about}")
        yield Machines(makers, address, environment, stack.close)
