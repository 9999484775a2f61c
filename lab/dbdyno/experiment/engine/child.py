"""The child process in which the engine works: `python -m dbdyno.experiment.engine.child`.

It is a process of its own so its CPU is counted apart from the lab's, it can be pinned, and a
crash does not end the lab. It does not import the lab. The protocol (its other end is
`process.py`) is one request, answered in JSON lines:

    stdin   {"do": "run" | "prepare" | "cleanup", "spec": {…}}     the password travels here only
            {"do": "script", "spec": {"script": {…}, "command": …}} a command of a Lua script
            then "stop", or the end of the file: stop and send the record
            a run in a group (`generators`) waits for "begin NS" on the monotonic clock
    stdout  {"interval": {…}} | {"progress": {…}} | {"open": {}} …, then exactly one of
            {"record": {…}} | {"report": {…}} | {"error": {"kind": "refused" | "invalid", …}}
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TextIO

from dbdyno import _engine

REQUESTS: Final = ("run", "script", "prepare", "cleanup")
STOP: Final = "stop"
BEGIN: Final = "begin"
ERROR: Final = "error"
FINAL: Final = frozenset({"record", "report", ERROR})
"""Kinds of messages after which there is no other."""


def main() -> int:
    """Serve the request on the first line of stdin; 0 if the outcome could be sent."""
    _engine.end_with_parent()  # if the lab is dead already, stdin has ended
    restore_signals()
    return serve(sys.stdin, _own_stdout())


def serve(requests: TextIO, answers: TextIO) -> int:
    """Answer the request; returns the exit status."""
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
    stop, begin = _engine.Stop(), Begin()
    threading.Thread(target=_listen, args=(requests, stop, begin), daemon=True).start()
    try:
        kind, answer = _do(request["do"], request["spec"], send, stop, begin)
        send(kind, answer)
    except ValueError as error:
        send(ERROR, {"kind": "invalid", "message": str(error), "stage": "spec"})
    except RuntimeError as error:
        send(ERROR, {"kind": "refused", **failure_of(error)})
    return 0


class Begin:
    """The moment at which a part of a load is to begin, once it is told."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._at_ns = 0

    def at(self, monotonic_ns: int) -> None:
        """Sets it; the past for at once."""
        self._at_ns = monotonic_ns
        self._told.set()

    def wait(self) -> None:
        """Sleep until the moment to begin."""
        self._told.wait()
        time.sleep(max(0, self._at_ns - time.monotonic_ns()) / 1e9)


def _do(
    what: str,
    spec: dict[str, Any],
    send: Callable[[str, object], None],
    stop: _engine.Stop,
    begin: Begin,
) -> tuple[str, Any]:
    if what == "run":
        return _run(spec, send, stop, begin)
    if what == "script":
        return "report", _script(spec)
    if what == "prepare":
        return "report", _engine.prepare(spec, lambda progress: send("progress", progress), stop)
    _engine.cleanup(spec, stop)
    return "report", {}


def _run(
    spec: dict[str, Any], send: Callable[[str, object], None], stop: _engine.Stop, begin: Begin
) -> tuple[str, Any]:
    """Drive a load: alone, through several generators, or as part of a group."""
    if "generators" in spec:
        # Imported only here, as every trial begins with the start of a child.
        from dbdyno.experiment.engine import generators  # noqa: PLC0415 - see above

        return generators.run(spec, send, stop)

    def tell(interval: dict[str, Any]) -> None:
        if "generator" in spec and not interval["at_s"]:
            send("open", {})
            begin.wait()
        else:
            send("interval", interval)

    return "record", _engine.run(spec, tell, stop)


def _script(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run a command of a script; the answer has `known`, and `well` if it succeeded."""
    script, command = _engine.Script(request["script"]), request["command"]
    options = request["script"]["options"]
    declared = {one["name"].replace("-", "_") for one in script.options()}
    script.set_options(options)
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
    """The engine's failure: the exception's argument, or its text as the message."""
    failure = error.args[0] if error.args else None
    return failure if isinstance(failure, dict) else {"message": str(error)}


def _listen(requests: TextIO, stop: _engine.Stop, begin: Begin) -> None:
    """Read further lines of stdin: the moment to begin, or the request to stop."""
    while (line := requests.readline()).startswith(BEGIN):
        begin.at(int(line.removeprefix(BEGIN)))
    stop.set()
    begin.at(0)


def _own_stdout() -> TextIO:
    """Keep stdout for the protocol alone: a script's prints go to stderr from now on."""
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return own


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
