"""The general options, checked before anything begins: how many threads, how long, what to say."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from dbdyno.sysbench.options.refusal import Refusal, fatal
from dbdyno.sysbench.options.telling import Telling
from dbdyno.sysbench.options.values import Values
from dbdyno.sysbench.pace import Pace

VERBOSITY_MAX = 5
_DRAIN_S_MIN = 0.001
_GRACE = re.compile(r"([0-9]{1,9})(%?)", re.ASCII)


class General(NamedTuple):
    """What holds for every test.

    Attributes:
        compat: the version of sysbench whose texts are printed, "1.0" or "1.1".
        warmup_s: seconds of load before anything is counted.
        forced_shutdown_s: how long events in flight may outlast the time limit; None for as long
            as they take.
        seed: None when the system's entropy is to choose.
        distribution: in the words of the engine's spec.
    """

    compat: str
    threads: int
    events: int
    time_s: int
    warmup_s: int
    forced_shutdown_s: float | None
    pace: Pace
    telling: Telling
    verbosity: int
    debug: bool
    validate: bool
    seed: int | None
    distribution: dict[str, Any]

    @classmethod
    def of(cls, values: Values) -> General:
        """Reads and checks them.

        Raises:
            Refusal: a number is none, or out of its range.
        """
        verbosity = values.integer("verbosity")
        if not 0 <= verbosity <= VERBOSITY_MAX:
            raise Refusal(f"Invalid value for verbosity: {verbosity}")
        if values.size("thread-stack-size") <= 0:
            raise fatal("Invalid value for thread-stack-size: 0.")
        debug, time_s = values.flag("debug"), _at_least(values, "time", 0)
        return cls(
            compat=values.text("compat"),
            threads=_at_least(values, "threads", 1),
            events=_at_least(values, "events", 0),
            time_s=time_s,
            warmup_s=_at_least(values, "warmup-time", 0),
            forced_shutdown_s=_forced_shutdown_s(values, time_s),
            pace=Pace.of(values),
            telling=Telling.of(values),
            verbosity=VERBOSITY_MAX if debug or values.flag("mysql-debug") else verbosity,
            debug=debug,
            validate=values.flag("validate"),
            seed=values.integer("rand-seed") or None,
            distribution=_distribution(values),
        )

    def spec(self) -> dict[str, Any]:
        """The engine's fields of when and how long, and of what is told."""
        spec: dict[str, Any] = {
            "connections": self.threads,
            "window_s": self.time_s,
            "events": self.events,
            "tell_begin": True,
            "drain_s": 0,
        }
        if self.warmup_s:
            spec["warmup_s"] = self.warmup_s
        if self.forced_shutdown_s is not None:
            # 0 would be no limit to the engine.
            spec["drain_s"] = max(self.forced_shutdown_s, _DRAIN_S_MIN)
        return {**spec, **self.pace.spec(), **self.telling.spec()}


def _forced_shutdown_s(values: Values, time_s: int) -> float | None:
    """``off``, seconds, or a percentage of the time limit; without a value 5 %."""
    if not values.was_typed("forced-shutdown") or values.text("forced-shutdown") == "off":
        return None
    text = values.text("forced-shutdown") or "5%"
    match = _GRACE.fullmatch(text)
    if match is None:
        raise fatal(f"Invalid value for --forced-shutdown: '{text}'")
    if not time_s:
        return None
    return time_s * int(match[1]) / 100 if match[2] else int(match[1])


def _at_least(values: Values, name: str, least: int) -> int:
    number = values.integer(name)
    if number < least:
        raise fatal(f"Invalid value for --{name}: {number}. It must be {least} or more.")
    return number


def _distribution(values: Values) -> dict[str, Any]:
    name = values.text("rand-type")
    parameters: dict[str, dict[str, Any]] = {
        "uniform": {},
        "gaussian": {"iterations": values.integer("rand-spec-iter")},
        "special": {
            "iterations": values.integer("rand-spec-iter"),
            "percent": values.integer("rand-spec-pct"),
            "result": values.integer("rand-spec-res"),
        },
        "pareto": {"h": values.number("rand-pareto-h")},
        "zipfian": {"exponent": values.number("rand-zipfian-exp")},
    }
    if name not in parameters:
        raise fatal(f"Invalid random numbers distribution: {name}.")
    for parameter, value in parameters[name].items():
        if not 0 <= value < float("inf"):
            raise fatal(f"Invalid value for the {name} distribution's {parameter}: {value}.")
    return {"name": name, **parameters[name]}
