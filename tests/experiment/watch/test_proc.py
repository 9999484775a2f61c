"""The kernel's files are read as they stand there, and no text ends a trial."""

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
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.experiment.watch import proc
from dbdyno.experiment.watch.proc import (
    GONE,
    DiskCounters,
    NetworkCounters,
    ProcessStat,
    SwitchCounter,
    Switches,
    family,
    read_process,
)

# Lines as kernels 6.1 and 4.18 print them.
DISKSTATS = """\
 254       0 vda 62 29 486 9902 109 83 1836 9975 0 1777 20565 8 4 1557 241 38 445
   8       1 sda1 10 0 80 5 20 0 160 7 0 9 12
"""
NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo
    lo: 3772    45    0 10    0     0          0         0 3773    46    1    2    0     0     0   0
eth0.7:1 2 0 0 0 0 0 0 9 8 0 0 0 0 0 0
"""
STAT = "4711 (odd) name (x) S 1 4711 4711 0 -1 4194560 5 0 0 0 {} 20 0 33 0 8 9 10 11"


def test_pressure_is_reported_in_seconds() -> None:
    text = "some avg10=1.14 avg60=2.54 avg300=27.26 total=10625074643\nfull avg10=0.00 total=0\n"
    assert proc.pressure(text) == {"some": 10625.074643, "full": 0.0}


def test_disks_of_new_and_old_kernels() -> None:
    found = proc.disks(DISKSTATS)
    assert found["vda"] == DiskCounters(62, 486 * 512, 9.902, 109, 1836 * 512, 9.975, 1.777, 38)
    assert found["sda1"].flushes is None
    assert found["sda1"].busy_s == 0.009


def test_networks_with_and_without_a_gap_after_the_colon() -> None:
    found = proc.networks(NET_DEV)
    assert found["lo"] == NetworkCounters(3772, 45, 3773, 46, 13)
    assert found["eth0.7"] == NetworkCounters(1, 2, 9, 8, 0)
    assert set(found) == {"lo", "eth0.7"}


def test_memory_is_reported_in_bytes_and_counts_are_left_out() -> None:
    text = "MemTotal:       24684092 kB\nActive(file): 1 kB\nHugePages_Total:       0\n"
    assert proc.memory_bytes(text) == {"MemTotal": 24684092 * 1024, "Active(file)": 1024}


def test_a_threads_switches_are_both_or_none() -> None:
    both = "Name:\tmysqld\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n"
    assert proc.switches(both) == Switches(150, 545)
    assert proc.switches("voluntary_ctxt_switches:\t150\n") is None


@pytest.mark.parametrize("text", ["", "0 0 0\n", "582859 617699\n", "582859 a 7\n"])
def test_queueing_of_a_thread_is_unknown_where_the_kernel_does_not_count_it(text: str) -> None:
    assert proc.queued_ns("582859 617699 7\n") == 617699
    assert proc.queued_ns(text) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            STAT.format("700 300 20 10"),
            ProcessStat("odd) name (x", 700, 300, 30, threads=33, born_ticks=8),
        ),
        (STAT.format("700 300 x 10"), None),
        ("4711 (mysqld) S 1", None),
        ("", None),
    ],
)
def test_cpu_is_read_behind_a_name_that_may_hold_anything(
    text: str, found: ProcessStat | None
) -> None:
    assert proc.process_stat(text) == found


def test_only_rows_of_one_number_are_named_numbers() -> None:
    assert proc.named_numbers("rchar: 6976\nState:\tS (sleeping)\nPid: 7\n") == {
        "rchar": 6976,
        "Pid": 7,
    }


@given(st.text())
def test_no_text_raises(text: str) -> None:
    assert all(isinstance(value, float) for value in proc.pressure(text).values())
    assert all(isinstance(value, int) for value in proc.memory_bytes(text).values())
    assert all(disk.reads >= 0 for disk in proc.disks(text).values())
    assert all(device.dropped >= 0 for device in proc.networks(text).values())
    assert proc.switches(text) is None
    assert (proc.queued_ns(text) or 0) >= 0
    assert proc.process_stat(text) is None


@given(
    st.lists(st.integers(min_value=0, max_value=2**63), min_size=10, max_size=17),
    st.from_regex(r"[a-z]{2,5}[0-9]?", fullmatch=True),
)
def test_every_disk_the_kernel_can_print_is_read(numbers: list[int], name: str) -> None:
    found = proc.disks(f"  8 0 {name} {' '.join(map(str, numbers))}\n")[name]
    assert (found.reads, found.written_bytes) == (numbers[0], numbers[6] * 512)
    assert found.flushes == (numbers[15] if len(numbers) > 15 else None)


# A process is read with its threads and all it forked, and a dead one as nothing.


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
COMPUTING = """
import sys, time
while time.process_time() < 0.6:
    pass
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


def test_counters_agree_with_those_of_psutil() -> None:
    with running(COMPUTING) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seen, known = read_process(process.pid), psutil.Process(process.pid)
        cpu = known.cpu_times()
        assert seen.cpu_s == pytest.approx(cpu.user + cpu.system, abs=0.1)
        assert seen.cpu_s >= 0.5
        assert seen.rss_bytes == pytest.approx(known.memory_info().rss, rel=0.2)
        assert seen.threads == known.num_threads() == 1
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


def test_a_child_that_ends_during_a_reading_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "7").mkdir()
    stat = tmp_path / "7" / "stat"
    stat.write_text(f"7 (postgres) S {' '.join('0' * 10)} 100 0 0 0 20 0 1 0 0")
    members = iter([[7, 8], [7], [7], [7]])

    def family_of(pid: int) -> list[int]:
        seen = next(members)
        if seen == [7]:  # the child's time has moved to its parent
            stat.write_text(f"7 (postgres) S {' '.join('0' * 10)} 100 0 900 0 20 0 1 0 0")
        return seen

    monkeypatch.setattr(proc, "PROC", tmp_path)
    monkeypatch.setattr(proc, "family", family_of)
    assert read_process(7).cpu_s == 1000 / proc.TICKS_PER_S


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
