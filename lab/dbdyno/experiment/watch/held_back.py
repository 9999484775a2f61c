"""What may hold a machine back without showing as load: quotas, heat, a slower clock, swap.

Quotas are counted where they are set: in the control groups of server and generator and all above
them, of both versions. On a machine of many cores a few clocks speak for all, because the kernel
asks each core for its own. What a machine does not tell is None.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Final

from dbdyno.experiment.watch import proc
from dbdyno.experiment.watch.process_reading import text_of

PROC: Final = Path("/proc")
CGROUPS: Final = Path("/sys/fs/cgroup")
CPUS: Final = Path("/sys/devices/system/cpu")
CLOCKS_READ: Final = 8
CORES_LISTED_MAX: Final = 64
"""Above that /proc/cpuinfo takes too long to be read each second."""


def cpu_mhz() -> float | None:
    """The mean clock of the cores now; None where the kernel does not tell it."""
    told = [text_of(path).strip() for path in _clocks()]
    kilohertz = [int(text) for text in told if text.isdecimal()]
    if kilohertz:
        return mean(kilohertz) / 1e3
    if (os.cpu_count() or 1) > CORES_LISTED_MAX:
        return None
    found = proc.megahertz(text_of(PROC / "cpuinfo"))
    return mean(found) if found else None


def thermal_events() -> int | None:
    """How often a core or its package was slowed down because it was hot, since the start."""
    told = [text_of(path).strip() for path in _thermometers()]
    counts = [int(text) for text in told if text.isdecimal()]
    return sum(counts) if counts else None


def swap_pages() -> int | None:
    """Pages moved to and from swap since the start."""
    rows = proc.named_numbers(text_of(PROC / "vmstat"))
    moved = [rows[name] for name in ("pswpin", "pswpout") if name in rows]
    return sum(moved) if moved else None


def throttled(pids: Iterable[int]) -> int | None:
    """Periods so far in which a quota of these processes, or of a group above them, was used up."""
    files = {file for pid in pids if pid for file in _accounts(pid)}
    rows = [proc.named_numbers(text_of(file)) for file in files]
    counts = [row["nr_throttled"] for row in rows if "nr_throttled" in row]
    return sum(counts) if counts else None


def _accounts(pid: int) -> Iterator[Path]:
    """The files of CPU accounting of a process's group and of all above it."""
    groups = proc.cgroups(text_of(PROC / f"{pid}/cgroup"))
    for controller, roots in (("cpu", ("cpu", "cpu,cpuacct")), ("", ("", "unified"))):
        if (path := groups.get(controller)) is None:
            continue
        for root in roots:
            group = CGROUPS / root / path.lstrip("/")
            while group.is_relative_to(CGROUPS / root):
                yield group / "cpu.stat"
                group = group.parent


@cache
def _clocks() -> tuple[Path, ...]:
    return tuple(sorted(CPUS.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))[:CLOCKS_READ])


@cache
def _thermometers() -> tuple[Path, ...]:
    return tuple(sorted(CPUS.glob("cpu[0-9]*/thermal_throttle/*_throttle_count")))
