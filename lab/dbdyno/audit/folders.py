"""Names given by folders: scripts leave a log of one name in a folder for each system. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from dbdyno.audit.logs.sysbench_log import workload_in

UNITS: Final = r"(?:t|th|thrs?|thds?|threads?|c|conns?|connections?|clients?|users?|vus?)"
LEVEL: Final = rf"(?:{UNITS}[-_= ]?)?\d{{1,9}}(?:[-_ ]?{UNITS})?"
REPEAT: Final = re.compile(
    r"(?:run|rep|repeat|iter|iteration|round|trial|pass|try|attempt)s?[-_ ]?\d{1,9}", re.IGNORECASE
)
SHORT: Final = {"ro": "oltp_read_only", "rw": "oltp_read_write", "wo": "oltp_write_only"}
"""Names of workloads as folders and files have them."""


class Folders:
    """Names given by folders, if files lie in several.

    Args:
        is_used: folders name systems; else only if two files have the same name.
    """

    def __init__(self, files: Sequence[Path], *, is_used: bool = False) -> None:
        parents = [path.absolute().parent for path in files]
        self._top = Path(os.path.commonpath(parents) if parents else ".")
        stems = {path.stem for path in files}
        self._names_systems = len(set(parents)) > 1 and (is_used or len(stems) < len(files))
        inside = [set(parts) for path in files if (parts := self._parts(path))]
        self._common = frozenset.intersection(*map(frozenset, inside)) if inside else frozenset()

    def system(self, path: Path, levels: Collection[int], in_pattern: int = 0) -> str:
        """The folders of a file that are neither a load level, a repeat nor a workload.

        Args:
            in_pattern: number of its last folders, which are fields of a pattern.
        """
        parts = self._parts(path)
        names = [
            part
            for part in parts[: len(parts) - in_pattern]
            if not (_is_level(part, levels) or REPEAT.fullmatch(part) or _workload_of(part))
        ]
        return " ".join([part for part in names if part not in self._common] or names)

    def workload(self, path: Path) -> str:
        """The workload of sysbench that a file or a folder names; empty if there is none."""
        named = (_workload_of(part) for part in (path.stem, *reversed(self._parts(path))))
        return next(filter(None, named), "")

    def _parts(self, path: Path) -> tuple[str, ...]:
        if not self._names_systems:
            return ()
        return path.absolute().parent.relative_to(self._top).parts


def _workload_of(part: str) -> str:
    return workload_in(part) or SHORT.get(part.lower(), "")


def kind_of(path: Path) -> str:
    """A file's name without numbers: of "rw_threads16" its "rw"."""
    return re.sub(rf"(?<![A-Za-z]){LEVEL}(?![A-Za-z0-9])|\d+", "-", path.stem).strip("-_. ")


def _is_level(part: str, levels: Collection[int]) -> bool:
    """True for a folder that names one of these numbers of threads, such as "thr8"."""
    match = re.fullmatch(LEVEL, part, re.IGNORECASE)
    return match is not None and int(re.sub(r"\D", "", part)) in levels
