"""The parts of a measurement that stand alone: its seconds, its steps, the load that warmed it up.

They are here and not in `measurement` only so that both can be read in one go; everybody imports
them from there.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Noun(BaseModel):
    """A frozen value that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Phase(StrEnum):
    """What an interval is part of; only MEASURED enters rates and percentiles."""

    WARMUP = "warmup"
    MEASURED = "measured"
    DRAIN = "drain"


class Interval(Noun):
    """What the engine saw in one second (or what was left of it).

    Attributes:
        start_s, end_s: seconds since the load began.
        events: events completed; reads, writes, others: statements by what they did.
        errors: failed statements by error code.
        restarts: events begun again after an ignorable error.
        reconnects: lost connections opened again.
        arrivals: events that fell due by schedule; backlog: those due and not begun at its end.
        in_flight: events running at its end.
        silence_ns_max: longest stretch that ended in it in which events ran and no statement was
            answered; 0 where nobody looked (an imported log, an older engine).
        latency_ns_sum, latency_ns_min, latency_ns_max: exact, of completed events.
        histograms: HDR V2 blobs by name (EVENT, SERVICE, a statement kind).
    """

    phase: Phase
    start_s: float
    end_s: float
    events: int
    reads: int
    writes: int
    others: int
    errors: dict[str, int] = {}
    restarts: int = 0
    reconnects: int = 0
    arrivals: int = 0
    backlog: int = 0
    in_flight: int = 0
    silence_ns_max: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    latency_ns_sum: int = 0
    latency_ns_min: int = 0
    latency_ns_max: int = 0
    histograms: Annotated[dict[str, bytes], Field(exclude=True, repr=False)] = {}

    @property
    def queries(self) -> int:
        """Statements that got a reply without error."""
        return self.reads + self.writes + self.others


class Step(Noun):
    """One thing done to a server between two measured windows.

    Attributes:
        name: restore, drop caches, start, purge binary logs, settle, warm up.
        seconds: how long it took.
        done: False where it was asked for and could not be done, or not to its end.
        detail: what it came to, or why it was not done.
    """

    name: str
    seconds: float
    done: bool = True
    detail: str = ""


class WarmUp(Noun):
    """Load that ran before a trial until its throughput was steady, or for as long as it might.

    Attributes:
        seconds: how long the load ran.
        cut_s: seconds after which the rate was steady; None where it was not.
        why: the rule's reason, for people.
        rates_per_s: events of each second.
    """

    seconds: float
    cut_s: float | None
    why: str
    rates_per_s: Annotated[tuple[float, ...], Field(repr=False)] = ()

    @property
    def steady(self) -> bool:
        """Whether the load was steady at its end."""
        return self.cut_s is not None
