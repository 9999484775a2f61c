"""The general options, checked before anything begins: how many threads, how long, what to say."""

from __future__ import annotations

from typing import Any, NamedTuple

from dbdyno.sysbench.refusal import Refusal, fatal
from dbdyno.sysbench.values import Values


class General(NamedTuple):
    """What holds for every test.

    Attributes:
        seed: None when the system's entropy is to choose.
        compat: the sysbench to be, "1.0" or "1.1".
        distribution: in the words of the engine's spec.
    """

    compat: str
    threads: int
    events: int
    time_s: int
    report_interval_s: int
    percentile: int
    verbosity: int
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
        if not 0 <= verbosity <= 5:
            raise Refusal(f"Invalid value for verbosity: {verbosity}")
        if values.size("thread-stack-size") <= 0:
            raise fatal("Invalid value for thread-stack-size: 0.")
        return cls(
            compat=values.text("compat"),
            threads=_at_least(values, "threads", 1),
            events=_at_least(values, "events", 0),
            time_s=_at_least(values, "time", 0),
            report_interval_s=_at_least(values, "report-interval", 0),
            percentile=_percentile(values),
            verbosity=verbosity,
            validate=values.flag("validate"),
            seed=values.integer("rand-seed") or None,
            distribution=_distribution(values),
        )


def _at_least(values: Values, name: str, least: int) -> int:
    number = values.integer(name)
    if number < least:
        raise fatal(f"Invalid value for --{name}: {number}. It must be {least} or more.")
    return number


def _percentile(values: Values) -> int:
    percentile = values.integer("percentile")
    if not 0 <= percentile <= 100:
        raise fatal(f"Invalid value for --percentile: {percentile}. It must be from 0 to 100.")
    return percentile


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
