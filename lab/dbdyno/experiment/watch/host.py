"""One reading of the machine and of two processes; differences of two readings are samples.

CPU comes from psutil, which knows the kernels' columns; pressure, memory, disks and network come
from the files they stand in, since psutil has no pressure and no flushes. What is not there (an
old kernel, a container without them) is left out: a watch must never end a trial.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from dbdyno.experiment.watch import held_back, proc
from dbdyno.experiment.watch.proc import DiskCounters, NetworkCounters
from dbdyno.experiment.watch.process_reading import ProcessReading, read_process, text_of

PROC: Final = Path("/proc")
BLOCK_DEVICES: Final = Path("/sys/block")
"""Holds whole devices, not their partitions."""
NOT_DISKS: Final = ("loop", "ram", "zram", "dm-", "md", "sr", "fd")
"""Block devices whose traffic is that of a disk below them, or of none."""
RESOURCES: Final = ("cpu", "io", "memory")


@dataclass(frozen=True)
class Reading:
    """All counters at one moment; `at_s` is of the monotonic clock, CPU is in core seconds.

    Attributes:
        cpu_irq_s, cpu_softirq_s: are within cpu_system_s.
        pressure_s: seconds of standstill so far by resource and kind, such as ``io_some``.
        memory_bytes: rows of /proc/meminfo by their names there.
        watch_cpu_s: CPU seconds of the thread that reads.
        throttled, thermal_events, swap_pages: counts so far; cpu_mhz: now (`held_back`).
    """

    at_s: float
    cpu_user_s: float
    cpu_system_s: float
    cpu_irq_s: float
    cpu_softirq_s: float
    cpu_iowait_s: float
    cpu_steal_s: float
    cpu_idle_s: float
    server: ProcessReading
    generator: ProcessReading
    pressure_s: dict[str, float] = field(default_factory=dict)
    memory_bytes: dict[str, int] = field(default_factory=dict)
    disks: dict[str, DiskCounters] = field(default_factory=dict)
    networks: dict[str, NetworkCounters] = field(default_factory=dict)
    server_switches_per_s: float | None = None
    generator_switches_per_s: float | None = None
    watch_cpu_s: float = 0.0
    cpu_mhz: float | None = None
    throttled: int | None = None
    thermal_events: int | None = None
    swap_pages: int | None = None


def read(server_pid: int, generator_pid: int) -> Reading:
    """Reads everything now, but for context switches, which need to know the reading before."""
    cpu = psutil.cpu_times()
    return Reading(
        at_s=time.monotonic(),
        cpu_user_s=cpu.user + cpu.nice,
        cpu_system_s=cpu.system + cpu.irq + cpu.softirq,
        cpu_irq_s=cpu.irq,
        cpu_softirq_s=cpu.softirq,
        cpu_iowait_s=cpu.iowait,
        cpu_steal_s=cpu.steal,
        cpu_idle_s=cpu.idle,
        server=read_process(server_pid),
        generator=read_process(generator_pid),
        pressure_s=_pressure(),
        memory_bytes=_memory(),
        disks=_disks(),
        networks=_networks(server_pid),
        cpu_mhz=held_back.cpu_mhz(),
        throttled=held_back.throttled((server_pid, generator_pid)),
        thermal_events=held_back.thermal_events(),
        swap_pages=held_back.swap_pages(),
        watch_cpu_s=time.thread_time(),
    )


def flushes() -> float | None:
    """Cache flushes of all disks since the machine began; None where none of them tells it."""
    known = [disk.flushes for disk in _disks().values() if disk.flushes is not None]
    return float(sum(known)) if known else None


def _pressure() -> dict[str, float]:
    return {
        f"{resource}_{kind}": stalled_s
        for resource in RESOURCES
        for kind, stalled_s in proc.pressure(text_of(PROC / "pressure" / resource)).items()
    }


def _memory() -> dict[str, int]:
    found = proc.memory_bytes(text_of(PROC / "meminfo"))
    return found or {"MemAvailable": psutil.virtual_memory().available}


def _networks(server_pid: int) -> dict[str, NetworkCounters]:
    """The devices that the server sees, which may have a network namespace of its own."""
    seen = text_of(PROC / f"{server_pid}/net/dev") or text_of(PROC / "net/dev")
    return proc.networks(seen)


def _disks() -> dict[str, DiskCounters]:
    """Whole disks only: a partition, a mapped or a striped device would count a request again."""
    return {
        name: counters
        for name, counters in proc.disks(text_of(PROC / "diskstats")).items()
        if not name.startswith(NOT_DISKS) and (BLOCK_DEVICES / name).exists()
    }
