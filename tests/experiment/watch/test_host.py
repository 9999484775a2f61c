"""The host's counters only grow, and what cannot be read is left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbdyno.experiment.watch import host
from dbdyno.experiment.watch.host import read


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
