"""The end of a command: its result, a failure in sysbench's FATAL lines, or a signal."""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread  # threading costs start-up time

from dbdyno._engine import end_descendants
from dbdyno.sysbench.options.table import GLOBAL_TABLE
from dbdyno.sysbench.options.values import Refusal
from dbdyno.sysbench.request import Request
from dbdyno.sysbench.target import PGSQL, port_notes
from dbdyno.sysbench.typed import TYPE_CHECKING, NamedTuple, signal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType
    from typing import Any

    from dbdyno._engine import Json, Stop


class SysbenchRun(NamedTuple):
    """A run as the formats for machines describe it.

    Attributes:
        record: the engine's; empty if the load could not begin.
        failure: reason for a missing start or an early end; None after a good run.
        begun_at: start of the load, s since 1970; None if it never began.
    """

    record: Mapping[str, Any]
    failure: Mapping[str, Any] | None
    begun_at: float | None
    exit_status: int


class NotBegunError(Refusal):
    """A run could not begin, or another command could not do its work."""


class StillAtWorkError(Refusal):
    """A signal came, and the stopped work goes on: its resources are still in use."""


def result(outcome: CommandOutcome, request: Request, function: str) -> Json:
    """The engine's answer; an error with a remedy for the user becomes a Refusal."""
    error = outcome.error
    if isinstance(error, RuntimeError | ValueError):
        failure = failure_of(error)
        lines = start_failure_lines(failure, request, function)
        if outcome.signal_number is not None and not failure.get("code"):
            lines = [f"interrupted: {failure['message']}"]
        raise NotBegunError(
            *(f"FATAL: {line}" for line in lines), exit_status=status(outcome) or 1
        ) from error
    if error is not None:
        raise error
    if outcome.result is None:
        who = "the server does not answer"
        if request.script is not None:
            who = "the script does not end, or a server does not answer it"
        raise StillAtWorkError(
            f"FATAL: interrupted: {who}, so its end was not waited for",
            exit_status=status(outcome),
        )
    return outcome.result


def status(outcome: CommandOutcome) -> int:
    """0, or 128 + n when signal n ended it."""
    return 0 if outcome.signal_number is None else 128 + outcome.signal_number


# Failures of the engine as the FATAL lines that sysbench prints and scripts look for.

_STATEMENT_SHOWN = 300
_CONNECTION_LOST = 2013
_CONFLICTS = (3101, 8002, 8022, 8028, 9007)
"""Write conflicts at COMMIT: of MySQL's group replication, and TiDB's."""

THREAD_INIT = "`thread_init' function failed"
COMMAND = "`sysbench.cmdline.call_command' function failed"
CLEANUP = "`cleanup' function failed"
RATE = "rate"
"""Stage of a failure: the server did not keep up with the rate."""


def failure_of(error: RuntimeError | ValueError) -> dict[str, Any]:
    """The engine's description of a failure, from the exception it raises.

    A ValueError (a spec's mistakes, one a line) has no dict and becomes a failure of stage `spec`.
    """
    if error.args and isinstance(error.args[0], dict):
        return error.args[0]
    return {"stage": "spec", "message": str(error)}


def start_failure_lines(failure: Mapping[str, Any], request: Request, function: str) -> list[str]:
    """Lines on a run, load or clean-up that could not begin or end, in its client library's words.

    Args:
        failure: {"code", "sqlstate", "message", "server_message", "statement", "stage"}.
        function: the failed function in sysbench's words, `THREAD_INIT`, `COMMAND` or `CLEANUP`.
    """
    message, stage, compat = _message(failure), failure.get("stage"), request.general.compat
    if stage in ("spec", "limits"):
        return message.splitlines()
    if stage == "script":
        return [message, *([not_ready(compat)] if "`thread_init'" in message else [])]
    if request.driver() == PGSQL:
        lines = _start_failure_of_postgres(failure, function)
    elif stage == "connect":
        where = request.address().named(failure.get("server", ""))
        is_socket = where.startswith("socket") or "'localhost'" in where
        lines = [
            f"unable to connect to MySQL server on {where}, aborting...",
            f"error {failure.get('code') or (2002 if is_socket else 2003)}: {message}",
            f"{function}: connection creation failed",
        ]
    elif stage == "prepare":
        lines = [
            "mysql_stmt_prepare() failed",
            f'MySQL error: {failure.get("code")} "{message}"',
            f"{function}: SQL API error",
        ]
    else:
        lines = [_returned("mysql_drv_query()", failure), f"{function}: {_sql_error(failure)}"]
    if function == THREAD_INIT:
        lines.append(not_ready(compat))
    notes = port_notes(request.values) if stage == "connect" else []
    return [*lines, *_hints(failure), *(f"hint: {note}" for note in notes)]


def not_ready(compat: str) -> str:
    """The last line about a run without connections."""
    return f"{'Threads' if compat == '1.1' else 'Thread'} initialization failed!"


def _start_failure_of_postgres(failure: Mapping[str, Any], function: str) -> list[str]:
    stage = failure.get("stage")
    message = failure.get("client_message") or _message(failure)
    if stage == "connect":
        line = f"Connection to database failed: {message}"
        return [line, f"{function}: connection creation failed"]
    if stage == "prepare":
        return [f"PQprepare() failed: {message}", f"{function}: SQL API error"]
    return [*_failed_query("PQexec()", failure), f"{function}: {_sql_error(failure)}"]


def _failed_query(call: str, failure: Mapping[str, Any]) -> list[str]:
    """PGRES_FATAL_ERROR is 7."""
    line = f"{call} failed: 7 {_message(failure)}"
    statement = _shown(failure)
    return [line, f"failed query was: {statement}"] if statement else [line]


def run_failure_lines(failure: Mapping[str, Any], request: Request) -> list[str]:
    """Lines on a run that ended early; a script's own lines stand above."""
    if failure.get("stage") in ("script", RATE):
        return [_message(failure), *_conflict_hint(_message(failure))]
    prepared = request.is_prepared()
    if request.driver() == PGSQL:
        lines = _failed_query("PQexecPrepared()" if prepared else "PQexec()", failure)
    else:  # MySQL does not prepare BEGIN
        is_text = not prepared or failure.get("statement") == "BEGIN"
        lines = [_returned("mysql_drv_query()" if is_text else "mysql_stmt_execute()", failure)]
    error = _sql_error(failure)
    lines.append(f"`thread_run' function failed: {error}")
    if server := failure.get("server"):
        lines.append(f"the server was {request.address().named(server)}")
    return [*lines, *_hints(failure), *_conflict_hint(error)]


def _conflict_hint(error: str) -> list[str]:
    """A remedy for a commit refused by a write conflict, an error beyond sysbench's defaults."""
    code = next((code for code in _CONFLICTS if f"errno = {code}," in error), None)
    retried = f"--mysql-ignore-errors={GLOBAL_TABLE['mysql-ignore-errors'].default},{code}"
    return [] if code is None else [f"hint: a write conflict; {retried} retries such events"]


def _returned(call: str, failure: Mapping[str, Any]) -> str:
    code = failure.get("code") or _CONNECTION_LOST
    return f"{call} returned error {code} ({_message(failure)}) for query '{_shown(failure)}'"


def _shown(failure: Mapping[str, Any]) -> str:
    """The failed statement, shortened."""
    statement = str(failure.get("statement") or "")
    if len(statement) <= _STATEMENT_SHOWN:
        return statement
    return statement[:_STATEMENT_SHOWN] + "..."


def _sql_error(failure: Mapping[str, Any]) -> str:
    state = failure.get("sqlstate") or "HY000"
    # A server without numbers tells its SQLSTATE alone.
    code = failure.get("code") or (0 if failure.get("sqlstate") else _CONNECTION_LOST)
    return f"SQL error, errno = {code}, state = '{state}': {_message(failure)}"


def _hints(failure: Mapping[str, Any]) -> list[str]:
    """The engine's hints behind the server's message: a remedy, the progress of a load."""
    theirs, state = failure.get("server_message"), failure.get("sqlstate")
    hint = str(failure["message"]).rpartition(theirs)[2] if theirs else ""
    hint = hint.removeprefix(f" ({state})").lstrip("; ")  # PostgreSQL's errors end with their state
    return [f"hint: {hint}"] if hint else []


def _message(failure: Mapping[str, Any]) -> str:
    """The server's own message, as sysbench repeats it, or else the engine's."""
    return str(failure.get("server_message") or failure["message"])


# SIGINT and SIGTERM stop the engine, and the report of what was measured follows. Python runs
# signal handlers only in its main thread and between two of its own instructions, so the engine
# works in a second thread while the main one waits. A second signal kills. A server that does not
# answer may keep the engine from noticing, so the wait is limited.

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
END_S_MAX = 1.5
"""How long work that was asked to stop is waited for."""
_POLL_S = 0.2


class CommandOutcome(NamedTuple):
    """The work's result or error, and the signal that ended it.

    Work still going on after the time limit has neither.
    """

    result: Json | None
    error: BaseException | None
    signal_number: int | None


class _StopOnSignal:
    """Set a flag on a signal, within a `with`.

    Attributes:
        signal_number: the received signal; None before.
    """

    def __init__(self, stop: Stop) -> None:
        self.signal_number: int | None = None
        self._stop = stop
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _StopOnSignal:
        try:
            self._before = {number: signal.signal(number, self._ask) for number in _SIGNALS}
        except ValueError:  # only Python's main thread may set handlers
            self._before = {}
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, _frame: FrameType | None) -> None:
        self.signal_number = number
        self._stop.set()
        for caught in _SIGNALS:
            signal.signal(caught, signal.SIG_DFL)


def stoppable(
    work: Callable[[Stop], Json | None],
    stop: Stop,
    end_s_max: Callable[[], float] = lambda: END_S_MAX,
) -> CommandOutcome:
    """Do the work in a second thread; on a signal set `stop` and wait for the end.

    Args:
        end_s_max: longest wait in seconds; called after the signal.
    """
    results: list[Json | None] = []
    errors: list[BaseException] = []
    at_work = allocate_lock()

    def body() -> None:
        try:
            results.append(work(stop))
        except BaseException as error:
            errors.append(error)
        finally:
            at_work.release()

    at_work.acquire()
    with _StopOnSignal(stop) as signals:
        start_new_thread(body, ())
        is_over = False
        while signals.signal_number is None and not is_over:
            is_over = at_work.acquire(timeout=_POLL_S)
        if not is_over:
            at_work.acquire(timeout=end_s_max())
            end_descendants()  # a script would wait for programs that it has started
    result = results[0] if results else None
    return CommandOutcome(result, errors[0] if errors else None, signals.signal_number)
