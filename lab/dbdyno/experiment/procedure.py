"""The steps that make every arm begin alike, each kept with its seconds and what it came to.

A step that cannot be taken is kept too, as not done: the trial still runs, and the audit says what
that means for its numbers.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dbdyno.errors import LoadError, ServerError
from dbdyno.experiment.context import RunContext
from dbdyno.experiment.engine import record
from dbdyno.experiment.engine.process import COMMAND, FINAL, EngineProcess, keep_on
from dbdyno.experiment.engine.spec import DRAIN_S, run_spec
from dbdyno.measurement.measurement import Trial
from dbdyno.measurement.parts import Step, WarmUp
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import OptionValue
from dbdyno.servers import process
from dbdyno.servers.base import Instance, Replicated, Server
from dbdyno.servers.postgres.server import PostgresServer
from dbdyno.servers.reference import ImageReference, is_endpoint, parse
from dbdyno.stats.steady import Steady, steady

DROP_CACHES: Final = Path("/proc/sys/vm/drop_caches")
PAGES_AND_NAMES: Final = "3\n"
COMPARED: Final = "every file compared with the snapshot's checksum"
CATCH_UP_S: Final = 60.0
"""How long replicas may take to apply what came before."""


@dataclass
class Steps:
    """What was done since the trial before."""

    taken: list[Step] = field(default_factory=list)

    @contextmanager
    def timed(self, name: str, detail: str = "") -> Iterator[None]:
        """Keeps a step when its block has ended without an error."""
        began = time.monotonic()
        yield
        self.taken.append(Step(name=name, seconds=time.monotonic() - began, detail=detail))

    @property
    def restored(self) -> bool:
        """Whether the dataset was restored: then nothing is left of any load."""
        return any(step.name == "restore" for step in self.taken)


def lay_out(context: RunContext, instance: Instance, steps: Steps) -> None:
    """Restores the dataset and drops caches, as the plan says, before a start.

    Raises:
        ServerError: the copy failed or differs from the snapshot; no other start would go better.
    """
    label, began = instance.spec.label, time.monotonic()
    is_ours = not is_endpoint(instance.spec.reference)
    if context.is_restored_at_start(label):
        context.progress.stage(f"{label}: restoring the dataset")
        with steps.timed(*_restoring(instance.spec.reference)):
            instance.restore()
        context.as_loaded.add(label)
    if context.plan.procedure.drop_caches:
        context.progress.stage(f"{label}: dropping the system's caches")
        steps.taken.append(drop_caches() if is_ours else _of_the_owner("drop caches"))
    context.forecast.started(time.monotonic() - began)


def _restoring(reference: str) -> tuple[str, str]:
    """What restoring comes to for a kind of system, and how its result is known to be right."""
    if is_endpoint(reference):
        return "look at the tables", ""
    if isinstance(parse(reference), ImageReference):
        return "restore", "by a copy of the container's volume"
    return "restore", COMPARED


def start(
    context: RunContext, instance: Instance, keys: Mapping[str, OptionValue], steps: Steps
) -> Server:
    """Starts the server, and keeps it off the generator's cores.

    Args:
        keys: settings of this start alone.

    Raises:
        UsageError: a key cannot be had.
        ServerError: the server did not start, or a setting is not in force.
    """
    began = time.monotonic()
    context.progress.stage(f"{instance.spec.label}: starting the server")
    with steps.timed("start", ", ".join(f"{name}={value}" for name, value in keys.items())):
        server = instance.start(keys)
    if pin := context.plan.procedure.pin:
        for pid in server.pids if isinstance(server, Replicated) else (server.pid,):
            if pid:
                keep_on(pid, sorted(os.sched_getaffinity(0) - set(pin)))
    context.forecast.added(time.monotonic() - began)
    return server


def before_trial(context: RunContext, server: Server, steps: Steps) -> None:
    """Brings a running server to rest, as the plan says; steps that fail are kept as not done.

    Nothing is changed in a server that the lab did not start.
    """
    asked = context.plan.procedure
    if asked.purge_binlogs:
        context.progress.stage(f"{server.label}: purging the binary logs")
        steps.taken.append(_purge(server))
    if asked.settle_cap_s > 0 and not steps.restored:
        context.progress.stage(f"{server.label}: waiting until the server is at rest")
        steps.taken.append(_settle(server, asked.settle_cap_s))


def _purge(server: Server) -> Step:
    if server.pid == 0:
        return _of_the_owner(PURGE)
    if isinstance(server, PostgresServer):
        return Step(name=PURGE, seconds=0.0, detail="PostgreSQL has none")
    return purge_binary_logs(server)


def _settle(server: Server, cap_s: float) -> Step:
    if server.pid == 0:
        return _of_the_owner(SETTLE)
    rest = settle_postgres if isinstance(server, PostgresServer) else settle_mysql
    return rest(server, cap_s)


def _of_the_owner(name: str) -> Step:
    detail = "an endpoint is its owner's: dbdyno changes nothing there but its own tables"
    return Step(name=name, seconds=0.0, done=False, detail=detail)


def catch_up(server: Server, steps: Steps) -> None:
    """Lets replicas apply what came before the trial, so that none begins with a debt of theirs."""
    if not isinstance(server, Replicated):
        return
    name = "replicas catch up"
    try:
        took_s = server.catch_up(CATCH_UP_S)
    except ServerError as error:
        detail = error.found or error.message
        steps.taken.append(Step(name=name, seconds=0.0, done=False, detail=detail))
    else:
        steps.taken.append(Step(name=name, seconds=took_s, done=took_s < CATCH_UP_S))


def drop_caches(cache: Path | None = None) -> Step:
    """Writes out what is unwritten and makes the kernel forget every file's pages."""
    began, cache = time.monotonic(), cache or DROP_CACHES
    try:
        os.sync()
        cache.write_text(PAGES_AND_NAMES)
    except OSError as error:
        detail = f"{cache}: {error.strerror}; it takes root, and a container may refuse it"
        return Step(name="drop caches", seconds=time.monotonic() - began, done=False, detail=detail)
    return Step(name="drop caches", seconds=time.monotonic() - began)


# Brings a running server to rest between two trials: old binary logs away, changed pages written.
#
# What one trial leaves behind (dirty pages, row versions to purge) is paid for by the next one,
# and not equally on every system. So the server is told to write everything out, and is watched
# until it has, or until the plan's patience ends. InnoDB is asked in words that every version
# since 5.6 and every MariaDB knows; PostgreSQL is `settling_postgres`.


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
        done, detail = True, _purge_to_last(server)
    except ServerError as error:
        done, detail = False, error.found or error.message
    return Step(name=PURGE, seconds=time.monotonic() - began, done=done, detail=detail)


def _purge_to_last(server: Server) -> str:
    if server.ask("SELECT @@log_bin")[0][0] not in ("1", "ON"):
        return "the binary log is off"
    before = server.ask("SHOW BINARY LOGS")
    server.ask("FLUSH BINARY LOGS")
    newest = server.ask("SHOW BINARY LOGS")[-1][0]
    server.ask(f"PURGE BINARY LOGS TO {_text(newest)}")
    return f"{len(before)} of {sum(int(row[1]) for row in before) / 1e6:.1f} MB"


def settle_mysql(server: Server, cap_s: float, clock: Clock = time.monotonic) -> Step:
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


# Brings a running PostgreSQL to rest between two trials: rows vacuumed, changed pages written.
#
# What one trial leaves behind (dead rows, stale statistics, dirty buffers) is paid for by the
# next one, at a moment that autovacuum and the checkpointer choose. So both jobs are done now:
# tables with dead or uncounted rows are vacuumed and analysed, largest debt first, workers of
# autovacuum that are at it already are waited for, then a checkpoint writes everything out. It is
# rest when none is left.


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


def settle_postgres(server: Server, cap_s: float, clock: Clock = time.monotonic) -> Step:
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


# Load of the cell itself until its rate is steady, before the trial that is measured.
#
# It is a run of its own, whose requests are drawn from another seed than the trial's: rows that
# the trial will ask for are not warmer than others. When it is looked whether the rate is steady
# is fixed in advance (docs/how-it-works/procedure.md); whoever looks every second stops at the
# first lucky one.


FIRST_LOOK_S: Final = 120
EVERY_S: Final = 60
PATIENCE_S: Final = 120.0
"""How long the engine may take for logins and its end."""
ANOTHER_SEED: Final = 1 << 62
PHASE: Final = "until steady"

OnInterval = Callable[[Mapping[str, Any]], None]


def run_until_steady(
    plan: Plan,
    trial: Trial,
    server: Server,
    on_interval: OnInterval,
    command: Sequence[str] = COMMAND,
) -> WarmUp:
    """Drives the trial's load until it is steady, for the plan's `warmup_cap_s` at most.

    Raises:
        LoadError: the load could not begin (`CellError`: it never can).
    """
    cap_s = plan.trial.warmup_cap_s
    spec = {
        **run_spec(plan, trial, server),
        "warmup_s": 0.0,
        "window_s": cap_s,
        "seed": trial.seed ^ ANOTHER_SEED,
        "standstill": None,
    }
    rates: list[float] = []
    there = (*process.inside(server.endpoint.namespace), *command)
    with EngineProcess(
        "run", spec, system=trial.system, cores=plan.procedure.pin, command=there
    ) as engine:
        broken = _listen(engine, cap_s, rates, on_interval)
    judged = Steady(None, broken) if broken else steady(rates)
    return WarmUp(
        seconds=float(len(rates)), cut_s=judged.cut_s, why=judged.why, rates_per_s=tuple(rates)
    )


def is_look(seconds: int) -> bool:
    """Whether it is looked after so many seconds of load."""
    return seconds >= FIRST_LOOK_S and (seconds - FIRST_LOOK_S) % EVERY_S == 0


def _listen(
    engine: EngineProcess, cap_s: float, rates: list[float], on_interval: OnInterval
) -> str:
    """Collects the rates of whole seconds; why the load broke off, or an empty text."""
    ends = time.monotonic() + cap_s + DRAIN_S + PATIENCE_S
    while (left_s := ends - time.monotonic()) > 0:
        try:
            message = engine.message(left_s)
        except LoadError as error:
            if not rates:
                raise
            return f"the load broke off: {error.found or error.message}"
        if message is None:
            break
        if message.kind in FINAL:
            failure = message.value.get("failure")
            return f"the load broke off: {record.describe(failure)}" if failure else ""
        _take(message.value, rates, on_interval)
        if is_look(len(rates)) and steady(rates).cut_s is not None:
            engine.stopped(DRAIN_S)
            return ""
    engine.stopped()
    return "the engine did not end in time"


def _take(told: Mapping[str, Any], rates: list[float], on_interval: OnInterval) -> None:
    if told["phase"] != "measured":
        return
    if 0.5 < told["seconds"] < 1.5:
        rates.append(told["events"] / told["seconds"])
    on_interval({**told, "phase": PHASE})
