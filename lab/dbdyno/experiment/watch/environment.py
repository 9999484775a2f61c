"""Description of the machine of a run, for readers who weigh its numbers.

It holds no host name, user or path: a report is made to be passed on. An unreadable value is
`unknown`, never a guess.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from dbdyno import __version__
from dbdyno.experiment.watch.proc import text_of

UNKNOWN: Final = "unknown"
ROOT: Final = Path("/")
NODE: Final = re.compile(r"(\d+)(?:-(\d+))?")
CHOSEN: Final = re.compile(r"\[(.+?)\]")
VIRTUAL: Final = re.compile(r"QEMU|VBOX|VMware|Virtual|Msft", re.IGNORECASE)
ALLOCATORS: Final = re.compile(r"/lib(jemalloc|tcmalloc|mimalloc)[^/\s]*\.so")
GLIBC: Final = re.compile(r"/libc(\.so\.6|-2\.\d+\.so)$", re.MULTILINE)
MALLOC_LIBRARY: Final = "version_malloc_library"
"""MariaDB's variable for its allocator; a built-in allocator has no file of its own."""


def describe(folder: Path | None = None, root: Path = ROOT) -> dict[str, str]:
    """The environment by name.

    Args:
        folder: the workspace, whose filesystem and storage are named; the current folder unless
            given.
        root: where `proc` and `sys` are.
    """
    return {
        "cpu": _cpu_field("model name", root) or platform.machine(),
        "cores": f"{os.cpu_count()} logical, {len(os.sched_getaffinity(0))} usable",
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
        "swap": f"{psutil.swap_memory().total / 2**30:.1f} GiB",
        "numa_nodes": _numa_nodes(root),
        "transparent_huge_pages": _chosen(root / "sys/kernel/mm/transparent_hugepage/enabled"),
        "kernel": f"{platform.system()} {platform.release()}",
        "distribution": _distribution(),
        "virtualisation": _virtualisation(root),
        "governor": _text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "smt": _text(root / "sys/devices/system/cpu/smt/control"),
        "clocksource": _text(
            root / "sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        **_storage((folder or Path.cwd()).resolve(), root),
        "python": platform.python_version(),
        "dbdyno": __version__,
    }


def allocator_of(pid: int, settings: Mapping[str, str], root: Path = ROOT) -> str:
    """Malloc library of the server's process: glibc, jemalloc, tcmalloc, mimalloc.

    Taken from the libraries mapped into it, unless the server names it itself.

    Args:
        settings: the server's own.
    """
    said = settings.get(MALLOC_LIBRARY, "system")
    if said != "system":
        return said
    maps = text_of(root / f"proc/{pid}/maps")
    if mapped := ALLOCATORS.search(maps):
        return mapped[1]
    return "glibc" if GLIBC.search(maps) else UNKNOWN


def _text(path: Path) -> str:
    return text_of(path).strip() or UNKNOWN


def _chosen(path: Path) -> str:
    """The word in brackets: "always [madvise] never" → "madvise"; a single word stands alone."""
    text = _text(path)
    chosen = CHOSEN.search(text)
    return chosen[1] if chosen else text


def _cpu_field(name: str, root: Path) -> str:
    """A field of the first processor in /proc/cpuinfo, else an empty text."""
    for line in text_of(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _numa_nodes(root: Path) -> str:
    """Number of nodes online: "0-1,4" are 3."""
    text = _text(root / "sys/devices/system/node/online")
    ranges = [NODE.fullmatch(part) for part in text.split(",")]
    sizes = [int(found[2] or found[1]) - int(found[1]) + 1 for found in ranges if found]
    return str(sum(sizes)) if len(sizes) == len(ranges) else UNKNOWN


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", UNKNOWN)
    except OSError:
        return UNKNOWN


def _virtualisation(root: Path) -> str:
    """Kind of virtualisation: a hypervisor's name, a virtual machine, a container, or no sign of
    any."""
    hypervisor = _text(root / "sys/hypervisor/type")
    if hypervisor != UNKNOWN:
        return hypervisor
    kinds = []
    if "hypervisor" in _cpu_field("flags", root).split():
        product = _text(root / "sys/class/dmi/id/product_name")
        kinds.append("virtual machine" + (f" ({product})" if product != UNKNOWN else ""))
    if any((root / mark).exists() for mark in (".dockerenv", "run/.containerenv")):
        kinds.append("container")
    return ", ".join(kinds) or "none seen"


# Storage: the filesystem that holds the data directories, and the block device below it.


class _Mount(NamedTuple):
    point: Path
    kind: str
    source: str


def _storage(folder: Path, root: Path) -> dict[str, str]:
    mount = _mount_of(folder, root)
    device = _device_of(folder, mount, root)
    disks = list(_disks(device)) if device else []
    if not disks:
        kind = "memory" if mount.kind in ("tmpfs", "ramfs") else UNKNOWN
        storage = {"storage": kind, "storage_kind": kind, "io_scheduler": UNKNOWN}
    else:
        storage = {
            "storage": _distinct(map(_disk_name, disks)),
            "storage_kind": _distinct(map(_disk_kind, disks)),
            "io_scheduler": _distinct(_chosen(disk / "queue/scheduler") for disk in disks),
        }
    return {"filesystem": mount.kind, **storage}


def _mount_of(folder: Path, root: Path) -> _Mount:
    """The filesystem of `folder`: the longest mount point, mounted last."""
    mount = _Mount(Path("/"), UNKNOWN, "")
    for line in text_of(root / "proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        if len(left.split()) < 5 or len(right.split()) < 2:
            continue
        # Blanks in paths are written as \040.
        point = Path(re.sub(r"\\([0-7]{3})", lambda it: chr(int(it[1], 8)), left.split()[4]))
        kind, source = right.split()[:2]
        if folder.is_relative_to(point) and len(point.parts) >= len(mount.point.parts):
            mount = _Mount(point, kind, source)
    return mount


def _device_of(folder: Path, mount: _Mount, root: Path) -> Path | None:
    """The device's folder in sysfs; some filesystems (btrfs) tell it only as their source."""
    try:
        number = folder.stat().st_dev
    except OSError:
        return None
    source = os.path.realpath(mount.source) if mount.source.startswith("/dev/") else ""
    places = [root / f"sys/dev/block/{os.major(number)}:{os.minor(number)}"]
    places += [root / "sys/class/block" / Path(source).name] if source else []
    return next((place.resolve() for place in places if place.exists()), None)


def _disks(device: Path) -> Iterator[Path]:
    """The whole disks below a device: of a partition, a volume or an array."""
    if (device / "partition").exists():
        device = device.parent
    try:
        below = sorted((device / "slaves").iterdir())
    except OSError:
        below = []
    if not below:
        yield device
    for part in below:
        yield from _disks(part.resolve())


def _disk_name(disk: Path) -> str:
    model = text_of(disk / "device/model").strip()
    return f"{disk.name} ({model})" if model else disk.name


def _disk_kind(disk: Path) -> str:
    """Rotation of a disk; for a virtual disk unknown, as its host only reports a default."""
    if any(part.startswith("virtio") for part in disk.parts):
        return "virtual (virtio)"
    if disk.name.startswith("xvd"):
        return "virtual (Xen)"
    if VIRTUAL.search(text_of(disk / "device/model")):
        return "virtual"
    if disk.name.startswith("nvme"):
        return "NVMe"
    return {"0": "SSD", "1": "rotational"}.get(_text(disk / "queue/rotational"), UNKNOWN)


def _distinct(words: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(words))
