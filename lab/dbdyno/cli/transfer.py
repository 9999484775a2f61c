"""A run as files outside its workspace.

`dbdyno bundle` writes a run's evidence into one file or checks it, `replay` runs it again;
`export` writes tables.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from dbdyno import api
from dbdyno.cli import flow, options
from dbdyno.cli.flow import ReportOptions
from dbdyno.cli.machines import machines_of
from dbdyno.cli.plan import described, facts_text
from dbdyno.cli.progress import note
from dbdyno.cli.trust import refuse_risks
from dbdyno.errors import DbdynoError, UsageError
from dbdyno.export import files
from dbdyno.export.files import Format
from dbdyno.judge.judgement import judge
from dbdyno.language.catalogues import Language
from dbdyno.language.words import count
from dbdyno.plan.plan import Plan
from dbdyno.report.formats.replay import replay as replayed
from dbdyno.report.formats.stdout import Output, print_lines, render
from dbdyno.report.rows import attempts
from dbdyno.store import bundle
from dbdyno.store.evidence import Evidence, of_run
from dbdyno.store.store import LATEST, opened


def bundle_command(
    run: options.RunOrBundle,
    out: options.Out = None,
    verify: options.Verify = False,
    workspace: options.Workspace = options.WORKSPACE,
) -> None:
    """Pack a run into a file to share, or verify such a file."""
    evidence = api.load(run, workspace).evidence
    if verify:
        if out is not None:
            raise UsageError("--out is for a bundle that is written", found="also --verify")
        _verify(run, evidence)
        return
    path = out if out is not None else Path(f"{evidence.run.run_id}{bundle.SUFFIX}")
    digest = bundle.write(path, evidence.run, evidence.measurements)
    print_lines(str(path))
    note(
        f"{count(len(evidence.measurements), 'measurement')}, {path.stat().st_size / 1e6:.1f} MB;"
        f" SHA-256 of its sums: {digest}"
    )


def _verify(name: str, evidence: Evidence) -> None:
    """Print the digest that a run or a bundle has while it is unchanged."""
    held = count(len(evidence.measurements), "measurement")
    if evidence.digest:
        print_lines(f"{name}: {held} as its sums say; SHA-256 of the sums: {evidence.digest}")
        return
    run_id = evidence.run.run_id
    with opened(evidence.folder.parent) as store:
        digest = store.verified(run_id)
    print_lines(f"run {run_id}: {held} as stored; last digest of its chain: {digest}")


def replay(
    name: options.Replayed,
    again: options.With = None,
    trust: options.Trust = False,
    fleet: options.Fleet = "",
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Repeat the run of a bundle file and compare the results."""
    if again is not None and (fleet or trust):
        raise UsageError(
            f"{'--fleet' if fleet else '--trust'} is for a run that is made again",
            found="also --with, which runs nothing",
            hint="leave one of them out",
        )
    first = api.load(name, workspace)
    if again is None:
        if first.evidence.digest and not first.plan.is_imported:  # maybe a stranger's
            _describe(first.plan)
        refuse_risks(first.plan, name, trusted=trust)
        again = _run_again(first, name, workspace, ReportOptions(Output.PLAIN, lang), fleet)
    second = api.load(again, workspace)
    compared = replayed(first.side, second.side)
    sys.stdout.write(render(compared, output, lang))


def _run_again(first: api.Run, name: str, workspace: Path, shown: ReportOptions, fleet: str) -> str:
    """Runs the plan; its result goes to stderr, because stdout is for the comparison."""
    command = options.stored_command("replay", name, *(["--fleet", fleet] if fleet else []))
    try:
        with contextlib.redirect_stdout(sys.stderr), machines_of(first.plan, fleet) as machines:
            return flow.begin(first.plan, workspace, command, shown, machines)
    except UsageError:
        raise  # nothing was begun that could be completed
    except DbdynoError:
        named = first.id if name == LATEST else name  # by then another run is the latest
        later = options.next_command("replay", named, "--with", LATEST, workspace=workspace)
        note(f"when the run is complete: {later}")
        raise


def _describe(plan: Plan) -> None:
    """Print the facts of a stranger's plan, with its forecast."""
    try:
        text = described(plan)
    except UsageError:  # no forecast: a setting cannot be, or the budget is too short
        text = facts_text(plan)
    note(text)


def export_command(
    run_id: options.Run,
    parquet: options.Parquet = None,
    csv: options.Csv = None,
    workspace: options.Workspace = options.WORKSPACE,
) -> None:
    """Export a run as Parquet or CSV tables. They hold measurements, seconds, costs, verdicts."""
    wanted = {Format.PARQUET: parquet, Format.CSV: csv}
    folders = {kind: folder for kind, folder in wanted.items() if folder is not None}
    if not folders:
        raise UsageError(
            "no folder to export to",
            wanted="--parquet DIR, --csv DIR or both",
            found="neither",
            hint=options.next_command("export", run_id, "--parquet", "tables", workspace=workspace),
        )
    kept = of_run(run_id, workspace)
    judgement = judge(kept.measurements, kept.plan)
    rows = attempts(kept.measurements, judgement)
    for kind, folder in folders.items():
        for path in files.write(folder, rows, judgement, kind):
            print_lines(str(path))
