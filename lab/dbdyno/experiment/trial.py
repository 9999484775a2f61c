"""One trial from start to end on a running server: load it, watch it, keep what was seen.

What goes wrong before the load has begun while the server lives (a wrong password, a workload that
does not exist) is raised: it would be wrong for every trial. What goes wrong later is a measurement
with its failure, because the seconds until then were seen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from dbdyno.errors import LoadError
from dbdyno.experiment.engine.child import FINAL
from dbdyno.experiment.engine.process import COMMAND, EngineProcess, Message
from dbdyno.experiment.engine.record import (
    describe,
    engine_facts,
    engine_facts_unknown,
    intervals_of,
    intervals_told,
)
from dbdyno.experiment.engine.spec import DRAIN_S, prepared, run_spec
from dbdyno.experiment.watch.host import Watch
from dbdyno.experiment.watch.status import StatusWatch
from dbdyno.experiment.watch.window import Bracket
from dbdyno.measurement.measurement import Measurement, ServerFacts, Trial
from dbdyno.measurement.parts import Phase, StatusSeries, WatchSample
from dbdyno.plan.plan import Plan
from dbdyno.servers import process
from dbdyno.servers.base import Server

INTERRUPTED: Final = "interrupted by the user"
PATIENCE_S: Final = 120.0
"""How long the engine may take for logins and its end, beyond warm-up, window and drain."""
DEATH_S: Final = 1.0
"""A server whose connections broke may need that long to be dead for everyone."""
LAST_READING_S: Final = 0.5
LAST_WORDS_MAX: Final = 2000

OnInterval = Callable[[Mapping[str, Any]], None]


@dataclass
class _EngineReport:
    """What came from the engine."""

    told: list[dict[str, Any]] = field(default_factory=list)
    record: dict[str, Any] | None = None
    failure: str | None = None


def run_trial(
    plan: Plan,
    trial: Trial,
    server: Server,
    on_interval: OnInterval,
    command: Sequence[str] = COMMAND,
) -> Measurement:
    """Runs one trial; `failure` of the result says if and why it did not end as planned.

    Raises:
        LoadError: the load could not begin.
        ServerError: the server could not be asked for its version and settings.
    """
    started_at = datetime.now().astimezone().isoformat("T", "milliseconds")
    version, settings = server.version(), server.settings()
    bracket = Bracket(server, plan.trial.warmup_s, plan.trial.window_s)
    with (
        StatusWatch(server) as counters,
        EngineProcess(
            "run",
            run_spec(plan, trial, server),
            system=trial.system,
            cores=plan.procedure.pin,
            command=(*process.inside(server.endpoint.namespace), *command),
        ) as engine,
        Watch(server.pid, engine.pid) as watch,
    ):
        seen = _drive(plan, server, engine, bracket, on_interval)
    facts = ServerFacts(
        version=version,
        settings=settings,
        status=bracket.status(),
        cpu_s=bracket.cpu_s(),
        pid=server.pid or None,
        process=bracket.process(),
        replication=bracket.replication(),
    )
    if bracket.origin_s is None:
        return _measurement(plan, trial, started_at, facts, seen)
    watched = (watch.samples(bracket.origin_s), counters.series(bracket.origin_s))
    return _measurement(plan, trial, started_at, facts, seen, *watched)


def _drive(
    plan: Plan, server: Server, engine: EngineProcess, bracket: Bracket, on_interval: OnInterval
) -> _EngineReport:
    """Listens to the engine until it is done, and sees to it that it is."""
    seen = _EngineReport()
    try:
        _listen(plan, engine, bracket, seen, on_interval)
        seen.failure = _failure_of(seen.record)
        if seen.failure is None or _lives(server):
            bracket.close()
            seen.failure = seen.failure or bracket.trouble
    except KeyboardInterrupt:
        seen.failure = INTERRUPTED
        _stop(engine, seen)
        _close_soon(bracket)
        return seen
    except LoadError as error:
        if not seen.told and _lives(server):
            raise
        seen.failure = f"{error.message}: {error.found}"
    if not server.alive() or (seen.failure and not _lives(server)):
        seen.failure = _death(server, seen.failure)
    return seen


def _close_soon(bracket: Bracket) -> None:
    """The last reading, unless the server is slow to answer: whoever interrupts does not wait."""
    reading = threading.Thread(target=bracket.close, daemon=True)
    reading.start()
    reading.join(LAST_READING_S)


def _listen(
    plan: Plan,
    engine: EngineProcess,
    bracket: Bracket,
    seen: _EngineReport,
    on_interval: OnInterval,
) -> None:
    planned_s = plan.trial.warmup_s + plan.trial.window_s + DRAIN_S
    ends = time.monotonic() + planned_s + PATIENCE_S
    while (left_s := ends - time.monotonic()) > 0:
        edge_s = bracket.seconds_to_edge()
        message = engine.message(left_s if edge_s is None else min(edge_s, left_s))
        if message is None:
            bracket.look()
        elif _take(message, seen):
            return
        else:
            bracket.hear(message.value["at_s"])
            bracket.look()
            on_interval(message.value)
    _stop(engine, seen)
    raise LoadError(
        "the engine did not end in time",
        wanted=f"an end within {planned_s + PATIENCE_S:.0f} s",
        found=f"{len(seen.told)} intervals and no record",
        hint="the server may hang: look at its error log",
    )


def _take(message: Message, seen: _EngineReport) -> bool:
    """Keeps what a message says; whether it was the last one."""
    if message.kind in FINAL:
        seen.record = message.value
        return True
    seen.told.append(message.value)
    return False


def _stop(engine: EngineProcess, seen: _EngineReport) -> None:
    told, final = engine.stopped()
    for message in [*told, *([final] if final else [])]:
        _take(message, seen)


def _failure_of(record: Mapping[str, Any] | None) -> str | None:
    if record is None or record.get("failure") is None:
        return None
    return f"the load broke off: {describe(record['failure'])}"


def _lives(server: Server) -> bool:
    """Whether the server is still there after a moment of patience."""
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
    counters: StatusSeries | None = None,
) -> Measurement:
    if seen.record is None:
        intervals = intervals_told(seen.told)
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
        status_seconds=counters,
        failure=seen.failure,
    )
