"""A run in a file: all evidence of its verdicts, for independent checks.

    README.txt            what is in it and how to check it without dbdyno
    run.json, plan.json   time, machine, command; the plan
    trials/00000.json     an attempt: seconds, counters, settings, versions, procedure
    trials/00000.hlog     its histograms as HdrHistogram's interval log
    SHA256SUMS            of all of them

Values of password variables are left out; everything else is as stored, so a bundle and its run
have the same judgement.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, ValidationError

from dbdyno import __version__
from dbdyno.errors import BundleError
from dbdyno.files import replaced
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import SECRET, Noun
from dbdyno.plan.plan import Plan
from dbdyno.store import archive, histogram_log
from dbdyno.store.reading import StoredRun, fault_of

FORMAT: Final = 1
"""Raised when a file or a value changes its meaning or goes; the next is 3, as for stores."""
SUFFIX: Final = ".dbdyno.zip"
TRIALS_MAX: Final = 1_000_000
README: Final = """\
This is the evidence of one run of dbdyno, a database benchmark.

  run.json, plan.json    when, where and by which command it was made; what was asked for
  trials/NNNNN.json      one attempt each: every second, counters, settings, versions
  trials/NNNNN.hlog      its latency histograms, an interval log that HdrHistogram's tools read
  SHA256SUMS             sums of all files

To check that nothing was changed, unpack it and type: sha256sum --check SHA256SUMS
To judge it again and read its report: dbdyno report THIS_FILE
To run the same experiment and compare: dbdyno replay THIS_FILE
"""


class _Run(Noun):
    """run.json."""

    format: int
    run_id: Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z-]{0,63}$")]
    created_at: Annotated[str, Field(max_length=64)]
    finished_at: Annotated[str, Field(max_length=64)] | None
    command: str
    dbdyno_version: str
    environment: dict[str, str]
    trials_planned: Annotated[int, Field(ge=0, le=TRIALS_MAX)]
    plan_hash: str
    measurements: Annotated[int, Field(ge=0, le=TRIALS_MAX)]


OF_RUN: Final = tuple(field.name for field in fields(StoredRun) if field.name != "plan")
"""Fields that run.json has from the run."""


@dataclass(frozen=True)
class BundleContent:
    """Content of a bundle.

    Attributes:
        measurements: in the order stored.
        digest: SHA-256 of the sums.
    """

    run: StoredRun
    measurements: tuple[Measurement, ...]
    digest: str


def write(path: Path, run: StoredRun, measurements: Sequence[Measurement]) -> str:
    """Write a run's bundle atomically and read it back; returns its digest, else BundleError."""
    files = _files(run, measurements)
    try:
        with replaced(path) as new:
            digest = archive.write(new, files)
            read_bundle(new)
    except OSError as error:
        raise BundleError(
            f"the bundle {path} cannot be written",
            found=error.strerror or str(error),
            hint="choose another place with --out",
        ) from error
    return digest


def read_bundle(path: Path) -> BundleContent:
    """Read a bundle and check every part of it; BundleError if it differs from that of `write`."""
    files, digest = archive.read(path)
    about = _json(files, "run.json")
    try:
        head = _run(about)
        plan = _plan(_json(files, "plan.json"), head.plan_hash)
        _check_names(files, head.measurements)
        measurements = [_measurement(files, n, head.run_id) for n in range(head.measurements)]
    except ValidationError as error:
        raise BundleError(
            f"{path.name} holds a value that this dbdyno cannot read",
            found=fault_of(error),
            hint=f"read it with dbdyno {_version(about)}, which began it, or a later one",
        ) from error
    except ValueError as error:
        raise BundleError(f"{path.name} is damaged", found=str(error)[:200]) from error
    run = StoredRun(plan=plan, **{name: getattr(head, name) for name in OF_RUN})
    return BundleContent(run, tuple(measurements), digest)


def _files(run: StoredRun, measurements: Sequence[Measurement]) -> dict[str, bytes]:
    same = {name: getattr(run, name) for name in OF_RUN}
    head = _Run(format=FORMAT, plan_hash=run.plan.hash(), measurements=len(measurements), **same)
    files = {
        "README.txt": README.encode(),
        "run.json": _text(head),
        "plan.json": _text(run.plan),
    }
    for number, measurement in enumerate(measurements):
        files[_named(number, "json")] = _text(_without_secrets(measurement))
        files[_named(number, "hlog")] = histogram_log.log(measurement.intervals).encode()
    return files


def _without_secrets(measurement: Measurement) -> Measurement:
    server = measurement.server
    kept = {name: value for name, value in server.settings.items() if not SECRET.fullmatch(name)}
    return measurement.model_copy(update={"server": server.model_copy(update={"settings": kept})})


def _text(noun: Noun) -> bytes:
    return (noun.model_dump_json(indent=1) + "\n").encode()


def _named(number: int, suffix: str) -> str:
    return f"trials/{number:05d}.{suffix}"


def _version(about: object) -> str:
    """Version of dbdyno in run.json, which a stranger may have written."""
    version = about.get("dbdyno_version") if isinstance(about, dict) else None
    return version[:20] if isinstance(version, str) else "of an unknown version"


def _run(value: object) -> _Run:
    if isinstance(value, dict) and value.get("format") != FORMAT:  # its other keys are unknown
        raise BundleError(
            f"the bundle was written by dbdyno {_version(value)} in another format",
            wanted=f"format {FORMAT}, that of dbdyno {__version__}",
            found=f"format {str(value.get('format'))[:20]}",
            hint="read it with the version that wrote it",
        )
    return _Run.model_validate(value)


def _plan(value: object, wanted: str) -> Plan:
    """The plan, checked against the run's hash."""
    plan = Plan.model_validate_json(json.dumps(value))
    if plan.hash() != wanted:
        raise BundleError(
            "the bundle's plan is not the one that was run",
            wanted=f"hash {wanted[:64]}",
            found=f"hash {plan.hash()}",
        )
    return plan


def _check_names(files: Mapping[str, bytes], count: int) -> None:
    wanted = {"README.txt", "run.json", "plan.json"}
    wanted |= {_named(n, suffix) for n in range(count) for suffix in ("json", "hlog")}
    if files.keys() != wanted:
        odd = sorted(files.keys() ^ wanted)[0]
        raise BundleError(f"the bundle lacks {odd}, or has it too many", wanted=f"{count} trials")


def _measurement(files: dict[str, bytes], number: int, run_id: str) -> Measurement:
    """Read a trial and drop its files: all trials twice may exceed the memory."""
    bare = Measurement.model_validate(_json(files, name := _named(number, "json")))
    if bare.trial.run_id != run_id:
        raise BundleError(f"{name} is of another run", wanted=run_id, found=bare.trial.run_id[:64])
    del files[name]
    blobs = histogram_log.histograms(files.pop(_named(number, "hlog")).decode())
    if any(place >= len(bare.intervals) for place in blobs):
        raise BundleError(f"{name} has fewer intervals than its histograms")
    intervals = tuple(
        interval.model_copy(update={"histograms": blobs.get(place, {})})
        for place, interval in enumerate(bare.intervals)
    )
    return bare.model_copy(update={"intervals": intervals})


def _json(files: Mapping[str, bytes], name: str) -> object:
    """Parse a stranger's file; BundleError if nested too deep, or with NaN or infinity."""
    if name not in files:
        raise BundleError(f"the bundle lacks {name}")
    try:
        value: object = json.loads(files[name], parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{name} in the bundle is no JSON", found=str(error)[:120]) from error
    return value


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is beyond all numbers")
    return value
