"""Verdicts of stored runs as an exit status for CI (`dbdyno gate`), and over time (`history`).

The gate's status is 0 if it holds, 3 if it fails, 4 if it fails for void comparisons alone. The
verdicts behind it go to stdout, and on demand into a JUnit file. `run` and its like ask here as
well: a run whose cells are all void is an error, and `--exit-code` tells undecided ones apart.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dbdyno import api
from dbdyno.cli import options
from dbdyno.cli.progress import note
from dbdyno.errors import GateError, LoadError, StoreError, UsageError, VoidError
from dbdyno.judge.finding import Finding
from dbdyno.judge.uses.gate import GateOutcome
from dbdyno.judge.verdict import Word
from dbdyno.language.catalogues import Language
from dbdyno.language.words import count
from dbdyno.measurement.disturbance import current
from dbdyno.plan.known import Fact, known_of
from dbdyno.plan.plan import comparisons
from dbdyno.plan.spelling import ratio
from dbdyno.report.formats import history
from dbdyno.report.formats.gate import GateResult, junit, ordered, whole
from dbdyno.report.formats.gate import text as text_of
from dbdyno.report.formats.history import History, RunVerdicts
from dbdyno.report.formats.replay import differences
from dbdyno.report.formats.stdout import Output, render
from dbdyno.report.rows import CHECKS_OF_ATTEMPTS
from dbdyno.report.tell import findings as tell
from dbdyno.store.evidence import of_stored
from dbdyno.store.reading import StoredRun, UnreadableRun
from dbdyno.store.store import Store, opened

RUNS: Final = 20
"""Number of runs that a history lists without --last, the newest."""


def gate_command(
    run: options.RunOrBundle,
    fail_if_slower: options.Slower = None,
    against: options.Against = None,
    strict: options.Strict = False,
    junit_file: options.JUnit = None,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Fail if a run shows a system slower than the baseline. --fail-if-slower says how much slower
    a system may be. --against asks for systems that have become slower since an earlier run. The
    exit status is 3 if the gate fails, or 4 if every comparison that makes it fail has too few
    valid measurements.
    """
    limit = None if fail_if_slower is None else share(fail_if_slower)
    judged = api.load(run, workspace)
    slower_max = judged.plan.design.margin if limit is None else limit
    earlier = None if against is None else api.load(against, workspace)
    held = judged.gate(slower_max, strict=strict, against=earlier)
    unlike = () if earlier is None else differences(earlier.side, judged.side)
    result = GateResult(held, judged.judgement, judged.facts, unlike)
    sys.stdout.write(render(result, output, lang))
    if junit_file is not None:
        write(junit_file, junit(held, judged.facts))
    if not held.holds:
        causes = [p for p in ordered(held) if p.outcome is GateOutcome.SLOWER or p.reasons]
        error = VoidError if held.fails_by_void else GateError
        words = ("report", run) if against is None else ("replay", against, "--with", run)
        page = "the whole report" if against is None else "both runs side by side"
        raise error(
            str(whole(held)),
            found=text_of(causes[0], slower_max) if causes else None,
            hint=f"{page}: {options.next_command(*words, workspace=workspace)}",
        )


def check_verdicts(run: api.Run, *, exit_code: bool) -> None:
    """Raise an error for a void run; with `exit_code` also for undecided cells.

    Raises:
        LoadError: every cell is void.
        VoidError: `exit_code`, and some cell is void.
        GateError: `exit_code`, and some workload or cell, as the plan asks, is undecided, or has no
            verdict.
    """
    words = Counter(verdict.word for verdict in run.judgement.all_verdicts)
    void, cells = words[Word.VOID], words.total()
    is_void = void == cells if cells else not run.judgement.values
    if is_void or (void and exit_code):
        cause, remedy = _void_for(run)
        raise (VoidError if exit_code else LoadError)(
            "every cell is void: nothing can be said of any system"
            if is_void
            else f"void verdicts: {void} of {cells}",
            found=cause,
            hint=remedy,
        )
    answers = Counter(one.word for one in run.judgement.answers(run.plan.design))
    if exit_code and (left := answers[Word.UNDECIDED] + answers[Word.NO_VERDICT]):
        raise GateError(
            f"verdicts without enough data: {left} of {answers.total()}",
            hint="docs/how-to/errors.md says what to do, by the word",
        )


def _void_for(run: api.Run) -> tuple[str | None, str | None]:
    """The most frequent cause of void trials, with an example of its evidence, and the remedy."""
    measured = current(run.trials)
    reasons: dict[str, set[str]] = defaultdict(set)
    first: dict[str, Finding] = {}
    for finding in run.judgement.findings:
        if keys := {m.trial.key for m in measured if finding.voids(m.trial)}:
            reasons[finding.check] |= keys
            first.setdefault(finding.check, finding)
    if not reasons:
        return None, None
    check = max(reasons, key=lambda name: len(reasons[name]))
    anew = "" if check in CHECKS_OF_ATTEMPTS else "; then measure in a new run"
    return (
        f"{check} in {len(reasons[check])} of {count(len(measured), 'trial')},"
        f" such as: {tell.evidence(first[check])}",
        f"{tell.advice(first[check], run.judgement.known)}{anew}",
    )


def share(text: str) -> float:
    """Parse a share: 0.03 of `3%` or `0.03`; UsageError outside 0 to 1."""
    value = ratio(text.replace(" ", ""))
    try:
        number = float(value) if isinstance(value, (str, float)) else -1.0
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise UsageError(
            f"--fail-if-slower {text} is no share",
            wanted="such as 3% or 0.03, from 0 to below 100%",
            found=repr(text),
        )
    return number


def write(path: Path, content: bytes) -> None:
    """Write an output file; StoreError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written", found=error.strerror, hint="give another file"
        ) from error


def history_command(
    label: options.Label = None,
    last: options.Last = RUNS,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """List a system's verdicts in all stored runs."""
    with opened(workspace) as store:
        runs = _compared(_readable(store), label)
        entries = list(_entries(store, runs[:last], workspace))
    sys.stdout.write(render(History(history.entries(entries, label)), output, lang))
    for run in runs[:last]:
        if known_of(run.plan).has(Fact.ELSEWHERE):
            note(f"run {run.run_id} ({run.plan.title}) was imported: no verdict")
    if len(runs) > last:
        note(f"{last} of {count(len(runs), 'run')}; for more: --last {len(runs)}")


def _readable(store: Store) -> list[StoredRun]:
    """Readable runs without sampled stacks; prints the reason for each run that is left out."""
    readable = []
    for run in store.listed():
        if isinstance(run, UnreadableRun):
            _note_unreadable(run.run_id, run.reason)
        elif run.plan.procedure.sample_stacks:
            note(f"run {run.run_id} is left out, as sampling stacks slowed its servers")
        else:
            readable.append(run)
    return readable


def _note_unreadable(run_id: str, reason: str) -> None:
    note(f"run {run_id} is left out, as it cannot be read: {reason}")


def _compared(runs: list[StoredRun], label: str | None) -> list[StoredRun]:
    """Runs with a comparison of the label with a baseline; UsageError if there are no such runs."""
    labels = {run.run_id: [one.arm.label for one in comparisons(run.plan)] for run in runs}
    comparing = [run for run in runs if labels[run.run_id] and label in (None, *labels[run.run_id])]
    if not comparing:
        known = sorted({name for names in labels.values() for name in names})
        raise UsageError(
            f"no run here compares {label or 'anything'} with a baseline",
            wanted=", ".join(known) or "a run of two systems",
            found=count(len(runs), "run"),
            hint="the first system of a run is its baseline and has no verdict",
        )
    return comparing


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
