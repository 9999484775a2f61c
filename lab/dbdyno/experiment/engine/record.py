"""Converts the engine's record into the parts of a measurement, and its errors into `LoadError`;
pure.

Without a record (the engine was killed, or its server hung) the engine's interval messages of each
second take its place: counts without histograms, stored with the failure.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dbdyno import _engine
from dbdyno.errors import CellError, LoadError, LostError
from dbdyno.measurement.measurement import EngineFacts, GeneratorFacts
from dbdyno.measurement.parts import Interval, Phase

UNKNOWN_CODE: Final = "unknown"
LOST: Final = "lost"
"""Kind of the error for a lost generator on another machine."""


def intervals_of(record: Mapping[str, Any]) -> tuple[Interval, ...]:
    """The record's intervals, their histograms decoded from base64.

    An `Interval` has the names of the engine's record; unknown fields of a newer engine are left
    out.
    """
    return tuple(_interval(interval) for interval in record["intervals"])


def _interval(recorded: Mapping[str, Any]) -> Interval:
    known = {name: recorded[name] for name in Interval.model_fields if name in recorded}
    blobs = {name: base64.b64decode(text) for name, text in known.pop("histograms", {}).items()}
    return Interval(**known, histograms=blobs)


def measured_of(record: Mapping[str, Any]) -> tuple[Interval, ...]:
    """The record's intervals within the window."""
    return tuple(one for one in intervals_of(record) if one.phase is Phase.MEASURED)


def intervals_from_messages(messages: Sequence[Mapping[str, Any]]) -> tuple[Interval, ...]:
    """Intervals from the engine's messages during the run: counts only."""
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
        for one in messages
    )


def engine_facts(record: Mapping[str, Any]) -> EngineFacts:
    """The load generator and its effort."""
    return EngineFacts(
        version=record["engine_version"],
        reactor=record["reactor"],
        threads=record["threads"],
        generators=record.get("generators", 1),
        cpu_s=record["measured"]["cpu_s"],
        cpu_share_max=record["measured"]["cpu_share_max"],
        distribution=_distribution(record["distribution"]),
        prepared_statements=record["prepared"],
        apart=tuple(GeneratorFacts(**one) for one in record.get("apart", ())),
    )


def engine_facts_unknown(distribution: str, prepared: bool) -> EngineFacts:
    """Facts of an engine without a record."""
    return EngineFacts(
        version=_engine.version(),
        reactor="unknown",
        threads=0,
        cpu_s=0.0,
        cpu_share_max=0.0,
        distribution=distribution,
        prepared_statements=prepared,
    )


def _distribution(recorded: object) -> str:
    """`uniform`, or the name with its parameters: `pareto (h=0.2)`."""
    if not isinstance(recorded, Mapping):
        return str(recorded)
    rest = ", ".join(f"{name}={value}" for name, value in recorded.items() if name != "name")
    return f"{recorded['name']} ({rest})" if rest else str(recorded["name"])


# The engine's errors as `LoadError`s with a remedy.


DISK = "free space where the workspace is, or ask for fewer rows; finished trials are stored"
HINTS: Final[Mapping[int, str]] = {
    1021: DISK,
    1044: "grant the load user all rights on the database",
    1045: "check the user and the password, or ask for TLS (?ssl-mode=REQUIRED); for a server that"
    " dbdyno starts: dbdyno runs clean",
    1049: "create the database, or name an existing one",
    1062: "the tables hold rows already: drop them, then load again",
    1050: "the tables are there already: drop them, then load again",
    1114: DISK,
    1129: "run FLUSH HOSTS on the server, or restart it",
    1146: "load the dataset first; tables and rows must be those of the load",
    1153: "raise max_allowed_packet in the system's settings",
    1290: "the server is read-only: change that in the system's settings",
    2002: "is the server running and listening there? look at its error log",
    2003: "is the server running and listening there? look at its error log",
    2006: "the server closed the connection: look at its error log",
    2013: "the server closed the connection: look at its error log",
}
WORDS: Final[Mapping[str, str]] = {
    "Connection refused": HINTS[2003],
    "No space left": DISK,
    "Too many open files": "raise the limit: ulimit -n, at least threads + 100",
    "open files": "raise the limit of open files where dbdyno is started, or lower the threads",
    "has said nothing": "look at the server's error log; a pooler before it may wait for a free"
    " connection of its pool: give it as many as the load has",
    "prepared statement": "a pooler in transaction mode keeps none for a session: --no-prepared, or"
    " prepared_statements: false in the plan's procedure",
    "auth": "give the user mysql_native_password or caching_sha2_password",
}
LIMITS: Final = (
    "raise the limit, or lower the threads or the tables; it is set in the system's settings, at an"
    " endpoint by its owner or by SET GLOBAL in after_start"
)
TOO_MUCH: Final = frozenset({1040, 1203, 1226, 1461, "53300", "08004"})
"""Codes and SQLSTATEs for more connections or statements than the server allows."""
POOL_FULL: Final = ("no more connections allowed", "Max client connections")
"""The same in the words of poolers, under a general code."""
DOING: Final[Mapping[str, str]] = {
    "run": "drive the load",
    "prepare": "load the dataset",
    "cleanup": "drop the dataset",
}
STAGES: Final[Mapping[str, str]] = {
    "spec": "understand what is wanted",
    "limits": "open all connections within this machine's limits",
    "connect": "log in",
    "prepare": "prepare the statements",
    "run": "run the statements",
}


def refused(error: Mapping[str, Any], do: str, system: str) -> LoadError:
    """The error for the child's ``{"error": …}``, with a remedy.

    Args:
        error: kind, code, sqlstate, message, statement, stage as in the child's protocol.
        do: run, prepare or cleanup.
        system: label of the system, or an empty text.
    """
    doing = DOING.get(do, do)
    stage = STAGES.get(str(error.get("stage")), "")
    described = describe(error)
    of_system = f"{system}: " if system else ""
    if error.get("kind") == LOST:
        return LostError(
            f"{of_system}a machine of the fleet was lost",
            found=described,
            hint="the trial is void and is tried again; to see the machines: dbdyno fleet check",
        )
    if error.get("kind") == "invalid":
        return CellError(
            f"{of_system}the engine refuses the load that was asked for",
            wanted=f"to {doing}",
            found=described,
            hint="correct the workload's options in the plan",
        )
    is_full = not TOO_MUCH.isdisjoint((error.get("code"), error.get("sqlstate"))) or any(
        words in described for words in POOL_FULL
    )
    return (CellError if is_full or error.get("stage") == "limits" else LoadError)(
        f"{of_system}the engine could not {doing}",
        wanted=f"to {stage}" if stage else f"to {doing}",
        found=described,
        hint=LIMITS if is_full else _hint(error.get("code"), described),
    )


def describe(error: Mapping[str, Any]) -> str:
    """The server's own words with code and statement, on one line."""
    code, sqlstate = error.get("code"), error.get("sqlstate")
    number = f"error {code}" if code else ""
    if number and sqlstate:
        number += f" ({sqlstate})"
    message = "; ".join(str(error.get("message") or "no reason given").splitlines())
    is_told = "the answer to " in message or not error.get("statement")
    statement = "" if is_told else f" in {error['statement']}"
    return f"{number}: {message}{statement}" if number else f"{message}{statement}"


def died(how: str, do: str, system: str, last_lines: Sequence[str]) -> LoadError:
    """The engine's process ended without a final message."""
    of_system = f"{system}: " if system else ""
    return LoadError(
        f"{of_system}the engine died while it was to {DOING.get(do, do)}",
        wanted="a record of the load",
        found=f"{how}; its last words: {' | '.join(last_lines) or 'none'}",
        hint="if it was killed, the machine may be short of memory (dmesg); else report this",
    )


def _hint(code: object, described: str) -> str:
    if isinstance(code, int) and code in HINTS:
        return HINTS[code]
    return next(
        (hint for word, hint in WORDS.items() if word in described),
        "look at the server's error log",
    )
