"""The kernel's files are read as they stand there, and no text ends a trial."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.experiment.watch import proc
from dbdyno.experiment.watch.proc import DiskCounters, NetworkCounters, ProcessStat, Switches

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


def test_pressure_is_told_in_seconds() -> None:
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


def test_memory_is_told_in_bytes_and_counts_are_left_out() -> None:
    text = "MemTotal:       24684092 kB\nActive(file): 1 kB\nHugePages_Total:       0\n"
    assert proc.memory_bytes(text) == {"MemTotal": 24684092 * 1024, "Active(file)": 1024}


def test_a_threads_switches_are_both_or_none() -> None:
    both = "Name:\tmysqld\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n"
    assert proc.switches(both) == Switches(150, 545)
    assert proc.switches("voluntary_ctxt_switches:\t150\n") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (STAT.format("700 300 20 10"), ProcessStat(ticks=1030, threads=33)),
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
    assert proc.process_stat(text) is None


@given(
    st.lists(st.integers(min_value=0, max_value=2**63), min_size=10, max_size=17),
    st.from_regex(r"[a-z]{2,5}[0-9]?", fullmatch=True),
)
def test_every_disk_the_kernel_can_print_is_read(numbers: list[int], name: str) -> None:
    found = proc.disks(f"  8 0 {name} {' '.join(map(str, numbers))}\n")[name]
    assert (found.reads, found.written_bytes) == (numbers[0], numbers[6] * 512)
    assert found.flushes == (numbers[15] if len(numbers) > 15 else None)
