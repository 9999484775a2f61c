"""The command run: the engine is told what to do, and what it tells is printed.

A run that fails prints no report, as in sysbench: scripts take a report for a run that went well.
How far it came is said on stderr, and the forms for machines tell what was measured until then.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO

from dbdyno import _engine
from dbdyno.sysbench import report_blocks
from dbdyno.sysbench.ending import Run, result, status
from dbdyno.sysbench.failure import THREAD_INIT, failure_of, run_lines
from dbdyno.sysbench.general import General
from dbdyno.sysbench.options.refusal import fatal
from dbdyno.sysbench.output import Output
from dbdyno.sysbench.report import Ending, header, report
from dbdyno.sysbench.report_interval import Stretch
from dbdyno.sysbench.request import Request
from dbdyno.sysbench.signals import Outcome, stoppable
from dbdyno.sysbench.teller import Teller
from dbdyno.sysbench.totals import TIMER_LAG, Totals

INITIALIZING = "Initializing worker threads...\n"
FORCED_SHUTDOWN = 2
"""Exit status of a run whose last events were given up."""

_LIMITS = {"time": "Time limit", "events": "Event limit"}


def run(request: Request, output: Output) -> int:
    """Drives the load and prints header, interval lines and report.

    Returns:
        0; 2 when events in flight were given up as asked; 128 + n when signal n ended it.

    Raises:
        Refusal: the options are wrong, the load could not begin, or an error ended it.
    """
    spec, general = request.run_spec(), request.general
    with _opened(general) as stream:
        if not general.time_s and not general.events:
            output.warning("Both event and time limits are disabled, running an endless test")
        output.notice(header(general))
        output.notice(INITIALIZING)
        rows = _rows(general, stream) if general.telling.output == "csv" else None
        teller = Teller(general, output, rows)
        text = json.dumps(spec)
        outcome = stoppable(lambda stop: _engine.run(text, teller.tell, stop), _engine.Stop())
        told = _told(outcome, teller, general)
        _write(told, request, spec["seed"], stream)
        record = json.loads(result(outcome, request, THREAD_INIT))
        teller.started()
        _tell_end(record, request, teller, output)
        return told.exit_status


def _opened(general: General) -> AbstractContextManager[TextIO]:
    """Where a form for machines goes; opened before the run, so that a mistake costs none."""
    path = general.telling.output_file
    if not path:
        return nullcontext(sys.stdout)
    try:
        return open(path, "w", encoding="utf-8")  # noqa: PTH123 - pathlib costs start-up time
    except OSError as error:
        raise fatal(f"Cannot write --output-file={path}: {error.strerror}") from error


def _rows(general: General, stream: TextIO) -> Callable[[Totals, Stretch], None]:
    from dbdyno.sysbench import output_csv  # noqa: PLC0415 - only who asks for it pays for it

    stream.write(output_csv.head(general.telling.percentiles))
    stream.flush()

    def write(totals: Totals, stretch: Stretch) -> None:
        stream.write(output_csv.row(totals, stretch))
        stream.flush()

    return write


def _told(outcome: Outcome, teller: Teller, general: General) -> Run:
    """The run as the forms for machines see it."""
    record: dict[str, Any] = json.loads(outcome.result) if outcome.result else {}
    failure = record.get("failure")
    if isinstance(outcome.error, RuntimeError | ValueError):
        failure = failure_of(outcome.error)
    exit_status = status(outcome) or (1 if failure else 0)
    if not exit_status and _is_forced(record, general):
        exit_status = FORCED_SHUTDOWN
    return Run(record, failure, teller.begun_at, exit_status)


def _is_forced(record: Mapping[str, Any], general: General) -> bool:
    is_asked = general.forced_shutdown_s is not None
    return is_asked and record.get("stopped_by") == "time" and record.get("unfinished", 0) > 0


def _write(run: Run, request: Request, seed: int, stream: TextIO) -> None:
    form = request.general.telling.output
    if form == "json":
        from dbdyno.sysbench import formats  # noqa: PLC0415 - as above

        stream.write(formats.document(request, seed, run))
    elif form == "hlog":
        from dbdyno.sysbench import output_hlog  # noqa: PLC0415 - as above

        begin_s = request.general.warmup_s
        intervals = _measured(run.record)
        stream.write(output_hlog.log(intervals, run.begun_at or 0.0, begin_s))
    stream.flush()


def _measured(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in record.get("intervals", []) if one.get("phase") != "warmup"]


def _tell_end(record: Mapping[str, Any], request: Request, teller: Teller, output: Output) -> None:
    """The report and all that is said after it, or why there is none."""
    general, intervals = request.general, _measured(record)
    totals = Totals.of(intervals)
    if note := report_blocks.stall(intervals, general.warmup_s):
        output.note(note)
    if record["failure"] is not None:
        output.note(
            f"the run failed after {totals.seconds:.1f} s; until then {totals.events} events"
            f" ({totals.per_s(totals.events):.2f} per second) were completed"
        )
        raise fatal(*run_lines(record["failure"], prepared=request.is_prepared()))
    unfinished = record.get("unfinished", 0)
    is_forced = _is_forced(record, general)
    if limit := _LIMITS.get(record["stopped_by"]):
        output.info(f"{limit} exceeded, exiting...\nDone.\n")
    if is_forced:
        output.fatal("The --max-time limit has expired, forcing shutdown...")
    elif unfinished:
        output.note(f"{unfinished} events in flight were given up")
    since_s = general.warmup_s + teller.checkpoint_s
    last = [one for one in intervals if one["start_s"] >= since_s - general.telling.step_s() / 2]
    ending = Ending(totals.seconds, record["fairness"], unfinished if is_forced else None)
    output.notice(report(Totals.of(last) if teller.checkpoint_s else totals, general, ending))
    _tell_more(record, totals, general, output)


def _tell_more(record: Mapping[str, Any], totals: Totals, general: General, output: Output) -> None:
    """The blocks that sysbench does not have, each behind an option of ours."""
    pace, telling = general.pace, general.telling
    unserved = record.get("unserved", 0)
    if pace.rate_per_s and report_blocks.is_behind(totals, unserved, general.threads):
        output.notice(report_blocks.backlog(totals, record, pace.rate_per_s))
    if pace.is_set() and TIMER_LAG in totals.histograms:
        output.notice(report_blocks.timer_lag(totals.histograms[TIMER_LAG]))
    if telling.detail:
        output.notice(report_blocks.detail(totals, record, telling.percentiles))
    for line in report_blocks.facts(record):
        output.debug(line)
