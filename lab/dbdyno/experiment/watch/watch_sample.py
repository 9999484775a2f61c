"""Two readings one after the other become one sample: growth by time, levels as they are. Pure.

A counter that shrank (a device that was taken out and came back) has grown by nothing. What only
one of the two readings has is unknown, not zero.
"""

from __future__ import annotations

from dbdyno.experiment.watch.host import Reading
from dbdyno.experiment.watch.proc import DiskCounters, NetworkCounters
from dbdyno.measurement.parts import DiskSample, NetworkSample, WatchSample

PRESSURES = ("cpu_some", "io_some", "io_full", "memory_some", "memory_full")
"""All tasks cannot wait for a CPU at once: a "full" of cpu does not exist for a whole machine."""


def sample(before: Reading, after: Reading, origin_s: float) -> WatchSample:
    """What was seen between the readings; its time is the middle, counted from `origin_s`."""
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
        **_memory(after.memory_bytes),
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
        watch_cpu=rate(before.watch_cpu_s, after.watch_cpu_s),
        disks=disks,
        networks=_networks(before, after, seconds),
    )


def _memory(sizes: dict[str, int]) -> dict[str, int | None]:
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


def _networks(before: Reading, after: Reading, seconds: float) -> dict[str, NetworkSample]:
    """Devices that ever carried something: a machine with containers has many that never do."""
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
