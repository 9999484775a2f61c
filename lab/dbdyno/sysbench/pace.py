"""When events begin: the options of a rate and of pauses. Without them the loop is closed.

With a rate every event has a moment at which it is due, and its latency counts from there. sysbench
counts from the moment its generator thread got round to it, and gives up when too many wait.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from dbdyno.sysbench.options.refusal import fatal
from dbdyno.sysbench.options.values import Values

_ARRIVALS = ("poisson", "uniform")
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_PAUSE = re.compile(rf"({_NUMBER})(?:-({_NUMBER}))?", re.ASCII)


class Pace(NamedTuple):
    """How events follow each other.

    Attributes:
        rate_per_s: events due per second over all connections; 0 for a closed loop.
        arrival: ``poisson`` (random gaps) or ``uniform`` (equal gaps).
        think_time_ms: least and most a connection rests after an event; (0, 0) for no rest.
    """

    rate_per_s: int
    arrival: str
    think_time_ms: tuple[float, float]

    @classmethod
    def of(cls, values: Values) -> Pace:
        """Reads and checks them.

        Raises:
            Refusal: a value is none of its kind, or says something about a rate that is not set.
        """
        rate_per_s = values.integer("rate")
        if rate_per_s < 0:
            raise fatal(f"Invalid value for --rate: {rate_per_s}. It must be 0 or more.")
        arrival = values.text("arrival")
        if arrival not in _ARRIVALS:
            raise fatal(f"Invalid value for --arrival: '{arrival}'. It must be poisson or uniform.")
        if values.was_typed("arrival") and not rate_per_s:
            raise fatal("--arrival says how the events of a rate follow; give --rate=N with it")
        return cls(rate_per_s, arrival, _think_time_ms(values.text("think-time")))

    def is_set(self) -> bool:
        """Whether anything but the server's answers decides when an event begins."""
        return self.rate_per_s > 0 or self.think_time_ms[1] > 0

    def spec(self) -> dict[str, Any]:
        """The engine's fields; none where the loop is closed."""
        spec: dict[str, Any] = {}
        if self.rate_per_s:
            spec |= {"rate_per_s": self.rate_per_s, "arrival": self.arrival}
        if self.think_time_ms[1]:
            spec["think_time_ms"] = list(self.think_time_ms)
        return spec


def _think_time_ms(text: str) -> tuple[float, float]:
    match = _PAUSE.fullmatch(text or "0")
    least = float(match[1]) if match else 0.0
    most = float(match[2]) if match and match[2] else least
    if match is None or most < least:
        raise fatal(
            f"Invalid value for --think-time: '{text}'. It must be milliseconds, one number or two"
            " such as 5-20, the lesser first."
        )
    return (least, most)
