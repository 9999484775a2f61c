"""The watch samples host and processes each second, and outlives them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest
from tests.experiment.watch.test_host import reading

from dbdyno.experiment.watch import host as watching
from dbdyno.experiment.watch.host import Watch, read
from dbdyno.experiment.watch.proc import ProcessReading

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
    monkeypatch.setattr(watching, "read", lambda *pids: next(readings))
    with Watch(-1, -1, period_s=0.005) as watch:
        time.sleep(0.2)
    first, second = watch.samples(origin_s=100.5)[:2]
    assert (first.at_s, second.at_s) == (0.5, 2.5)
    assert (first.server_cpu, first.server_rss_bytes, first.generator_cpu) == (0.5, 6, 0.25)
    assert watch.samples(origin_s=102.5)[0].at_s == 0.5


def test_a_busy_process_is_seen_busy_and_a_dead_one_as_nothing(
    burning: subprocess.Popen[bytes],
) -> None:
    with Watch(burning.pid, burning.pid, period_s=0.3) as watch:
        time.sleep(1.0)
        burning.kill()
        burning.wait()
        time.sleep(0.8)
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
