"""Free space on the disks, before the load and during the run.

On a full disk a server waits or damages its data instead of failing. So a run that cannot fit is
refused before its first row, and a run near the end of the disk stops itself while its measurements
are safe.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from dbdyno.errors import LoadError
from dbdyno.files import occupied_bytes
from dbdyno.plan.plan import DatasetPlan, Plan
from dbdyno.plan.systems import SystemPlan
from dbdyno.servers import reference
from dbdyno.servers.base import Instance
from dbdyno.servers.local.files import SNAPSHOT, left_out_bytes
from dbdyno.servers.programs import places

EMPTY_BYTES: Final = 800 * 1024**2
"""A data directory before its first row: system tables and 512 MiB of redo space."""
KEPT_BYTES: Final = 80 * 1024**2
"""Its snapshot, from which zeros and logs are left out."""
GROWTH: Final = 0.1
"""Rows inserted, undo and split pages while the load runs, as a share of the dataset."""
FLOOR_BYTES: Final = 128 * 1024**2
"""With less space free, no trial begins and a running trial is stopped."""


def bytes_kept(plan: Plan) -> int:
    """Disk space after a run: a snapshot of each load."""
    loads = plan.dataset.loads * len(_own(plan))
    return loads * (KEPT_BYTES + plan.dataset.bytes_about)


def bytes_expected(plan: Plan) -> int:
    """Disk space during a run: the snapshots, and the data of each server at work.

    A replica has a copy of its primary's data; an endpoint's servers have their own disks.
    """
    servers = sum(1 + system.topology.replicas for system in _own(plan))
    at_work = servers * (EMPTY_BYTES + (1 + GROWTH) * plan.dataset.bytes_about)
    return int(at_work) + bytes_kept(plan)


def need(plan: Plan) -> str:
    """The disk space of a plan in words; empty if it starts no server on this machine."""
    if not _own(plan):
        return ""
    during, after = bytes_expected(plan) / 1e9, bytes_kept(plan) / 1e9
    return f"about {during:.1f} GB on the workspace's disk, of which {after:.1f} GB stay"


def _own(plan: Plan) -> list[SystemPlan]:
    return [system for system in plan.systems if not system.is_endpoint]


KEPT_SHARE: Final = 0.25
"""Share for unused loads of the space that is free or taken by them."""


def kept_most(cache: Path, taken: int) -> int:
    """Bytes allowed to unused loads in the cache, given their present bytes."""
    share = int(KEPT_SHARE * (shutil.disk_usage(nearest(cache)).free + taken))
    return int(min(share, within_limit(taken)))


def within_limit(taken: int) -> float:
    """As `kept_most`, by the limit of the cache alone."""
    return max(0, taken - places.excess_bytes())


def check_before(dataset: DatasetPlan, instances: Iterable[Instance]) -> None:
    """Check free space for everything these instances still write; LoadError names the shortage.

    An instance with a snapshot needs room for a working copy, others for rows and a copy. An
    endpoint's rows are assumed to be on other machines' disks.
    """
    wanted: dict[int, int] = {}
    places: dict[int, Path] = {}
    ours = [one for one in instances if not reference.is_endpoint(one.spec.reference)]
    for instance in ours:
        place = nearest(instance.folder)
        disk = place.stat().st_dev
        places.setdefault(disk, place)
        wanted[disk] = wanted.get(disk, FLOOR_BYTES) + _still_needed(dataset, instance)
    for disk, place in places.items():
        free = shutil.disk_usage(place).free
        if free < wanted[disk]:
            raise LoadError(
                "the disk is too small for this plan",
                wanted=f"{megabytes(wanted[disk])} free at {place}",
                found=f"{megabytes(free)} free",
                hint="free space where the workspace is (dbdyno runs clean), ask for fewer rows or"
                " systems, or name a workspace on another disk with --workspace",
            )


def check_during(folders: Sequence[Path]) -> None:
    """Check the disks while running; LoadError if any is nearly full."""
    for folder in folders:
        place = nearest(folder)
        free = shutil.disk_usage(place).free
        if free < FLOOR_BYTES:
            raise LoadError(
                "the disk is nearly full",
                wanted=f"{megabytes(FLOOR_BYTES)} free at {place}",
                found=f"{megabytes(free)} free",
                hint="free space where the workspace is, then resume the run; finished trials are"
                " stored",
            )


def _still_needed(dataset: DatasetPlan, instance: Instance) -> int:
    data = dataset.bytes_about
    there = occupied_bytes(instance.folder) + left_out_bytes(instance.folder / SNAPSHOT)
    there += int(GROWTH * data)
    return there if instance.has_snapshot() else there + 2 * data


def nearest(folder: Path) -> Path:
    """The folder, or its nearest existing parent."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def megabytes(count: float) -> str:
    """A number of bytes, for people."""
    return f"{count / 1e6:.0f} MB"
