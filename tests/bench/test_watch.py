"""The watch samples host and processes, and outlives them."""

import subprocess
import sys
import time

import psutil
import pytest

from dbdyno.bench import watch as watching
from dbdyno.bench.host import GONE, ProcessReading, Reading, read, read_process
from dbdyno.bench.watch import Watch

BURN = "while True: pass"


def reading(at_s, factor, server=GONE):
    return Reading(
        at_s=at_s,
        cpu_user_s=1.0 * factor,
        cpu_system_s=0.5 * factor,
        cpu_iowait_s=0.1 * factor,
        cpu_steal_s=0.0,
        cpu_idle_s=2.4 * factor,
        memory_available_bytes=10**9,
        disk_read_bytes=1000 * factor,
        disk_written_bytes=2000 * factor,
        disk_writes=30 * factor,
        server=server,
        generator=ProcessReading(0.25 * factor, 1),
    )


@pytest.fixture
def burning():
    process = subprocess.Popen([sys.executable, "-c", BURN])
    yield process
    process.kill()
    process.wait()


def test_samples_are_differences_by_time_in_the_middle_of_their_second(monkeypatch):
    readings = iter(
        [reading(100, 0, ProcessReading(7.0, 5)), reading(102, 2, ProcessReading(8.0, 6))]
        + [reading(104, 4, ProcessReading(9.0, 7))] * 1000
    )
    monkeypatch.setattr(watching, "read", lambda *pids: next(readings))
    with Watch(1, 2, period_s=0.005) as watch:
        time.sleep(0.2)
    first, second = watch.samples(origin_s=100.5)[:2]
    assert (first.at_s, second.at_s) == (0.5, 2.5)
    assert (first.host_cpu_user, first.host_cpu_system, first.host_cpu_idle) == (1.0, 0.5, 2.4)
    assert (first.disk_read_bytes_per_s, first.disk_writes_per_s) == (1000.0, 30.0)
    assert (first.server_cpu, first.server_rss_bytes, first.generator_cpu) == (0.5, 6, 0.25)
    assert watch.samples(origin_s=102.5)[0].at_s == 0.5


def test_a_busy_process_is_seen_busy_and_a_dead_one_as_nothing(burning):
    with Watch(burning.pid, burning.pid, period_s=0.3) as watch:
        time.sleep(1.0)
        burning.kill()
        burning.wait()
        time.sleep(0.8)
    samples = watch.samples(0.0)
    assert max(s.server_cpu for s in samples) > 0.2
    assert max(s.server_rss_bytes for s in samples) > 10**6
    assert samples[-1].server_cpu == 0.0
    assert samples[-1].server_rss_bytes == 0
    assert all(s.memory_available_bytes > 0 for s in samples)


def test_the_hosts_cpu_adds_up_to_its_cores(burning):
    before = read(burning.pid, burning.pid)
    time.sleep(1.0)
    after = read(burning.pid, burning.pid)
    names = ("cpu_user_s", "cpu_system_s", "cpu_iowait_s", "cpu_steal_s", "cpu_idle_s")
    total = sum(getattr(after, name) - getattr(before, name) for name in names)
    cores = psutil.cpu_count()
    assert total == pytest.approx(cores * (after.at_s - before.at_s), rel=0.15)


def test_a_process_that_is_not_there_is_read_as_gone():
    process = subprocess.Popen(["true"])
    process.wait()
    assert read_process(process.pid) == GONE
