"""Brings a running PostgreSQL to rest between two trials: rows vacuumed, changed pages written.

What one trial leaves behind (dead rows, stale statistics, dirty buffers) is paid for by the next
one, at a moment that autovacuum and the checkpointer choose. So both jobs are done now: tables with
dead or uncounted rows are vacuumed and analysed, largest debt first, workers of autovacuum that are
at it already are waited for, then a checkpoint writes everything out. It is rest when none is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.measurement.measurement_parts import Step
from dbdyno.servers.base import Server

LOOK_S: Final = 0.25
PASSES_MAX: Final = 3
"""Rows that a session somewhere still sees stay dead whatever is done; so does what it sees."""
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

Clock = Callable[[], float]


def settle(server: Server, cap_s: float, clock: Clock = time.monotonic) -> Step:
    """Vacuums, analyses and checkpoints what load left, `cap_s` seconds at most.

    Never raises: a server that refuses, or needs longer, is one that is not at rest.
    """
    began = clock()
    try:
        done, detail = _settled(server, began + cap_s, clock)
    except ServerError as error:
        done, detail = False, error.found or error.message
        if CANCELLED in detail:
            detail = "not at rest at the cap: vacuum or checkpoint still at work"
    return Step(name="settle", seconds=clock() - began, done=done, detail=detail)


def _settled(server: Server, ends: float, clock: Clock) -> tuple[bool, str]:
    if not _workers_gone(server, ends, clock):
        return False, "not at rest at the cap: autovacuum still works"
    tables, rows = _vacuum_all(server, ends, clock)
    _within(server, ends, clock, "CHECKPOINT")
    return True, f"{tables} tables vacuumed with {rows} dead rows, checkpoint done"


def _workers_gone(server: Server, ends: float, clock: Clock) -> bool:
    while int(server.ask(WORKERS)[0][0]) > 0:
        if clock() >= ends:
            return False
        time.sleep(LOOK_S)
    return True


def _vacuum_all(server: Server, ends: float, clock: Clock) -> tuple[int, int]:
    """How many tables were vacuumed, and how many dead rows they had at first."""
    done: dict[str, int] = {}
    for _ in range(PASSES_MAX):
        debts = server.ask(DEBTS)
        if not debts:
            break
        for table, dead, _ in debts:
            done.setdefault(table, int(dead))
            _within(server, ends, clock, f"VACUUM (ANALYZE) {table}")
    return len(done), sum(done.values())


def _within(server: Server, ends: float, clock: Clock, order: str) -> None:
    """Gives an order that the server itself breaks off when the patience ends."""
    left_s = max(SETTLE_S_MIN, ends - clock())
    server.ask(f"SET statement_timeout = {round(left_s * 1000)}")
    try:
        server.ask(order)
    finally:
        server.ask("RESET statement_timeout")
