"""Runs that take hours are measured in several goes: each one's outcome is a line in a file.

A validation that is given `--keep FILE` adds a line when a run has ended, goes on with the run that
comes next, and sums up all lines that were measured in the same way. The files in
`validation/measured/` are what the figures in docs come from.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]

Outcome = dict[str, Any]


class Outcomes:
    """The outcomes of one validation, measured in one way.

    Attributes:
        ended: of all runs so far, the oldest first.
    """

    def __init__(self, path: Path | None, asked: Mapping[str, Any]) -> None:
        """Reads what was kept.

        Args:
            path: where they are kept, a JSON object a line; nowhere if None.
            asked: what all its runs have in common; lines of others in the file are left alone.

        Raises:
            ValueError: a line of the file is none that was written here.
        """
        self._path, self._asked = path, dict(asked)
        self.ended: list[Outcome] = []
        if path is None or not path.exists():
            return
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                kept = json.loads(line)
                if kept["asked"] == self._asked:
                    self.ended.append(kept["outcome"])
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}, line {number}: no outcome of a run: {error}") from error

    def add(self, outcome: Outcome) -> None:
        """Keeps the outcome of a run that has ended, with the time and the commit."""
        self.ended.append(outcome)
        if self._path is None:
            return
        told = {"at": f"{datetime.now(UTC):%Y-%m-%d %H:%M}", "commit": _commit()}
        line = json.dumps({**told, "asked": self._asked, "outcome": outcome})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def _commit() -> str:
    """Of the work tree, with a mark if it differs; empty where there is no git."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return told.stdout.strip()
