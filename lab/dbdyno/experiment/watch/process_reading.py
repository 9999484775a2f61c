"""Reads what a server's process has used: CPU, memory, storage traffic, context switches.

A server may be one process of many threads (MySQL) or one that forks others (PostgreSQL), so a
reading is of the process and all it forked. What an ended child had used is in its parent's
counters, and what cannot be read is read as nothing: a watch must never end a trial.

Context switches stand in one file for each thread, and the kernel sums them up nowhere. With a
thousand connections reading them all takes tens of milliseconds; so they are read as often as
that costs at most `SHARE_MAX` of one core, and counted up thread by thread, since threads end.
The cost is the reader's CPU, not the time that went by: a reader that waits for its turn costs
nothing, and a busy machine is the one whose switches are wanted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.experiment.watch import proc
from dbdyno.experiment.watch.proc import Switches

PROC: Final = Path("/proc")
SHARE_MAX: Final = 0.01
"""Of one core, for reading threads again and again."""
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
NONE_YET: Final = Switches(0, 0)


@dataclass(frozen=True)
class ProcessReading:
    """CPU seconds since its start, resident memory (shared pages once), threads, storage traffic.

    `read_bytes` and `written_bytes` are None where the kernel does not tell them to us.
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
    """The process and all that it and its children forked; only itself where none is known."""
    members = [pid]
    for member in members:
        children = text_of(PROC / f"{member}/task/{member}/children").split()
        members += [int(child) for child in children if child.isdecimal()]
    return members


def read_process(pid: int) -> ProcessReading:
    """The counters of the process and all it forked; those of `GONE` if there is none."""
    ticks = threads = private = shared = 0
    sizes: list[tuple[int, int]] = []
    for member in family(pid):
        stat = proc.process_stat(text_of(PROC / f"{member}/stat"))
        if stat is None:
            continue
        ticks, threads = ticks + stat.ticks, threads + stat.threads
        pages = [int(w) for w in text_of(PROC / f"{member}/statm").split() if w.isdecimal()]
        if len(pages) > 2:
            private, shared = private + max(0, pages[1] - pages[2]), max(shared, pages[2])
        traffic = proc.named_numbers(text_of(PROC / f"{member}/io"))
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
    """Adds up the context switches of all threads of a process and of those it forked.

    A thread that began since the last reading counts from zero; what one did between the last
    reading and its end is lost.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._last: dict[int, Switches] | None = None
        self._last_s = self._next_s = 0.0
        self.total = NONE_YET

    def read(self) -> Switches | None:
        """All switches since the first reading; None if no thread can be read."""
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

    def rate_per_s(self) -> float | None:
        """Switches of both kinds a second since the last reading; None when it is not yet time."""
        if time.monotonic() < self._next_s:
            return None
        before, before_s, first = self.total, self._last_s, self._last is None
        after = self.read()
        if after is None or first:
            return None
        grown = _growth(before, after)
        return (grown.voluntary + grown.involuntary) / max(self._last_s - before_s, 1e-6)


def _growth(before: Switches, after: Switches) -> Switches:
    if after.voluntary < before.voluntary or after.involuntary < before.involuntary:
        return after  # another thread has got the number of one that ended
    return Switches(after.voluntary - before.voluntary, after.involuntary - before.involuntary)


def _threads(pid: int) -> Iterator[tuple[int, Switches]]:
    for member in family(pid):
        try:
            threads = list((PROC / f"{member}/task").iterdir())
        except OSError:
            continue
        for thread in threads:
            found = proc.switches(text_of(thread / "status"))
            if found is not None:
                yield int(thread.name), found
