"""What the steps of a run share: plan, store, progress, and the makers of servers.

Tests pass fake makers instead of real processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from dbdyno.experiment import certify
from dbdyno.experiment.engine import ceiling
from dbdyno.experiment.engine.process import COMMAND, Engine, EngineProcess
from dbdyno.experiment.schedule.forecast import Forecast
from dbdyno.experiment.schedule.schedule import Schedule, TrialQueue
from dbdyno.measurement.certificate import CertificateFacts
from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.plan.plan import Plan
from dbdyno.servers import open
from dbdyno.servers.base import Instance, ServerSpec
from dbdyno.servers.process import LOOPBACK
from dbdyno.store.store import Store


class Progress(Protocol):
    """Callbacks on the progress of a run, for the command line and for tests.

    Called from the run's own thread, in the order of events; must return soon.
    """

    def stage(self, text: str) -> None:
        """What is being done between trials: "mysql:8.0.15: restoring the dataset"."""

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        """Trial `number` (from 1) of `total` begins; those stored before are counted."""

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """The engine finished one interval: at_s, phase, events, latency_ms by percentile …"""

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """The trial ended and is stored, failed or not."""


OpenInstance = Callable[[ServerSpec, Path, Callable[[str], None]], Instance]
Ceiling = Callable[[Plan, Trial, str], float | None]


class BlockRunner(Protocol):
    """Other machines on which blocks are run."""

    def count(self) -> int:
        """How many there are by now."""

    def run(self, context: RunContext, run_id: str, schedule: Schedule) -> None:
        """Has all blocks run, and stores each trial as it ends."""


@dataclass(frozen=True)
class Makers:
    """How instances are opened, the engine's child is started, and what is known of it.

    Attributes:
        command: starts the engine's child; engine: begins a load.
        hosts: run the blocks in place of this machine.
        address: on which servers listen.
        shares_loads: whether loads are those of the cache, which workspaces on its disk share.
    """

    open_instance: OpenInstance = field(default_factory=lambda: open.instance)
    command: tuple[str, ...] = COMMAND
    ceiling: Ceiling = ceiling.measure
    certificate: Callable[[], CertificateFacts] = certify.known
    engine: Callable[..., Engine] = EngineProcess
    hosts: BlockRunner | None = None
    address: str = LOOPBACK
    shares_loads: bool = False

    @property
    def machines(self) -> int:
        """How many run blocks beside each other."""
        return 1 if self.hosts is None else self.hosts.count()


@dataclass
class RunContext:
    """One run's surroundings.

    Attributes:
        schedule: the trials that are run.
        refused: why a system cannot have a setting, or cannot bear a cell, by both their names.
        started: labels of systems that this lab has started for a trial.
        as_loaded: labels of systems whose data was restored by this lab and not spoiled since.
        dataset: digest of each system's rows, by label.
        loads: name of the load that each system's data are a copy of, by label.
        dataset_bytes: bytes of the baseline's loaded tables; None where nobody asked yet.
        folders: where the disks are watched.
        ceilings: events/s that the generator reaches on a server that is none, by workload,
            driver, and whether its statements are prepared.
        query_plans: of each system that has run a trial, by label.
        interrupted: the user stopped the run while something was asked after a trial, which is
            stored before the run ends.
    """

    schedule: TrialQueue
    store: Store
    folder: Path
    progress: Progress
    makers: Makers
    refused: dict[tuple[str, str], str] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    as_loaded: set[str] = field(default_factory=set)
    dataset: dict[str, str] = field(default_factory=dict)
    loads: dict[str, str] = field(default_factory=dict)
    dataset_bytes: int | None = None
    folders: list[Path] = field(default_factory=list)
    ceilings: dict[tuple[str, str, bool], float | None] = field(default_factory=dict)
    query_plans: dict[str, dict[str, str]] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def plan(self) -> Plan:
        """The plan of the trials that are run."""
        return self.schedule.plan

    @property
    def forecast(self) -> Forecast:
        """How long trials take here."""
        return self.schedule.forecast

    @cached_property
    def certificate(self) -> CertificateFacts:
        """What the machine's certificate says of the generator as the run begins."""
        return self.makers.certificate()

    def refusal(self, trial: Trial) -> str | None:
        """Why the trial cannot be run, if that was found out before; None otherwise."""
        return self.refused.get((trial.system, trial.cell.setting)) or self.refused.get(
            (trial.system, trial.cell.key)
        )

    def is_restored_at_start(self, system: str) -> bool:
        """Whether the next start of a system's server begins by restoring its dataset."""
        return self.plan.procedure.fresh_data == "start" or system not in self.as_loaded
