"""`dbdyno export`: a stored run as tables, and the paths of what was written on stdout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli import options
from dbdyno.errors import UsageError
from dbdyno.judge.controls import apart
from dbdyno.judge.judgement import judge
from dbdyno.report.rows import attempts
from dbdyno.store.store_find import find, opened

Parquet = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Write Parquet files there.", callback=options.at_home_or_none
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write CSV files there.", callback=options.at_home_or_none),
]


def command(
    run_id: options.Run,
    parquet: Parquet = None,
    csv: Csv = None,
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
    judgement = judge(measurements, run.plan)
    compared, controls = apart(measurements)
    made = attempts([*compared, *controls], judgement)
    for kind, folder in folders.items():
        for path in files.write(folder, made, kind):
            sys.stdout.write(f"{path}\n")
