"""How fast the generator is when no server holds it back: the yardstick for "client-bound".

The same child with the same workload, against a responder that answers every statement at once
and runs in a thread of the lab. A trial that comes near this rate may have measured the generator.
It is taken once a run for each workload, protocol and kind of statements (prepared or plain),
while no server is up.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final, cast

from dbdyno import _engine
from dbdyno.errors import LoadError
from dbdyno.experiment.engine.process import COMMAND, EngineProcess
from dbdyno.experiment.engine.record import measured_of
from dbdyno.experiment.engine.spec import run_spec
from dbdyno.measurement.measurement import Trial
from dbdyno.plan.plan import Plan
from dbdyno.plan.workload import TEMPLATE_SUFFIXES
from dbdyno.servers.base import MYSQL, Credentials, Endpoint, Server
from dbdyno.servers.process import LOOPBACK

WARMUP_S: Final = 0.1
WINDOW_S: Final = 0.4
SLICE_S: Final = 0.1
CHILD_S_MAX: Final = 60.0
THREADS: Final = 64
"""Enough to keep any generator busy; it is its capacity that is asked for."""
ANYBODY: Final = Credentials("load", "")
"""The responder lets everybody in."""


@dataclass(frozen=True)
class _Nobody:
    """What a spec must know of the server that is none."""

    driver: str
    endpoint: Endpoint
    credentials: Credentials
    database: str = "sbtest"


def measure(
    plan: Plan,
    trial: Trial,
    driver: str,
    command: Sequence[str] = COMMAND,
    *,
    threads: int = 0,
    cores: Sequence[int] | None = None,
) -> float | None:
    """Events a second of the trial's workload on a server of that driver that answers at once.

    None where the responder cannot be had or does not understand the workload, and for scripts,
    which may wait for ever for a row that it does not give. A template is asked without its rests.
    The same question is answered once in a process: the generator does not change meanwhile.

    Args:
        threads: of the engine; 0 for as many as it takes by itself.
        cores: the engine is kept on these; on the plan's unless given.
    """
    workload = plan.workload(trial.cell.workload)
    if workload.script is not None and not workload.name.endswith(TEMPLATE_SUFFIXES):
        return None
    cell = trial.cell.model_copy(update={"threads": THREADS, "rate_per_s": None})
    closed = trial.model_copy(update={"cell": cell, "seed": 1, "is_pilot": False})
    nobody = _Nobody(driver, Endpoint(LOOPBACK, 0, None), ANYBODY)
    spec = run_spec(plan, closed, cast(Server, nobody))
    if workload.script is not None:
        spec["script"]["source"] = workload.without_rests
    short = {"warmup_s": WARMUP_S, "window_s": WINDOW_S, "interval_s": SLICE_S, "drain_s": WARMUP_S}
    direct = {"round_trip_ms": 0.0, "threads": threads}
    asked = json.dumps({**spec, **short, **direct}, sort_keys=True)
    kept_on = plan.procedure.pin if cores is None else tuple(cores)
    return _reached(asked, driver, kept_on, tuple(command))


@cache
def _reached(
    asked: str, driver: str, cores: tuple[int, ...], command: tuple[str, ...]
) -> float | None:
    """The rate of the best tenth of a second: what disturbs only ever makes one slower."""
    try:
        with responding(driver) as port:
            spec, place = json.loads(asked), {"host": LOOPBACK, "port": port}
            spec["endpoint"] = place
            if "script" in spec:
                spec["script"]["database"]["endpoint"] = place
            with EngineProcess("run", spec, cores=cores, command=command) as engine:
                record = engine.answer(CHILD_S_MAX)
    except (LoadError, OSError):
        return None
    whole = [one for one in measured_of(record) if one.end_s - one.start_s > SLICE_S / 2]
    rates = [one.events / (one.end_s - one.start_s) for one in whole]
    return max(rates, default=0.0) or None


@contextmanager
def responding(driver: str = MYSQL) -> Iterator[int]:
    """A responder in a thread of its own, for clients of that driver; gives its port."""
    responder, stop = _engine.Responder(driver), _engine.Stop()
    thread = threading.Thread(target=responder.serve, args=(stop,), name="responder", daemon=True)
    thread.start()
    try:
        yield responder.port
    finally:
        stop.set()
        thread.join()
