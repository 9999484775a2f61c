"""The host's counters only grow, and what cannot be read is left out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.experiment.watch import host
from dbdyno.experiment.watch.host import Reading, Watch, read, sample
from dbdyno.experiment.watch.proc import GONE, DiskCounters, NetworkCounters, ProcessReading
from support.lab_process import until


def test_counters_grow() -> None:
    before = read(os.getpid(), os.getpid())
    total = sum(n * n for n in range(300_000))
    after = read(os.getpid(), os.getpid())
    assert total > 0
    assert after.at_s > before.at_s
    assert after.server.cpu_s >= before.server.cpu_s > 0
    assert after.cpu_idle_s >= before.cpu_idle_s > 0
    assert after.cpu_system_s >= after.cpu_irq_s + after.cpu_softirq_s
    assert after.watch_cpu_s > before.watch_cpu_s
    assert after.memory_bytes["MemTotal"] > after.memory_bytes["MemAvailable"] > 0
    assert after.networks["lo"].received_bytes >= before.networks["lo"].received_bytes
    assert {name: disk.writes for name, disk in before.disks.items()}.keys() == after.disks.keys()


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made /proc and /sys/block."""
    monkeypatch.setattr(host, "PROC", tmp_path)
    monkeypatch.setattr(host, "BLOCK_DEVICES", tmp_path / "block")
    return tmp_path


def test_a_machine_without_these_files_is_read_all_the_same(kernel: Path) -> None:
    reading = read(os.getpid(), os.getpid())
    assert (reading.disks, reading.networks, reading.pressure_s) == ({}, {}, {})
    assert reading.memory_bytes.keys() == {"MemAvailable"}
    assert reading.cpu_idle_s > 0


def test_pressure_is_named_by_resource_and_kind(kernel: Path) -> None:
    (kernel / "pressure").mkdir()
    (kernel / "pressure" / "io").write_text("some avg10=0.0 total=2500000\nfull total=1000000\n")
    assert read(1, 1).pressure_s == {"io_some": 2.5, "io_full": 1.0}


def test_a_disk_is_counted_once_and_not_its_parts_again(kernel: Path) -> None:
    row = "7 0 800 1 2 0 16 1 0 3 4 0 0 0 0 5 1"
    names = ("vda", "vda1", "dm-0", "loop3", "md127")
    (kernel / "diskstats").write_text("".join(f"8 0 {name} {row}\n" for name in names))
    for name in ("vda", "dm-0", "loop3", "md127"):
        (kernel / "block" / name).mkdir(parents=True)
    disks = read(1, 1).disks
    assert list(disks) == ["vda"]
    assert (disks["vda"].reads, disks["vda"].written_bytes, disks["vda"].flushes) == (7, 8192, 5)


def test_networks_are_those_the_server_sees_and_else_the_labs(kernel: Path) -> None:
    counters = " 1 1 0 0 0 0 0 0 2 2 0 0 0 0 0 0\n"
    for folder, device in (("net", "eth0"), ("7/net", "dbdyno-1")):
        (kernel / folder).mkdir(parents=True)
        (kernel / folder / "dev").write_text(f"{device}:{counters}")
    assert list(read(7, 8).networks) == ["dbdyno-1"]
    assert list(read(0, 8).networks) == ["eth0"]


# Growth by time, levels as they are, and nothing claimed of what was not seen twice.


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


def test_disks_are_reported_by_device_and_in_sum() -> None:
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


# Quotas are found in both kinds of control groups, and what a machine does not report is None.


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty /proc, control groups and CPUs."""
    for name in ("proc", "cgroup", "cpu"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(host, "PROC", tmp_path / "proc")
    monkeypatch.setattr(host, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(host, "CPUS", tmp_path / "cpu")
    for cached in (host._clocks, host._throttle_counts):
        cached.cache_clear()
    yield tmp_path
    for cached in (host._clocks, host._throttle_counts):
        cached.cache_clear()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_machine_that_reports_nothing_is_unknown(machine: Path) -> None:
    assert host.cpu_mhz() is None
    assert host.thermal_events() is None
    assert host.swap_pages() is None
    assert host.throttled((1, 0)) is None


def test_a_quota_counts_where_it_is_set_and_once(machine: Path) -> None:
    write(machine / "proc/7/cgroup", "0::/lab/server\n")
    write(machine / "proc/8/cgroup", "0::/lab/load\n")
    write(machine / "cgroup/cpu.stat", "usage_usec 5\n")
    write(machine / "cgroup/lab/cpu.stat", "nr_periods 9\nnr_throttled 3\n")
    write(machine / "cgroup/lab/server/cpu.stat", "nr_periods 9\nnr_throttled 40\n")
    assert host.throttled((7, 8)) == 43
    assert host.throttled((8,)) == 3


def test_older_control_groups_are_read_too(machine: Path) -> None:
    write(machine / "proc/7/cgroup", "4:memory:/x\n3:cpu,cpuacct:/a/b\n0::/\n")
    write(machine / "cgroup/cpu/a/b/cpu.stat", "nr_periods 1\nnr_throttled 2\nthrottled_time 9\n")
    assert host.throttled((7,)) == 2


def test_the_least_quota_and_the_least_memory_left_of_all_groups_hold(machine: Path) -> None:
    write(machine / "proc/7/cgroup", "0::/lab/server\n")
    assert (host.quota_cores(7), host.memory_allowed_bytes(7)) == (None, None)
    write(machine / "cgroup/lab/cpu.max", "150000 100000\n")
    write(machine / "cgroup/lab/server/cpu.max", "max 100000\n")
    write(machine / "cgroup/lab/memory.max", "max\n")
    write(machine / "cgroup/lab/server/memory.max", "1048576\n")
    assert (host.quota_cores(7), host.memory_allowed_bytes(7)) == (1.5, 1048576)
    write(machine / "cgroup/lab/server/memory.current", "500000\n")
    write(machine / "cgroup/lab/server/memory.stat", "anon 9\ninactive_file 100000\n")
    assert host.memory_allowed_bytes(7) == 648576
    write(machine / "proc/8/cgroup", "4:memory:/a\n3:cpu,cpuacct:/a\n")
    write(machine / "cgroup/memory/a/memory.limit_in_bytes", "4096\n")
    write(machine / "cgroup/memory/a/memory.usage_in_bytes", "8192\n")
    write(machine / "cgroup/memory/a/memory.stat", "total_inactive_file 5096\n")
    write(machine / "cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n")
    write(machine / "cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n")
    write(machine / "cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
    write(machine / "cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
    assert (host.quota_cores(8), host.memory_allowed_bytes(8)) == (0.5, 1000)


def test_the_clock_is_the_mean_of_the_cores(machine: Path) -> None:
    write(machine / "proc/cpuinfo", "cpu MHz\t\t: 2000.0\nmodel name : x\ncpu MHz : 3000.5\n")
    assert host.cpu_mhz() == pytest.approx(2500.25)
    host._clocks.cache_clear()
    for core, kilohertz in enumerate((1_200_000, 1_400_000)):
        path = machine / f"cpu/cpu{core}/cpufreq/scaling_cur_freq"
        write(path, f"{kilohertz}\n")
    assert host.cpu_mhz() == pytest.approx(1300)


def test_heat_and_swap_are_added_up(machine: Path) -> None:
    write(machine / "cpu/cpu0/thermal_throttle/core_throttle_count", "2\n")
    write(machine / "cpu/cpu1/thermal_throttle/package_throttle_count", "3\n")
    write(machine / "proc/vmstat", "nr_free_pages 5\npswpin 10\npswpout 7\n")
    assert (host.thermal_events(), host.swap_pages()) == (5, 17)


def test_this_machine_can_be_read() -> None:
    throttled = host.throttled((os.getpid(),))
    assert throttled is None or throttled >= 0
    assert (host.swap_pages() or 0) >= 0
    assert (host.cpu_mhz() or 1000) > 100


# The thread samples host and processes, and outlives them.


BURN = "while True: pass"


@pytest.fixture
def burning() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", BURN])
    yield process
    process.kill()
    process.wait()


def test_readings_become_samples_from_the_loads_begin_on(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter(
        [reading(100, 0, ProcessReading(7.0, 5)), reading(102, 2, ProcessReading(8.0, 6))]
        + [reading(104, 4, ProcessReading(9.0, 7))] * 1000
    )
    monkeypatch.setattr(host, "read", lambda *pids: next(readings))
    with Watch(-1, -1, period_s=0.005) as watch:
        until(lambda: len(watch.samples(origin_s=100.5)) >= 2, "two samples")
    first, second = watch.samples(origin_s=100.5)[:2]
    assert (first.at_s, second.at_s) == (0.5, 2.5)
    assert (first.server_cpu, first.server_rss_bytes, first.generator_cpu) == (0.5, 6, 0.25)
    assert watch.samples(origin_s=102.5)[0].at_s == 0.5


def test_readings_that_take_longer_than_a_period_have_a_pause_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began_s: list[float] = []

    def slow(*pids: int) -> Reading:
        began_s.append(time.monotonic())
        time.sleep(0.15)
        return reading(began_s[-1], 0, ProcessReading(0.0, 0))

    monkeypatch.setattr(host, "read", slow)
    ends = time.monotonic() + 60
    with Watch(-1, -1, period_s=0.1):
        while len(began_s) < 4 and time.monotonic() < ends:
            time.sleep(0.01)
    assert min(after - before for before, after in pairwise(began_s)) >= 0.24


def test_a_busy_process_is_seen_busy_and_a_dead_one_as_nothing(
    burning: subprocess.Popen[bytes],
) -> None:
    def is_busy() -> bool:
        seen = watch.samples(0.0)
        return any(s.server_cpu > 0.02 for s in seen) and any(s.server_switches_per_s for s in seen)

    with Watch(burning.pid, burning.pid, period_s=0.3) as watch:
        until(is_busy, "a busy process")
        burning.kill()
        burning.wait()
        until(lambda: [s.server_rss_bytes for s in watch.samples(0.0)[-2:]] == [0, 0], "its end")
    samples = watch.samples(0.0)
    assert max(s.server_cpu for s in samples) > 0.02  # its share of a crowded machine
    assert max(s.server_rss_bytes for s in samples) > 10**6
    assert max(s.server_switches_per_s or 0 for s in samples) > 0
    assert samples[-1].server_cpu == 0.0
    assert samples[-1].server_rss_bytes == 0
    assert samples[-1].server_switches_per_s is None
    assert all(s.memory_available_bytes > 0 for s in samples)
    assert sum(s.watch_cpu or 0 for s in samples) / len(samples) < 0.2


def test_the_hosts_cpu_adds_up_to_its_cores(burning: subprocess.Popen[bytes]) -> None:
    before = read(burning.pid, burning.pid)
    time.sleep(1.0)
    after = read(burning.pid, burning.pid)
    names = ("cpu_user_s", "cpu_system_s", "cpu_iowait_s", "cpu_steal_s", "cpu_idle_s")
    total = sum(getattr(after, name) - getattr(before, name) for name in names)
    cores = psutil.cpu_count()
    assert total == pytest.approx(cores * (after.at_s - before.at_s), rel=0.15)
