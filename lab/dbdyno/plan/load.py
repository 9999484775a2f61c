"""The load of a plan: levels of a closed loop, rates of an open loop, or a latency limit.

A closed loop has a number of connections; each sends its next request after the answer to the last.
An open loop has a rate: requests fall due at times drawn beforehand, independent of the server.
Rates are given in events a second, or as shares of the rate sustained by the slower system. A pilot
finds shares and the rates around a latency limit (`experiment/schedule/pilot.py`); its outcome is
kept here.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from dbdyno.measurement.parts import FiniteNoun
from dbdyno.plan.spelling import (
    LATENCY_LIMIT,
    NUMBER,
    POSITIVE,
    TEXT,
    WHOLE,
    Short,
    listed,
    share_of,
    text,
)

_RATE: Final = re.compile(NUMBER)
SHARE_MAX: Final = 2.0
"""Largest share: a load above twice the sustained rate says nothing about a system."""
RUNGS_MAX: Final = 5
"""Rates that a pilot finds around the latency limit of one system."""
LEVELS_MAX: Final = 1000
PER_S_MAX: Final = 1e12
GENERATORS_MAX: Final = 64


def rate_per_s(text: str) -> float | None:
    """Rate in events a second, such as 500.0 of ``500``; None for a share."""
    match = _RATE.fullmatch(text)
    return float(match[1]) if match else None


def _a_rate(typed: str) -> str:
    rate, share = rate_per_s(typed), share_of(typed)
    if not rate and not (share and share <= SHARE_MAX):
        raise PydanticCustomError(
            "rate",
            "must be events a second such as 500, or a share such as 70% of what the slower system"
            " sustains (200% at most)",
        )
    return typed.replace(" ", "")


Rate = Annotated[str, AfterValidator(_a_rate), Short(text, POSITIVE)]
Threads = Annotated[int, Field(ge=1, le=100_000)]
PerSecond = Annotated[float, Field(ge=0, le=PER_S_MAX)]
Percentile = Literal["p50", "p95", "p99", "p999"]


class SloPlan(FiniteNoun):
    """Latency limit; the run seeks the highest rate that keeps it.

    Attributes:
        metric: percentile of the latency, from the time at which a transaction was due; p99 by
            default.
        limit_ms: limit in milliseconds.
    """

    metric: Percentile = "p99"
    limit_ms: Annotated[float, Field(gt=0, le=3_600_000)]

    @property
    def quantile(self) -> float:
        """0.99 of p99, 0.999 of p999."""
        return float(f"0.{self.metric.removeprefix('p')}")


class PilotFound(FiniteNoun):
    """Outcome of the pilot for one workload and setting.

    Attributes:
        workload: label of the workload.
        setting: name of the setting.
        sustained_per_s: events a second of a closed loop, by system.
        limits_per_s: highest rate at which the latency limit seemed to hold, by system; empty
            without a limit.
        rates_per_s: rates to measure, rising, the same for all systems.
    """

    workload: str
    setting: str
    sustained_per_s: dict[str, PerSecond]
    limits_per_s: dict[str, PerSecond] = {}
    rates_per_s: Annotated[tuple[PerSecond, ...], Field(max_length=LEVELS_MAX)]


class LoadPlan(FiniteNoun):
    """Load levels: connections, rates, or a latency limit.

    Attributes:
        rates: load levels of an open loop: transactions a second, such as 500, or a share, such as
            70%, of the rate sustained by the slower system (at most 200%).
        connections: number of connections that send the load of an open loop; 64 by default.
        slo: latency limit, such as p99=20ms; the run seeks the highest rate that keeps it.
        threads: load levels of a closed loop, as numbers of connections; 1 and 8 by default, but
            none if the plan has `rates` or `slo`.
        generators: number of processes that make the load together, 1 by default; each has its
            share of the connections and of the rate. If an endpoint has as many hosts as there are
            generators, each generator loads its own host.
        pilot: outcome of the pilot; written by the run, not by hand.
    """

    rates: Annotated[
        tuple[Rate, ...],
        Field(max_length=LEVELS_MAX),
        Short(listed(str, int, float), TEXT, POSITIVE),
    ] = ()
    connections: Threads = 64
    slo: Annotated[SloPlan | None, LATENCY_LIMIT] = None
    threads: Annotated[
        tuple[Threads, ...], Field(max_length=LEVELS_MAX), Short(listed(int), WHOLE)
    ] = (1, 8)
    generators: Annotated[int, Field(ge=1, le=GENERATORS_MAX), WHOLE] = 1
    pilot: tuple[PilotFound, ...] = ()

    @field_validator("threads", "rates")
    @classmethod
    def _no_level_twice(cls, levels: tuple[object, ...]) -> tuple[object, ...]:
        if len(set(levels)) != len(levels):
            raise ValueError(f"each level once, found {list(levels)}")
        return levels

    @field_validator("threads")
    @classmethod
    def _some_level(cls, threads: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        if not threads and not info.data.get("rates") and not info.data.get("slo"):
            raise PydanticCustomError("too_short", "needs at least one level")
        return threads

    @model_validator(mode="after")
    def _rates_take_the_place_of_threads(self) -> LoadPlan:
        if (self.rates or self.slo) and "threads" not in self.model_fields_set:
            object.__setattr__(self, "threads", ())  # frozen for everyone else
        return self

    @model_validator(mode="after")
    def _generators_have_connections(self) -> LoadPlan:
        if self.generators > self.connections_min:
            raise PydanticCustomError(
                "generators",
                f"each generator needs a connection: {self.generators} generators, but a level of"
                f" {self.connections_min}",
            )
        return self

    @property
    def connections_min(self) -> int:
        """The connections of the lowest level."""
        return min([*self.threads, *([self.connections] if self.is_open else [])], default=1)

    @property
    def is_open(self) -> bool:
        """True if some of the load is an open loop."""
        return bool(self.rates) or self.slo is not None

    @property
    def seeks_rates(self) -> bool:
        """True if a pilot has to find the rates around the latency limit."""
        return self.slo is not None and not self.rates

    @property
    def needs_pilot(self) -> bool:
        """True if rates depend on a measurement: shares, or rates around a limit."""
        return self.seeks_rates or any(share_of(rate) for rate in self.rates)

    @property
    def awaits_pilot(self) -> bool:
        """True while a pilot has rates to find."""
        return self.needs_pilot and not self.pilot

    def rates_of(self, workload: str, setting: str) -> tuple[float, ...]:
        """The rates of a workload and setting in events a second, as far as they are known."""
        known = [rate for text in self.rates if (rate := rate_per_s(text)) is not None]
        for rates in self.pilot:
            if (rates.workload, rates.setting) == (workload, setting):
                known.extend(rates.rates_per_s)
        return tuple(sorted(set(known)))

    def is_rung(self, rate: float | None) -> bool:
        """True for a rate chosen by the pilot to find the limit, False for a level of the plan."""
        return rate is not None and self.seeks_rates
