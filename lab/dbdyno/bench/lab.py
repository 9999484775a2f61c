"""What the steps of a run share: the plan, where trials go, who is told, and the makers of servers.

Tests hand in fake makers here, which is the only seam between bench and real processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno import servers
from dbdyno.bench.engine_process import COMMAND
from dbdyno.bench.forecast import Forecast
from dbdyno.bench.progress import Progress
from dbdyno.measurement import Trial
from dbdyno.plan import Plan
from dbdyno.servers.base import Instance, ServerSpec
from dbdyno.store import Store

OpenInstance = Callable[[ServerSpec, Path, Callable[[str], None]], Instance]


@dataclass(frozen=True)
class Makers:
    """What makes instances, and the command of the engine's child."""

    open_instance: OpenInstance = field(default_factory=lambda: servers.instance)
    command: tuple[str, ...] = COMMAND


@dataclass
class Lab:
    """One run's surroundings.

    Attributes:
        left: the trials that were not run yet, in order; the first is the next one.
        total: trials of the whole plan, those stored by an earlier lab included.
    """

    plan: Plan
    store: Store
    folder: Path
    progress: Progress
    makers: Makers
    forecast: Forecast
    left: list[Trial]
    total: int

    def number(self) -> int:
        """The next trial's number, from 1."""
        return self.total - len(self.left) + 1
