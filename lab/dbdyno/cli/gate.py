"""`dbdyno gate`: a run's verdicts as an exit status, for CI.

0 when the gate holds, 3 when it does not. The verdicts behind it go to stdout, and on
demand into a JUnit file and a comment for a pull request.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dbdyno import api
from dbdyno.cli import options
from dbdyno.errors import GateError, StoreError, UsageError
from dbdyno.judge.uses.gate import GateOutcome
from dbdyno.language.catalogues import Language
from dbdyno.plan.spelling import ratio
from dbdyno.report.formats.gate import GateResult, junit
from dbdyno.report.formats.stdout import Output, render


def command(
    run: options.RunOrBundle,
    fail_if_slower: options.Slower = None,
    strict: options.Strict = False,
    junit_file: options.JUnit = None,
    comment: options.Comment = None,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Fail if a run proves a system slower than allowed: exit status 3."""
    asked = None if fail_if_slower is None else share(fail_if_slower)
    judged = api.load(run, workspace)
    slower_max = judged.plan.design.margin if asked is None else asked
    held = judged.gate(slower_max, strict=strict)
    result = GateResult(held, judged.judgement, judged.facts)
    sys.stdout.write(render(result, output, lang))
    if junit_file is not None:
        write(junit_file, junit(held, judged.facts))
    if comment is not None:
        text = render(result, Output.MARKDOWN, lang)
        write(comment, text.encode())
    if not held.holds:
        slower = [p.text for p in held.passages if p.outcome is GateOutcome.SLOWER]
        raise GateError(
            str(held.text),
            found=slower[0] if slower else None,
            hint=f"the whole report: dbdyno report {run}",
        )


def share(text: str) -> float:
    """0.03 of `3%` or `0.03`; UsageError for what is no share between 0 and 1."""
    value = ratio(text.replace(" ", ""))
    try:
        found = float(value) if isinstance(value, (str, float)) else -1.0
    except ValueError:
        found = -1.0
    if not 0 <= found < 1:
        raise UsageError(
            f"--fail-if-slower {text} is no share",
            wanted="such as 3% or 0.03, from 0 to below 100%",
            found=repr(text),
        )
    return found


def write(path: Path, content: bytes) -> None:
    """Writes a file that was asked for; StoreError if that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written", found=error.strerror, hint="give another file"
        ) from error
