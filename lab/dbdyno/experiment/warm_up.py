"""Load of the cell itself until its rate is steady, before the trial that is measured.

It is a run of its own, whose requests are drawn from another seed than the trial's: rows that the
trial will ask for are not warmer than others. When it is looked whether the rate is steady is fixed
in advance (method.md 1.a.3); whoever looks every second stops at the first lucky one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dbdyno.errors import LoadError
from dbdyno.experiment.engine import load_error
from dbdyno.experiment.engine.process import COMMAND, FINAL, EngineProcess
from dbdyno.experiment.engine.spec import DRAIN_S, run_spec
from dbdyno.measurement.measurement import Trial
from dbdyno.measurement.measurement_parts import WarmUp
from dbdyno.plan.plan import Plan
from dbdyno.servers import process
from dbdyno.servers.base import Server
from dbdyno.stats.steady import Steady, steady

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
            return f"the load broke off: {load_error.describe(failure)}" if failure else ""
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
