"""Brings a running server to rest between two trials: changed pages written, old versions purged.

Dirty pages, dead rows and binary logs of a trial slow down the next, and not equally on every
system. So the server works them off before it, up to the plan's time limit. A refusal or a timeout
gives a step marked as not done; the run goes on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.measurement.parts import Step
from dbdyno.servers.base import PGSQL, Server
from dbdyno.servers.client import ANSWER_S_MAX
from dbdyno.servers.postgres.client import limited_to

PURGE: Final = "purge binary logs"
SETTLE: Final = "settle"
LOOK_S: Final = 0.25

Clock = Callable[[], float]


def settle(server: Server, cap_s: float, clock: Clock = time.monotonic) -> Step:
    """Wait until the server has flushed and purged the leftovers of load, `cap_s` at most."""
    settle_product = _settle_postgres if server.driver == PGSQL else _settle_mysql
    began = clock()
    try:
        done, detail = settle_product(server, began + cap_s, clock)
    except ServerError as error:
        done, detail = False, error.found or error.message
        if CANCELLED in detail:
            detail = "not at rest at the cap: vacuum or checkpoint still at work"
    return Step(name=SETTLE, seconds=clock() - began, done=done, detail=detail)


def purge_binary_logs(server: Server) -> Step:
    """Remove every binary log but a new one; replicas keep files they have not read yet."""
    if server.driver == PGSQL:
        return Step(name=PURGE, seconds=0.0, detail="PostgreSQL has none")
    began = time.monotonic()
    try:
        done, detail = True, _purge_to_last(server)
    except ServerError as error:
        done, detail = False, error.found or error.message
    return Step(name=PURGE, seconds=time.monotonic() - began, done=done, detail=detail)


def _purge_to_last(server: Server) -> str:
    if _value(server, "SELECT @@log_bin") not in ("1", "ON"):
        return "the binary log is off"
    before = server.ask("SHOW BINARY LOGS")
    server.ask("FLUSH BINARY LOGS")
    newest = server.ask("SHOW BINARY LOGS")[-1][0]
    server.ask(f"PURGE BINARY LOGS TO {_quoted(newest)}")
    megabytes = sum(int(row[1]) for row in before) / 1e6
    return f"binary logs: {len(before)}, {megabytes:.1f} MB in all"


# InnoDB, in statements that every version since 5.6 and every MariaDB knows.

DIRTY_PAGES: Final = "Innodb_buffer_pool_pages_dirty"
DIRTY_PAGES_MAX: Final = 64
"""A server at rest still touches a page of its own now and then."""
HISTORY_MAX: Final = 100
UNCHANGED_LOOKS: Final = 8
"""Versions shorten the history in steps, some never to zero: many looks without a change are rest
as well."""
FLUSH_ALL: Final = ("innodb_max_dirty_pages_pct_lwm", "innodb_max_dirty_pages_pct")
"""Set to 0 the page cleaner writes out all it can; in this order, as the first is never above."""


def _settle_mysql(server: Server, ends: float, clock: Clock) -> tuple[bool, str]:
    with _flushing_all(server):
        first = dirty, history = _left(server)
        unchanged = 0
        while not (
            dirty <= DIRTY_PAGES_MAX and (history <= HISTORY_MAX or unchanged >= UNCHANGED_LOOKS)
        ):
            if clock() >= ends:
                return False, f"not at rest at the cap: {_progress(first, (dirty, history))}"
            time.sleep(LOOK_S)
            before = history
            dirty, history = _left(server)
            unchanged = unchanged + 1 if history >= before else 0
        return True, _progress(first, (dirty, history))


def _progress(first: tuple[int, int], last: tuple[int, int]) -> str:
    return f"dirty pages {first[0]} to {last[0]}, history {first[1]} to {last[1]}"


def _left(server: Server) -> tuple[int, int]:
    """Number of dirty pages, and length of the history list still to purge."""
    dirty = server.ask(f"SHOW GLOBAL STATUS LIKE '{DIRTY_PAGES}'")
    monitor = server.ask("SHOW ENGINE INNODB STATUS")[0][-1]
    history = re.search(r"History list length (\d+)", monitor)
    if not dirty or history is None:
        raise ServerError(f"{server.label}: InnoDB does not say what is left to write")
    return int(dirty[0][1]), int(history[1])


@contextmanager
def _flushing_all(server: Server) -> Iterator[None]:
    """The server writes out all changed pages meanwhile; afterwards it is as it was."""
    before = {name: _value(server, f"SELECT @@GLOBAL.{name}") for name in FLUSH_ALL}
    back = [f"SET GLOBAL {name} = {float(before[name]):g}" for name in reversed(FLUSH_ALL)]
    with _then(server, back):
        for name in FLUSH_ALL:
            server.ask(f"SET GLOBAL {name} = 0")
        yield


@contextmanager
def _then(server: Server, statements: Sequence[str]) -> Iterator[None]:
    """Let the server execute these statements after the block, whatever its outcome.

    They are skipped after Ctrl-C, which ends the server at once.
    """
    try:
        yield
    except Exception:
        for statement in statements:
            server.ask(statement)
        raise
    for statement in statements:
        server.ask(statement)


def _value(server: Server, sql: str) -> str:
    """The single value returned by a query."""
    return server.ask(sql)[0][0]


def _quoted(name: str) -> str:
    """A name as SQL text."""
    return "'" + name.replace("\\", "\\\\").replace("'", "''") + "'"


# PostgreSQL: tables with dead or uncounted rows are vacuumed and analysed, largest debt first,
# after workers of autovacuum that are at it already; then a checkpoint writes everything out.

PASSES_MAX: Final = 3
"""Most passes: vacuum cannot remove rows visible to an open transaction."""
SETTLE_S_MIN: Final = 0.1
WORKERS: Final = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE backend_type = 'autovacuum worker' AND datname = current_database()"
)
DEBTS: Final = (
    "SELECT format('%I.%I', schemaname, relname), n_dead_tup, n_mod_since_analyze"
    " FROM pg_stat_user_tables WHERE n_dead_tup > 0 OR n_mod_since_analyze > 0"
    " ORDER BY n_dead_tup + n_mod_since_analyze DESC, 1"
)
CANCELLED: Final = "statement timeout"


def _settle_postgres(server: Server, ends: float, clock: Clock) -> tuple[bool, str]:
    if not _wait_for_autovacuum(server, ends, clock):
        return False, "not at rest at the cap: autovacuum still works"
    tables, rows = _vacuum_all(server, ends, clock)
    _within(server, ends, clock, "CHECKPOINT")
    return True, f"{tables} tables vacuumed with {rows} dead rows, checkpoint done"


def _wait_for_autovacuum(server: Server, ends: float, clock: Clock) -> bool:
    while int(_value(server, WORKERS)) > 0:
        if clock() >= ends:
            return False
        time.sleep(LOOK_S)
    return True


def _vacuum_all(server: Server, ends: float, clock: Clock) -> tuple[int, int]:
    """Number of vacuumed tables, and of their dead rows at first."""
    done: dict[str, int] = {}
    for _ in range(PASSES_MAX):
        debts = server.ask(DEBTS)
        if not debts:
            break
        for table, dead, _ in debts:
            done.setdefault(table, int(dead))
            _within(server, ends, clock, f"VACUUM (ANALYZE) {table}")
    return len(done), sum(done.values())


def _within(server: Server, ends: float, clock: Clock, statement: str) -> None:
    """Execute a statement with the server's own timeout, which ends it at the cap."""
    left_s = max(SETTLE_S_MIN, ends - clock())
    server.ask(limited_to(left_s))
    with _then(server, [limited_to(ANSWER_S_MAX)]):
        server.ask(statement)
