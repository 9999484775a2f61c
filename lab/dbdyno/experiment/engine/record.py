"""The engine's record as the nouns of a measurement; pure.

Where the engine could not give a record (it was killed, or its server hung past all patience), what
it had told second by second is used instead: counts without histograms, kept with the failure.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dbdyno import _engine
from dbdyno.measurement.measurement import EngineFacts
from dbdyno.measurement.measurement_parts import Interval, Phase

COUNTS: Final = (
    "phase",
    "start_s",
    "end_s",
    "events",
    "reads",
    "writes",
    "others",
    "errors",
    "restarts",
    "reconnects",
    "arrivals",
    "backlog",
    "in_flight",
    "silence_ns_max",
    "bytes_received",
    "bytes_sent",
    "latency_ns_sum",
    "latency_ns_min",
    "latency_ns_max",
)
"""What is taken over; a newer engine may tell more."""
UNKNOWN_CODE: Final = "unknown"


def intervals_of(record: Mapping[str, Any]) -> tuple[Interval, ...]:
    """The record's intervals, their histograms decoded from base64."""
    return tuple(
        Interval(
            **{name: interval[name] for name in COUNTS if name in interval},
            histograms={
                name: base64.b64decode(text)
                for name, text in interval.get("histograms", {}).items()
            },
        )
        for interval in record["intervals"]
    )


def measured_of(record: Mapping[str, Any]) -> tuple[Interval, ...]:
    """Those of its intervals that are in the window."""
    return tuple(one for one in intervals_of(record) if one.phase is Phase.MEASURED)


def intervals_told(told: Sequence[Mapping[str, Any]]) -> tuple[Interval, ...]:
    """Intervals from what the engine told while it ran: counts only."""
    return tuple(
        Interval(
            phase=one["phase"],
            start_s=max(0.0, one["at_s"] - one["seconds"]),
            end_s=one["at_s"],
            events=one["events"],
            reads=one["reads"],
            writes=one["writes"],
            others=one["others"],
            errors={UNKNOWN_CODE: one["errors"]} if one["errors"] else {},
            reconnects=one["reconnects"],
        )
        for one in told
    )


def engine_facts(record: Mapping[str, Any]) -> EngineFacts:
    """What drove the load, and how hard it had to work."""
    return EngineFacts(
        version=record["engine_version"],
        reactor=record["reactor"],
        threads=record["threads"],
        cpu_s=record["measured"]["cpu_s"],
        cpu_share_max=record["measured"]["cpu_share_max"],
        distribution=_distribution(record["distribution"]),
        prepared_statements=record["prepared"],
    )


def engine_facts_unknown(distribution: str, prepared: bool) -> EngineFacts:
    """What is known of an engine that gave no record."""
    return EngineFacts(
        version=_engine.version(),
        reactor="unknown",
        threads=0,
        cpu_s=0.0,
        cpu_share_max=0.0,
        distribution=distribution,
        prepared_statements=prepared,
    )


def _distribution(told: object) -> str:
    """`uniform`, or the name with its parameters: `pareto (h=0.2)`."""
    if not isinstance(told, Mapping):
        return str(told)
    rest = ", ".join(f"{name}={value}" for name, value in told.items() if name != "name")
    return f"{told['name']} ({rest})" if rest else str(told["name"])
