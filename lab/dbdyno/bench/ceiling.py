"""How fast the generator is when no server holds it back: the yardstick for "client-bound".

The same child with the same workload, against a responder that answers every statement at once
and runs in a thread of the lab. A trial that comes near this rate may have measured the generator.
It is taken once for each workload of a run, before any server is up, with the plan's most
connections.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, cast

from dbdyno import _engine
from dbdyno.bench.engine_process import COMMAND, EngineProcess
from dbdyno.bench.load_spec import run_spec
from dbdyno.bench.record import intervals_of
from dbdyno.errors import LoadError
from dbdyno.measurement import Phase, Trial
from dbdyno.plan import Plan
from dbdyno.servers.base import Credentials, Endpoint, Server

WARMUP_S: Final = 0.1
WINDOW_S: Final = 0.4
THREADS_MAX: Final = 64
"""More connections make no generator faster."""
HERE: Final = "127.0.0.1"
ANYBODY: Final = Credentials("load", "")
"""The responder lets everybody in."""
OPEN_LOOP: Final = ("schedule", "rate_per_s")


@dataclass(frozen=True)
class _Nobody:
    """What a spec must know of the server that is none."""

    endpoint: Endpoint
    credentials: Credentials
    database: str = "sbtest"


def threads_of(plan: Plan) -> int:
    """With how many connections the ceiling is taken."""
    return min(max(plan.load.threads), THREADS_MAX)


def measure(plan: Plan, trial: Trial, command: Sequence[str] = COMMAND) -> float | None:
    """Events a second of the trial's workload on a server that answers at once.

    None where the responder cannot be had or does not understand the workload.
    """
    cell = trial.cell.model_copy(update={"threads": threads_of(plan), "rate_per_s": None})
    closed = trial.model_copy(update={"cell": cell})
    try:
        with _responding() as port:
            server = cast(Server, _Nobody(Endpoint(HERE, port, None), ANYBODY))
            spec = {
                **run_spec(plan, closed, server),
                "warmup_s": WARMUP_S,
                "window_s": WINDOW_S,
                "drain_s": WARMUP_S,
            }
            asked = {name: value for name, value in spec.items() if name not in OPEN_LOOP}
            with EngineProcess("run", asked, cores=plan.procedure.pin, command=command) as engine:
                record = engine.answer()
    except (LoadError, OSError):
        return None
    measured = [one for one in intervals_of(record) if one.phase is Phase.MEASURED]
    seconds = sum(one.end_s - one.start_s for one in measured)
    events = sum(one.events for one in measured)
    return events / seconds if events and seconds > 0 and not record.get("failure") else None


@contextmanager
def _responding() -> Iterator[int]:
    """A responder in a thread of its own; gives its port."""
    responder, stop = _engine.Responder(), _engine.Stop()
    thread = threading.Thread(target=responder.serve, args=(stop,), name="responder", daemon=True)
    thread.start()
    try:
        yield responder.port
    finally:
        stop.set()
        thread.join()
