"""Reads the text of the kernel's files below /proc: what stands there, as numbers. No files here.

Every function takes a file's whole text. What it does not understand it leaves out: another
kernel's new line or missing column must never end a trial. Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

SECTOR_BYTES: Final = 512
"""The unit of /proc/diskstats, whatever the device's own sectors are."""
KIB: Final = 1024


@dataclass(frozen=True)
class DiskCounters:
    """What a block device did since the machine began; `flushes` is None before Linux 5.5."""

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
    """What a network device did since it began; `dropped` has errors of both directions too."""

    received_bytes: int
    received_packets: int
    sent_bytes: int
    sent_packets: int
    dropped: int


@dataclass(frozen=True)
class ProcessStat:
    """A process's CPU in clock ticks, that of its ended children included, and its threads."""

    ticks: int
    threads: int


@dataclass(frozen=True)
class Switches:
    """Context switches of a thread or of several."""

    voluntary: int
    involuntary: int


def pressure(text: str) -> dict[str, float]:
    """Of a file of /proc/pressure: seconds so far in which some, or all, tasks stood still."""
    found = {}
    for kind, *words in _lines(text):
        for word in words:
            name, _, value = word.partition("=")
            if name == "total" and value.isdecimal():
                found[kind] = int(value) / 1e6
    return found


def disks(text: str) -> dict[str, DiskCounters]:
    """Of /proc/diskstats: each device by its name."""
    found = {}
    for words in _lines(text):
        numbers = _whole_numbers(words[3:])
        if len(words) < 3 or len(numbers) < 10:
            continue
        found[words[2]] = DiskCounters(
            reads=numbers[0],
            read_bytes=numbers[2] * SECTOR_BYTES,
            read_s=numbers[3] / 1e3,
            writes=numbers[4],
            written_bytes=numbers[6] * SECTOR_BYTES,
            write_s=numbers[7] / 1e3,
            busy_s=numbers[9] / 1e3,
            flushes=numbers[15] if len(numbers) > 15 else None,
        )
    return found


def networks(text: str) -> dict[str, NetworkCounters]:
    """Of /proc/net/dev: each device by its name."""
    found = {}
    for line in text.splitlines():
        name, colon, rest = line.rpartition(":")
        numbers = _whole_numbers(rest.split())
        if not colon or not name.strip() or len(numbers) < 12:
            continue
        found[name.strip()] = NetworkCounters(
            received_bytes=numbers[0],
            received_packets=numbers[1],
            sent_bytes=numbers[8],
            sent_packets=numbers[9],
            dropped=numbers[2] + numbers[3] + numbers[10] + numbers[11],
        )
    return found


def memory_bytes(text: str) -> dict[str, int]:
    """Of /proc/meminfo: each size by its name; rows that are counts and no sizes are left out."""
    return {
        words[0].removesuffix(":"): int(words[1]) * KIB
        for words in _lines(text)
        if len(words) == 3 and words[1].isdecimal() and words[2] == "kB"
    }


def named_numbers(text: str) -> dict[str, int]:
    """Of files like /proc/PID/status and /proc/PID/io: each row with one whole number."""
    return {
        words[0].removesuffix(":"): int(words[1])
        for words in _lines(text)
        if len(words) == 2 and words[1].isdecimal()
    }


def cgroups(text: str) -> dict[str, str]:
    """Of /proc/PID/cgroup: the path in each hierarchy by controller; the unified one is ``""``."""
    found = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if not number.isdecimal() or not colon or not path.startswith("/"):
            continue
        for controller in controllers.split(","):
            found[controller] = path
    return found


def megahertz(text: str) -> list[float]:
    """Of /proc/cpuinfo: the clock of each core, in MHz."""
    found = []
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "cpu MHz" and value.strip().replace(".", "", 1).isdecimal():
            found.append(float(value))
    return found


def process_stat(text: str) -> ProcessStat | None:
    """Of /proc/PID/stat; None for a text that is none. The program's name may hold anything."""
    numbers = text.rpartition(")")[2].split()
    if len(numbers) < 18 or not all(numbers[i].isdecimal() for i in (11, 12, 13, 14, 17)):
        return None
    return ProcessStat(ticks=sum(map(int, numbers[11:15])), threads=int(numbers[17]))


def switches(text: str) -> Switches | None:
    """Of a thread's status file; None if it does not tell them."""
    numbers = named_numbers(text)
    voluntary = numbers.get("voluntary_ctxt_switches")
    involuntary = numbers.get("nonvoluntary_ctxt_switches")
    if voluntary is None or involuntary is None:
        return None
    return Switches(voluntary, involuntary)


def _lines(text: str) -> Iterator[list[str]]:
    """Each line that is not blank, as words."""
    return (words for line in text.splitlines() if (words := line.split()))


def _whole_numbers(words: list[str]) -> list[int]:
    """The words as numbers, up to the first that is none."""
    numbers = []
    for word in words:
        if not (word.isascii() and word.isdecimal()):
            break
        numbers.append(int(word))
    return numbers
