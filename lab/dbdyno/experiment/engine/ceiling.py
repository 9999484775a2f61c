"""Ceiling of the load generator: its rate without a server's limits, the yardstick of
"client-bound".

The same child runs the same workload against a responder that answers every statement at once, in
a thread of the lab. A trial near this rate may have measured the generator. The ceiling is measured
once a run for each workload, protocol and kind of statements (prepared or plain), while no server
runs.
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
"""Connections: enough to keep any generator busy, to measure its capacity."""
ANYBODY: Final = Credentials("load", "")
"""The responder lets everybody in."""


@dataclass(frozen=True)
class _Nobody:
    """Address of the null responder, as a spec needs it of a server."""

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
    """Events per second of the trial's workload against a null responder of this driver.

    Returns None if the responder cannot start or does not understand the workload, and for scripts,
    which may wait for ever for a missing row. Think time of a template is left out. Results are
    cached in the process, as the generator does not change.

    Args:
        threads: of the engine; 0 for its own choice.
        cores: cores of the engine; the plan's by default.
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
    spec_json = json.dumps({**spec, **short, **direct}, sort_keys=True)
    kept_on = plan.procedure.pin if cores is None else tuple(cores)
    return _reached(spec_json, driver, kept_on, tuple(command))


@cache
def _reached(
    spec_json: str, driver: str, cores: tuple[int, ...], command: tuple[str, ...]
) -> float | None:
    """The rate of the best tenth of a second: a disturbance can only lower it."""
    try:
        with responding(driver) as port:
            spec, place = json.loads(spec_json), {"host": LOOPBACK, "port": port}
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
    """Run a responder for clients of this driver in a thread; yields its port."""
    responder, stop = _engine.Responder(driver), _engine.Stop()
    thread = threading.Thread(target=responder.serve, args=(stop,), name="responder", daemon=True)
    thread.start()
    try:
        yield responder.port
    finally:
        stop.set()
        thread.join()
