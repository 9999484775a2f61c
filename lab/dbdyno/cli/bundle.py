"""`dbdyno bundle`, `verify` and `replay`: a run's evidence in a file, checked, and run again."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path

from dbdyno import api
from dbdyno.cli import flow, options
from dbdyno.cli.flow import ReportOptions
from dbdyno.cli.progress import note
from dbdyno.errors import DbdynoError, UsageError
from dbdyno.language.catalogues import Language
from dbdyno.language.words import count
from dbdyno.plan.plan import Plan
from dbdyno.plan.risks import risks
from dbdyno.report.formats.replay import replay as replayed
from dbdyno.report.formats.stdout import Output, printable, render
from dbdyno.store import bundle
from dbdyno.store.store import LATEST, opened


def pack(
    run: options.Run,
    out: options.Out = None,
    workspace: options.Workspace = options.WORKSPACE,
) -> None:
    """Write all evidence behind a run's verdicts into one file."""
    evidence = api.load(run, workspace).evidence
    path = out if out is not None else Path(f"{evidence.run.run_id}{bundle.SUFFIX}")
    digest = bundle.write(path, evidence.run, evidence.measurements, evidence.earlier)
    sys.stdout.write(f"{path}\n")
    note(
        f"{count(len(evidence.measurements), 'measurement')}, {path.stat().st_size / 1e6:.1f} MB;"
        f" SHA-256 of its sums: {digest}"
    )


def verify(
    name: options.Verified = LATEST,
    workspace: options.Workspace = options.WORKSPACE,
) -> None:
    """Check that a run or a bundle is as it was stored."""
    evidence = api.load(name, workspace).evidence
    held = count(len(evidence.measurements), "measurement")
    if evidence.digest:
        sys.stdout.write(
            f"{name}: {held} as its sums say; SHA-256 of the sums: {evidence.digest}\n"
        )
        return
    run_id = evidence.run.run_id
    with opened(evidence.folder.parent) as store:
        digest = store.verified(run_id)
    told = f"as stored; last digest of its chain: {digest}"
    if not digest:
        told = "can be read; an older dbdyno stored them, without digests"
    sys.stdout.write(f"run {run_id}: {held} {told}\n")


def replay(
    name: options.Replayed,
    again: options.With = None,
    trust: options.Trust = False,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Run a bundle's experiment again and compare the two."""
    first = api.load(name, workspace)
    if again is None:
        _refuse_risks(first.plan, name, trusted=trust or not first.evidence.digest)
        again = _run_again(first, name, workspace)
    second = api.load(again, workspace)
    compared = replayed(first.side, second.side)
    sys.stdout.write(render(compared, output, lang))


def _run_again(first: api.Run, name: str, workspace: Path) -> str:
    """Runs the plan; its result goes to stderr, because stdout is for the comparison."""
    command = shlex.join(["dbdyno", "replay", name])
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return flow.begin(first.plan, workspace, command, ReportOptions(Output.PLAIN))
    except DbdynoError:
        note(f"when the run is complete: {command} --with latest")
        raise


def _refuse_risks(plan: Plan, name: str, *, trusted: bool) -> None:
    asked = list(risks(plan))
    for risk in asked:
        note(f"the bundle's plan asks for this: {printable(risk)}")
    if asked and not trusted:
        raise UsageError(
            f"{name} was made elsewhere and asks for more than known servers and plain settings",
            found=f"{len(asked)} such; see above",
            hint="if you trust whoever made it, add --trust",
        )
