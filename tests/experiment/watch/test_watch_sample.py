"""Growth by time, levels as they are, and nothing claimed of what was not seen twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.experiment.watch.host import Reading, sample
from dbdyno.experiment.watch.proc import GONE, DiskCounters, NetworkCounters, ProcessReading


def reading(at_s: float, factor: int, server: ProcessReading = GONE) -> Reading:
    """Counters that have grown to `factor` times what they grow by in a step."""
    return Reading(
        at_s=at_s,
        cpu_user_s=1.0 * factor,
        cpu_system_s=0.5 * factor,
        cpu_irq_s=0.01 * factor,
        cpu_softirq_s=0.02 * factor,
        cpu_iowait_s=0.1 * factor,
        cpu_steal_s=0.0,
        cpu_idle_s=2.4 * factor,
        server=server,
        generator=ProcessReading(0.25 * factor, 1),
        pressure_s={"cpu_some": 0.5 * factor, "io_full": 0.25 * factor},
        memory_bytes={"MemAvailable": 10**9, "Dirty": 4096, "SwapTotal": 100, "SwapFree": 60},
        disks={
            "vda": DiskCounters(
                2 * factor, 1000 * factor, 0.01 * factor, 30 * factor, 2000 * factor, 0.3 * factor,
                0.5 * factor, 10 * factor,
            )
        },
        networks={
            "lo": NetworkCounters(500 * factor, 5 * factor, 600 * factor, 6 * factor, factor),
            "veth9": NetworkCounters(0, 0, 0, 0, 0),
        },
        watch_cpu_s=0.01 * factor,
    )  # fmt: skip


SERVER = ProcessReading(7.0, 5, 40, 1000, 2000)
LATER = ProcessReading(8.0, 6, 44, 5000, 8000)


def test_a_sample_is_the_growth_by_time_in_the_middle_of_its_second() -> None:
    after = replace(reading(102, 2, LATER), server_switches_per_s=123.0)
    seen = sample(reading(100, 0, SERVER), after, origin_s=100.5)
    assert (seen.at_s, seen.length_s) == (0.5, 2.0)
    assert (seen.host_cpu_user, seen.host_cpu_system, seen.host_cpu_idle) == (1.0, 0.5, 2.4)
    assert (seen.host_cpu_irq, seen.host_cpu_softirq) == (0.01, 0.02)
    assert (seen.pressure_cpu_some, seen.pressure_io_full) == (0.5, 0.25)
    assert seen.pressure_io_some is None
    assert (seen.memory_available_bytes, seen.memory_dirty_bytes) == (10**9, 4096)
    assert (seen.swap_used_bytes, seen.memory_cached_bytes) == (40, None)
    assert (seen.server_cpu, seen.server_rss_bytes, seen.server_threads) == (0.5, 6, 44)
    assert (seen.server_read_bytes_per_s, seen.server_written_bytes_per_s) == (2000.0, 3000.0)
    assert (seen.server_switches_per_s, seen.generator_switches_per_s) == (123.0, None)
    assert (seen.generator_cpu, seen.watch_cpu) == (0.25, 0.01)


def test_disks_are_told_by_device_and_in_sum() -> None:
    seen = sample(reading(100, 0), reading(102, 2), 100)
    disk = seen.disks["vda"]
    assert (disk.reads_per_s, disk.writes_per_s, disk.flushes_per_s) == (2.0, 30.0, 10.0)
    assert (disk.busy, disk.read_ms_avg, disk.write_ms_avg) == (0.5, 5.0, pytest.approx(10.0))
    assert (seen.disk_read_bytes_per_s, seen.disk_written_bytes_per_s) == (1000.0, 2000.0)
    assert (seen.disk_writes_per_s, seen.disk_flushes_per_s) == (30.0, 10.0)


def test_networks_that_never_carried_anything_are_left_out() -> None:
    seen = sample(reading(100, 0), reading(102, 2), 100)
    assert list(seen.networks) == ["lo"]
    assert seen.networks["lo"].sent_bytes_per_s == 600.0
    assert seen.networks["lo"].dropped_per_s == 1.0


def test_what_one_reading_lacks_is_unknown() -> None:
    bare = replace(reading(102, 2), disks={}, networks={}, pressure_s={}, memory_bytes={})
    seen = sample(reading(100, 0, SERVER), bare, 100)
    assert (seen.disks, seen.networks, seen.disk_flushes_per_s) == ({}, {}, None)
    assert (seen.pressure_cpu_some, seen.server_read_bytes_per_s) == (None, None)
    assert (seen.memory_available_bytes, seen.swap_used_bytes) == (0, None)


@given(st.integers(0, 5), st.integers(0, 5), st.floats(0, 5))
def test_no_rate_is_ever_below_zero(first: int, second: int, seconds: float) -> None:
    seen = sample(reading(100, first, SERVER), reading(100 + seconds, second, GONE), 100)
    for name, value in seen.model_dump(exclude={"disks", "networks"}).items():
        assert value is None or value >= 0, name
    assert all(value >= 0 for disk in seen.disks.values() for _, value in disk if value is not None)
