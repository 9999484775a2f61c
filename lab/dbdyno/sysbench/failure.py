"""What the engine could not do, as the FATAL lines that sysbench prints and scripts look for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_STATEMENT_SHOWN = 300
_CANNOT_CONNECT_SOCKET = 2002
_CANNOT_CONNECT_TCP = 2003
_CONNECTION_LOST = 2013
_THREADS = {"1.0": "Thread", "1.1": "Threads"}

THREAD_INIT = "`thread_init' function failed"
COMMAND = "`sysbench.cmdline.call_command' function failed"


def failure_of(error: RuntimeError | ValueError) -> dict[str, Any]:
    """The engine's description of a failure, from the exception it raises.

    A ValueError (a spec's mistakes, one a line) has no JSON and becomes a failure of stage `spec`.
    """
    if isinstance(error, RuntimeError):
        try:
            described = json.loads(str(error))
        except ValueError:
            described = None
        if isinstance(described, dict):
            return described
    return {"stage": "spec", "message": str(error)}


def begin_lines(
    failure: Mapping[str, Any], where: str, function: str, compat: str = "1.0"
) -> list[str]:
    """Why a run, load or clean-up could not be begun or finished.

    Args:
        failure: {"code", "sqlstate", "message", "server_message", "statement", "stage"}.
        where: the server's address as in messages.
        function: what sysbench says failed, `THREAD_INIT` or `COMMAND`.
        compat: whose words, "1.0" or "1.1".
    """
    message, stage = _words(failure), failure.get("stage")
    if stage in ("spec", "limits"):
        return message.splitlines()
    if stage == "connect":
        lines = [
            f"unable to connect to MySQL server on {where}, aborting...",
            f"error {failure.get('code') or _connect_code(where)}: {message}",
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
        lines.append(f"{_THREADS[compat]} initialization failed!")
    return [*lines, *_hints(failure)]


def run_lines(failure: Mapping[str, Any], *, prepared: bool) -> list[str]:
    """Why a run that had begun ended early."""
    call = "mysql_stmt_execute()" if prepared else "mysql_drv_query()"
    return [_returned(call, failure), f"`thread_run' function failed: {_sql_error(failure)}"]


def _returned(call: str, failure: Mapping[str, Any]) -> str:
    statement = str(failure.get("statement") or "")
    if len(statement) > _STATEMENT_SHOWN:
        statement = statement[:_STATEMENT_SHOWN] + "..."
    code = failure.get("code") or _CONNECTION_LOST
    return f"{call} returned error {code} ({_words(failure)}) for query '{statement}'"


def _sql_error(failure: Mapping[str, Any]) -> str:
    code, state = failure.get("code") or _CONNECTION_LOST, failure.get("sqlstate") or "HY000"
    return f"SQL error, errno = {code}, state = '{state}': {_words(failure)}"


def _hints(failure: Mapping[str, Any]) -> list[str]:
    """What the engine says after the server's words: what to try, how far a load came."""
    words = failure.get("server_message")
    hint = str(failure["message"]).rpartition(words)[2].lstrip("; ") if words else ""
    return [f"hint: {hint}"] if hint else []


def _words(failure: Mapping[str, Any]) -> str:
    """The server's own words, as sysbench repeats them, or the engine's if it did not speak."""
    return str(failure.get("server_message") or failure["message"])


def _connect_code(where: str) -> int:
    is_socket = where.startswith("socket") or "'localhost'" in where
    return _CANNOT_CONNECT_SOCKET if is_socket else _CANNOT_CONNECT_TCP
