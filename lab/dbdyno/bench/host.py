"""One reading of the host's and two processes' counters; differences of readings are samples.

What cannot be read (a process that is gone, a machine without disk counters) is read as nothing,
because a watch must never end a trial.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

BLOCK_DEVICES: Final = Path("/sys/block")
"""Holds whole devices, not their partitions."""
NOT_DISKS: Final = ("loop", "ram", "zram", "dm-", "md", "sr", "fd")
"""Block devices whose traffic is that of a disk below them, or of none."""


@dataclass(frozen=True)
class ProcessReading:
    """A process's CPU seconds since its start (user + system) and its resident memory."""

    cpu_s: float
    rss_bytes: int


GONE: Final = ProcessReading(0.0, 0)


@dataclass(frozen=True)
class Reading:
    """All counters at one moment; `at_s` is of the monotonic clock, CPU is in core seconds."""

    at_s: float
    cpu_user_s: float
    cpu_system_s: float
    cpu_iowait_s: float
    cpu_steal_s: float
    cpu_idle_s: float
    memory_available_bytes: int
    disk_read_bytes: int
    disk_written_bytes: int
    disk_writes: int
    server: ProcessReading
    generator: ProcessReading


def read(server_pid: int, generator_pid: int) -> Reading:
    """Reads everything now."""
    cpu = psutil.cpu_times()
    disk_read_bytes, disk_written_bytes, disk_writes = _disks()
    return Reading(
        at_s=time.monotonic(),
        cpu_user_s=cpu.user + cpu.nice,
        cpu_system_s=cpu.system + cpu.irq + cpu.softirq,
        cpu_iowait_s=cpu.iowait,
        cpu_steal_s=cpu.steal,
        cpu_idle_s=cpu.idle,
        memory_available_bytes=psutil.virtual_memory().available,
        disk_read_bytes=disk_read_bytes,
        disk_written_bytes=disk_written_bytes,
        disk_writes=disk_writes,
        server=read_process(server_pid),
        generator=read_process(generator_pid),
    )


def read_process(pid: int) -> ProcessReading:
    """The process's counters; those of `GONE` if there is none that can be read."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            cpu = process.cpu_times()
            return ProcessReading(cpu.user + cpu.system, process.memory_info().rss)
    except (psutil.Error, OSError):
        return GONE


def _disks() -> tuple[int, int, int]:
    try:
        counters = psutil.disk_io_counters(perdisk=True, nowrap=False)
    except (OSError, RuntimeError, NotImplementedError):
        return 0, 0, 0
    whole = [
        counter
        for name, counter in counters.items()
        if not name.startswith(NOT_DISKS) and (BLOCK_DEVICES / name).exists()
    ]
    return (
        sum(counter.read_bytes for counter in whole),
        sum(counter.write_bytes for counter in whole),
        sum(counter.write_count for counter in whole),
    )
