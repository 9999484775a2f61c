"""Machines of a run: this machine, or the nodes of a cluster while the run lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Final, NamedTuple

from dbdyno.cli.progress import note
from dbdyno.errors import UsageError
from dbdyno.experiment.context import Makers, Progress
from dbdyno.plan.plan import Plan


class Machines(NamedTuple):
    """Makers of servers and load for a run; by default of this machine.

    Attributes:
        address: of the cluster; empty without one.
        environment: descriptions of a cluster's machines.
        release: gives them back, which ends measuring.
        watching: get the progress too, beside the command line and the run's files.
    """

    makers: Makers = Makers(shares_loads=True)
    address: str = ""
    environment: dict[str, str] = {}
    release: Callable[[], None] = lambda: None
    watching: tuple[Progress, ...] = ()


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


@contextmanager
def exposing(machines: Machines, port: int | None, otlp: str | None = None) -> Iterator[Machines]:
    """The machines, with the run's metrics served or pushed during the block.

    Args:
        port: of loopback, to serve them on; 0 for any free one.
        otlp: address to push them to.

    Raises:
        UsageError: the port cannot be had, the address is no http address, or other machines run
            the blocks.
    """
    if port is None and otlp is None:
        yield machines
        return
    if machines.makers.hosts is not None:
        raise UsageError(
            "--prometheus and --otlp are for servers and load on this machine",
            found="a plan whose blocks run on other machines",
            hint="leave them out; dbdyno serve shows the run's progress",
        )
    # Imported only here, as few runs want it.
    from dbdyno.cli import metrics  # noqa: PLC0415 - see above
    from dbdyno.cli.otlp import pushed  # noqa: PLC0415 - see above

    live = metrics.LiveMetrics()
    makers = replace(machines.makers, engine=metrics.with_records(machines.makers.engine))
    with ExitStack() as stack:
        if port is not None:
            address = stack.enter_context(metrics.served(live, port))
            note(f"metrics of this run: {address}")
        if otlp is not None:
            stack.enter_context(pushed(live, otlp))
        yield machines._replace(makers=makers, watching=(live,))
