"""run, prepare, prewarm and cleanup: the engine is told what to do, and what it tells is printed.

One difference from sysbench is on purpose: a prepare that fails exits 1 with several threads too.
"""

from __future__ import annotations

import json
from typing import Any

from dbdyno import _engine
from dbdyno.sysbench.failure import COMMAND, THREAD_INIT, begin_lines, failure_of, run_lines
from dbdyno.sysbench.output import Output
from dbdyno.sysbench.progress_bar import ProgressBar
from dbdyno.sysbench.refusal import Refusal, fatal
from dbdyno.sysbench.report import final_report, header, interval_line
from dbdyno.sysbench.request import Request
from dbdyno.sysbench.signals import Outcome, stoppable

_INITIALIZING = "Initializing worker threads...\n"
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
_SIGNALLED = 128
_WHOLE = 0.99


def run(request: Request, output: Output) -> int:
    """Drives the load and prints header, interval lines and report.

    Returns:
        0, or 128 + n when signal n ended it.

    Raises:
        Refusal: the options are wrong, the load could not begin, or an error ended it.
    """
    spec = request.run_spec()
    general = request.general
    if not general.time_s and not general.events:
        output.warning("Both event and time limits are disabled, running an endless test")
    output.notice(header(general))
    output.notice(_INITIALIZING)
    teller = _IntervalTeller(request, output)
    text = json.dumps(spec)
    outcome = stoppable(lambda stop: _engine.run(text, teller.tell, stop), _engine.Stop())
    record = json.loads(_result(outcome, request, THREAD_INIT))
    teller.started()
    if record["failure"] is not None:
        raise fatal(*run_lines(record["failure"], prepared=request.is_prepared()))
    output.notice(final_report(record, general.percentile))
    return _status(outcome)


def prepare(request: Request, output: Output) -> int:
    """Creates and fills the tables; returns and raises as `run`."""
    spec = request.prepare_spec()
    if request.general.threads > 1 and not request.is_bulk_insert():
        output.notice(_INITIALIZING)
    told: set[tuple[int, str]] = set()
    stages = {"legacy": _LEGACY_STAGES, "legacy_one": _OLDEST_STAGES}.get(
        spec.get("layout", ""), _STAGES
    )

    def tell(text: str) -> None:
        progress = json.loads(text)
        table, stage = progress["table"], progress["stage"]
        if (table, stage) not in told and stage in stages:
            told.add((table, stage))
            name = f"'{_table_name(spec, table)}'"
            bar.erase()
            output.told(stages[stage].format(table=name, rows=spec["table_size"]))
        bar.tell(progress)

    text = json.dumps(spec)
    with ProgressBar() as bar:
        outcome = stoppable(lambda stop: _engine.prepare(text, tell, stop), _engine.Stop())
    _result(outcome, request, COMMAND)
    return _status(outcome)


def prewarm(request: Request, output: Output) -> int:
    """Reads the tables into the server's memory; returns and raises as `run`."""
    spec = request.prepare_spec()
    line = _PREWARMING[getattr(request.general, "compat", "1.0")]

    def tell(text: str) -> None:
        output.told(line.format(table=_table_name(spec, json.loads(text)["table"])))

    text = json.dumps(spec)
    outcome = stoppable(lambda stop: _engine.prewarm(text, tell, stop), _engine.Stop())
    _result(outcome, request, COMMAND)
    return _status(outcome)


def cleanup(request: Request, output: Output) -> int:
    """Drops the tables; returns and raises as `run`."""
    spec = request.cleanup_spec()
    text = json.dumps(spec)
    first = spec.get("first_table", 1)
    for table in range(first, first + spec["tables"]):
        output.told(f"Dropping table '{_table_name(spec, table)}'...")
    outcome = stoppable(lambda _stop: _engine.cleanup(text), _engine.Stop())
    _result(outcome, request, COMMAND)
    return _status(outcome)


def _table_name(spec: dict[str, Any], table: int) -> str:
    return "sbtest" if spec.get("layout") == "legacy_one" else f"sbtest{table}"


class _IntervalTeller:
    """Prints that the load is on the moment it is, and a line for each whole interval."""

    def __init__(self, request: Request, output: Output) -> None:
        self._interval_s = request.interval_s()
        self._is_asked = request.general.report_interval_s > 0
        self._percentile = request.general.percentile
        self._output = output
        self._has_started = False

    def started(self) -> None:
        """Says once that all connections are open."""
        if not self._has_started:
            self._has_started = True
            self._output.notice("Threads started!\n")

    def tell(self, text: str) -> None:
        """Takes the engine's news: an empty interval at the load's begin, then each as it ends.

        The last one, if it is cut short, has no line in sysbench.
        """
        self.started()
        if not self._is_asked:
            return
        news = json.loads(text)
        is_whole = news["seconds"] >= self._interval_s * _WHOLE
        if news["phase"] == "measured" and is_whole:
            self._output.line(interval_line(news, self._percentile))


def _result(outcome: Outcome, request: Request, function: str) -> str:
    """The engine's answer; what it raised for a reason of the user's becomes a Refusal."""
    error = outcome.error
    if isinstance(error, RuntimeError | ValueError):
        where = request.address().described
        failure = failure_of(error)
        lines = begin_lines(failure, where, function)
        if outcome.signal_number is not None and failure.get("code") is None:
            lines = [f"interrupted: {failure['message']}"]
        raise Refusal(
            *(f"FATAL: {line}" for line in lines), exit_status=_status(outcome) or 1
        ) from error
    if error is not None:
        raise error
    assert outcome.result is not None
    return outcome.result


def _status(outcome: Outcome) -> int:
    return 0 if outcome.signal_number is None else _SIGNALLED + outcome.signal_number
