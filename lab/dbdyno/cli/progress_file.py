"""A file beside a run's report that grows while the run goes on, and never ends it.

A disk that is full must not end a run that could still be stored, so a file that cannot be written
is given up, once, without a word to the run. What was written is there at once, for who watches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO


class GrowingFile:
    """Lines that are added while they can be."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file

    def add(self, line: str) -> None:
        """Adds one line, and gives the file up if it cannot be written."""
        if self._file is None:
            return
        try:
            self._file.write(f"{line}\n")
            self._file.flush()
        except OSError:
            self._file = None


@contextmanager
def growing(path: Path) -> Iterator[GrowingFile]:
    """The file, its folder made if need be, added to behind what it has, for the block's length."""
    file: TextIO | None = None
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a", encoding="utf-8")
    try:
        yield GrowingFile(file)
    finally:
        if file is not None:
            with suppress(OSError):
                file.close()
