"""A trial from start to end on a running server: drive the load, watch, collect the measurement.

An error before the load begins while the server lives (a wrong password, an unknown workload) is
raised, as every trial would fail. A later error gives a measurement with its failure, since the
seconds before it were measured.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from dbdyno.errors import LoadError, LostError
from dbdyno.experiment.engine.child import FINAL
from dbdyno.experiment.engine.process import COMMAND, Engine, EngineProcess, Message
from dbdyno.experiment.engine.record import (
    describe,
    engine_facts,
    engine_facts_unknown,
    intervals_from_messages,
    intervals_of,
)
from dbdyno.experiment.engine.spec import DRAIN_S, prepared, run_spec
from dbdyno.experiment.watch.environment import allocator_of
from dbdyno.experiment.watch.host import Watch
from dbdyno.experiment.watch.stacks import StackSampler
from dbdyno.experiment.watch.states import StateSampler
from dbdyno.experiment.watch.status import StatusWatch, waiting_statements
from dbdyno.experiment.watch.window import WindowCounters
from dbdyno.measurement.measurement import Measurement, ServerFacts, Trial
from dbdyno.measurement.parts import Phase, StatusSeries, WatchSample
from dbdyno.plan.plan import Plan, TrialPlan
from dbdyno.servers.base import Server, pids_of
from dbdyno.servers.foreign.endpoint import EndpointServer

INTERRUPTED: Final = "interrupted by the user"
PATIENCE_S: Final = 120.0
"""Longest time for the engine's logins and end, beyond warm-up, window and drain."""
DEATH_S: Final = 1.0
"""Longest wait for a server's end after its connections broke."""
ROUNDED_S: Final = 0.001
LAST_READING_S: Final = 0.5
LAST_WORDS_MAX: Final = 2000

OnInterval = Callable[[Mapping[str, Any]], None]
OpenEngine = Callable[..., Engine]
"""Begins a load; takes what `EngineProcess` does."""


@dataclass
class _EngineReport:
    """Messages of the engine, and why the trial failed if it did."""

    intervals: list[dict[str, Any]] = field(default_factory=list)
    record: dict[str, Any] | None = None
    failure: str | None = None
    waiting: dict[str, int] | None = None
    is_lost: bool = False

    @property
    def is_silent(self) -> bool:
        """True if the server answered nothing in the window's last second."""
        measured = [one for one in self.intervals if one["phase"] == Phase.MEASURED]
        return bool(measured) and not measured[-1]["queries"] and not measured[-1]["errors"]


def run_trial(
    plan: Plan,
    trial: Trial,
    server: Server,
    on_interval: OnInterval,
    command: Sequence[str] = COMMAND,
    engine_of: OpenEngine = EngineProcess,
) -> Measurement:
    """Run a trial, with sampled stacks and states if the plan asks for stacks.

    `failure` of the result gives the reason of an unplanned end.

    Raises:
        LoadError: the load could not begin.
        ServerError: the server did not report its version and settings.
    """
    makers = (command, engine_of)
    if not plan.procedure.sample_stacks:
        return _observed(plan, trial, server, on_interval, *makers)
    with StackSampler(server.pid) as stacks, StateSampler(server) as states:

        def begin(at_s: float, window_s: float) -> None:
            stacks.begin(at_s, window_s)
            states.begin(window_s)

        observed = _observed(plan, trial, server, on_interval, *makers, begun=begin)
        return states.added_to(stacks.added_to(observed))


def _observed(
    plan: Plan,
    trial: Trial,
    server: Server,
    on_interval: OnInterval,
    command: Sequence[str],
    engine_of: OpenEngine,
    begun: Callable[[float, float], None] = lambda at_s, left_s: None,
) -> Measurement:
    """Run a trial; `begun` as of `WindowCounters`."""
    started_at = datetime.now().astimezone().isoformat("T", "milliseconds")
    version, settings = server.version(), server.settings()
    allocator = allocator_of(server.pid, settings)
    counters = WindowCounters(server, plan.trial.warmup_s, plan.trial.window_s, begun)
    with (
        StatusWatch(server) as each_second,
        engine_of(
            "run",
            run_spec(plan, trial, server),
            system=trial.system,
            cores=plan.procedure.pin,
            command=command,
        ) as engine,
        Watch(server.pid, engine.pid, pids_of(server)[1:]) as watch,
    ):
        report = _with_readings(on_interval, watch, each_second)
        seen = _drive(plan.trial, server, engine, counters, report)
    facts = ServerFacts(
        version=version,
        settings=settings,
        status=counters.status(),
        cpu_s=counters.cpu_s(),
        pid=server.pid or None,
        process=counters.process(),
        replication=counters.replication(),
        status_at_s=counters.read_at_s(),
        uptime_s=counters.uptime_s(),
        waiting=seen.waiting or {},
        allocator=allocator,
        balanced=server.balanced if isinstance(server, EndpointServer) else (),
        threads=counters.threads(),
    )
    if counters.origin_s is None:
        return _measurement(plan, trial, started_at, facts, seen)
    watched = (watch.samples(counters.origin_s), each_second.series(counters.origin_s))
    return _measurement(plan, trial, started_at, facts, seen, *watched)


def _with_readings(on_interval: OnInterval, watch: Watch, each_second: StatusWatch) -> OnInterval:
    """Add the last readings of host and server to intervals that come with their record.

    Only live metrics ask the engine for records.
    """

    def report(interval: Mapping[str, Any]) -> None:
        if "record" in interval:
            interval = {**interval, "host": watch.latest, "status": each_second.latest}
        on_interval(interval)

    return report


def _drive(
    times: TrialPlan,
    server: Server,
    engine: Engine,
    counters: WindowCounters,
    on_interval: OnInterval,
) -> _EngineReport:
    """Take the engine's messages until it has ended; an error becomes a failure."""
    seen = _EngineReport()
    try:
        _collect(times, server, engine, counters, seen, on_interval)
        seen.failure = _failure_of(seen.record)
        if seen.failure is None or _lives(server):
            counters.close()
            # A server that answers neither the load nor the lab stands still.
            seen.failure = seen.failure or (None if seen.is_silent else counters.error)
    except KeyboardInterrupt:
        seen.failure = INTERRUPTED
        _stop(engine, seen)
        _close_soon(counters)
        return seen
    except LoadError as error:
        seen.is_lost = isinstance(error, LostError)
        if not seen.is_lost and not seen.intervals and _lives(server):
            raise
        seen.failure = f"{error.message}: {error.found}"
    if not seen.is_lost and (not server.alive() or (seen.failure and not _lives(server))):
        seen.failure = _death(server, seen.failure)
    return seen


def _close_soon(counters: WindowCounters) -> None:
    """Makes the last reading, but does not let an interrupt wait for a slow server."""
    reading = threading.Thread(target=counters.close, daemon=True)
    reading.start()
    reading.join(LAST_READING_S)


def _collect(
    times: TrialPlan,
    server: Server,
    engine: Engine,
    counters: WindowCounters,
    seen: _EngineReport,
    on_interval: OnInterval,
) -> None:
    load_s = times.warmup_s + times.window_s
    longest_s = load_s + DRAIN_S + PATIENCE_S
    ends = time.monotonic() + longest_s
    while (left_s := ends - time.monotonic()) > 0:
        edge_s = counters.seconds_to_edge()
        message = engine.message(left_s if edge_s is None else min(edge_s, left_s))
        if message is None:
            counters.read_if_due()
        elif _take(message, seen):
            return
        else:
            counters.interval_ended(message.value["at_s"])
            counters.read_if_due()
            on_interval(message.value)
            message.value.pop("record", None)  # large, and wanted at once or never
            is_last = message.value["at_s"] >= load_s - ROUNDED_S
            is_told = seen.waiting is not None  # by the window's end, not after the drain
            if is_last and seen.is_silent and not is_told and not counters.error:
                seen.waiting = waiting_statements(server)
    _stop(engine, seen)
    raise LoadError(
        "the engine did not end in time",
        wanted=f"an end within {longest_s:.0f} s",
        found=f"{len(seen.intervals)} intervals and no record",
        hint="the server may hang: look at its error log",
    )


def _take(message: Message, seen: _EngineReport) -> bool:
    """Store a message; returns True for the final one."""
    if message.kind in FINAL:
        seen.record = message.value
        return True
    seen.intervals.append(message.value)
    return False


def _stop(engine: Engine, seen: _EngineReport) -> None:
    messages, final = engine.drain()
    for message in [*messages, *([final] if final else [])]:
        _take(message, seen)


def _failure_of(record: Mapping[str, Any] | None) -> str | None:
    if record is None or record.get("failure") is None:
        return None
    return f"the load broke off: {describe(record['failure'])}"


def _lives(server: Server) -> bool:
    """True if the server is still alive after `DEATH_S`."""
    ends = time.monotonic() + DEATH_S
    while server.alive():
        if time.monotonic() > ends:
            return True
        time.sleep(0.05)
    return False


def _death(server: Server, failure: str | None) -> str:
    words = server.last_words().strip()[-LAST_WORDS_MAX:]
    seen = f" ({failure})" if failure else ""
    return f"the server died{seen}; its last words: {words or 'none'}"


def _measurement(
    plan: Plan,
    trial: Trial,
    started_at: str,
    server: ServerFacts,
    seen: _EngineReport,
    samples: tuple[WatchSample, ...] = (),
    status_seconds: StatusSeries | None = None,
) -> Measurement:
    if seen.record is None:
        intervals = intervals_from_messages(seen.intervals)
        engine = engine_facts_unknown(plan.distribution.name, prepared(plan, trial.cell))
    else:
        intervals = intervals_of(seen.record)
        engine = engine_facts(seen.record)
    measured = [interval for interval in intervals if interval.phase is Phase.MEASURED]
    return Measurement(
        trial=trial,
        started_at=started_at,
        warmup_s=measured[0].start_s if measured else plan.trial.warmup_s,
        window_s=measured[-1].end_s - measured[0].start_s if measured else 0.0,
        engine=engine,
        server=server,
        intervals=intervals,
        watch=samples,
        status_seconds=status_seconds,
        failure=seen.failure,
        lost=seen.is_lost,
    )
