"""Read rows of the store as values; a StoreError names the unreadable run or trial.

A row may be damaged, or be written by another dbdyno; other rows can still be read. A value is read
once before it is stored, because a stored row is never removed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from dbdyno import __version__
from dbdyno.errors import StoreError
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan

HDR_HEAD_BYTES: Final = 8
"""Of a deflated HDR V2 histogram: its kind and its length; a zlib stream follows."""
HDR_INFLATED_BYTES_MAX: Final = 2**20
"""Plain, as the engine's own reader takes it at most."""
_ENVIRONMENT: Final = TypeAdapter(dict[str, str])
_ROW: Final = TypeAdapter(tuple[str, str | None, str, str, str, str, int])
"""created_at, finished_at, plan, command, dbdyno_version, environment, trials_planned."""


@dataclass(frozen=True)
class StoredRun:
    """A run and its plan.

    Attributes:
        created_at, finished_at: ISO 8601 with offset; finished_at is None until every trial of the
            plan had its turn, or the verdicts were decided.
        plan: as it was written, or resolved (`store.resolved.resolved_run`).
        command: its first command line.
        trials_planned: most trials of the plan; an estimate before a pilot's choice.
    """

    run_id: str
    created_at: str
    finished_at: str | None
    plan: Plan
    command: str
    dbdyno_version: str
    environment: dict[str, str]
    trials_planned: int


@dataclass(frozen=True)
class UnreadableRun:
    """An unreadable run and the reason; other runs are not affected."""

    run_id: str
    created_at: str
    reason: str


@contextmanager
def readable(message: str, hint: str) -> Iterator[None]:
    """Raise StoreError with this message and hint for errors of reading."""
    try:
        yield
    except ValidationError as error:
        raise StoreError(message, found=fault_of(error), hint=hint) from error
    except (ValueError, TypeError) as error:  # SQLite keeps any value in any column
        raise StoreError(message, found=str(error)[:200], hint=hint) from error


def fault_of(error: ValidationError) -> str:
    """The first fault of a value, with its place: a field may be of a newer dbdyno."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    is_newer = first["type"] == "extra_forbidden"
    reason = f"dbdyno {__version__} does not know this field" if is_newer else first["msg"]
    return (f"{place}: {reason}" if place else reason)[:200]


def read_elsewhere(version: object) -> str:
    """The remedy for a row that cannot be read, of a run that this version of dbdyno began."""
    writer = f"{version}"[:20]
    return f"read it with dbdyno {writer}, which began it, or a later one; other runs can be read"


def run_of(run_id: str, row: tuple[Any, ...]) -> StoredRun:
    """A run of its row, in the order of `_ROW`; StoreError if it cannot be read."""
    with readable(f"run {run_id} cannot be read", read_elsewhere(row[4])):
        created_at, finished_at, plan_json, command, version, environment, planned = (
            _ROW.validate_python(row, strict=True)
        )
        return StoredRun(
            run_id=run_id,
            created_at=created_at,
            finished_at=finished_at,
            plan=Plan.model_validate_json(plan_json),
            command=command,
            dbdyno_version=version,
            environment=_ENVIRONMENT.validate_json(environment),
            trials_planned=planned,
        )


def text_of(value: Plan | Measurement) -> str:
    """The value's JSON, checked by reading it again; StoreError if unreadable."""
    text = value.model_dump_json()
    named = "the run's plan"
    if isinstance(value, Measurement):
        named = f"trial {value.trial.key} of run {value.trial.run_id}"
    hint = "this is a mistake of dbdyno: report it with the command"
    with readable(f"{named} is not stored: it could not be read again", hint):
        if isinstance(value, Measurement):
            Measurement.model_validate_json(text)
        elif Plan.model_validate_json(text) != value:
            raise ValueError("it would come back as another plan")
    return text


def measurement_of(
    run_id: str, version: object, key: str, text: str, blobs: Mapping[int, Mapping[str, bytes]]
) -> Measurement:
    """A measurement of its JSON and its histograms; StoreError naming its trial if unreadable."""
    with readable(f"trial {key} of run {run_id} cannot be read", read_elsewhere(version)):
        bare = Measurement.model_validate_json(text)
        if any(index >= len(bare.intervals) for index in blobs):
            raise ValueError("there is a histogram of an interval that is not there")
        for index, named in blobs.items():
            for name, blob in named.items():
                _check_histogram(blob, f"histogram {name!r:.40} of interval {index}")
    intervals = tuple(
        interval.model_copy(update={"histograms": dict(blobs.get(index, {}))})
        for index, interval in enumerate(bare.intervals)
    )
    return bare.model_copy(update={"intervals": intervals})


def _check_histogram(blob: object, subject: str) -> None:
    """Holds the blob against the checksum of its zlib stream; to decode all takes seconds."""
    try:
        if not isinstance(blob, bytes):
            raise TypeError("no blob")
        inflating = zlib.decompressobj()
        inflating.decompress(blob[HDR_HEAD_BYTES:], HDR_INFLATED_BYTES_MAX)
        if not inflating.eof:
            raise ValueError("no whole histogram")
    except (TypeError, ValueError, zlib.error) as error:
        raise ValueError(f"{subject} is damaged: {error}") from error
