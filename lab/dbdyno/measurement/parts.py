"""What was watched while a trial ran: the machine each second, the server's work, its counters.

These are parts of a measurement, kept in a file of their own because they grow with every counter
that somebody wants to see. A field that a machine cannot tell (no pressure files, a process of
another user) is None and never a zero, so that nobody takes "unknown" for "nothing".
"""

from __future__ import annotations

from dbdyno.measurement.measurement_parts import Noun


class DiskSample(Noun):
    """One disk, one second.

    Attributes:
        busy: share of the time in which at least one request was open.
        read_ms_avg, write_ms_avg: from hand-over to completion; None without a request.
        flushes_per_s: orders to empty the device's cache, as fsync gives; None on an old kernel.
    """

    reads_per_s: float
    writes_per_s: float
    read_bytes_per_s: float
    written_bytes_per_s: float
    busy: float
    read_ms_avg: float | None = None
    write_ms_avg: float | None = None
    flushes_per_s: float | None = None


class NetworkSample(Noun):
    """One network device, one second; `dropped` counts both directions, errors included."""

    received_bytes_per_s: float
    sent_bytes_per_s: float
    received_packets_per_s: float
    sent_packets_per_s: float
    dropped_per_s: float


class WatchSample(Noun):
    """Host, server and generator, one second: CPU is in cores (seconds per second).

    Attributes:
        at_s: middle of the second, counted from the load's begin.
        length_s: how long the sample's second really was.
        host_cpu_user: nice included; host_cpu_system: both kinds of interrupts included.
        host_cpu_irq, host_cpu_softirq: the interrupts' part of host_cpu_system.
        cpu_mhz: mean of the cores' clocks; None where the kernel does not tell it.
        throttled_per_s: periods in which a CPU quota held back server or generator (cgroups).
        thermal_events_per_s: times that a core was slowed down because it was hot.
        swap_pages_per_s: pages moved to or from swap, of the whole host.
        pressure_*: share of the second in which some, or all, tasks stood still for want of it.
        memory_*, swap_used_bytes: of the host, at the second's end.
        disk_*: sums over whole disks, each counted once; disks, networks: by device.
        server_*: the server's process with all its threads; io is what reached the storage.
        watch_cpu: what the watch itself took.
    """

    at_s: float
    length_s: float = 1.0
    host_cpu_user: float
    host_cpu_system: float
    host_cpu_irq: float = 0.0
    host_cpu_softirq: float = 0.0
    host_cpu_iowait: float
    host_cpu_steal: float
    host_cpu_idle: float
    cpu_mhz: float | None = None
    throttled_per_s: float | None = None
    thermal_events_per_s: float | None = None
    swap_pages_per_s: float | None = None
    pressure_cpu_some: float | None = None
    pressure_io_some: float | None = None
    pressure_io_full: float | None = None
    pressure_memory_some: float | None = None
    pressure_memory_full: float | None = None
    memory_available_bytes: int
    memory_cached_bytes: int | None = None
    memory_dirty_bytes: int | None = None
    swap_used_bytes: int | None = None
    disk_read_bytes_per_s: float
    disk_written_bytes_per_s: float
    disk_writes_per_s: float
    disk_flushes_per_s: float | None = None
    server_cpu: float
    server_rss_bytes: int
    server_threads: int | None = None
    server_read_bytes_per_s: float | None = None
    server_written_bytes_per_s: float | None = None
    server_switches_per_s: float | None = None
    generator_cpu: float
    generator_rss_bytes: int | None = None
    generator_switches_per_s: float | None = None
    watch_cpu: float | None = None
    disks: dict[str, DiskSample] = {}
    networks: dict[str, NetworkSample] = {}


class ProcessWork(Noun):
    """What the server's process did within the measured window, besides using CPU.

    Attributes:
        read_bytes, written_bytes: fetched from and sent to the storage, not to the page cache.
        switches_voluntary: context switches of all threads that went to wait for something;
            switches_involuntary: those that were sent away. None where threads cannot be read.
    """

    read_bytes: int | None = None
    written_bytes: int | None = None
    switches_voluntary: int | None = None
    switches_involuntary: int | None = None

    @property
    def switches(self) -> int | None:
        """Both kinds together; None if they are unknown."""
        if self.switches_voluntary is None or self.switches_involuntary is None:
            return None
        return self.switches_voluntary + self.switches_involuntary


class StatusSeries(Noun):
    """The server's own counters, read once a second on a connection that does nothing else.

    Columns, not rows: `at_s`, `took_ms` and every list in `counters` have one entry a reading.

    Attributes:
        at_s: middle of the reading, counted from the load's begin.
        took_ms: how long the answer took; part of what watching costs.
        server_cpu_ms: server CPU of one reading, measured before the load; None if unknown.
        counters: values as the server told them, by name; None where a reading had no such counter.
        trouble: why readings are missing; None if none is.
    """

    at_s: tuple[float, ...] = ()
    took_ms: tuple[float, ...] = ()
    server_cpu_ms: float | None = None
    counters: dict[str, tuple[float | None, ...]] = {}
    trouble: str | None = None
