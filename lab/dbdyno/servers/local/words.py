"""What a server wrote before it failed, cut to what helps a reader."""

from __future__ import annotations

from pathlib import Path
from typing import Final

LINES_SHOWN: Final = 12
TAIL_BYTES: Final = 64 * 1024


def printed_log(work: Path) -> Path:
    """Where what a server prints goes: beside its own folder, since the lab itself opens it."""
    return work.parent / "printed.log"


def last_lines(work: Path, count: int = LINES_SHOWN) -> str:
    """The last lines of the logs in a server's working folder; empty if there are none."""
    return "\n".join(_lines(work)[-count:])


def error_lines(work: Path, count: int = LINES_SHOWN) -> str:
    """The last lines marked as errors, or simply the last lines if none is."""
    lines = _lines(work)
    errors = [line for line in lines if "[ERROR]" in line or "error while loading" in line]
    return "\n".join((errors or lines)[-count:]) or "it left no log"


def _lines(work: Path) -> list[str]:
    found: list[str] = []
    for path in (printed_log(work), work / "err.log"):
        if path.is_file():
            with path.open("rb") as log:
                log.seek(max(0, path.stat().st_size - TAIL_BYTES))
                found += log.read().decode("utf-8", "replace").splitlines()
    return [line for line in found if line.strip()]
