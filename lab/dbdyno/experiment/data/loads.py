"""Loads: each system's rows in a data directory of its own, loaded once and kept for later runs.

Workspaces share loads in the cache by reference, settings, replicas and dataset. A server works in
its load's directory, so a lab holds the load's lock until its run ends; a second lab takes another
load of the same kind. Choosing and removing loads is protected by a lock too. A load with a damaged
copy ends the run that detects it; the next run replaces it.
"""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from dbdyno.errors import DbdynoError
from dbdyno.experiment.context import RunContext
from dbdyno.experiment.data import dataset, disk
from dbdyno.experiment.data.dataset import SYSTEMS
from dbdyno.files import is_locked, locked, occupied_bytes, remove_tree
from dbdyno.plan.systems import SystemPlan
from dbdyno.servers.base import Instance
from dbdyno.servers.local.files import MARKER, SNAPSHOT, remove_file
from dbdyno.servers.programs import places
from dbdyno.servers.reference import IMAGE_SCHEME
from dbdyno.store.store import lock_path

OPEN: Final = "open"
"""File that marks a load in use by a lab; left behind by a lab that died."""


def home_of(context: RunContext, system: SystemPlan) -> Path:
    """Folder with the `systems` of a system's loads: the shared cache, or the workspace.

    A server works in its load's directory, and the workspace decides the disk: a workspace on
    another disk than the cache has its own loads. So have endpoints, and containers, whose volumes
    are outside the cache's size limit.

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
    """Lock of a load, by the names of its folders; of an endpoint; of choosing without any."""
    return lock_path(home, "-".join(names) or SYSTEMS)


def choosing(home: Path, wait: Callable[[str], None]) -> AbstractContextManager[None]:
    """Held by whoever chooses or removes loads; StoreError if others do for too long.

    Args:
        wait: called with a message before others are waited for.
    """
    return locked(lock_of(home), f"the folder {home / SYSTEMS}", wait)


def remove(load: Path) -> None:
    """Remove an unused load; OSError if impossible. A half-removed load is ignored later."""
    with suppress(OSError):
        remove_file(load / SNAPSHOT / MARKER)
    shutil.rmtree(load)


def _unused(home: Path) -> list[Path]:
    """Loads that no lab holds; only within `choosing`."""
    return [
        load
        for load in (home / SYSTEMS).glob("*/*")
        if load.is_dir() and not is_locked(lock_of(home, load.parent.name, load.name))
    ]


def _clear_left(cache: Path) -> None:
    """Remove the working data of labs that died; only within `choosing`."""
    for load in (load for load in _unused(cache) if (load / OPEN).exists()):
        for folder in load.iterdir():
            if folder.is_dir() and folder.name != SNAPSHOT:
                remove_tree(folder)
        (load / OPEN).unlink()


def keep_limit(context: RunContext) -> None:
    """Remove unused loads, then programs, from a cache beyond its limit; report if it stays so."""
    if not context.makers.shares_loads or places.excess_bytes() <= 0:
        return
    cache, report = places.cache_folder(), context.progress.note
    with choosing(cache, context.progress.stage):
        _make_room(cache, disk.within_limit, report)
    places.make_room(report)
    places.tell_excess(report)


def _make_room(home: Path, allowed: Callable[[int], float], report: Callable[[str], None]) -> None:
    """Removes unused loads, the least recently used first, while they take more than they may.

    Only within `choosing`. The run's own are locked by then.

    Args:
        allowed: bytes allowed to unused loads, given their present bytes.
    """
    unused = _unused(home)
    unused.sort(key=lambda load: load.stat().st_mtime)  # changes as a lab begins and ends using it
    sizes = {load: occupied_bytes(load) for load in unused}
    taken = sum(sizes.values())
    most = allowed(taken)
    for load, size in sizes.items():
        if taken <= most:
            break
        with suppress(OSError):
            remove(load)
            taken -= size
            report(
                f"removed the unused load {load.parent.name}/{load.name}, {disk.megabytes(size)}:"
                f" loads in {home / SYSTEMS} may take {disk.megabytes(most)}"
            )


class SystemLoads:
    """A system's loads in a run: `dataset.loads` of the plan; a single load for an endpoint.

    Args:
        home: as `home_of`.
        open_in: opens an instance with its files in the given folder.
    """

    def __init__(
        self,
        context: RunContext,
        system: SystemPlan,
        home: Path,
        open_in: Callable[[Path], Instance],
    ) -> None:
        self.system = system
        self._context, self._home, self._open_in = context, home, open_in
        self._is_shared = home != context.folder
        self._kind = dataset.folder_of(home, context.plan, system)
        self._folders: list[Path] = []
        self._has_loaded = False
        self._open: tuple[Instance, Path] | None = None

    @contextmanager
    def held(self) -> Iterator[SystemLoads]:
        """Lock the run's loads until its end, and close the instance still open then.

        Raises:
            StoreError: another lab uses the endpoint, or holds the lock of choosing for too long.
        """
        report = self._context.progress.stage
        with ExitStack() as locks:
            if self.system.is_endpoint:
                locks.enter_context(locked(self._lock(self._kind), self.system.label))
                self._folders = [self._kind]
            else:
                with choosing(self._home, report):
                    if self._is_shared:
                        _clear_left(self._home)
                    self._folders = self._chosen(locks)
                    is_new = any(not dataset.read_record(one).name for one in self._folders)
                    if is_new and self._is_shared:
                        _make_room(self._home, partial(disk.kept_most, self._home), report)
            for left in [folder for folder in self._folders if (folder / OPEN).exists()]:
                self._close(self._open_in(left), left)
            try:
                yield self
            finally:
                self._end()

    def open(self, block: int) -> Instance:
        """The instance of a block's load; `fill` loads it if it is new."""
        folder = self._folders[block % len(self._folders)]
        if self._open is None or self._open[1] != folder:
            self._end()
            places.make_open(folder)
            (folder / OPEN).touch()
            self._open = self._open_in(folder), folder
        return self._open[0]

    def fill(self) -> bool:
        """Loads the rows of the open instance unless they are there; says whether it did.

        Raises:
            LoadError, ServerError: as `dataset.ensure_dataset`.
        """
        assert self._open is not None, "open it first"
        instance, context, label = self._open[0], self._context, self.system.label
        was_there = instance.has_snapshot()
        dataset.ensure_dataset(context, instance)
        self._has_loaded |= not was_there
        context.loads[label] = dataset.read_record(instance.folder)._replace(
            is_as_loaded=self._has_loaded or not self.system.is_endpoint
        )
        return not was_there

    def _chosen(self, locks: ExitStack) -> list[Path]:
        """Locked folders of the run's loads, by number: loaded folders first, then new ones."""
        there = [one for one in self._kind.glob("*") if dataset.read_record(one).name]
        new = (self._kind / str(number) for number in itertools.count(1))
        free = (
            folder
            for folder in itertools.chain(sorted(there, key=_number), new)
            if not is_locked(self._lock(folder))
        )
        chosen: list[Path] = []
        while len(chosen) < self._context.plan.dataset.loads:
            chosen.append(next(free))
            locks.enter_context(locked(self._lock(chosen[-1]), self.system.label))
        return sorted(chosen, key=_number)

    def _lock(self, folder: Path) -> Path:
        return lock_of(self._home, *folder.relative_to(self._home / SYSTEMS).parts)

    def _end(self) -> None:
        if self._open is not None:
            instance, folder = self._open
            self._open = None
            self._context.as_loaded.discard(self.system.label)
            self._close(instance, folder)

    def _close(self, instance: Instance, folder: Path) -> None:
        try:
            instance.close()
            (folder / OPEN).unlink(missing_ok=True)
        except (DbdynoError, OSError) as error:  # the run's own outcome counts, not this
            self._context.progress.note(f"{self.system.label}: {getattr(error, 'message', error)}")


def _number(folder: Path) -> int:
    return int(folder.name)


class Loads:
    """The loads of a run's systems.

    Attributes:
        instances: by data directory's label, the instance of the current block.
    """

    def __init__(self, context: RunContext, systems: Iterable[SystemLoads]) -> None:
        self.instances: dict[str, Instance] = {}
        self._context, self._systems = context, list(systems)
        self._block: int | None = None

    def turn_to(self, block: int) -> None:
        """Give each system the load of this block.

        Raises:
            LoadError, ServerError: the disk is too small, or as `dataset.ensure_dataset`.
        """
        if block == self._block:
            return
        context, began = self._context, time.monotonic()
        for system in self._systems:
            self.instances[system.system.label] = system.open(block)
        if self._block is None:
            disk.check_before(context.plan.dataset, self.instances.values())
        folders = (instance.folder for instance in self.instances.values())
        context.folders = [context.folder, *folders]
        filled = [system.fill() for system in self._systems]
        if any(filled):
            context.forecast.loads_s = time.monotonic() - began
        self._block = block
