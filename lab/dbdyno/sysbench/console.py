"""Lines on stdout and stderr behind sysbench's ``--verbosity``, and the progress bar of a load.

Lines are written whole and at once, for readers of a pipe, and without what would steer a terminal.
Little is imported: the persona starts as fast as a shell script expects of sysbench.
"""

from __future__ import annotations

import sys
import time

from dbdyno import _engine
from dbdyno.sysbench.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TextIO

NOTICE = 3
INFO = 4
DEBUG = 5


def write_text(stream: TextIO, text: str) -> None:
    """Print a text, which may quote a server."""
    stream.write(_engine.printable(text))
    stream.flush()


def write_notes(notes: Sequence[str]) -> None:
    """Print notes of dbdyno's own on stderr."""
    write_text(sys.stderr, "".join(f"note: {text}\n" for text in notes))


class ConsoleOutput:
    """Stdout behind sysbench's levels: 0 FATAL, 1 ALERT, 2 WARNING, 3 NOTICE, 4 INFO, 5 DEBUG.

    Where a format for machines goes to stdout (`is_text` is false), sysbench's text is not printed
    and FATAL lines go to stderr.
    """

    def __init__(self, verbosity: int, *, is_text: bool = True) -> None:
        self._verbosity = verbosity
        self._is_text = is_text

    def notice(self, text: str) -> None:
        """Header, interval line or report; a text with its own newline gets a blank line."""
        self._write(NOTICE, text + "\n")

    def info(self, text: str) -> None:
        """A line about how the run goes, for ``--verbosity=4``."""
        self._write(INFO, text + "\n")

    def debug(self, text: str) -> None:
        """A line for ``--debug``."""
        self._write(DEBUG, f"DEBUG: {text}\n")

    def fatal(self, text: str) -> None:
        """Print a line with sysbench's FATAL prefix; a report follows all the same."""
        self._write(0, f"FATAL: {text}\n", anyway=True)

    def note(self, text: str) -> None:
        """Print a note of dbdyno's own on stderr, out of the way of parsers."""
        write_notes([text])

    def step(self, text: str) -> None:
        """A line of prepare or cleanup; sysbench's scripts print these at any verbosity."""
        self._write(-1, text + "\n")

    def _write(self, level: int, text: str, *, anyway: bool = False) -> None:
        """Print a text up to the verbosity; on stderr if stdout carries a format for machines."""
        if level <= self._verbosity and (self._is_text or anyway):
            write_text(sys.stdout if self._is_text else sys.stderr, text)


_EVERY_S = 0.1
_BAR = 12
_ERASE = "\r\x1b[K"
_STAGES = {"create": "creating tables", "insert": "loading", "index": "building indexes"}


class ProgressBar:
    """Progress of a load on one line of stderr, redrawn in place and erased when the context ends.

    It is shown on a terminal, never in logs and pipes.
    """

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_shown = self._stream.isatty()
        self._clock = clock
        self._begin_s = clock()
        self._drawn_s = float("-inf")

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self.erase()

    def erase(self) -> None:
        """Clear the line for other output."""
        if self._is_shown and self._drawn_s > float("-inf"):
            self._drawn_s = float("-inf")
            self._stream.write(_ERASE)
            self._stream.flush()

    def update(self, progress: dict[str, Any]) -> None:
        """Takes the engine's progress; draws a few times a second at most."""
        now_s = self._clock()
        if not self._is_shown or now_s - self._drawn_s < _EVERY_S:
            return
        self._drawn_s = now_s
        text = progress_text(progress, now_s - self._begin_s)
        import shutil  # noqa: PLC0415 - only a terminal pays for its start-up time

        width = shutil.get_terminal_size().columns
        self._stream.write(_ERASE + text[: width - 1])
        self._stream.flush()


def progress_text(progress: dict[str, Any], elapsed_s: float) -> str:
    """`loading [####    ] 250,000 of 1,000,000 rows, 125,000 rows/s, 6 s left`."""
    stage = _STAGES[progress["stage"]]
    done, total = progress.get("rows_done", 0), progress.get("rows_total", 0)
    if not total:
        return f"{stage}: table {progress['table']}"
    filled = _BAR * done // total
    bar = f"{stage} [{'#' * filled:{_BAR}}] {done:,} of {total:,} rows"
    if not done or elapsed_s <= 0:
        return bar
    rows_per_s = done / elapsed_s
    if done == total:
        return bar
    return f"{bar}, {rows_per_s:,.0f} rows/s, {_duration((total - done) / rows_per_s)} left"


def _duration(seconds: float) -> str:
    whole = max(1, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes_of_hour = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_of_hour:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
