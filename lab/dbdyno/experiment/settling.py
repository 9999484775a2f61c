"""Brings a running server to rest between two trials: old binary logs away, changed pages written.

What one trial leaves behind (dirty pages, row versions to purge) is paid for by the next one, and
not equally on every system. So the server is told to write everything out, and is watched until it
has, or until the plan's patience ends. InnoDB is asked in words that every version since 5.6 and
every MariaDB knows; PostgreSQL is `settling_postgres`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.measurement.measurement_parts import Step
from dbdyno.servers.base import Server

PURGE: Final = "purge binary logs"
SETTLE: Final = "settle"
LOOK_S: Final = 0.25
DIRTY_PAGES: Final = "Innodb_buffer_pool_pages_dirty"
DIRTY_PAGES_MAX: Final = 64
"""A server at rest still touches a page of its own now and then."""
HISTORY_MAX: Final = 100
QUIET_LOOKS: Final = 8
"""Versions shorten the history in steps, some never to nothing: that many looks without a change
are rest as well."""
FLUSH_ALL: Final = ("innodb_max_dirty_pages_pct_lwm", "innodb_max_dirty_pages_pct")
"""Set to 0 the page cleaner writes out all it can; in this order, as the first is never above."""

Clock = Callable[[], float]


def purge_binary_logs(server: Server) -> Step:
    """Removes every binary log but a new one; replicas keep what they have not read yet."""
    began = time.monotonic()
    try:
        done, detail = True, _purge(server)
    except ServerError as error:
        done, detail = False, error.found or error.message
    return Step(name=PURGE, seconds=time.monotonic() - began, done=done, detail=detail)


def _purge(server: Server) -> str:
    if server.ask("SELECT @@log_bin")[0][0] not in ("1", "ON"):
        return "the binary log is off"
    before = server.ask("SHOW BINARY LOGS")
    server.ask("FLUSH BINARY LOGS")
    newest = server.ask("SHOW BINARY LOGS")[-1][0]
    server.ask(f"PURGE BINARY LOGS TO {_text(newest)}")
    return f"{len(before)} of {sum(int(row[1]) for row in before) / 1e6:.1f} MB"


def settle(server: Server, cap_s: float, clock: Clock = time.monotonic) -> Step:
    """Waits until the server has written out and purged what load left, `cap_s` at most."""
    began = clock()
    try:
        with _flushing_all(server):
            done, detail = _watch(server, began + cap_s, clock)
    except ServerError as error:
        done, detail = False, error.found or error.message
    return Step(name=SETTLE, seconds=clock() - began, done=done, detail=detail)


def _watch(server: Server, ends: float, clock: Clock) -> tuple[bool, str]:
    first = dirty, history = _left(server)
    quiet = 0
    while not (dirty <= DIRTY_PAGES_MAX and (history <= HISTORY_MAX or quiet >= QUIET_LOOKS)):
        if clock() >= ends:
            return False, f"not at rest at the cap: {_told(first, (dirty, history))}"
        time.sleep(LOOK_S)
        before = history
        dirty, history = _left(server)
        quiet = quiet + 1 if history >= before else 0
    return True, _told(first, (dirty, history))


def _told(first: tuple[int, int], last: tuple[int, int]) -> str:
    return f"dirty pages {first[0]} to {last[0]}, history {first[1]} to {last[1]}"


def _left(server: Server) -> tuple[int, int]:
    """Dirty pages and the length of the history that is to be purged."""
    dirty = server.ask(f"SHOW GLOBAL STATUS LIKE '{DIRTY_PAGES}'")
    monitor = server.ask("SHOW ENGINE INNODB STATUS")[0][-1]
    history = re.search(r"History list length (\d+)", monitor)
    if not dirty or history is None:
        raise ServerError(f"{server.label}: InnoDB does not say what is left to write")
    return int(dirty[0][1]), int(history[1])


@contextmanager
def _flushing_all(server: Server) -> Iterator[None]:
    """The server writes out all changed pages meanwhile; afterwards it is as it was."""
    before = {name: server.ask(f"SELECT @@GLOBAL.{name}")[0][0] for name in FLUSH_ALL}
    for name in FLUSH_ALL:
        server.ask(f"SET GLOBAL {name} = 0")
    try:
        yield
    finally:
        for name in reversed(FLUSH_ALL):
            server.ask(f"SET GLOBAL {name} = {float(before[name]):g}")


def _text(name: str) -> str:
    """A name as SQL text."""
    return "'" + name.replace("\\", "\\\\").replace("'", "''") + "'"
