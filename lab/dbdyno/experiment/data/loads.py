"""The loads that a run rests on: each system's rows, loaded again and again on data of their own.

Where rows lie in files and pages differs from one load to the next and stays in all its copies: an
effect of the load, which blocks that share one cannot show. So each block gets a load of its own of
each system, as far as time and disk allow. A system's folder holds a pool of them. A run begins
with the one that fewest runs rest on, and loads again before its further blocks; what it loaded
stays for later runs, in place of those that most runs rest on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from dbdyno.errors import DbdynoError
from dbdyno.experiment.context import RunContext
from dbdyno.experiment.data import dataset, disk
from dbdyno.files import replaced
from dbdyno.plan.plan import LOADS_SHARE
from dbdyno.plan.systems import SystemPlan
from dbdyno.servers.base import Instance

RECORD: Final = "load.json"
OPEN: Final = "open"
"""A file of a pool that names the load which a lab works on; left by a lab that died."""
RUNS_MAX: Final = 3
"""So many runs may rest on one load; the next begins with a new one."""


@dataclass(frozen=True)
class Load:
    """One load of a system, as the record in its folder says.

    Attributes:
        name: when it was made.
        seconds: how long it took, from laying out the data to the end of their copy.
        runs: the runs that rest on it, each with the last block that does.
    """

    folder: Path
    name: str = ""
    seconds: float = 0.0
    runs: dict[str, int] = field(default_factory=dict)

    @classmethod
    def recorded(cls, folder: Path) -> Load:
        """What the record in a folder says; without a name if there is none, or no readable one."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            about = json.loads((folder / RECORD).read_text())
            return cls(folder, about["name"], float(about["seconds"]), dict(about["runs"]))
        return cls(folder)

    def record(self, run_id: str, block: int) -> None:
        """Writes down that a block rests on it, too."""
        self.runs[run_id] = block
        about = {"name": self.name, "seconds": self.seconds, "runs": self.runs}
        self.folder.mkdir(parents=True, exist_ok=True)
        with replaced(self.folder / RECORD) as new:
            new.write_text(json.dumps(about))


class Pool:
    """One system's loads, of which one is open at a time; an endpoint has just one.

    Args:
        folder: the system's own.
        open_in: opens an instance whose files are in the folder it is given.
    """

    def __init__(
        self,
        context: RunContext,
        run_id: str,
        system: SystemPlan,
        folder: Path,
        open_in: Callable[[Path], Instance],
    ) -> None:
        self.system = system
        self.load: Load | None = None
        self._context, self._run_id = context, run_id
        self._folder, self._open_in = folder, open_in
        self._instance: Instance | None = None
        self._opened_s = 0.0

    def open(self, block: int, may_load: bool, count: int) -> Instance:
        """The instance of the load that a block rests on; `fill` is what loads it if it is new.

        Args:
            may_load: the block may have a load of its own.
            count: how many loads may be in the pool then.
        """
        began = time.monotonic()
        if self.system.is_endpoint:
            self._instance = self._instance or self._open_in(self._folder)
            return self._instance
        kept = self._kept()
        chosen = self._chosen(kept, block, may_load) or Load(self._place(kept, count))
        if self._instance is None or self.load is None or chosen.folder != self.load.folder:
            self.close()
            self._clear_left(chosen.folder)
            self._instance = self._open_in(chosen.folder)
        self.load, self._opened_s = chosen, time.monotonic() - began
        return self._instance

    def fill(self, block: int) -> bool:
        """Loads the rows unless they are there; says whether it did.

        Raises:
            LoadError, ServerError: as `dataset.ensure_dataset`.
        """
        context, label, instance = self._context, self.system.label, self._instance
        assert instance is not None, "open it first"
        began, was_there = time.monotonic(), instance.has_snapshot()
        dataset.ensure_dataset(context, instance)
        context.dataset[label] = dataset.read_digest(instance.folder)
        if self.load is not None:
            if not was_there or not self.load.name:
                seconds = self._opened_s + time.monotonic() - began
                name = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
                self.load = Load(self.load.folder, name, seconds)
            self.load.record(self._run_id, block)
            context.loads[label] = self.load.name
        return not was_there

    def close(self) -> None:
        """Ends the open instance; its load stays."""
        instance, self._instance, self.load = self._instance, None, None
        self._context.as_loaded.discard(self.system.label)
        if instance is None:
            return
        try:
            instance.close()
            (self._folder / OPEN).unlink(missing_ok=True)
        except (DbdynoError, OSError) as error:  # the run's own outcome counts, not this
            self._context.progress.stage(f"{self.system.label}: {getattr(error, 'message', error)}")

    def _clear_left(self, chosen: Path) -> None:
        """Clears what a lab that died has left of another load than the one that is opened now."""
        mark = self._folder / OPEN
        left = self._folder / mark.read_text() if mark.is_file() else chosen
        if left != chosen and left.is_dir():
            instance = self._open_in(left)
            instance.close() if Load.recorded(left).name else instance.discard()
        self._folder.mkdir(parents=True, exist_ok=True)
        with replaced(mark) as new:
            new.write_text(chosen.name)

    def _kept(self) -> list[Load]:
        """The loads of the pool, the oldest first."""
        found = [Load.recorded(record.parent) for record in self._folder.glob(f"*/{RECORD}")]
        return sorted((load for load in found if load.name), key=lambda load: load.name)

    def _chosen(self, kept: list[Load], block: int, may_load: bool) -> Load | None:
        """The load for a block; None for one that is still to be made.

        That on which the block rests already; else a new one if it may be; else one that this run
        does not rest on yet, unless too many runs do; else, in turn, one of those that it does.
        """
        run_id = self._run_id
        own = sorted((one for one in kept if run_id in one.runs), key=lambda one: one.runs[run_id])
        begun = next((one for one in own if one.runs[run_id] == block), None)
        if begun is not None or not kept:
            return begun
        plan = self._context.plan
        most = 1 if plan.procedure.fresh_data == "once" else plan.dataset.loads
        if own and most is not None and block >= most:
            return own[0]
        if may_load:
            return None
        others = [one for one in kept if run_id not in one.runs]
        fresh = min(others, key=lambda one: len(one.runs), default=None)
        if fresh is not None and not own and len(fresh.runs) >= RUNS_MAX:
            return None
        return fresh or own[0]

    def _place(self, kept: list[Load], count: int) -> Path:
        """A folder for a new load, after those that are too many were removed.

        They are those that most runs rest on, the oldest of them first.
        """
        self.close()
        worst = sorted(kept, key=lambda load: -len(load.runs))
        for load in worst[: max(0, len(kept) - count + 1)]:
            (load.folder / RECORD).unlink()
            self._open_in(load.folder).discard()
            kept.remove(load)
        taken = {load.folder.name for load in kept}
        numbers = (str(number) for number in range(1, len(taken) + 2))
        return self._folder / next(number for number in numbers if number not in taken)


class Loads:
    """The pools of a run's data directories.

    Attributes:
        instances: of each directory's label, the instance that the block in turn rests on.
    """

    def __init__(self, context: RunContext, pools: Iterable[Pool]) -> None:
        self.instances: dict[str, Instance] = {}
        self._context, self._pools = context, list(pools)
        self._block: int | None = None
        self._began = self._spent_s = 0.0

    def turn_to(self, block: int) -> None:
        """Gives each system the load that a block rests on.

        Raises:
            LoadError, ServerError: the disk is too small, or as `dataset.ensure_dataset`.
        """
        if block == self._block:
            return
        context, is_first, began = self._context, self._block is None, time.monotonic()
        may_load = not is_first and self._may_load()
        count = disk.loads_kept(context.plan, context.folder, len(self._pools))
        for pool in self._pools:
            self.instances[pool.system.label] = pool.open(block, may_load, count)
        if is_first:
            disk.check_before(context.plan, self.instances.values())
        folders = (instance.folder for instance in self.instances.values())
        context.folders = [context.folder, *folders]
        filled = [pool.fill(block) for pool in self._pools]
        self._block, now = block, time.monotonic()
        if is_first:
            self._began = now
        elif any(filled):
            self._spent_s += now - began
        context.forecast.loads_s = self.next_s()

    def next_s(self) -> float:
        """Seconds that one more load of every system takes, by those that are there."""
        return sum(pool.load.seconds for pool in self._pools if pool.load is not None)

    def _may_load(self) -> bool:
        """Whether the next block may have loads of its own: a plan's number says so, or the time.

        Loading takes at most `LOADS_SHARE` of the time since the first block began.
        """
        if self._context.plan.dataset.loads is not None:
            return True
        next_s = self.next_s()
        since_s = time.monotonic() - self._began
        return self._spent_s + next_s <= LOADS_SHARE * (since_s + next_s)
