"""Parses files of /proc, and reads the counters of a process and its descendants.

Unknown content is left out: another kernel's new line or missing column must never end a trial.
Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SECTOR_BYTES: Final = 512
"""The unit of /proc/diskstats, whatever the device's own sectors are."""
KIB: Final = 1024


@dataclass(frozen=True)
class DiskCounters:
    """Counters of a block device since boot; `flushes` is None before Linux 5.5."""

    reads: int
    read_bytes: int
    read_s: float
    writes: int
    written_bytes: int
    write_s: float
    busy_s: float
    flushes: int | None


@dataclass(frozen=True)
class NetworkCounters:
    """Counters of a network device since its start; `dropped` includes errors, both ways."""

    received_bytes: int
    received_packets: int
    sent_bytes: int
    sent_packets: int
    dropped: int


@dataclass(frozen=True)
class ProcessStat:
    """Name, CPU in clock ticks and number of threads of a process.

    Attributes:
        user_ticks, system_ticks: of the process, or of the thread whose file it is.
        ended_ticks: of the process's ended children.
        born_ticks: its start, since boot.
    """

    name: str
    user_ticks: int
    system_ticks: int
    ended_ticks: int
    threads: int
    born_ticks: int


@dataclass(frozen=True)
class Switches:
    """Context switches of a thread or of several."""

    voluntary: int
    involuntary: int


def pressure(text: str) -> dict[str, float]:
    """Of a file of /proc/pressure: seconds so far in which some, or all, tasks stood still."""
    counters = {}
    for kind, *words in _lines(text):
        for word in words:
            name, _, value = word.partition("=")
            if name == "total" and value.isdecimal():
                counters[kind] = int(value) / 1e6
    return counters


def disks(text: str) -> dict[str, DiskCounters]:
    """Of /proc/diskstats: each device by its name."""
    counters = {}
    for words in _lines(text):
        numbers = _whole_numbers(words[3:])
        if len(words) < 3 or len(numbers) < 10:
            continue
        counters[words[2]] = DiskCounters(
            reads=numbers[0],
            read_bytes=numbers[2] * SECTOR_BYTES,
            read_s=numbers[3] / 1e3,
            writes=numbers[4],
            written_bytes=numbers[6] * SECTOR_BYTES,
            write_s=numbers[7] / 1e3,
            busy_s=numbers[9] / 1e3,
            flushes=numbers[15] if len(numbers) > 15 else None,
        )
    return counters


def networks(text: str) -> dict[str, NetworkCounters]:
    """Of /proc/net/dev: each device by its name."""
    seconds = {}
    for line in text.splitlines():
        name, colon, rest = line.rpartition(":")
        numbers = _whole_numbers(rest.split())
        if not colon or not name.strip() or len(numbers) < 12:
            continue
        seconds[name.strip()] = NetworkCounters(
            received_bytes=numbers[0],
            received_packets=numbers[1],
            sent_bytes=numbers[8],
            sent_packets=numbers[9],
            dropped=numbers[2] + numbers[3] + numbers[10] + numbers[11],
        )
    return seconds


def memory_bytes(text: str) -> dict[str, int]:
    """/proc/meminfo: each size by its name; rows of counts are left out."""
    return {
        words[0].removesuffix(":"): int(words[1]) * KIB
        for words in _lines(text)
        if len(words) == 3 and words[1].isdecimal() and words[2] == "kB"
    }


def named_numbers(text: str) -> dict[str, int]:
    """Files like /proc/PID/status and /proc/PID/io: each row with a single whole number."""
    return {
        words[0].removesuffix(":"): int(words[1])
        for words in _lines(text)
        if len(words) == 2 and words[1].isdecimal()
    }


def cgroups(text: str) -> dict[str, str]:
    """/proc/PID/cgroup: the path in each hierarchy by controller, ``""`` for the unified."""
    paths = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if not number.isdecimal() or not colon or not path.startswith("/"):
            continue
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def megahertz(text: str) -> list[float]:
    """Of /proc/cpuinfo: the clock of each core, in MHz."""
    clocks = []
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "cpu MHz" and value.strip().replace(".", "", 1).isdecimal():
            clocks.append(float(value))
    return clocks


def process_stat(text: str) -> ProcessStat | None:
    """/proc/PID/stat, or a thread's; None for malformed text. The name may hold any character."""
    begin, _, rest = text.rpartition(")")
    numbers = rest.split()
    if len(numbers) < 20 or not all(numbers[i].isdecimal() for i in (11, 12, 13, 14, 17, 19)):
        return None
    user, system, *ended = map(int, numbers[11:15])
    name, born_ticks = begin.partition("(")[2], int(numbers[19])
    return ProcessStat(name, user, system, sum(ended), int(numbers[17]), born_ticks)


def switches(text: str) -> Switches | None:
    """Context switches in a thread's status file; None if missing."""
    numbers = named_numbers(text)
    voluntary = numbers.get("voluntary_ctxt_switches")
    involuntary = numbers.get("nonvoluntary_ctxt_switches")
    if voluntary is None or involuntary is None:
        return None
    return Switches(voluntary, involuntary)


def queued_ns(text: str) -> int | None:
    """/proc/PID/task/TID/schedstat: time that the thread was ready while others had the CPUs.

    None for malformed text, and without a run so far: kernels that do not count print zeros.
    """
    words = text.split()
    if len(words) != 3 or not all(word.isdecimal() for word in words) or not int(words[2]):
        return None
    return int(words[1])


def _lines(text: str) -> Iterator[list[str]]:
    """The words of each line that is not blank."""
    return (words for line in text.splitlines() if (words := line.split()))


def _whole_numbers(words: list[str]) -> list[int]:
    """The leading words that are numbers."""
    numbers = []
    for word in words:
        if not (word.isascii() and word.isdecimal()):
            break
        numbers.append(int(word))
    return numbers


# Resources used by a server's process: CPU, memory, storage traffic, context switches.
#
# A server may be one process of many threads (MySQL) or one that forks others (PostgreSQL), so a
# reading is of the process and all its descendants. An ended child's use is in its parent's
# counters. Unreadable counters count as nothing: a watch must never end a trial.
#
# Context switches stand in one file for each thread, and the kernel sums them up nowhere. With a
# thousand connections reading them all takes tens of milliseconds; so they are read only as often
# as `SHARE_MAX` of a core allows, and counted up thread by thread, since threads end.
# The cost is the reader's CPU, not the elapsed time: waiting for its turn is free, and a busy
# machine is the interesting case.


PROC: Final = Path("/proc")
SHARE_MAX: Final = 0.01
"""Of one core, for reading threads again and again."""
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
NONE_YET: Final = Switches(0, 0)
READINGS_MAX: Final = 5
"""Readings of a family that changes during each of them."""


@dataclass(frozen=True)
class ProcessReading:
    """CPU seconds since its start, resident memory (shared pages once), threads, storage traffic.

    `read_bytes` and `written_bytes` are None if the kernel refuses to show them.
    """

    cpu_s: float
    rss_bytes: int
    threads: int = 0
    read_bytes: int | None = None
    written_bytes: int | None = None


GONE: Final = ProcessReading(0.0, 0)


def text_of(path: Path) -> str:
    """The file's text; empty if it is not there, not ours to read, or just went away."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def family(pid: int) -> list[int]:
    """The process and all its descendants; only itself if they are unknown."""
    members = [pid]
    for member in members:
        children = text_of(PROC / f"{member}/task/{member}/children").split()
        members += [int(child) for child in children if child.isdecimal()]
    return members


def task_folders(pid: int) -> Iterator[tuple[Path, list[Path]]]:
    """Folders of the process and its descendants, each with the folders of its threads."""
    for member in family(pid):
        process = PROC / str(member)
        try:
            threads = list((process / "task").iterdir())
        except OSError:
            continue
        yield process, threads


def read_process(pid: int) -> ProcessReading:
    """The counters of the process and its descendants; `GONE` for a missing process.

    An ended child's counters move to its parent: a reading meanwhile, in which they are missing or
    counted twice, is made again.
    """
    for _ in range(READINGS_MAX):
        members = family(pid)
        reading = _read(members)
        if family(pid) == members:
            break
    return reading


def _read(members: Sequence[int]) -> ProcessReading:
    ticks = threads = private = shared = 0
    sizes: list[tuple[int, int]] = []
    for member in members:
        stat = process_stat(text_of(PROC / f"{member}/stat"))
        if stat is None:
            continue
        ticks += stat.user_ticks + stat.system_ticks + stat.ended_ticks
        threads += stat.threads
        pages = [int(w) for w in text_of(PROC / f"{member}/statm").split() if w.isdecimal()]
        if len(pages) > 2:
            private, shared = private + max(0, pages[1] - pages[2]), max(shared, pages[2])
        traffic = named_numbers(text_of(PROC / f"{member}/io"))
        if "read_bytes" in traffic and "write_bytes" in traffic:
            sizes.append((traffic["read_bytes"], traffic["write_bytes"]))
    if not threads:
        return GONE
    return ProcessReading(
        cpu_s=ticks / TICKS_PER_S,
        rss_bytes=(private + shared) * PAGE_BYTES,
        threads=threads,
        read_bytes=sum(read for read, _ in sizes) if sizes else None,
        written_bytes=sum(written for _, written in sizes) if sizes else None,
    )


class SwitchCounter:
    """Sum of the context switches of all threads of a process and its descendants.

    A thread that began since the last reading counts from zero; the switches between a thread's
    last reading and its end are lost.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._last: dict[int, Switches] | None = None
        self._last_s = self._next_s = 0.0
        self.total = NONE_YET

    def read(self) -> Switches | None:
        """All switches since the first reading; None if no thread is readable."""
        began_s, began_cpu_s = time.monotonic(), time.thread_time()
        now = dict(_threads(self._pid))
        if not now:
            return None
        if self._last is not None:
            grown = [_growth(self._last.get(thread, NONE_YET), c) for thread, c in now.items()]
            self.total = Switches(
                self.total.voluntary + sum(g.voluntary for g in grown),
                self.total.involuntary + sum(g.involuntary for g in grown),
            )
        self._last, self._last_s = now, began_s
        self._next_s = began_s + (time.thread_time() - began_cpu_s) / SHARE_MAX
        return self.total

    def read_if_due(self) -> Switches | None:
        """A reading, unless it would cost more than `SHARE_MAX`; None then."""
        return None if time.monotonic() < self._next_s else self.read()

    def rate_per_s(self) -> float | None:
        """Switches of both kinds per second since the last reading; None before the next is due."""
        before, before_s, first = self.total, self._last_s, self._last is None
        after = self.read_if_due()
        if after is None or first:
            return None
        grown = _growth(before, after)
        return (grown.voluntary + grown.involuntary) / max(self._last_s - before_s, 1e-6)


def _growth(before: Switches, after: Switches) -> Switches:
    if after.voluntary < before.voluntary or after.involuntary < before.involuntary:
        return after  # another thread has got the number of one that ended
    return Switches(after.voluntary - before.voluntary, after.involuntary - before.involuntary)


def _threads(pid: int) -> Iterator[tuple[int, Switches]]:
    for _, threads in task_folders(pid):
        for thread in threads:
            counts = switches(text_of(thread / "status"))
            if counts is not None:
                yield int(thread.name), counts
