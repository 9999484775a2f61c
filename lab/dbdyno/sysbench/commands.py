"""The commands run, prepare, prewarm and cleanup: drive the engine and print sysbench's lines.

A failed run prints no report, as in sysbench: scripts take a report for success. Its progress goes
to stderr, and the formats for machines hold the intervals until then. One difference from sysbench
is on purpose: a failed prepare exits 1 with several threads too.
"""

from __future__ import annotations

import sys
import time

from dbdyno import _engine
from dbdyno.sysbench.console import ConsoleOutput, ProgressBar
from dbdyno.sysbench.ending import (
    CLEANUP,
    COMMAND,
    END_S_MAX,
    RATE,
    THREAD_INIT,
    CommandOutcome,
    SysbenchRun,
    failure_of,
    not_ready,
    result,
    run_failure_lines,
    status,
    stoppable,
)
from dbdyno.sysbench.options.values import Refusal, fatal
from dbdyno.sysbench.report import (
    Ending,
    IntervalSummary,
    backlog,
    detail,
    facts,
    header,
    histogram,
    interval_line,
    is_behind,
    queue_line,
    report,
    stall,
    time_label,
    timer_lag,
)
from dbdyno.sysbench.request import General, Request
from dbdyno.sysbench.totals import EVENT, TIMER_LAG, Totals, without_warmup
from dbdyno.sysbench.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TextIO

    Listener = Callable[[Totals, IntervalSummary], None]
    """Takes each whole interval, as totals and as what its line says."""

INITIALIZING = "Initializing worker threads...\n"
REPORT_S_MAX = 10.0
"""A running load ends within half a second; a slow machine gets more, for its report. A script gets
no more, as it may go on for ever."""

QUEUE_LENGTH = 131_071
QUEUE_IS_FULL = (
    "The event queue is full. This means the worker threads are unable to keep up with the"
    " specified event generation rate"
)
_MS_PER_S = 1e3
_NS_PER_S = 1e9
_SAME = ("events", "reads", "writes", "reconnects")


class ReportHooks(NamedTuple):
    """Hooks by which a script reports by itself.

    Attributes:
        report: calls a hook by its name with figures of one report; false if the script has none.
        end_intervals: called after the last interval.
    """

    report: Callable[[str, dict[str, float]], bool]
    end_intervals: Callable[[], None]

    def intermediate(self, interval: IntervalSummary) -> bool:
        """Report an interval to the script; False if it has no hook for intervals."""
        figures = {
            "threads_running": interval.connections,
            "time_interval": interval.seconds,
            "time_total": interval.at_s,
            "latency_pct": interval.latencies_ms[0] / _MS_PER_S if interval.latencies_ms else 0.0,
            "errors": interval.errors,
            "other": interval.others,
            "queue_length": interval.backlog,
            "concurrency": interval.in_flight,
        }
        figures |= {name: getattr(interval, name) for name in _SAME}
        return self.report("report_intermediate", figures)

    def cumulative(
        self, totals: Totals, general: General, time_s: float, connections: int = 0
    ) -> bool:
        """Report the run so far to the script; False if it has no hook for totals.

        Tests without a database print lines of their own before the report.

        Args:
            totals: since the last checkpoint.
            time_s: since the beginning.
            connections: still running; sysbench ends them all before its last report.
        """
        percentiles = general.output.percentiles
        figures = {
            "threads_running": connections,
            "time_interval": totals.seconds,
            "time_total": time_s,
            "latency_pct": totals.latency_ms(percentiles[0]) / _MS_PER_S if percentiles else 0.0,
            "latency_min": totals.latency_ns_min / _NS_PER_S,
            "latency_max": totals.latency_ns_max / _NS_PER_S,
            "latency_avg": totals.latency_ns_mean() / _NS_PER_S,
            "latency_sum": totals.latency_ns_sum / _NS_PER_S,
            "errors": sum(totals.errors.values()),
            "other": totals.others,
        }
        figures |= {name: getattr(totals, name) for name in _SAME}
        if self.report("report_cumulative", figures):
            return True
        self.report("print_results", figures)
        return False


def run(request: Request, output: ConsoleOutput, hooks: ReportHooks | None = None) -> int:
    """Drives the load and prints header, interval lines and report.

    Args:
        hooks: of the script that is run; they may print the reports instead.

    Returns:
        0; 2 when events in flight were given up as asked; 128 + n when signal n ended it.

    Raises:
        Refusal: the options are wrong, the load could not begin, or an error ended it.
    """
    spec, general = request.run_spec(), request.general
    stream = _opened(general)
    try:
        output.notice(header(general))
        if hooks is not None:
            hooks.report("print_head", {})
        output.notice(INITIALIZING)
        rows = _csv_rows(general, stream) if general.output.format == "csv" else None
        reporter = Reporter(general, output, rows, hooks)
        stop = _engine.Stop()

        def on_interval(live: _engine.Json) -> None:
            reporter.on_interval(live)
            if general.pace.rate_per_s and live["backlog"] >= QUEUE_LENGTH:
                stop.set()

        outcome = _kept_up(
            stoppable(
                lambda stop: _engine.run(spec, on_interval, stop),
                stop,
                lambda: END_S_MAX if reporter.begun_at is None or hooks else REPORT_S_MAX,
            )
        )
        ended = _ended(outcome, reporter, general)
        _write_results(ended, request, spec["seed"], stream)
        record = result(outcome, request, THREAD_INIT)
        reporter.on_start()
        _print_end(record, request, reporter, output)
        return ended.exit_status
    finally:
        if stream is not sys.stdout:
            stream.close()


def _kept_up(outcome: CommandOutcome) -> CommandOutcome:
    """The outcome, failed if as many events waited as sysbench's queue of a rate can hold."""
    record = outcome.result
    if record is None or record.get("failure") or record.get("unserved", 0) < QUEUE_LENGTH:
        return outcome
    failure = {"stage": RATE, "message": QUEUE_IS_FULL}
    return outcome._replace(result={**record, "failure": failure, "stopped_by": "error"})


def _opened(general: General) -> TextIO:
    """The file for JSON, CSV or hlog, opened before the run so that a bad path fails at once."""
    path = general.output.file
    if not path:
        return sys.stdout
    try:
        return open(path, "w", encoding="utf-8")  # noqa: PTH123 - pathlib costs start-up time
    except OSError as error:
        raise fatal(f"Cannot write --output-file={path}: {error.strerror}") from error


def _csv_rows(general: General, stream: TextIO) -> Listener:
    from dbdyno.sysbench import formats  # noqa: PLC0415 - start-up time of runs without it

    stream.write(formats.head(general.output.percentiles))
    stream.flush()

    def write(totals: Totals, summary: IntervalSummary) -> None:
        stream.write(formats.row(totals, summary))
        stream.flush()

    return write


def _ended(outcome: CommandOutcome, reporter: Reporter, general: General) -> SysbenchRun:
    """The run as the formats for machines describe it."""
    record: dict[str, Any] = outcome.result or {}
    failure = record.get("failure")
    if isinstance(outcome.error, RuntimeError | ValueError):
        failure = failure_of(outcome.error)
    exit_status = status(outcome) or (1 if failure else 0)
    if not exit_status and _is_forced(record, general):
        exit_status = 2
    return SysbenchRun(record, failure, reporter.begun_at, exit_status)


def _is_forced(record: Mapping[str, Any], general: General) -> bool:
    is_asked = general.forced_shutdown_s is not None
    return is_asked and record.get("stopped_by") == "time" and record.get("unfinished", 0) > 0


def _write_results(run: SysbenchRun, request: Request, seed: int, stream: TextIO) -> None:
    chosen = request.general.output.format
    if chosen == "json":
        from dbdyno.sysbench import formats  # noqa: PLC0415 - as above

        stream.write(formats.document(request, seed, run))
    elif chosen == "hlog":
        from dbdyno.sysbench.formats import log  # noqa: PLC0415 - as above

        intervals = without_warmup(run.record.get("intervals", []))
        stream.write(log(intervals, run.begun_at or 0.0, request.general.warmup_s))
    stream.flush()


def _print_end(
    record: Mapping[str, Any], request: Request, reporter: Reporter, output: ConsoleOutput
) -> None:
    """Print the report and its additions, or the reason for a missing one."""
    general, intervals = request.general, without_warmup(record["intervals"])
    totals = Totals.of(intervals)
    if reporter.is_sql() and (note := stall(intervals, general.warmup_s)):
        output.note(note)
    if record["failure"] is not None:
        output.note(
            f"the run failed after {totals.seconds:.1f} s; until then {totals.events} events"
            f" ({totals.per_s(totals.events):.2f} per second) were completed"
        )
        raise fatal(*run_failure_lines(record["failure"], request))
    unfinished = record.get("unfinished", 0)
    is_forced = _is_forced(record, general)
    if limit := {"time": "Time limit", "events": "Event limit"}.get(record["stopped_by"]):
        output.info(f"{limit} exceeded, exiting...\nDone.\n")
    if is_forced:
        output.fatal("The --max-time limit has expired, forcing shutdown...")
    elif unfinished:
        events = (
            "1 event in flight was" if unfinished == 1 else f"{unfinished} events in flight were"
        )
        output.note(f"{events} given up")
    since_s = general.warmup_s + reporter.checkpoint_s
    last = [one for one in intervals if one["start_s"] >= since_s - general.output.step_s() / 2]
    ending = Ending(totals.seconds, record["fairness"], unfinished if is_forced else None)
    reported = Totals.of(last) if reporter.checkpoint_s else totals
    hooks = reporter.hooks
    if hooks is not None:
        hooks.end_intervals()
    if general.output.histogram and EVENT in reported.histograms:
        output.notice(histogram(reported.histograms[EVENT]))
    if hooks is None or not hooks.cumulative(reported, general, totals.seconds):
        output.notice(report(reported, general, ending, is_sql=reporter.is_sql()))
    _print_more(record, totals, general, output)


def _print_more(
    record: Mapping[str, Any], totals: Totals, general: General, output: ConsoleOutput
) -> None:
    """Print the blocks of dbdyno's own options."""
    pace = general.pace
    unserved = record.get("unserved", 0)
    if pace.rate_per_s and is_behind(totals, unserved, general.threads):
        output.notice(backlog(totals, record, pace.rate_per_s))
    if pace.is_set() and TIMER_LAG in totals.histograms:
        output.notice(timer_lag(totals.histograms[TIMER_LAG]))
    if general.output.detail:
        output.notice(detail(totals, record, general.output.percentiles))
    for line in facts(record):
        output.debug(line)


class Reporter:
    """Print the start of the load, then interval lines and checkpoint reports as they end.

    Args:
        rows: takes each interval in full; needs a run with records of live intervals.
        hooks: of the script; None for a built-in test.

    Attributes:
        begun_at: start of the load, s since 1970; None before.
        checkpoint_s: the last reported checkpoint, s of the measured time; 0 before the first.
    """

    def __init__(
        self,
        general: General,
        output: ConsoleOutput,
        rows: Listener | None = None,
        hooks: ReportHooks | None = None,
    ) -> None:
        self._general = general
        self._options = general.output
        self._output = output
        self._rows = rows
        self.hooks = hooks
        self._interval: list[Mapping[str, Any]] = []
        self._since_checkpoint: list[Mapping[str, Any]] = []
        limit_s = general.time_s or float("inf")
        self._checkpoints_s = [at_s for at_s in self._options.checkpoints_s if at_s < limit_s]
        self.begun_at: float | None = None
        self.checkpoint_s = 0

    def is_sql(self) -> bool:
        """True if events have statements; a script may never ask for a database."""
        return self.hooks is None or _engine.Script.uses_database()

    def on_start(self) -> None:
        """Print the start line once all connections are open."""
        if self.begun_at is not None:
            return
        self.begun_at = time.time()
        self._output.notice("Threads started!\n")
        if self._general.warmup_s:
            self._output.notice(f"Warming up for {self._general.warmup_s} seconds...\n")

    def on_interval(self, live: _engine.Json) -> None:
        """Take an interval: an empty interval when the load begins, then each as it ends."""
        self.on_start()
        is_cut_short = live["seconds"] < self._options.step_s() * 0.99  # has no line in sysbench
        if live["phase"] != "measured" or is_cut_short:
            return
        at_s = live["at_s"] - self._general.warmup_s
        if "record" in live:
            self._interval.append(live["record"])
            if self._checkpoints_s:
                self._since_checkpoint.append(live["record"])
        self._report_interval(live, at_s)
        self._report_checkpoint(at_s)

    def _report_interval(self, live: Mapping[str, Any], at_s: float) -> None:
        percentiles = self._options.percentiles
        if not self._interval:
            if self._options.report_interval_s:
                self._print(IntervalSummary.of_live(live, at_s, percentiles))
            return
        if len(self._interval) < round(self._options.interval_s() / self._options.step_s()):
            return
        totals = Totals.of(self._interval)
        self._interval = []
        summary = IntervalSummary.of_totals(totals, live["connections"], at_s, percentiles)
        if self._options.report_interval_s:
            self._print(summary)
        if self._rows is not None:
            self._rows(totals, summary)

    def _print(self, summary: IntervalSummary) -> None:
        options, interval_s = self._options, self._options.report_interval_s
        if self.hooks is not None and self.hooks.intermediate(summary):
            return
        shown, is_sql = (options.percentiles, interval_s, options.joined), self.is_sql()
        self._output.notice(interval_line(summary, *shown, is_sql=is_sql))
        if self._general.pace.rate_per_s:
            self._output.notice(queue_line(summary, interval_s, is_sql=is_sql))

    def _report_checkpoint(self, at_s: float) -> None:
        if not self._checkpoints_s or at_s < self._checkpoints_s[0] - self._options.step_s() / 2:
            return
        self.checkpoint_s = self._checkpoints_s.pop(0)
        totals = Totals.of(self._since_checkpoint)
        self._since_checkpoint = []
        self._output.notice(f"{time_label(self.checkpoint_s, 1)} Checkpoint report:")
        general, hooks = self._general, self.hooks
        if hooks is None or not hooks.cumulative(totals, general, at_s, general.threads):
            ending = Ending(at_s, None)
            self._output.notice(report(totals, general, ending, is_sql=self.is_sql()))


# prepare, prewarm and cleanup.


_STAGES = {
    "create": "Creating table {table}...",
    "insert": "Inserting {rows} records into {table}",
    "index": "Creating a secondary index on {table}...",
}
_LEGACY_STAGES = {**_STAGES, "index": "Creating secondary indexes on {table}..."}
_OLDEST_STAGES = {
    "create": "Creating table {table}...",
    "insert": "Creating {rows} records in table {table}...",
}
_PREWARMING = {"1.0": "Prewarming table {table}", "1.1": "Preloading table {table}"}


def prepare(request: Request, output: ConsoleOutput) -> int:
    """Creates and fills the tables; returns and raises as a run does."""
    spec = request.prepare_spec()
    if request.general.threads > 1 and not request.is_bulk_insert():
        output.notice(INITIALIZING)
    printed: set[tuple[int, str]] = set()
    stages = {"legacy": _LEGACY_STAGES, "legacy_one": _OLDEST_STAGES}.get(
        spec.get("layout", ""), _STAGES
    )

    def on_progress(progress: _engine.Json) -> None:
        table, stage = progress["table"], progress["stage"]
        if (table, stage) not in printed and stage in stages:
            printed.add((table, stage))
            name = f"'{_table_name(spec, table)}'"
            bar.erase()
            output.step(stages[stage].format(table=name, rows=spec["table_size"]))
        bar.update(progress)

    with ProgressBar() as bar:
        return _finish(lambda stop: _engine.prepare(spec, on_progress, stop), request, COMMAND)


def prewarm(request: Request, output: ConsoleOutput) -> int:
    """Reads the tables into the server's memory; returns and raises as `run`."""
    spec = request.prepare_spec()
    line = _PREWARMING[request.general.compat]

    def on_progress(progress: _engine.Json) -> None:
        output.step(line.format(table=_table_name(spec, progress["table"])))

    return _finish(lambda stop: _engine.prewarm(spec, on_progress, stop), request, COMMAND)


def cleanup(request: Request, output: ConsoleOutput) -> int:
    """Drops the tables; returns and raises as a run does."""
    spec = request.cleanup_spec()
    first = spec.get("first_table", 1)
    for table in range(first, first + spec["tables"]):
        output.step(f"Dropping table '{_table_name(spec, table)}'...")
    return _finish(lambda stop: _engine.cleanup(spec, stop), request, CLEANUP)


def _finish(work: Callable[[_engine.Stop], _engine.Json], request: Request, function: str) -> int:
    """Do the work and return its exit status; on failure a Refusal naming `function`."""
    outcome = stoppable(work, _engine.Stop())
    result(outcome, request, function)
    return status(outcome)


def check_driver(request: Request, command: str) -> None:
    """Refuse an unknown database driver in the words of sysbench's tests."""
    try:
        request.driver()
    except Refusal as refusal:
        function = {"run": THREAD_INIT, "cleanup": CLEANUP}.get(command, COMMAND)
        lines = [f"FATAL: {function}: oltp_common.lua: failed to initialize the DB driver"]
        if function == THREAD_INIT:
            lines.append(f"FATAL: {not_ready(request.general.compat)}")
        raise Refusal(*refusal.lines, *lines) from refusal


def _table_name(spec: dict[str, Any], table: int) -> str:
    return "sbtest" if spec.get("layout") == "legacy_one" else f"sbtest{table}"
