"""`dbdyno history` and `dbdyno export`: stored runs as a list of verdicts, and as tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dbdyno import api
from dbdyno.cli import options
from dbdyno.cli.progress import note
from dbdyno.errors import StoreError, UsageError
from dbdyno.judge.judgement import judge
from dbdyno.language.catalogues import Language
from dbdyno.language.words import count
from dbdyno.plan.plan import comparisons
from dbdyno.report.formats import history
from dbdyno.report.formats.history import History, RunVerdicts
from dbdyno.report.formats.stdout import Output, render
from dbdyno.report.rows import all_attempts
from dbdyno.store.evidence import of_stored
from dbdyno.store.reading import StoredRun, UnreadableRun
from dbdyno.store.store import Store, find, opened

RUNS: Final = 20


def history_command(
    label: options.Label = None,
    last: options.Last = RUNS,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """List the verdicts on a label over time."""
    with opened(workspace) as store:
        runs = _compared(_readable(store), label)
        entries = list(_entries(store, runs[:last], workspace))
    sys.stdout.write(render(History(history.entries(entries, label)), output, lang))
    for run in runs[:last]:
        if run.plan.is_imported:
            note(f"run {run.run_id} ({run.plan.title}) was imported: no verdict")
    if len(runs) > last:
        note(f"{last} of {count(len(runs), 'run')}; for more: --last {len(runs)}")


def _readable(store: Store) -> list[StoredRun]:
    """The runs that can be read; prints of each other one why it cannot."""
    listed = store.listed()
    for run in listed:
        if isinstance(run, UnreadableRun):
            _note_unreadable(run.run_id, run.reason)
    return [run for run in listed if isinstance(run, StoredRun)]


def _note_unreadable(run_id: str, reason: str) -> None:
    note(f"run {run_id} is left out, as it cannot be read: {reason}")


def _compared(runs: list[StoredRun], label: str | None) -> list[StoredRun]:
    """The runs that compare the label with a baseline; UsageError if there is none."""
    labels = {run.run_id: [one.arm.label for one in comparisons(run.plan)] for run in runs}
    found = [run for run in runs if labels[run.run_id] and label in (None, *labels[run.run_id])]
    if not found:
        known = sorted({name for names in labels.values() for name in names})
        raise UsageError(
            f"no run here compares {label or 'anything'} with a baseline",
            wanted=", ".join(known) or "a run of two systems",
            found=count(len(runs), "run"),
            hint="the first system of a run is its baseline and has no verdict",
        )
    return found


def _entries(store: Store, runs: list[StoredRun], workspace: Path) -> Iterator[RunVerdicts]:
    for stored in runs:
        try:
            run = api.Run(of_stored(store, stored, workspace))
        except StoreError as error:
            _note_unreadable(stored.run_id, f"{error.message} ({error.found})")
            continue
        yield RunVerdicts(
            run_id=run.id,
            created_at=run.facts.created_at,
            plan=run.plan,
            complete=run.facts.complete,
            versions={
                trial.trial.system: trial.server.version
                for trial in run.trials
                if trial.server.version
            },
            verdicts=run.judgement.all_verdicts,
        )


def export_command(
    run_id: options.Run,
    parquet: options.Parquet = None,
    csv: options.Csv = None,
    workspace: options.Workspace = options.WORKSPACE,
) -> None:
    """Write a stored run as tables: trials, seconds, counters, settings, costs."""
    from dbdyno.export import files  # noqa: PLC0415 - polars is not loaded by other commands
    from dbdyno.export.files import Format  # noqa: PLC0415

    wanted = {Format.PARQUET: parquet, Format.CSV: csv}
    folders = {kind: folder for kind, folder in wanted.items() if folder is not None}
    if not folders:
        raise UsageError(
            "no folder to export to",
            wanted="--parquet DIR, --csv DIR or both",
            found="neither",
            hint=f"dbdyno export {run_id} --parquet tables",
        )
    with opened(workspace) as store:
        run = find(store, run_id)
        measurements = store.measurements(run.run_id)
    made = all_attempts(measurements, judge(measurements, run.plan))
    for kind, folder in folders.items():
        for path in files.write(folder, made, kind):
            sys.stdout.write(f"{path}\n")
