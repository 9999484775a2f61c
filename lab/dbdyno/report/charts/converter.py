"""vl-convert in a process of its own: charts become SVG and PNG there, and Vega becomes one script.

While vl-convert works, for seconds at its start, it blocks the whole process: Ctrl-C would be
ignored, and `dbdyno serve` would not answer. So it runs in a child behind pipes, a line of JSON
each way. The child starts on first use, and ends with its input.

The child runs this file as a plain script and imports nothing else of the report.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any, ClassVar, Final

from dbdyno import interpreter

COMMAND: Final = interpreter.script(__file__)
ANSWER_S_MAX: Final = 300.0
"""How long one chart may take."""
REFUSED: Final = "refused"


def drawn(
    spec: Mapping[str, Any], version: str, scale: float, fonts: str = ""
) -> tuple[str, bytes]:
    """Convert a Vega-Lite specification to SVG, and the SVG to PNG.

    Args:
        version: of Vega-Lite.
        scale: pixels of the PNG for a unit of the SVG.
        fonts: a folder of fonts, registered from now on; empty without fonts.

    Raises:
        ValueError: Vega-Lite refuses it.
        ChildProcessError: the child died, or took too long.
    """
    request = {"spec": dict(spec), "version": version, "scale": scale, "fonts": fonts}
    reply = _answer(request)
    return str(reply["svg"]), base64.b64decode(reply["png"])


def bundle(snippet: str, version: str) -> str:
    """Script with Vega, a version of Vega-Lite and their dependencies; raises as `drawn`."""
    return str(_answer({"snippet": snippet, "version": version})["text"])


class _DrawingProcess:
    """The child, shared by all threads."""

    current: ClassVar[_DrawingProcess | None] = None
    lock: ClassVar = threading.Lock()

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is the lab's to handle
        )

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        limit = threading.Timer(ANSWER_S_MAX, self._process.kill)
        limit.daemon = True
        limit.start()
        try:
            with suppress(BrokenPipeError):  # it died, as the missing answer says
                self._process.stdin.write(json.dumps(request) + "\n")
                self._process.stdin.flush()
            line = self._process.stdout.readline()
        finally:
            limit.cancel()
        if not line:
            status = self._process.wait()
            raise ChildProcessError(f"the process that draws charts ended with status {status}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    with _DrawingProcess.lock:
        child = _DrawingProcess.current
        if child is not None and child.has_ended():
            child.close()
            child = None
        child = _DrawingProcess.current = child or _DrawingProcess()
        try:
            answer = child.answer(request)
        except BaseException:  # what it still says would be taken for the next answer
            _DrawingProcess.current = None
            child.close()
            raise
    if REFUSED in answer:
        raise ValueError(answer[REFUSED])
    return answer


# What the child does.


def main() -> None:
    """Answer each line of stdin until its end."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # nobody waits any more
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whatever else is printed
    for line in sys.stdin:
        try:
            answer = _work(json.loads(line))
        except ValueError as error:
            answer = {REFUSED: str(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _work(request: Mapping[str, Any]) -> dict[str, str]:
    import vl_convert  # noqa: PLC0415 - in the child alone

    if "snippet" in request:
        return {"text": vl_convert.javascript_bundle(request["snippet"], request["version"])}
    if request["fonts"]:
        _register(request["fonts"])
    svg = vl_convert.vegalite_to_svg(request["spec"], vl_version=request["version"])
    png = vl_convert.svg_to_png(svg, scale=request["scale"])
    return {"svg": svg, "png": base64.b64encode(png).decode()}


@cache
def _register(folder: str) -> None:
    import vl_convert  # noqa: PLC0415 - as above

    vl_convert.register_font_directory(folder)


if __name__ == "__main__":
    main()
