"""One run from plan to verdict: measure, judge, write the report, print the result.

The steps of the whole lab stand here in their order (`_run`), and only here: `experiment` measures
into the store, `judge` judges what the store holds, `report` writes it down. A stopped or failed
run is judged with its trials so far, and prints the command for going on.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from rich.console import Console
from rich.text import Text as Styled

from dbdyno import api
from dbdyno.cli.gate import check_verdicts
from dbdyno.cli.kept import lend_passwords
from dbdyno.cli.machines import HERE, Machines, exposing, machines_of
from dbdyno.cli.options import next_command
from dbdyno.cli.progress import Countdown, Several, note, noted, watched
from dbdyno.cli.trust import refuse_risks, remember
from dbdyno.errors import DbdynoError, Interrupted, LoadError, StoreError, UsageError
from dbdyno.experiment import certify, runner
from dbdyno.experiment.data import disk
from dbdyno.experiment.schedule.forecast import Outlook, outlook_of
from dbdyno.experiment.schedule.schedule import Enough
from dbdyno.experiment.watch import environment
from dbdyno.judge.judgement import enough, standing
from dbdyno.judge.verdict import Word
from dbdyno.language.catalogues import Language, said_in
from dbdyno.language.words import count, say
from dbdyno.measurement.disturbance import current
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import BLOCKS_LOOKED_AHEAD, Plan
from dbdyno.report.formats.stdout import Output, print_lines, render
from dbdyno.report.formats.summary import Summary
from dbdyno.report.sections.conclusion import headlines
from dbdyno.report.tell.terms import term
from dbdyno.report.tell.verdicts import duration
from dbdyno.store import evidence
from dbdyno.store.evidence import Evidence, of_stored
from dbdyno.store.reading import StoredRun
from dbdyno.store.resolved import resolved_run
from dbdyno.store.store import Store, find, opened


class ReportOptions(NamedTuple):
    """The format of the result on stdout, the language of it and of the report, the status.

    Attributes:
        exit_code: whether void and undecided verdicts have exit statuses of their own.
    """

    output: Output
    language: Language = Language.EN
    exit_code: bool = False


def begin(
    plan: Plan,
    workspace: Path,
    command: str,
    options: ReportOptions,
    machines: Machines = HERE,
) -> str:
    """Carry out a new run of a plan; returns the run's id.

    Args:
        command: the command line, stored with the run.
    """
    outlook = outlook_of(plan, machines.makers.machines)
    with Store.open(workspace) as store:
        known = {**environment.describe(workspace), **machines.environment}
        run = store.create_run(plan, command, known, len(outlook.trials))
        remember(plan)
        _run(store, run, outlook, workspace, options, machines)
    return run.run_id


def resume(
    run_id: str,
    workspace: Path,
    options: ReportOptions,
    *,
    time_s: float | None = None,
    retry: bool = False,
    trusted: bool = False,
    fleet: str = "",
    prometheus: int | None = None,
    otlp: str | None = None,
) -> None:
    """Go on with a stored run.

    Args:
        run_id: its id, or `latest`.
        time_s: added to a complete run with a time. Where the comparison was decided already, the
            added blocks are all run, for narrower intervals.
        retry: try impossible cells again.
        trusted: run a plan that was begun elsewhere, whatever it asks for.
        fleet: address of a cluster, if the plan wants one; any will do.
        prometheus: port to serve metrics on; otlp: address to push them to.

    Raises:
        UsageError: time cannot be added to this run; a plan of risk was begun elsewhere.
    """
    with opened(workspace) as store:
        run = resolved_run(store, find(store, run_id))
        refuse_risks(run.plan, f"run {run.run_id}", trusted=trusted)
        if time_s is not None:
            _refuse_more_time(store, run, workspace, fleet)
        with machines_of(run.plan, fleet) as plain, exposing(plain, prometheus, otlp) as machines:
            if time_s is not None:
                run = _with_more_time(store, run, time_s, machines.makers.machines)
            outlook = outlook_of(run.plan, machines.makers.machines)
            _run(store, run, outlook, workspace, options, machines, retry=retry)


def _refuse_more_time(store: Store, run: StoredRun, workspace: Path, fleet: str) -> None:
    """Raise UsageError for a run without a time, an incomplete run, or too many blocks."""
    if run.plan.design.time_s is None:
        raise UsageError(
            f"nothing can be added to run {run.run_id}",
            wanted="a run begun with --time, whose intervals allow for blocks added later",
            found=f"a run of {count(run.plan.design.blocks, 'block')}, fixed in advance",
            hint="begin a new run with --time, or with more blocks",
        )
    is_complete = evidence.completion(store, run.run_id).complete
    if run.plan.design.chosen is None or not is_complete:
        raise UsageError(
            f"run {run.run_id} is not complete",
            hint=f"finish it first: {_command('resume', run, workspace, fleet)}",
        )
    so_far = store.blocks_begun(run.run_id)
    if so_far >= BLOCKS_LOOKED_AHEAD:
        raise UsageError(
            f"no block can be added to run {run.run_id}",
            wanted=f"a run of fewer than {BLOCKS_LOOKED_AHEAD} blocks",
            found=f"one of {so_far}",
            hint="begin a new run",
        )


def _with_more_time(store: Store, run: StoredRun, time_s: float, machines: int) -> StoredRun:
    """The run with a design of as many more blocks as fit into the time, which is stored."""
    design, so_far = run.plan.design.chosen, store.blocks_begun(run.run_id)
    assert design is not None
    further = machines * max(1, int(time_s / design.block_s))
    wider = {
        "blocks": min(BLOCKS_LOOKED_AHEAD, so_far + further),
        "additions": design.additions + 1,
        "all_blocks": enough(store.measurements(run.run_id), run.plan),
    }
    store.choose(run.run_id, design.model_copy(update=wider))
    return resolved_run(store, run)


def report(name: str, workspace: Path, options: ReportOptions, folder: Path | None = None) -> None:
    """Judge a stored run or a bundle and write its report, into the run's folder or another."""
    judged = _report(evidence.load(name, workspace), options, folder)
    if options.exit_code:
        check_verdicts(judged, exit_code=True)


def summarise(run_id: str, workspace: Path, options: ReportOptions) -> None:
    """Judge a stored run and print its result; `dbdyno report` draws its charts, for seconds."""
    run = api.Run(evidence.load(run_id, workspace))
    _print_result(run, options, next_command("report", run_id, workspace=workspace))


def _run(
    store: Store,
    run: StoredRun,
    outlook: Outlook,
    workspace: Path,
    options: ReportOptions,
    machines: Machines,
    *,
    retry: bool = False,
) -> None:
    """Measure the remaining trials, then judge and report all stored trials.

    Args:
        machines: released after measuring.

    Raises:
        Interrupted, DbdynoError: the measurement's error; raised after the report.
        LoadError: all trials were tried, and some failed; or every cell is void.
    """
    if run.plan.is_imported:
        raise UsageError(
            f"run {run.run_id} was measured by another tool",
            wanted="a run of dbdyno's own, which can go on",
            hint=f"its report: {_command('report', run, workspace, '')};"
            " to measure: dbdyno compare --help",
        )
    lend_passwords(workspace, run.plan)
    note(_announcement(run.run_id, outlook))
    if need := disk.need(run.plan):
        note(f"disk: {need}")
    if (known := certify.known()).failed:
        note(
            f"the load generator did not pass on this machine ({known.made_at}), so all trials of"
            " this run will be void; to certify it again (one minute): dbdyno certify"
        )
    try:
        ended_by = _measure(store, run, outlook, workspace, machines, retry)
    finally:
        machines.release()
    resume = _command("resume", run, workspace, machines.address)
    if ended_by is None or store.done(run.run_id):
        if ended_by is not None:
            note("writing the report of the stored trials; Ctrl-C skips it")
        try:
            judged = _report(of_stored(store, run, workspace), options)
        except KeyboardInterrupt:
            if ended_by is None:
                raise Interrupted(
                    "the report was interrupted",
                    found="all that was measured is stored",
                    hint=f"to write it: {_command('report', run, workspace, '')}",
                ) from None
    if ended_by is not None:
        _raise_with_resume_command(ended_by, store, run, resume)
    _raise_if_incomplete(store, run, resume)
    left = [one for one in judged.judgement.answers(run.plan.design) if one.is_open]
    if any(one.blocks_needed or one.word is not Word.UNDECIDED for one in left):
        _note_more(run, workspace, machines.address)
    check_verdicts(judged, exit_code=options.exit_code)


def _note_more(run: StoredRun, workspace: Path, fleet: str) -> None:
    """Name the command for more blocks, where these would decide a verdict."""
    if run.plan.design.time_s is None:
        note("some verdicts lack data; for narrower intervals begin a run of more blocks")
    else:
        more = _command("resume", run, workspace, fleet)
        note(f"to add time to this run: {more} --time TIME")


def _measure(
    store: Store,
    run: StoredRun,
    outlook: Outlook,
    workspace: Path,
    machines: Machines,
    retry: bool,
) -> DbdynoError | KeyboardInterrupt | None:
    """Run the remaining trials; returns the error of an early end, or None.

    Raises:
        StoreError: the store cannot be written, or read for the report.
    """
    try:
        done = 0 if retry else evidence.completion(store, run.run_id).done
        countdown = Countdown(len(outlook.trials), done, outlook.seconds)
        console, folder = Console(stderr=True), workspace / run.run_id
        with watched(console, folder, countdown, machines.watching) as seen:
            runner.run(store, run, workspace, seen, machines.makers, retry, _looking(seen))
    except StoreError:
        raise
    except (KeyboardInterrupt, DbdynoError) as error:
        return error
    except OSError as error:
        return LoadError(
            "the operating system refuses a file that the run needs",
            found=str(error),
            hint="check the disk's free space and health, and the owner of the folder",
        )
    return None


def _looking(seen: Several) -> Enough:
    """Judge the run after a block, and show its headlines so far."""
    shown: list[str] = []

    def look(measurements: Sequence[Measurement], plan: Plan) -> bool:
        judged = standing(measurements, plan)
        if judged is None:
            return False
        blocks = count(max(measured.trial.block for measured in measurements) + 1, "block")
        for line in headlines(plan, judged):
            if (text := f"after {blocks}: {line}") not in shown:
                shown.append(text)
                seen.note(text)
        return judged.is_decided(plan.design)

    return look


def _report(stored: Evidence, options: ReportOptions, folder: Path | None = None) -> api.Run:
    """Judge the stored trials of a run, write the report, print the result."""
    run = api.Run(stored)
    with noted("judging and writing the report"):
        written = run.report(folder, options.language)
    _print_result(run, options, f"{written.html}\n        {written.markdown}")
    return run


def _print_result(run: api.Run, options: ReportOptions, place: str) -> None:
    """Print the result, and the place of its report."""
    summary = Summary(run.plan, run.judgement, run.facts)
    _print(render(summary, options.output, options.language), options.language)
    page = said_in(say("report: {path}", path=place), options.language)
    stream = sys.stdout if options.output is Output.PLAIN else sys.stderr
    print_lines(f"\n{page}", stream)


COLOURS: Final[Mapping[Word, str]] = {
    Word.BETTER: "bold green",
    Word.WORSE: "bold red",
    Word.UNDECIDED: "bold yellow",
}


def _print(result: str, language: Language) -> None:
    """Print a result, with the words of verdicts in colour on a terminal."""
    if not sys.stdout.isatty():
        sys.stdout.write(result)
        return
    text = Styled(result)
    for word, colour in COLOURS.items():
        text.highlight_words([said_in(term(word), language)], style=colour)
    Console(highlight=False, soft_wrap=True).print(text, end="")


def _announcement(run_id: str, outlook: Outlook) -> str:
    design, time = outlook.plan.design, duration(outlook.seconds)
    if design.chosen:
        return f"run {run_id}: {count(design.blocks, 'block')} at most"
    if design.time_s is not None:
        return (
            f"run {run_id}: {duration(design.time_s)} of measuring, about {time} with loading;"
            " it ends when every verdict has enough data"
        )
    pilot = " after a pilot" if outlook.pilot_trials else ""
    until, ends = "", ""
    if design.stop == "decided":
        until, ends = " at most", "; it ends when every verdict has enough data"
    trials = f"{count(len(outlook.trials), 'trial')}{until}{pilot}"
    return f"run {run_id}: {trials}, about {time} for all of them{ends}"


def _raise_with_resume_command(
    ended_by: DbdynoError | KeyboardInterrupt, store: Store, run: StoredRun, resume: str
) -> NoReturn:
    completion = evidence.completion(store, run.run_id)
    stored = f"{completion.done} of {count(completion.planned, 'trial')} are stored"
    if isinstance(ended_by, KeyboardInterrupt):
        raise Interrupted(
            "the run was interrupted",
            found=f"{stored}; nothing stored is measured again",
            hint=f"to go on: {resume}",
        )
    note(f"{stored}; to go on: {resume}")
    raise ended_by


def _raise_if_incomplete(store: Store, run: StoredRun, resume: str) -> None:
    """Raises LoadError for a run with failed trials; its report is written all the same."""
    completion = evidence.completion(store, run.run_id)
    if completion.complete:
        return
    done = store.done(run.run_id)
    tried = current(store.measurements(run.run_id))
    failed = [m for m in tried if m.trial.key not in done]
    raise LoadError(
        f"{len({m.trial.key for m in failed})} of {count(completion.planned, 'trial')} failed",
        found=failed[-1].failure if failed else None,
        hint=f"to measure them again: {resume}",
    )


def _command(command: str, run: StoredRun, workspace: Path, fleet: str) -> str:
    typed = next_command(*command.split(), run.run_id, workspace=workspace)
    return f"{typed} --fleet {shlex.quote(fleet)}" if fleet else typed
