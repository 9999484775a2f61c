"""The host's counters only grow, and what cannot be read is nothing."""

import os
import subprocess
from types import SimpleNamespace

import psutil

from dbdyno.bench import host
from dbdyno.bench.host import GONE, read, read_process


def test_counters_grow():
    before = read(os.getpid(), os.getpid())
    total = sum(n * n for n in range(300_000))
    after = read(os.getpid(), os.getpid())
    assert total > 0
    assert after.at_s > before.at_s
    assert after.server.cpu_s >= before.server.cpu_s > 0
    assert after.disk_writes >= before.disk_writes
    assert after.server.rss_bytes > 10**6
    assert after.memory_available_bytes > 0


def test_a_process_that_is_gone_is_read_as_nothing():
    process = subprocess.Popen(["true"])
    process.wait()
    assert read_process(process.pid) == GONE


def test_a_machine_without_disk_counters_is_read_all_the_same(monkeypatch):
    def refuse(**kind):
        raise OSError("no /proc/diskstats")

    monkeypatch.setattr(psutil, "disk_io_counters", refuse)
    reading = read(os.getpid(), os.getpid())
    assert (reading.disk_read_bytes, reading.disk_writes) == (0, 0)
    assert reading.cpu_idle_s > 0


def test_a_disk_is_counted_once_and_not_its_parts_again(monkeypatch, tmp_path):
    counter = SimpleNamespace(read_bytes=100, write_bytes=200, write_count=7)
    names = ("vda", "vda1", "dm-0", "loop3", "md127")
    monkeypatch.setattr(psutil, "disk_io_counters", lambda **kind: dict.fromkeys(names, counter))
    for name in ("vda", "dm-0", "loop3", "md127"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(host, "BLOCK_DEVICES", tmp_path)
    reading = read(os.getpid(), os.getpid())
    assert (reading.disk_read_bytes, reading.disk_written_bytes) == (100, 200)
    assert reading.disk_writes == 7
