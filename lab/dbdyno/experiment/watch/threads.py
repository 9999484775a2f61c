"""Reads the CPU and the queueing of a server's threads, and sums them up by group.

    ib_io_rd-1                                        ib_io_rd
    mysqld, a thread named like its program           unnamed
    postgres: dbdyno sbtest 127.0.0.1(1234) SELECT    connection
    postgres: autovacuum worker sbtest                autovacuum

A group is the name of its threads without their numbers. MySQL names threads from 8.0.27 on, if its
`performance_schema` is on. Else those that began after it was ready for logins are in group
`connection`: all threads of its own begin before. PostgreSQL's threads are processes, and their
titles name the group. The session that reads the server's counters for the lab is in group
`connection` too; its CPU is negligible beside the load's.

A reading opens two small files a thread. With a thousand threads it takes 50 ms of CPU, as a
reading of their context switches does.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dbdyno.experiment.watch.proc import (
    TICKS_PER_S,
    process_stat,
    queued_ns,
    task_folders,
    text_of,
)
from dbdyno.measurement.parts import CONNECTION, UNNAMED, ThreadWork

POSTMASTER: Final = "postmaster"
POSTGRES: Final = ("postgres", "postmaster")
"""Program names of a PostgreSQL."""
TITLE: Final = "postgres: "
"""Begin of the titles of all its processes but the postmaster."""
SESSION: Final = re.compile(r" (\[local\]|\S+\(\d+\))( |$)")
"""The client's address in the title of a session."""
WORKERS: Final = (
    "archiver",
    "autovacuum",
    "logical replication",
    "parallel worker",
    "startup",
    "walreceiver",
    "walsender",
)
"""Begins of titles that go on with a process's present task, or with its client's address."""


@dataclass(frozen=True)
class ThreadReading:
    """Counters of a thread since its start; `queued_ns` is None if the kernel does not count it."""

    group: str
    user_ticks: int
    system_ticks: int
    queued_ns: int | None

    def since(self, before: ThreadReading | None) -> ThreadReading:
        """Growth since an earlier reading; all of it for a new thread.

        If counters shrank, another thread has got the number of a thread that ended.
        """
        if before is None:
            return self
        user_ticks = self.user_ticks - before.user_ticks
        system_ticks = self.system_ticks - before.system_ticks
        if user_ticks < 0 or system_ticks < 0:
            return self
        queued = self.queued_ns
        if queued is not None:
            queued = max(0, queued - (before.queued_ns or 0))
        return replace(self, user_ticks=user_ticks, system_ticks=system_ticks, queued_ns=queued)


def read_threads(pid: int, ready_s: float | None = None) -> dict[int, ThreadReading]:
    """All threads of a process and its descendants by number; empty if they are unreadable.

    Args:
        ready_s: unnamed threads that began later serve connections, in seconds since boot; None if
            nothing is known of them.
    """
    readings = {}
    born_ticks = math.inf if ready_s is None else math.floor(ready_s * TICKS_PER_S)
    for process, threads in task_folders(pid):
        title = text_of(process / "cmdline")
        if not title:
            continue  # it has ended, and its parent has not noticed yet
        program = text_of(process / "comm").removesuffix("\n")
        for thread in threads:
            stat = process_stat(text_of(thread / "stat"))
            if stat is not None:
                group = group_of(stat.name, program, title)
                is_session = group == UNNAMED and stat.born_ticks >= born_ticks
                readings[int(thread.name)] = ThreadReading(
                    group=CONNECTION if is_session else group,
                    user_ticks=stat.user_ticks,
                    system_ticks=stat.system_ticks,
                    queued_ns=queued_ns(text_of(thread / "schedstat")),
                )
    return readings


def group_of(name: str, program: str, title: str) -> str:
    """Group of a thread by its name, and by name and command line of its process."""
    if title.startswith(TITLE):
        return _group_of_process(title)
    if name == program:
        return POSTMASTER if program in POSTGRES else UNNAMED
    return _without_number(name)


def _group_of_process(title: str) -> str:
    """Group of a PostgreSQL process by its title, such as ``postgres: 18/main: walwriter``.

    A name of the cluster, here ``18/main``, is left out.
    """
    words = title.rpartition(": ")[2].strip("\0 ")
    for worker in WORKERS:
        if words.startswith(worker):
            return worker
    return CONNECTION if SESSION.search(words) else _without_number(words)


def _without_number(name: str) -> str:
    return name.rstrip("0123456789").rstrip(" -_:#/") or UNNAMED


def work_between(
    before: Mapping[int, ThreadReading], after: Mapping[int, ThreadReading]
) -> dict[str, ThreadWork]:
    """Work of each group of threads from a reading to a later one.

    A thread that began in between counts from zero. A thread that ended in between counts for
    nothing, as the later reading lacks it: its group loses its work since the earlier reading.
    """
    groups: defaultdict[str, list[ThreadReading]] = defaultdict(list)
    for number, thread in after.items():
        groups[thread.group].append(thread.since(before.get(number)))
    return {group: _sum(groups[group]) for group in sorted(groups)}


def _sum(threads: Sequence[ThreadReading]) -> ThreadWork:
    queued = [thread.queued_ns for thread in threads if thread.queued_ns is not None]
    return ThreadWork(
        user_s=sum(thread.user_ticks for thread in threads) / TICKS_PER_S,
        system_s=sum(thread.system_ticks for thread in threads) / TICKS_PER_S,
        queued_s=sum(queued) / 1e9 if queued else None,
    )
