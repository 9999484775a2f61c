"""A release's promise as files: written once with its version, read by the tests of all later ones.

usage: PYTHONPATH=tests .venv/bin/python -m support.released

Writes `tests/released/VERSION`, which must not exist. docs/reference/compatibility.md is the
promise in words.

    dbdyno.sqlite.gz   a store of three runs
    run.dbdyno.zip     the bundle of its first run
    plan.yaml          the plan file of the docs
    promised.txt       names: commands, options, fields, metrics, columns, Python
    *.json, tables/    what dbdyno makes of these files (`outputs`)
"""

from __future__ import annotations

import contextlib
import gzip
import inspect
import io
import re
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

from pydantic import BaseModel
from tests.judge import test_rate_limit

import dbdyno
from dbdyno import __version__, api, errors
from dbdyno.__main__ import main
from dbdyno.cli.defaults import commands
from dbdyno.cli.metrics import FAMILIES
from dbdyno.export.tables import TABLES, TableDefinition
from dbdyno.judge.judgement import Judgement
from dbdyno.judge.uses.agreement import Agreement
from dbdyno.judge.uses.gate import Gate
from dbdyno.measurement.certificate import CertificateFacts
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.outcome import RunFacts
from dbdyno.measurement.parts import Probe, StackProfile, Step, ThreadWork, TrialEvidence
from dbdyno.plan.file import read, schema
from dbdyno.plan.plan import ChosenDesign, DesignPlan, Plan, ProcedurePlan, TrialPlan
from dbdyno.plan.publication import PublishedPlan
from dbdyno.report import document
from dbdyno.report.formats.history import HistoryEntry
from dbdyno.servers import open as servers
from dbdyno.store import bundle, database
from dbdyno.store.reading import StoredRun
from dbdyno.store.store import FILE_NAME, Store
from support import making
from support.source import ROOT

RELEASED = ROOT / "tests" / "released"
STORE, BUNDLE, PLAN, PROMISED = f"{FILE_NAME}.gz", "run.dbdyno.zip", "plan.yaml", "promised.txt"
WHOLE, TIMED, LIMITED = "20261129-060000-1111", "20261129-070000-2222", "20261129-080000-3333"
CLOCK = datetime(2026, 11, 29, 9, tzinfo=UTC)
SHORT = {"window_s": 4, "warmup_s": 1}
CHOSEN = ChosenDesign(**SHORT, blocks=3, start_noise=0.01, second_noise=0.05, block_s=20.0)


def freeze(place: Path) -> None:
    """Write the promise of this version; FileExistsError if the folder is there."""
    if place.exists():
        raise FileExistsError(f"{place} is there: what a release promised is never written anew")
    with tempfile.TemporaryDirectory() as name:
        workspace, folder = Path(name) / "runs", Path(name) / "new"
        folder.mkdir()
        page = (ROOT / "docs" / "reference" / "plan-file.md").read_text()
        (folder / PLAN).write_text(page.partition("```yaml\n")[2].partition("```\n")[0])
        (folder / PROMISED).write_text("".join(f"{line.rstrip()}\n" for line in promised()))
        _store(workspace)
        packed = gzip.compress((workspace / FILE_NAME).read_bytes(), mtime=0)
        (folder / STORE).write_bytes(packed)
        evidence = dbdyno.load(WHOLE, workspace).evidence
        bundle.write(folder / BUNDLE, evidence.run, evidence.measurements)
        write_outputs(folder)
        shutil.copytree(folder, place)


def write_outputs(folder: Path) -> None:
    """Write what this version makes of a frozen store, bundle and plan file beside them."""
    for name, text in outputs(folder).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def outputs(folder: Path) -> dict[str, str]:
    """What this version makes of a frozen folder: JSON documents and CSV tables by file name."""
    with tempfile.TemporaryDirectory() as name:
        workspace = Path(name)
        (workspace / FILE_NAME).write_bytes(gzip.decompress((folder / STORE).read_bytes()))
        (report,) = {_report(it, workspace) for it in (WHOLE, folder / BUNDLE)}  # the same of both
        _printed("export", WHOLE, "--csv", name + "/tables", workspace=workspace)
        files = {
            "plan.json": document.text(read(folder / PLAN, servers.check).model_dump(mode="json")),
            "report.json": report,
            "gate.json": _printed("gate", WHOLE, *JSON, workspace=workspace),
            "limited.json": _printed("gate", LIMITED, *JSON, workspace=workspace),
            "history.json": _printed("history", *JSON, workspace=workspace),
            "replay.json": _printed(
                *("replay", str(folder / BUNDLE), "--with", TIMED, *JSON), workspace=workspace
            ),
        }
        tables = sorted((workspace / "tables").glob("*.csv"))
        return {**files, **{f"tables/{path.name}": path.read_text() for path in tables}}


JSON = ("--output", "json")


def _printed(*words: str, workspace: Path) -> str:
    with (
        contextlib.redirect_stdout(io.StringIO()) as stdout,
        contextlib.redirect_stderr(io.StringIO()) as stderr,
    ):
        status = main([*words, "--workspace", str(workspace)])
    assert status in (0, 3, 4), stderr.getvalue()
    return stdout.getvalue()


def _report(name: str | Path, workspace: Path) -> str:
    run = dbdyno.load(name, workspace)
    return document.text(document.document(run.plan, run.trials, run.judgement, run.facts))


# The store: two load levels with a failed attempt, a run that chose its design, a latency limit.


def _store(workspace: Path) -> None:
    runs = {WHOLE: _whole(), TIMED: _timed(), LIMITED: _limited()}
    with patch.object(database, "datetime") as clock, Store.open(workspace) as store:
        clock.now.return_value = CLOCK
        for run_id, (plan, trials) in runs.items():
            places = {trial.trial.place for trial in trials}
            store.begin(_run(run_id, plan, len(places)))
            if plan.design.time_s is not None:
                store.choose(run_id, CHOSEN)
            for number, trial in enumerate(trials):
                store.append(making.with_trial(trial, run_id=run_id, sequence=number))
            store.finish(run_id)


def _run(run_id: str, plan: Plan, trials: int) -> StoredRun:
    return StoredRun(
        run_id=run_id,
        created_at=f"2026-11-29T{run_id[9:11]}:00:00+00:00",
        finished_at=None,
        plan=plan,
        command="dbdyno compare mysql:5.7.22 mysql:8.0.15",
        dbdyno_version=__version__,
        environment={"processor": "4 cores", "kernel": "6.1"},
        trials_planned=trials,
    )


def _whole() -> tuple[Plan, list[Measurement]]:
    plan = making.plan(
        threads=(1, 8),
        blocks=3,
        **SHORT,
        title="frozen",
        procedure=ProcedurePlan(drop_caches=True, settle_cap_s=30.0),
        published=PublishedPlan(source="Company, 2022", setup={"disk": "NVMe"}),
        scale="small",
    )
    ratios = {1: (0.99, 1.0, 1.01), 8: (0.78, 0.77, 0.76)}
    trials = [
        _full(trial)
        for threads, of_blocks in ratios.items()
        for trial in making.pairs(of_blocks, tps=300.0 * threads, threads=threads, **SHORT)
    ]
    return plan, [making.changed(trials[0], failure="server gone"), *trials]


def _full(trial: Measurement) -> Measurement:
    """The trial with parts that not every run has."""
    server = trial.server.model_copy(
        update={
            "threads": {"connection": ThreadWork(user_s=2.0, system_s=0.5, queued_s=0.1)},
            "status_at_s": (1.0, 1.001, 5.0, 5.001),
            "uptime_s": 30.0,
            "allocator": "jemalloc",
        }
    )
    profile = StackProfile(
        sampler="perf",
        period_us=1000.0,
        window_s=4.0,
        events=float(trial.events),
        sampler_cpu_s=0.02,
        stacks={"connection;main;read_row": 1500, "connection;main;parse": 500},
    )
    evidence = TrialEvidence(
        probe=Probe(cpu_ms=5.0, sync_ms=1.0),
        query_plans={"point select": "const PRIMARY"},
        irq_apart=True,
    )
    return _slim(
        making.changed(
            trial,
            server=server,
            profile=profile,
            evidence=evidence,
            procedure=(Step(name="restore", seconds=2.0), Step(name="drop caches", seconds=0.1)),
            dataset="0123456789abcdef",
            load="1",
            certificate=CertificateFacts(
                digest="ab" * 32, made_at="2026-11-28T06:00:00+00:00", queries_per_s=1e6
            ),
        )
    )


def _slim(trial: Measurement) -> Measurement:
    """The trial, without the readings of each second except in the first block."""
    if trial.trial.block == 0:
        return trial
    return making.changed(trial, watch=(), status_seconds=None)


def _timed() -> tuple[Plan, list[Measurement]]:
    design = DesignPlan.model_validate({"time_s": 600.0})
    plan = making.plan().model_copy(update={"design": design, "trial": TrialPlan()})
    return plan, list(map(_slim, making.pairs((0.9, 0.91, 0.89), **SHORT)))


def _limited() -> tuple[Plan, list[Measurement]]:
    limits = {making.A: [1000.0] * 3, making.B: [900.0] * 3}
    trials = test_rate_limit.run(limits)
    bare = [making.changed(trial, watch=(), status_seconds=None) for trial in trials]
    return test_rate_limit.plan_of(3), bare


# The names: a line for each thing that has some. A field with `?` may be absent.


def promised() -> list[str]:
    """Every name that is promised, in lines such as `metric dbdyno_transactions: counter`."""
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    variables = re.findall(r"\bDBDYNO_[A-Z_]*[A-Z]\b", "".join(map(Path.read_text, pages)))
    whole = schema()
    keys = {key for part in (whole, *whole["$defs"].values()) for key in part.get("properties", {})}
    return [
        *(f"command {path}: {' '.join(filter(_is_option, of))}" for path, of in commands().items()),
        f"environment: {' '.join(sorted(set(variables)))}",
        f"plan file: {' '.join(sorted(keys))}",
        *(line for noun in STORED for line in fields_of(noun, f"stored {noun.__name__}")),
        *(line for noun in PRINTED for line in fields_of(noun, f"printed {noun.__name__}")),
        *(f"metric {family}: {kind}" for family, (kind, _) in FAMILIES.items()),
        *(f"table {table.name}: {' '.join(_columns(table))}" for table in TABLES),
        *_python(),
        *(
            f"exit {name}: {kind.exit_status}"
            for name, kind in vars(errors).items()
            if isinstance(kind, type) and issubclass(kind, errors.DbdynoError)
        ),
    ]


STORED: tuple[type[BaseModel], ...] = (Plan, Measurement, ChosenDesign)
PRINTED: tuple[type[BaseModel], ...] = (RunFacts, Judgement, Gate, HistoryEntry, Agreement)


def fields_of(noun: type[BaseModel], path: str) -> Iterator[str]:
    """A line with a noun's fields, and lines for each noun within them."""
    fields = noun.model_fields.items()
    yield f"{path}: {' '.join(key if it.is_required() else f'{key}?' for key, it in fields)}"
    for key, field in fields:
        for inner in sorted(nouns_in(field.annotation), key=lambda kind: kind.__name__):
            yield from fields_of(inner, f"{path}.{key}")


def nouns_in(annotation: Any) -> set[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return {noun for part in get_args(annotation) for noun in nouns_in(part)}


def _python() -> Iterator[str]:
    yield f"python dbdyno: {' '.join(dbdyno.__all__)}"
    functions = {"load": api.load, **{f"Run.{name}": it for name, it in vars(api.Run).items()}}
    for name, member in functions.items():
        if not name.startswith("Run._"):
            parameters = inspect.signature(member).parameters if inspect.isfunction(member) else ()
            yield f"python {name}: {' '.join(p for p in parameters if p != 'self')}"


def _columns(table: TableDefinition) -> list[str]:
    return [column.name for column in (*table.keys, *table.columns)]


def _is_option(word: str) -> bool:
    return word.startswith("-")


if __name__ == "__main__":
    freeze(RELEASED / __version__)
