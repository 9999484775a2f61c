"""Quotas are found in both kinds of control groups, and what a machine does not tell is None."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbdyno.experiment.watch import host


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty /proc, control groups and CPUs."""
    for name in ("proc", "cgroup", "cpu"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(host, "PROC", tmp_path / "proc")
    monkeypatch.setattr(host, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(host, "CPUS", tmp_path / "cpu")
    for cached in (host._clocks, host._thermometers):
        cached.cache_clear()
    yield tmp_path
    for cached in (host._clocks, host._thermometers):
        cached.cache_clear()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_machine_that_tells_nothing_is_unknown(machine: Path) -> None:
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
