"""What is printed while a command works: whole lines, at once, so that a pipe sees them coming.

``--verbosity`` decides what is shown, as in sysbench: below 3 neither header nor report. Where a
form for machines goes to stdout, sysbench's text is not printed and doubts go to stderr.
"""

from __future__ import annotations

import sys

WARNING = 2
NOTICE = 3
INFO = 4
DEBUG = 5


class Output:
    """Stdout behind sysbench's levels: 0 FATAL, 1 ALERT, 2 WARNING, 3 NOTICE, 4 INFO, 5 DEBUG."""

    def __init__(self, verbosity: int, *, is_text: bool = True) -> None:
        self._verbosity = verbosity
        self._is_text = is_text

    def notice(self, text: str) -> None:
        """Header, interval lines and report; `text` ends with its newline, a blank line follows."""
        self._write(NOTICE, text + "\n")

    def line(self, text: str) -> None:
        """One line of the same level, without a blank line."""
        self._write(NOTICE, text + "\n")

    def info(self, text: str) -> None:
        """A line about how the run goes, for ``--verbosity=4``."""
        self._write(INFO, text + "\n")

    def debug(self, text: str) -> None:
        """A line for ``--debug``."""
        self._write(DEBUG, f"DEBUG: {text}\n")

    def warning(self, text: str) -> None:
        """A doubt about what was asked for."""
        self._write(WARNING, f"WARNING: {text}\n", anyway=True)

    def fatal(self, text: str) -> None:
        """A line that sysbench prints with its FATAL prefix although a report follows."""
        self._write(0, f"FATAL: {text}\n", anyway=True)

    def note(self, text: str) -> None:
        """What sysbench has no words for: on stderr, where no parser of its output looks."""
        sys.stderr.write(f"note: {text}\n")
        sys.stderr.flush()

    def told(self, text: str) -> None:
        """A line of prepare or cleanup; sysbench's scripts print these whatever the verbosity."""
        self._write(-1, text + "\n")

    def _write(self, level: int, text: str, *, anyway: bool = False) -> None:
        """Prints a text that is not above the verbosity; on stderr, if stdout is not for texts."""
        if level <= self._verbosity and (self._is_text or anyway):
            stream = sys.stdout if self._is_text else sys.stderr
            stream.write(text)
            stream.flush()
