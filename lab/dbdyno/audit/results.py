"""Files of an import: with results, and in whole folders without."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.audit.logs.other_logs import logs_in
from dbdyno.audit.page.columns import Mapping
from dbdyno.audit.read import TOOLS, foreign_text_of
from dbdyno.audit.recorded import TABLE, Recorded, recorded_in
from dbdyno.errors import UsageError
from dbdyno.language.words import in_utf8

FILES_MAX: Final = 10_000
BESIDE_LOGS: Final = "a table beside logs; to import it, give it by its name"


@dataclass(frozen=True)
class ResultFile:
    """A file with its runs, in order; without runs and with a reason, if it is left out."""

    path: Path
    runs: list[Recorded]
    left_out: str = ""

    @property
    def is_table(self) -> bool:
        return any(run.tool == TABLE for run in self.runs)

    @property
    def is_log(self) -> bool:
        """True for a log with a load on a database."""
        return any(run.tool != TABLE and not run.test_without_sql for run in self.runs)


def results_in(
    paths: Sequence[Path], mapping_of: Callable[[Path], Mapping]
) -> tuple[list[ResultFile], list[str]]:
    """Files with results; and the names of the others in folders, with a reason if it is not plain.

    Beside logs the tables of a folder are left out: as a rule they sum up these logs.

    Args:
        mapping_of: meaning of a file's columns, and its workload.

    Raises:
        UsageError: a file given by its name has no results; a log cannot be read.
    """
    kept, tables, left_out = list[ResultFile](), list[ResultFile](), list[str]()
    for path, is_named in _files(paths):
        file = (_named if is_named else _in_folder)(path, mapping_of(path))
        if not file.runs:
            left_out.append(_described(path, file.left_out))
        else:
            (tables if file.is_table and not is_named else kept).append(file)
    if not any(file.is_log for file in kept):
        return [*kept, *tables], left_out
    return kept, [*left_out, *(_described(file.path, BESIDE_LOGS) for file in tables)]


def _described(path: Path, reason: str) -> str:
    return in_utf8(f"{path.name} ({reason})" if reason else path.name)


def _named(path: Path, mapping: Mapping) -> ResultFile:
    """A file given by its name; UsageError without results."""
    text = foreign_text_of(path)
    if runs := recorded_in(text, str(path), mapping):
        return ResultFile(path, runs)
    raise UsageError(
        f"{path} holds no results that are known",
        wanted=f"a log of {TOOLS}, the plain log of `dbdyno sysbench`,"
        " or a table with load levels and metrics (HTML, Markdown, CSV, a cell a line)",
        found=logs_in(text, str(path)).begun or None,
        hint="write its numbers into a CSV file with the columns threads, system, tps",
    )


def _in_folder(path: Path, mapping: Mapping) -> ResultFile:
    """A file of a whole folder; UsageError for an unreadable log."""
    try:
        text = foreign_text_of(path)
    except UsageError as refusal:
        return ResultFile(path, [], refusal.message)
    reason, runs = "", list[Recorded]()
    try:
        runs = recorded_in(text, str(path), mapping)
    except UsageError as error:
        reason = error.message
    log = logs_in(text, str(path)) if not runs else None
    if log and (log.begun or (log.refusals and not log.is_page)):
        return _named(path, mapping)
    return ResultFile(path, runs, reason)


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """The files, and whether each was given by its name; no hidden files of folders."""
    files = [(one, not path.is_dir()) for path in paths for one in _below(path)]
    if not files or len(files) > FILES_MAX:
        raise UsageError(
            "there is nothing to import" if not files else "these are too many files",
            wanted=f"logs or tables of results, {FILES_MAX:,} files at most",
            found=f"{len(files):,} files in {', '.join(map(str, paths))}",
        )
    yield from files


def _below(path: Path) -> list[Path]:
    """The path, or all files in the folder except hidden files."""
    if not path.is_dir():
        return [path]
    try:
        inside = sorted(filter(Path.is_file, path.rglob("*")), key=_by_numbers)
    except (OSError, RecursionError) as error:
        raise UsageError(
            f"the files in {path} cannot be listed",
            found=getattr(error, "strerror", None) or "folders in folders without end",
            hint="name the folder of the results itself",
        ) from error
    return [
        one
        for one in inside
        if not any(part.startswith(".") for part in one.relative_to(path).parts)
    ]


def _by_numbers(path: Path) -> list[tuple[bool, int, str]]:
    """Sorts 8 before 16 in names."""
    parts = re.findall(r"\d{1,18}|\D+", str(path))
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]
