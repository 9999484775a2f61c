"""Shared by the steps of a run: plan, store, progress, and the makers of servers.

Tests pass fake makers instead of real processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

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
        """Show the present step: "mysql:8.0.15: restoring the dataset"."""

    def note(self, text: str) -> None:
        """Show a text that stays: a disturbance, a changed design, a lost machine."""

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        """Trial `number` (from 1) of `total` begins; earlier stored trials are counted."""

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """An interval of the load has ended: at_s, phase, events, latency_ms by percentile …"""

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """The trial ended and is stored, failed or not."""


OpenInstance = Callable[[ServerSpec, Path, Callable[[str], None]], Instance]
Ceiling = Callable[[Plan, Trial, str], float | None]


class BlockRunner(Protocol):
    """Other machines on which blocks are run."""

    def count(self) -> int:
        """Number of machines so far."""

    def run(self, context: RunContext, schedule: Schedule) -> None:
        """Run all blocks, and store each trial as it ends."""


@dataclass(frozen=True)
class Makers:
    """Makers of instances and of the engine's child, and facts about the generator.

    Attributes:
        command, engine: command of the engine's child, and the class that begins a load.
        hosts: machines to run the blocks in place of this machine.
        address: address on which servers listen.
        shares_loads: True if loads are kept in the cache, shared by all workspaces on its disk.
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
        """Number of machines that run blocks in parallel."""
        return 1 if self.hosts is None else self.hosts.count()


class LoadRecord(NamedTuple):
    """Record of a load, kept beside its snapshot; empty if unknown.

    Attributes:
        rows: digest of its rows; empty for an endpoint's own tables.
        name: time of loading.
        short: rows of each table with fewer than it was sent.
        is_as_loaded: False for an endpoint's rows of an earlier run, which may have written there.
    """

    rows: str = ""
    name: str = ""
    short: Mapping[str, int] = MappingProxyType({})
    is_as_loaded: bool = True


@dataclass
class RunContext:
    """State of one run.

    Attributes:
        run_id: of the stored run.
        schedule: the trials to run.
        refused: reasons by (system, setting) for settings a system cannot have, and by (system,
            cell) for cells it cannot run.
        started: labels of systems started for a trial by this lab.
        as_loaded: labels of systems whose data this lab has restored and left unspoiled since.
        loads: record of the load from which each system's data were copied, by label.
        dataset_bytes: bytes of the baseline's loaded tables; None until they are measured.
        folders: folders whose disks are watched.
        ceilings: the generator's highest events/s, measured on a null responder, by workload,
            driver, and prepared statements or plain.
        query_plans: query plans of each system that has run a trial, by label.
        interrupted: the user stopped the run while evidence was collected after a trial; the trial
            is stored before the run ends.
    """

    run_id: str
    schedule: TrialQueue
    store: Store
    folder: Path
    progress: Progress
    makers: Makers
    refused: dict[tuple[str, str], str] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    as_loaded: set[str] = field(default_factory=set)
    loads: dict[str, LoadRecord] = field(default_factory=dict)
    dataset_bytes: int | None = None
    folders: list[Path] = field(default_factory=list)
    ceilings: dict[tuple[str, str, bool], float | None] = field(default_factory=dict)
    query_plans: dict[str, dict[str, str]] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def plan(self) -> Plan:
        """The plan of the trials to run."""
        return self.schedule.plan

    @property
    def forecast(self) -> Forecast:
        """Forecast of the time for trials here."""
        return self.schedule.forecast

    @cached_property
    def certificate(self) -> CertificateFacts:
        """Facts of the generator's certificate as the run begins."""
        return self.makers.certificate()

    def refusal(self, trial: Trial) -> str | None:
        """Known reason why the trial cannot be run; else None."""
        return self.refused.get((trial.system, trial.cell.setting)) or self.refused.get(
            (trial.system, trial.cell.key)
        )

    def is_restored_at_start(self, system: str) -> bool:
        """True if the next start of a system's server begins by restoring its dataset."""
        return self.plan.procedure.fresh_data == "start" or system not in self.as_loaded
