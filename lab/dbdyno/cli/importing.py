"""`dbdyno import`: results of other tools become a run of the workspace, without a verdict."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from dbdyno.cli import flow, options
from dbdyno.cli.flow import ReportOptions
from dbdyno.intake.columns import Mapping
from dbdyno.intake.imported import imported
from dbdyno.intake.read import mapping_of
from dbdyno.language.catalogues import Language
from dbdyno.report.formats.stdout import Output
from dbdyno.store.store import Store

FILES_NAMED_MAX = 20


def command(
    paths: options.Imported,
    title: options.ImportedAs,
    pattern: options.NamePattern = "",
    mapping: options.ColumnMapping = None,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Import logs or tables of results of other tools as a run."""
    said = mapping_of(mapping) if mapping else Mapping()
    plan, measurements = imported(paths, title, said, pattern)
    command_line = shlex.join(["dbdyno", *sys.argv[1:]])
    with Store.open(workspace) as store:
        run = store.create_run(plan, command_line, {"files": _named(paths)}, len(measurements))
        for one in measurements:
            trial = one.trial.model_copy(update={"run_id": run.run_id})
            store.append(one.model_copy(update={"trial": trial}))
        store.finish(run.run_id)
    flow.report(run.run_id, workspace, ReportOptions(output, lang))


def _named(paths: list[Path]) -> str:
    named = [path.name for path in paths[:FILES_NAMED_MAX]]
    more = len(paths) - len(named)
    return ", ".join([*named, *([f"and {more} more"] if more > 0 else [])])
