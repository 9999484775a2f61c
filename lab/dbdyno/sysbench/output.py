"""What is printed while a command works: whole lines, at once, so that a pipe sees them coming.

``--verbosity`` decides what is shown, as in sysbench: below 3 neither header nor report.
"""

from __future__ import annotations

import sys

WARNING = 2
NOTICE = 3


class Output:
    """Stdout behind sysbench's levels: 0 FATAL, 1 ALERT, 2 WARNING, 3 NOTICE, 4 INFO, 5 DEBUG."""

    def __init__(self, verbosity: int) -> None:
        self._verbosity = verbosity

    def notice(self, text: str) -> None:
        """Header, interval lines and report; `text` ends with its newline, a blank line follows."""
        self._write(NOTICE, text + "\n")

    def line(self, text: str) -> None:
        """One line of the same level, without a blank line."""
        self._write(NOTICE, text + "\n")

    def warning(self, text: str) -> None:
        """A doubt about what was asked for."""
        self._write(WARNING, f"WARNING: {text}\n")

    def told(self, text: str) -> None:
        """A line of prepare or cleanup; sysbench's scripts print these whatever the verbosity."""
        self._write(-1, text + "\n")

    def _write(self, level: int, text: str) -> None:
        if level <= self._verbosity:
            sys.stdout.write(text)
            sys.stdout.flush()
