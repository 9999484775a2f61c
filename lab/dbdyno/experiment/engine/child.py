"""The child process in which the engine works: `python -m dbdyno.experiment.engine.child`.

It is a process of its own so that its CPU is counted apart from the lab's, it can be pinned, and a
crash does not end the lab. It imports nothing of the lab. The protocol (its other end is
`process.py`) is one request, answered in JSON lines:

    stdin   {"do": "run" | "prepare" | "cleanup", "spec": {…}}     the password travels here only
            {"do": "slices", "spec": {"slices": […]}}              runs, one right after the other
            {"do": "script", "spec": {"script": {…}, "command": …}} a command of a Lua script
            then "stop", or the end of the file: stop and send the record
    stdout  {"interval": {…}} | {"progress": {…}} …, then exactly one of
            {"record": {…}} | {"report": {…}} | {"error": {"kind": "refused" | "invalid", …}}
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TextIO

from dbdyno import _engine

REQUESTS: Final = ("run", "slices", "script", "prepare", "cleanup")
STOP: Final = "stop"
ERROR: Final = "error"
FINAL: Final = frozenset({"record", "report", ERROR})
"""Kinds of messages after which there is no other."""
PR_SET_PDEATHSIG: Final = 1


def main() -> int:
    """Does what the first line of stdin asks; 0 if the outcome could be sent."""
    die_with_parent()
    restore_signals()
    return serve(sys.stdin, _own_stdout())


def serve(requests: TextIO, answers: TextIO) -> int:
    """Answers the one request of `requests`; returns the exit status."""
    first = requests.readline()
    if not first:
        return 1
    request = json.loads(first)

    def send(kind: str, value: object) -> None:
        answers.write(json.dumps({kind: value}, separators=(",", ":")) + "\n")
        answers.flush()

    if request["do"] not in REQUESTS:
        message = f"asked for {request['do']!r}, known are {', '.join(REQUESTS)}"
        send(ERROR, {"kind": "invalid", "message": message, "stage": "spec"})
        return 0
    stop = _engine.Stop()
    threading.Thread(target=_watch_for_stop, args=(requests, stop), daemon=True).start()
    try:
        kind, answer = _do(request["do"], json.dumps(request["spec"]), send, stop)
        send(kind, answer)
    except ValueError as error:
        send(ERROR, {"kind": "invalid", "message": str(error), "stage": "spec"})
    except RuntimeError as error:
        send(ERROR, {"kind": "refused", **failure_of(error)})
    return 0


def _do(
    what: str, spec: str, send: Callable[[str, object], None], stop: _engine.Stop
) -> tuple[str, Any]:
    if what == "run":
        record = _engine.run(spec, lambda text: send("interval", json.loads(text)), stop)
        return "record", json.loads(record)
    if what == "slices":
        specs = [json.dumps(one) for one in json.loads(spec)["slices"]]
        records = [_engine.run(one, lambda text: None, stop) for one in specs]
        return "report", {"records": [json.loads(one) for one in records]}
    if what == "script":
        return "report", _script(json.loads(spec))
    if what == "prepare":
        report = _engine.prepare(spec, lambda text: send("progress", json.loads(text)), stop)
        return "report", json.loads(report)
    _engine.cleanup(spec, stop)
    return "report", {}


def _script(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Runs a command of a script: whether it has it, and whether that said it went well."""
    script, command = _engine.Script(json.dumps(asked["script"])), asked["command"]
    options = asked["script"]["options"]
    declared = {one["name"].replace("-", "_") for one in json.loads(script.options())}
    script.set_options(json.dumps(options))
    is_parallel = script.command(command)
    answer: dict[str, Any] = {"declared": sorted(declared), "known": True, "well": True}
    if is_parallel is not None:
        answer["well"] = script.run_command(command, options["threads"] if is_parallel else 1)
    elif script.defines(command):
        script.call(command)
    else:
        answer["known"] = False
    return answer


def failure_of(error: RuntimeError) -> Mapping[str, object]:
    """The engine's failure: JSON in the exception's text, or that text as the message."""
    try:
        failure = json.loads(str(error))
    except ValueError:
        failure = None
    return failure if isinstance(failure, dict) else {"message": str(error)}


def _watch_for_stop(requests: TextIO, stop: _engine.Stop) -> None:
    requests.readline()
    stop.set()


def _own_stdout() -> TextIO:
    """Stdout for the protocol alone: what a script prints goes to stderr from now on."""
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return own


def die_with_parent() -> None:
    """Has the kernel kill this process when the lab dies, however it dies (Linux).

    A lab that died before this call is noticed by the end of stdin.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def restore_signals() -> None:
    """Restores the default signals, which a lab under nohup or in the background ignores.

    SIGPIPE stays ignored, as Python and the engine want it.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


if __name__ == "__main__":
    # Not sys.exit: the thread that waits for "stop" still holds stdin, which Python's end dislikes.
    os._exit(main())
