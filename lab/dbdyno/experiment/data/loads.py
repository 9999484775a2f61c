"""The loads that a run rests on: each system's rows, loaded again and again on data of their own.

Where rows lie in files and pages differs from one load to the next and stays in all its copies: an
effect of the load, which blocks that share one cannot show. So each block gets a load of its own of
each system, as far as time and disk allow. A system's folder holds a pool of them. A run begins
with the one that fewest runs rest on, and loads again before its further blocks; what it loaded
stays for later runs, in place of those that most runs rest on.

Workspaces share the pools in the cache, and several labs may be at work in one. Whoever chooses,
adds or removes loads holds the lock of choosing meanwhile. A lab also holds a lock on each load
that it has chosen, until its run ends: for others that load is not there. A load whose copy is
damaged ends the run that finds it so; the next one that rests on it loads again in its place.
"""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from dbdyno.errors import DbdynoError
from dbdyno.experiment.context import RunContext
from dbdyno.experiment.data import dataset, disk
from dbdyno.experiment.data.dataset import SYSTEMS
from dbdyno.files import is_locked, locked, replaced
from dbdyno.plan.plan import LOADS_SHARE
from dbdyno.plan.systems import SystemPlan
from dbdyno.servers.base import Instance
from dbdyno.servers.local.files import MARKER, SNAPSHOT, occupied_bytes, remove_file
from dbdyno.servers.programs import places
from dbdyno.servers.reference import IMAGE_SCHEME
from dbdyno.store.store import lock_path

RECORD: Final = "load.json"
OPEN: Final = "open"
"""A file of a load that a lab works on; left by a lab that died."""
RUNS_MAX: Final = 3
"""So many runs may rest on one load; the next begins with a new one."""


def home_of(context: RunContext, system: SystemPlan) -> Path:
    """In whose `systems` a system's loads are: the cache, which workspaces share, or the workspace.

    Servers work where their loads are, and the workspace says on which disk: one on another disk
    than the cache has its own. So have endpoints, and containers, whose volumes no cache bounds.

    Raises:
        ProvisionError: the cache cannot be used.
    """
    is_ours = not system.is_endpoint and not system.reference.startswith(IMAGE_SCHEME)
    if not (context.makers.shares_loads and is_ours):
        return context.folder
    shared = places.make_cache_folder(SYSTEMS)
    is_near = shared.stat().st_dev == context.folder.stat().st_dev
    return shared.parent if is_near else context.folder


def lock_of(home: Path, *names: str) -> Path:
    """The lock of a pool, or of a load in it, by their folders' names; of choosing without any."""
    return lock_path(home, "-".join(names) or SYSTEMS)


def choosing(home: Path, wait: Callable[[str], None]) -> AbstractContextManager[None]:
    """Held by whoever chooses, adds or removes loads; StoreError if others do for too long.

    Args:
        wait: called with a message before others are waited for.
    """
    return locked(lock_of(home), f"the folder {home / SYSTEMS}", wait)


def remove(load: Path) -> None:
    """Removes a load that nobody uses; OSError if it cannot be. Half of one counts for nothing."""
    with suppress(OSError):
        remove_file(load / SNAPSHOT / MARKER)
    shutil.rmtree(load)


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
        home: as `home_of`.
        open_in: opens an instance whose files are in the folder it is given.
    """

    def __init__(
        self,
        context: RunContext,
        run_id: str,
        system: SystemPlan,
        home: Path,
        open_in: Callable[[Path], Instance],
    ) -> None:
        self.system = system
        self.load: Load | None = None
        self._context, self._run_id = context, run_id
        self._home, self._open_in = home, open_in
        self._folder = dataset.folder_of(home, context.plan, system)
        self._instance: Instance | None = None
        self._opened_s = 0.0
        self._held: set[Path] = set()
        self._locks = ExitStack()

    def open(self, block: int, may_load: bool, count: int) -> Instance:
        """The instance of the load that a block rests on; `fill` is what loads it if it is new.

        Args:
            may_load: the block may have a load of its own.
            count: how many loads may be in the pool then.

        Raises:
            StoreError: another lab uses the endpoint, or chooses for too long.
        """
        began = time.monotonic()
        if self.system.is_endpoint:
            self._hold(self._folder)
            self._instance = self._instance or self._open_in(self._folder)
            return self._instance
        with choosing(self._home, self._context.progress.stage):
            kept = self._kept()
            chosen = self._chosen(kept, block, may_load) or Load(self._place(kept, count))
            is_open = self.load is not None and chosen.folder == self.load.folder
            if not is_open:
                self._end()
                self._hold(chosen.folder)
                places.make_open(chosen.folder)
                (chosen.folder / OPEN).touch()
        if self._instance is None or not is_open:
            self._instance = self._open_in(chosen.folder)
        self.load, self._opened_s = chosen, time.monotonic() - began
        return self._instance

    def clear_left(self) -> None:
        """Clears what labs that died have left of the pool's loads.

        Raises:
            StoreError: another lab chooses for too long.
        """
        marks = [] if self.system.is_endpoint else sorted(self._folder.glob(f"*/{OPEN}"))
        if not marks:
            return
        with choosing(self._home, self._context.progress.stage):
            for mark in marks:
                left = mark.parent
                if not mark.exists() or not self._is_free(left):
                    continue
                instance = self._open_in(left)
                if Load.recorded(left).name and instance.has_snapshot():
                    instance.close()
                else:
                    instance.discard()
                    (left / RECORD).unlink(missing_ok=True)
                mark.unlink(missing_ok=True)

    def fill(self, block: int) -> bool:
        """Loads the rows unless they are there; says whether it did.

        Raises:
            LoadError, ServerError: as `dataset.ensure_dataset`.
        """
        context, label, instance = self._context, self.system.label, self._instance
        assert instance is not None, "open it first"
        began, was_there = time.monotonic(), instance.has_snapshot()
        if self.load is not None and self.load.name and not was_there:
            (self.load.folder / RECORD).unlink(missing_ok=True)  # it is another load from here on
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
        """Ends the open instance; its load stays, and other labs may have those of this run."""
        try:
            self._end()
        finally:
            self._held.clear()
            self._locks.close()

    def _end(self) -> None:
        instance, load = self._instance, self.load
        self._instance, self.load = None, None
        self._context.as_loaded.discard(self.system.label)
        if instance is None:
            return
        try:
            instance.close()
            if load is not None:
                (load.folder / OPEN).unlink(missing_ok=True)
        except (DbdynoError, OSError) as error:  # the run's own outcome counts, not this
            self._context.progress.stage(f"{self.system.label}: {getattr(error, 'message', error)}")

    def _hold(self, folder: Path) -> None:
        """Keeps other labs from a load, or from an endpoint, until the run's end."""
        if folder not in self._held:
            self._locks.enter_context(locked(self._lock(folder), self.system.label))
            self._held.add(folder)

    def _is_free(self, folder: Path) -> bool:
        return folder in self._held or not is_locked(self._lock(folder))

    def _lock(self, folder: Path) -> Path:
        return lock_of(self._home, *folder.relative_to(self._folder.parent).parts)

    def _kept(self) -> list[Load]:
        """The loads of the pool that no other lab holds, the oldest first."""
        found = [Load.recorded(record.parent) for record in self._folder.glob(f"*/{RECORD}")]
        free = (load for load in found if load.name and self._is_free(load.folder))
        return sorted(free, key=lambda load: load.name)

    def _chosen(self, kept: list[Load], block: int, may_load: bool) -> Load | None:
        """The load for a block; None for one that is still to be made.

        That on which the block rests already. Else, in a run that has begun and whose plan names a
        number of loads, a new one up to that number. Else a new one if it may be; else one that
        this run does not rest on yet, unless too many runs do; else, in turn, one of those that it
        does.
        """
        run_id = self._run_id
        own = sorted((one for one in kept if run_id in one.runs), key=lambda one: one.runs[run_id])
        begun = next((one for one in own if one.runs[run_id] == block), None)
        if begun is not None or not kept:
            return begun
        plan = self._context.plan
        most = 1 if plan.procedure.fresh_data == "once" else plan.dataset.loads
        if own and most is not None:
            return own[0] if block >= most or len(own) >= most else None
        if may_load:
            return None
        others = [one for one in kept if run_id not in one.runs]
        fresh = min(others, key=lambda one: len(one.runs), default=None)
        if fresh is not None and not own and len(fresh.runs) >= RUNS_MAX:
            return None
        return fresh or own[0]

    def _place(self, kept: list[Load], count: int) -> Path:
        """A folder for a new load, after those that are too many were removed.

        They are those that most runs rest on, the oldest of them first. In the cache so were those
        of other plans.
        """
        self._end()
        worst = sorted(kept, key=lambda load: -len(load.runs))
        for load in worst[: max(0, len(kept) - count + 1)]:
            (load.folder / OPEN).touch()  # half of it is cleared by the next run
            self._open_in(load.folder).discard()
            for name in (RECORD, OPEN):
                (load.folder / name).unlink(missing_ok=True)
            kept.remove(load)
        if self._home != self._context.folder:
            _make_room(self._home, self._folder)
        # What another lab held a moment ago may be free by now, and is a load all the same.
        folders = (self._folder / str(number) for number in itertools.count(1))
        return next(one for one in folders if self._is_free(one) and not Load.recorded(one).name)


def _make_room(home: Path, own: Path) -> None:
    """Removes loads of other pools than `own`, the longest unused first, as they take too much.

    Only within `choosing`.
    """
    others = [one for one in (home / SYSTEMS).glob("*/*") if one.is_dir() and one.parent != own]
    free = [one for one in others if not is_locked(lock_of(home, one.parent.name, one.name))]
    for left in [one for one in free if (one / OPEN).exists()]:  # by a lab that died
        free.remove(left)
        with suppress(OSError):
            remove(left)
    free.sort(key=lambda one: one.stat().st_mtime)  # changes as a run takes it, and in each block
    sizes = {one: occupied_bytes(one) for one in free}
    over = disk.kept_too_much(home, sum(sizes.values()))
    for folder, size in sizes.items():
        if over <= 0:
            break
        with suppress(OSError):
            remove(folder)
            over -= size


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
