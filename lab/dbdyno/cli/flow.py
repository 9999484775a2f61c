"""One run from plan to verdict: measure, judge, write the report, say the result.

The steps of the whole lab stand here in their order, and only here: bench measures into the
store, judge reads what the store holds, report tells it. A run that was stopped or failed half-way
goes the same way with what it has, and says how to go on.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from dbdyno import api
from dbdyno.cli import progress as cli_progress
from dbdyno.cli.progress import fed
from dbdyno.errors import DbdynoError, Interrupted, LoadError, StoreError, UsageError
from dbdyno.experiment import forecast, order, runner
from dbdyno.experiment.watch import environment
from dbdyno.judge.judgement import enough
from dbdyno.judge.wording import duration
from dbdyno.language.catalogues import Language, said_in
from dbdyno.language.words import count, say
from dbdyno.plan.pilot import foreseen, trials_expected
from dbdyno.plan.plan import Plan
from dbdyno.report.formats.stdout import Output, render
from dbdyno.report.formats.summary import Summary
from dbdyno.store import evidence
from dbdyno.store.evidence import Evidence, of_stored
from dbdyno.store.reading import StoredRun
from dbdyno.store.store import Store, find, opened


class ReportOptions(NamedTuple):
    """How a result is told."""

    output: Output
    language: Language


def begin(
    plan: Plan,
    workspace: Path,
    command: str,
    output: Output,
    language: Language = Language.EN,
) -> str:
    """Measures a plan from its first trial on, and tells the result; returns the run's id."""
    with Store.open(workspace) as store:
        planned = len(order.trials_of(foreseen(plan), ""))
        run = store.create_run(plan, command, environment.describe(), planned)
        _measure_and_tell(store, run, workspace, ReportOptions(output, language))
    return run.run_id


def resume(
    run_id: str,
    workspace: Path,
    output: Output,
    *,
    retry: bool = False,
    language: Language = Language.EN,
) -> None:
    """Measures what a run still lacks, and tells the result.

    Args:
        retry: cells that could not be run are tried again.
    """
    with opened(workspace) as store:
        telling = ReportOptions(output, language)
        _measure_and_tell(store, find(store, run_id), workspace, telling, retry=retry)


def resume_plan(
    plan: Plan,
    workspace: Path,
    output: Output,
    *,
    retry: bool = False,
    language: Language = Language.EN,
) -> None:
    """Goes on with the newest unfinished run of the very same plan.

    Args:
        retry: cells that could not be run are unfinished, and are tried again.

    Raises:
        UsageError: there is none.
    """
    with opened(workspace) as store:
        runs = store.runs()
        same = [r for r in runs if r.plan.hash() == plan.hash()]
        unfinished = [
            run
            for run in same
            if not evidence.standing(store, run.run_id, impossible=not retry).complete
        ]
        if not unfinished:
            raise UsageError(
                "there is nothing to resume",
                wanted="an unfinished run of exactly this plan",
                found=f"{count(len(runs), 'run')} in {workspace}, none of them so",
                hint="leave --resume out to begin anew",
            )
        _measure_and_tell(
            store, unfinished[0], workspace, ReportOptions(output, language), retry=retry
        )


def tell(name: str, workspace: Path, output: Output, language: Language = Language.EN) -> None:
    """Judges a stored run or a bundle again and writes its report again."""
    _tell(evidence.load(name, workspace), ReportOptions(output, language))


def _measure_and_tell(
    store: Store, run: StoredRun, workspace: Path, telling: ReportOptions, *, retry: bool = False
) -> None:
    _note(_what_lies_ahead(run))
    try:
        blocks = run.plan.design.blocks
        with (
            cli_progress.shown(Console(stderr=True), blocks) as shown,
            cli_progress.logged(shown, workspace / run.run_id, blocks) as logged,
            fed(logged, workspace / run.run_id, blocks) as watched,
        ):
            runner.run(
                run.plan,
                store,
                run,
                workspace,
                watched,
                retry=retry,
                enough=_enough(store, run),
            )
    except (KeyboardInterrupt, Interrupted):
        _tell_what_is_there(store, run, workspace, telling)
        raise Interrupted(
            "the run was interrupted",
            found=f"{_progress_of(store, run.run_id)}; nothing stored is measured again",
            hint=f"to go on: {_resume_command(run, workspace)}",
        ) from None
    except StoreError:
        raise
    except DbdynoError:
        _tell_what_is_there(store, run, workspace, telling)
        done = _progress_of(store, run.run_id)
        _note(f"{done}; to go on: {_resume_command(run, workspace)}")
        raise
    _tell(of_stored(store, run, workspace), telling)
    _raise_if_incomplete(store, run, workspace)


def _enough(store: Store, run: StoredRun) -> runner.Enough | None:
    """What is asked before each further block; None for a run that takes all of its blocks."""
    if run.plan.design.stop == "blocks":
        return None
    return lambda measurements: enough(measurements, store.run(run.run_id).plan)


def _what_lies_ahead(run: StoredRun) -> str:
    pilot = " after a pilot" if trials_expected(run.plan) else ""
    until, ends = "", ""
    if run.plan.design.stop == "decided":
        until, ends = " at most", "; it ends when every cell is decided"
    seconds = duration(forecast.seconds_expected(run.plan))
    trials = f"{count(evidence.trials_at_most(run), 'trial')}{until}{pilot}"
    return f"run {run.run_id}: {trials}, about {seconds} for all of them{ends}"


def _raise_if_incomplete(store: Store, run: StoredRun, workspace: Path) -> None:
    """A run whose trials had their turn but failed is told, and is a failure all the same."""
    standing = evidence.standing(store, run.run_id)
    if standing.complete:
        return
    done = store.done(run.run_id)
    failed = [m for m in store.measurements(run.run_id) if m.trial.key not in done]
    raise LoadError(
        f"{len({m.trial.key for m in failed})} of {count(standing.owed, 'trial')} failed",
        found=failed[-1].failure if failed else None,
        hint=f"to measure them again: {_resume_command(run, workspace)}",
    )


def _tell_what_is_there(
    store: Store, run: StoredRun, workspace: Path, telling: ReportOptions
) -> None:
    if store.done(run.run_id):
        _tell(of_stored(store, run, workspace), telling)


def _progress_of(store: Store, run_id: str) -> str:
    standing = evidence.standing(store, run_id)
    return f"{standing.done} of {count(standing.owed, 'trial')} are stored"


def _resume_command(run: StoredRun, workspace: Path) -> str:
    return shlex.join(["dbdyno", "compare", "--resume", run.run_id, "--workspace", str(workspace)])


def _tell(kept: Evidence, telling: ReportOptions) -> None:
    """Judges what is stored of a run, writes the report, prints the result on stdout."""
    run, (output, language) = api.Run(kept), telling
    if kept.complete and not kept.digest:
        with opened(kept.folder.parent) as store:
            store.note_controls(run.id, run.judgement.controls)
    written = run.report(language=language)
    sys.stdout.write(render(Summary(run.plan, run.judgement, run.facts), output, language))
    page = said_in(say("report: {path}", path=written.html), language)
    paths = f"\n{page}\n        {written.markdown}\n"
    (sys.stdout if output is Output.PLAIN else sys.stderr).write(paths)


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")
