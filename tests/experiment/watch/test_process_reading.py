"""A process is read with its threads and all it forked, and a dead one as nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from dbdyno.experiment.watch import proc
from dbdyno.experiment.watch.proc import GONE, SwitchCounter, Switches, family, read_process

FORKING = """
import os, sys, time
child = os.fork()
while child == 0 and time.process_time() < 0.6:
    pass
if child == 0:
    time.sleep(30)
sys.stdout.write("ready\\n")
sys.stdout.flush()
time.sleep(30)
"""
SLEEPING = "import time\nwhile True: time.sleep(0.01)"


@contextmanager
def running(program: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        for child in psutil.Process(process.pid).children():
            child.kill()
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_our_own_counters_agree_with_psutil() -> None:
    seen, known = read_process(os.getpid()), psutil.Process()
    cpu = known.cpu_times()
    whole_s = cpu.user + cpu.system + cpu.children_user + cpu.children_system
    assert seen.cpu_s == pytest.approx(whole_s, abs=0.5)
    assert seen.rss_bytes == pytest.approx(known.memory_info().rss, rel=0.2)
    assert seen.threads >= known.num_threads() > 0
    assert seen.written_bytes is not None


def test_what_it_forked_is_part_of_it() -> None:
    with running(FORKING) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert len(family(process.pid)) == 2
        eventually(lambda: read_process(process.pid).cpu_s >= 0.5)
        seen = read_process(process.pid)
        private = psutil.Process(process.pid).memory_info()
        assert seen.threads == 2
        assert seen.rss_bytes < 2 * private.rss  # what the two share is counted once


def test_a_process_that_is_gone_is_read_as_nothing() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert read_process(process.pid) == GONE
    assert read_process(-1) == GONE
    assert SwitchCounter(process.pid).read() is None


def test_a_process_whose_traffic_is_not_ours_to_see_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "7").mkdir()
    for name in ("stat", "statm"):
        (tmp_path / "7" / name).write_text(Path(f"/proc/self/{name}").read_text())
    monkeypatch.setattr(proc, "PROC", tmp_path)
    seen = read_process(7)
    assert seen.cpu_s > 0
    assert (seen.read_bytes, seen.written_bytes) == (None, None)


def test_a_sleeper_switches_as_often_as_it_wakes() -> None:
    with running(SLEEPING) as process:
        counter = SwitchCounter(process.pid)
        assert counter.read() == Switches(0, 0)
        began_s = time.monotonic()
        time.sleep(1.0)
        total = counter.read()
        wakes = (time.monotonic() - began_s) / 0.01
    assert total is not None
    assert 0.1 * wakes < total.voluntary < 1.3 * wakes + 5


def test_threads_that_come_are_counted_and_those_that_go_do_not_take_back() -> None:
    counter = SwitchCounter(os.getpid())
    counter.read()
    over = threading.Event()

    def wake_often() -> None:
        while not over.wait(0.005):
            pass

    thread = threading.Thread(target=wake_often)
    thread.start()
    time.sleep(0.5)
    first = counter.read()
    over.set()
    thread.join()
    second = counter.read()
    assert first is not None
    assert second is not None
    assert first.voluntary >= 10
    assert second.voluntary >= first.voluntary
    assert second.involuntary >= first.involuntary


def test_a_reading_that_is_dear_is_made_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, busy = iter([0.0, 10.0, 11.0, 14.9, 15.1, 15.1]), iter([2.0, 2.05, 2.05, 2.1])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(time, "thread_time", lambda: next(busy))
    counts = iter([{1: Switches(5, 5)}, {1: Switches(60, 1050)}])
    monkeypatch.setattr(proc, "_threads", lambda pid: next(counts).items())
    counter = SwitchCounter(1)
    assert counter.rate_per_s() is None  # at 10.0: the first reading, which takes 0.05 s of CPU
    assert counter.rate_per_s() is None  # at 11.0 and 14.9: five seconds have not gone by
    assert counter.rate_per_s() is None
    assert counter.rate_per_s() == pytest.approx(1100 / 5.1)


def test_a_reading_that_waited_for_its_turn_is_made_as_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slowly(pid: int) -> list[tuple[int, Switches]]:
        time.sleep(0.2)
        return [(1, Switches(5, 5))]

    monkeypatch.setattr(proc, "_threads", slowly)
    counter = SwitchCounter(1)
    assert counter.rate_per_s() is None
    time.sleep(0.5)
    assert counter.rate_per_s() == 0.0


def test_a_number_given_to_another_thread_counts_from_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = iter([{1: Switches(500, 50)}, {1: Switches(20, 60)}])
    monkeypatch.setattr(proc, "_threads", lambda pid: next(counts).items())
    counter = SwitchCounter(1)
    counter.read()
    assert counter.read() == Switches(20, 60)
