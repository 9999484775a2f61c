"""Samples host, server and generator once a second while a trial runs.

A sample is the difference of two readings. CPU comes from psutil; pressure, memory, disks and
network come from files of the kernel, since psutil has no pressure and no flushes. Missing values
(an old kernel, a container) are left out: watching must never end a trial.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Final, Self

import psutil

from dbdyno.experiment.watch import proc
from dbdyno.experiment.watch.proc import (
    DiskCounters,
    NetworkCounters,
    ProcessReading,
    SwitchCounter,
    read_process,
    text_of,
)
from dbdyno.measurement.parts import DiskSample, NetworkSample, WatchSample

# It never raises: a server that died counts as one that uses nothing. The thread wakes on a fixed
# grid of the monotonic clock, so that its own work does not stretch the seconds.


PERIOD_S: Final = 1.0


class Watch:
    """Thread that takes readings inside its `with` block."""

    def __init__(
        self,
        server_pid: int,
        generator_pid: int,
        replica_pids: Sequence[int] = (),
        period_s: float = PERIOD_S,
    ) -> None:
        self._pids = (server_pid, generator_pid)
        self._replica_pids = tuple(replica_pids)
        self._period_s = period_s
        self._readings: list[Reading] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def latest(self) -> Reading | None:
        """The last reading; None before the first."""
        return self._readings[-1] if self._readings else None

    def samples(self, origin_s: float) -> tuple[WatchSample, ...]:
        """Samples since `origin_s` (monotonic clock), the begin of the load.

        A sample's time is the middle of its second.
        """
        samples = (sample(*pair, origin_s) for pair in pairwise(tuple(self._readings)))
        return tuple(one for one in samples if one.at_s >= 0)

    def _watch(self) -> None:
        due_s = time.monotonic()
        switches = [SwitchCounter(pid) for pid in self._pids]
        while True:
            reading = read(*self._pids, *self._replica_pids)
            server, generator = (counter.rate_per_s() for counter in switches)
            self._readings.append(
                replace(reading, server_switches_per_s=server, generator_switches_per_s=generator)
            )
            now_s = time.monotonic()
            due_s = next_due_s(due_s, now_s, self._period_s)
            if self._over.wait(due_s - now_s):
                return


def next_due_s(due_s: float, now_s: float, period_s: float) -> float:
    """Due time of the next reading, after a reading due at `due_s` that has ended now.

    A late reading skips ahead instead of catching up, so an overloaded host is not read back to
    back.
    """
    next_s = due_s + period_s
    return next_s if next_s >= now_s else now_s + period_s


PROC: Final = Path("/proc")
BLOCK_DEVICES: Final = Path("/sys/block")
"""Holds whole devices, not their partitions."""
NOT_DISKS: Final = ("loop", "ram", "zram", "dm-", "md", "sr", "fd")
"""Block devices without a disk of their own: a disk below them, or memory, has the traffic."""
RESOURCES: Final = ("cpu", "io", "memory")


@dataclass(frozen=True)
class Reading:
    """All counters at one moment; `at_s` is on the monotonic clock, CPU in core seconds.

    Attributes:
        cpu_irq_s, cpu_softirq_s: parts of cpu_system_s.
        pressure_s: seconds of standstill so far by resource and kind, such as ``io_some``.
        memory_bytes: rows of /proc/meminfo by their names there.
        watch_cpu_s: CPU seconds of the reading thread.
        throttled, thermal_events, swap_pages: counts so far.
        cpu_mhz: present clock.
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
    replicas_cpu_s: float | None = None
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


def read(server_pid: int, generator_pid: int, *replica_pids: int) -> Reading:
    """Reads everything now, but for context switches, which need to know the reading before."""
    replicas = [read_process(pid).cpu_s for pid in replica_pids]
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
        replicas_cpu_s=sum(replicas) if replicas else None,
        pressure_s=_pressure(),
        memory_bytes=_read_memory(),
        disks=_disks(),
        networks=_read_networks(server_pid),
        cpu_mhz=cpu_mhz(),
        throttled=throttled((server_pid, generator_pid)),
        thermal_events=thermal_events(),
        swap_pages=swap_pages(),
        watch_cpu_s=time.thread_time(),
    )


def flushes() -> float | None:
    """Cache flushes of all disks since boot; None if no disk counts them."""
    known = [disk.flushes for disk in _disks().values() if disk.flushes is not None]
    return float(sum(known)) if known else None


def _pressure() -> dict[str, float]:
    return {
        f"{resource}_{kind}": stalled_s
        for resource in RESOURCES
        for kind, stalled_s in proc.pressure(text_of(PROC / "pressure" / resource)).items()
    }


def _read_memory() -> dict[str, int]:
    memory = proc.memory_bytes(text_of(PROC / "meminfo"))
    return memory or {"MemAvailable": psutil.virtual_memory().available}


def _read_networks(server_pid: int) -> dict[str, NetworkCounters]:
    """The devices of the server, which may have a network namespace of its own."""
    seen = text_of(PROC / f"{server_pid}/net/dev") or text_of(PROC / "net/dev")
    return proc.networks(seen)


def _disks() -> dict[str, DiskCounters]:
    """Whole disks only: a partition, a mapped or a striped device would count a request again."""
    return {
        name: counters
        for name, counters in proc.disks(text_of(PROC / "diskstats")).items()
        if not name.startswith(NOT_DISKS) and (BLOCK_DEVICES / name).exists()
    }


# Two readings become one sample: counters as growth a second, levels as they are. Pure.
#
# A counter that shrank (a device was replugged) has not grown. A value missing in one reading is
# unknown, not zero.


PRESSURES = ("cpu_some", "io_some", "io_full", "memory_some", "memory_full")
"""All tasks cannot wait for a CPU at once: a "full" of cpu does not exist for a whole machine."""


def sample(before: Reading, after: Reading, origin_s: float) -> WatchSample:
    """The sample between two readings; its time is the middle, counted from `origin_s`."""
    seconds = max(after.at_s - before.at_s, 1e-6)

    def rate(earlier: float, later: float) -> float:
        return max(0.0, later - earlier) / seconds

    def known_rate(earlier: float | None, later: float | None) -> float | None:
        return None if earlier is None or later is None else rate(earlier, later)

    disks = {
        name: _disk(before.disks[name], counters, seconds)
        for name, counters in after.disks.items()
        if name in before.disks
    }
    flushes = [disk.flushes_per_s for disk in disks.values() if disk.flushes_per_s is not None]
    return WatchSample(
        at_s=(before.at_s + after.at_s) / 2 - origin_s,
        length_s=seconds,
        host_cpu_user=rate(before.cpu_user_s, after.cpu_user_s),
        host_cpu_system=rate(before.cpu_system_s, after.cpu_system_s),
        host_cpu_irq=rate(before.cpu_irq_s, after.cpu_irq_s),
        host_cpu_softirq=rate(before.cpu_softirq_s, after.cpu_softirq_s),
        host_cpu_iowait=rate(before.cpu_iowait_s, after.cpu_iowait_s),
        host_cpu_steal=rate(before.cpu_steal_s, after.cpu_steal_s),
        host_cpu_idle=rate(before.cpu_idle_s, after.cpu_idle_s),
        cpu_mhz=after.cpu_mhz,
        throttled_per_s=known_rate(before.throttled, after.throttled),
        thermal_events_per_s=known_rate(before.thermal_events, after.thermal_events),
        swap_pages_per_s=known_rate(before.swap_pages, after.swap_pages),
        **{
            f"pressure_{kind}": known_rate(before.pressure_s.get(kind), after.pressure_s.get(kind))
            for kind in PRESSURES
        },
        **_memory_sample(after.memory_bytes),
        disk_read_bytes_per_s=sum(disk.read_bytes_per_s for disk in disks.values()),
        disk_written_bytes_per_s=sum(disk.written_bytes_per_s for disk in disks.values()),
        disk_writes_per_s=sum(disk.writes_per_s for disk in disks.values()),
        disk_flushes_per_s=sum(flushes) if flushes else None,
        server_cpu=rate(before.server.cpu_s, after.server.cpu_s),
        server_rss_bytes=after.server.rss_bytes,
        server_threads=after.server.threads,
        server_read_bytes_per_s=known_rate(before.server.read_bytes, after.server.read_bytes),
        server_written_bytes_per_s=known_rate(
            before.server.written_bytes, after.server.written_bytes
        ),
        server_switches_per_s=after.server_switches_per_s,
        generator_cpu=rate(before.generator.cpu_s, after.generator.cpu_s),
        generator_rss_bytes=after.generator.rss_bytes,
        generator_switches_per_s=after.generator_switches_per_s,
        replicas_cpu=known_rate(before.replicas_cpu_s, after.replicas_cpu_s),
        watch_cpu=rate(before.watch_cpu_s, after.watch_cpu_s),
        disks=disks,
        networks=_network_samples(before, after, seconds),
    )


def _memory_sample(sizes: dict[str, int]) -> dict[str, int | None]:
    swap = sizes.get("SwapTotal")
    return {
        "memory_available_bytes": sizes.get("MemAvailable", 0),
        "memory_cached_bytes": sizes.get("Cached"),
        "memory_dirty_bytes": sizes.get("Dirty"),
        "swap_used_bytes": None if swap is None else swap - sizes.get("SwapFree", swap),
    }


def _disk(before: DiskCounters, after: DiskCounters, seconds: float) -> DiskSample:
    reads, writes = max(0, after.reads - before.reads), max(0, after.writes - before.writes)
    flushes = None
    if before.flushes is not None and after.flushes is not None:
        flushes = max(0, after.flushes - before.flushes) / seconds
    return DiskSample(
        reads_per_s=reads / seconds,
        writes_per_s=writes / seconds,
        read_bytes_per_s=max(0, after.read_bytes - before.read_bytes) / seconds,
        written_bytes_per_s=max(0, after.written_bytes - before.written_bytes) / seconds,
        busy=max(0.0, after.busy_s - before.busy_s) / seconds,
        read_ms_avg=max(0.0, after.read_s - before.read_s) * 1e3 / reads if reads else None,
        write_ms_avg=max(0.0, after.write_s - before.write_s) * 1e3 / writes if writes else None,
        flushes_per_s=flushes,
    )


def _network_samples(before: Reading, after: Reading, seconds: float) -> dict[str, NetworkSample]:
    """Devices that ever carried traffic; a machine with containers has many idle ones."""
    return {
        name: _network(before.networks[name], counters, seconds)
        for name, counters in after.networks.items()
        if name in before.networks and counters.received_packets + counters.sent_packets
    }


def _network(before: NetworkCounters, after: NetworkCounters, seconds: float) -> NetworkSample:
    def rate(earlier: int, later: int) -> float:
        return max(0, later - earlier) / seconds

    return NetworkSample(
        received_bytes_per_s=rate(before.received_bytes, after.received_bytes),
        sent_bytes_per_s=rate(before.sent_bytes, after.sent_bytes),
        received_packets_per_s=rate(before.received_packets, after.received_packets),
        sent_packets_per_s=rate(before.sent_packets, after.sent_packets),
        dropped_per_s=rate(before.dropped, after.dropped),
    )


# Slowdowns that do not show as load: quotas, heat, a slower clock, swap.
#
# Quotas are counted in the control groups of server and generator and all groups above them, of
# both versions. Of many cores only a few clocks are read: the kernel has to ask each core. A
# value that the machine does not report is None.


CGROUPS: Final = Path("/sys/fs/cgroup")
CONTROLLERS: Final[dict[str, tuple[str, ...]]] = {
    "cpu": ("cpu", "cpu,cpuacct"),
    "memory": ("memory",),
}
"""Controllers of control groups of version 1, and the folders where they are mounted."""
MEMORY_FILES: Final = (
    ("memory.max", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),
)
"""Files of a control group with its limit and its use, of version 2 and version 1."""
CPUS: Final = Path("/sys/devices/system/cpu")
CLOCKS_READ: Final = 8
CORES_LISTED_MAX: Final = 64
"""Most cores for which /proc/cpuinfo is quick enough to read each second."""


def cpu_mhz() -> float | None:
    """Mean clock of the cores now; None if the kernel does not report it."""
    kilohertz = _numbers(_clocks())
    if kilohertz:
        return mean(kilohertz) / 1e3
    if (os.cpu_count() or 1) > CORES_LISTED_MAX:
        return None
    clocks = proc.megahertz(text_of(PROC / "cpuinfo"))
    return mean(clocks) if clocks else None


def thermal_events() -> int | None:
    """Number of thermal throttling events of cores and packages since boot."""
    counts = _numbers(_throttle_counts())
    return sum(counts) if counts else None


def swap_pages() -> int | None:
    """Pages moved to and from swap since the start."""
    rows = proc.named_numbers(text_of(PROC / "vmstat"))
    moved = [rows[name] for name in ("pswpin", "pswpout") if name in rows]
    return sum(moved) if moved else None


def throttled(pids: Iterable[int]) -> int | None:
    """Periods so far in which a quota of these processes, or of a group above them, was used up."""
    files = {file for pid in pids if pid for file in _group_files(pid, "cpu", "cpu.stat")}
    rows = [proc.named_numbers(text_of(file)) for file in files]
    counts = [row["nr_throttled"] for row in rows if "nr_throttled" in row]
    return sum(counts) if counts else None


def quota_cores(pid: int) -> float | None:
    """Least quota of a process's control groups, in cores."""
    texts = [text_of(file) for file in _group_files(pid, "cpu", "cpu.max")]
    for file in _group_files(pid, "cpu", "cpu.cfs_quota_us"):
        texts.append(f"{text_of(file)} {text_of(file.with_name('cpu.cfs_period_us'))}")
    pairs = [words for text in texts if len(words := text.split()) == 2]
    return min(
        (int(q) / int(p) for q, p in pairs if q.isdecimal() and p.isdecimal() and int(p)),
        default=None,
    )


def memory_allowed_bytes(pid: int) -> int | None:
    """Memory that a process's control groups still allow; None without a limit.

    File pages that were long not used count as free: the kernel drops them first.
    """
    allowed = []
    for limit, used in MEMORY_FILES:
        for file in _group_files(pid, "memory", limit):
            if limits := _numbers([file]):
                used_bytes = sum(_numbers([file.with_name(used)]))
                rows = proc.named_numbers(text_of(file.with_name("memory.stat")))
                unused = rows.get("total_inactive_file", rows.get("inactive_file", 0))
                allowed.append(limits[0] - max(0, used_bytes - unused))
    return max(0, min(allowed)) if allowed else None


def _group_files(pid: int, controller: str, name: str) -> Iterator[Path]:
    """A file of a process's control group, and the same of all groups above it."""
    groups = proc.cgroups(text_of(PROC / f"{pid}/cgroup"))
    for known, roots in ((controller, CONTROLLERS[controller]), ("", ("", "unified"))):
        if (path := groups.get(known)) is None:
            continue
        for root in roots:
            group = CGROUPS / root / path.lstrip("/")
            while group.is_relative_to(CGROUPS / root):
                yield group / name
                group = group.parent


def _numbers(paths: Iterable[Path]) -> list[int]:
    texts = (text_of(path).strip() for path in paths)
    return [int(text) for text in texts if text.isdecimal()]


@cache
def _clocks() -> tuple[Path, ...]:
    return tuple(sorted(CPUS.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))[:CLOCKS_READ])


@cache
def _throttle_counts() -> tuple[Path, ...]:
    return tuple(sorted(CPUS.glob("cpu[0-9]*/thermal_throttle/*_throttle_count")))
