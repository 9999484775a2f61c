"""The machine a run was made on, in words: what a reader needs to weigh the numbers.

No host name, no user, no path: a report is made to be passed on.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Final

import psutil

from dbdyno import __version__

UNKNOWN: Final = "unknown"
CLOCK: Final = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
GOVERNOR: Final = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
SMT: Final = Path("/sys/devices/system/cpu/smt/control")
HYPERVISOR: Final = Path("/sys/hypervisor/type")
PRODUCT: Final = Path("/sys/class/dmi/id/product_name")


def describe(folder: Path | None = None) -> dict[str, str]:
    """The environment by name; what cannot be found out is `unknown`.

    Args:
        folder: the workspace, whose filesystem is named; the current folder unless given.
    """
    return {
        "cpu": _cpu_field("model name") or platform.machine(),
        "cores": f"{os.cpu_count()} logical, {len(os.sched_getaffinity(0))} usable",
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
        "swap": f"{psutil.swap_memory().total / 2**30:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "distribution": _distribution(),
        "virtualisation": _virtualisation(),
        "governor": _text(GOVERNOR),
        "smt": _text(SMT),
        "clocksource": _text(CLOCK),
        "filesystem": _filesystem(folder or Path.cwd()),
        "python": platform.python_version(),
        "dbdyno": __version__,
    }


def _text(path: Path) -> str:
    try:
        return path.read_text().strip() or UNKNOWN
    except OSError:
        return UNKNOWN


def _cpu_field(name: str) -> str:
    """A field of the first processor in /proc/cpuinfo; empty if it has none such."""
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", UNKNOWN)
    except OSError:
        return UNKNOWN


def _virtualisation() -> str:
    """A hypervisor by name, a virtual machine, a container, or none that shows."""
    hypervisor = _text(HYPERVISOR)
    if hypervisor != UNKNOWN:
        return hypervisor
    kinds = []
    if "hypervisor" in _cpu_field("flags").split():
        product = _text(PRODUCT)
        kinds.append("virtual machine" + (f" ({product})" if product != UNKNOWN else ""))
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        kinds.append("container")
    return ", ".join(kinds) or "none seen"


def _filesystem(folder: Path) -> str:
    """The type of the filesystem that holds `folder`, by the longest mount point above it."""
    place = folder.resolve()
    mounts = [
        part for part in psutil.disk_partitions(all=True) if place.is_relative_to(part.mountpoint)
    ]
    if not mounts:
        return UNKNOWN
    return max(mounts, key=lambda part: len(part.mountpoint)).fstype or UNKNOWN
