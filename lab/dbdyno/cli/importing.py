"""`dbdyno import`: other tools' results become a run, once it is shown how they were understood."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from dbdyno.audit.imported import ImportedFile, ImportedRun, imported
from dbdyno.audit.page.columns import Mapping
from dbdyno.audit.read import mapping_of
from dbdyno.budget import within
from dbdyno.cli import flow, options
from dbdyno.cli.flow import ReportOptions
from dbdyno.cli.progress import note
from dbdyno.errors import StoreError
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Said, Text, count, in_utf8, listed, name, say
from dbdyno.report.formats.stdout import Output, plain_lines, print_lines
from dbdyno.report.parts import Column, Table, numeric, table
from dbdyno.store.store import Store

FILES_NAMED_MAX: Final = 20
"""How many imported files the record of a run names."""
ROWS_MAX: Final = 24
"""More files are shown together, by system and workload."""
PATTERNS_MAX: Final = 3
EXAMPLE: Final = "--pattern '{system}_{workload}_{threads}'"


def import_command(
    paths: options.Imported,
    title: options.ImportedAs,
    pattern: options.NamePattern = "",
    mapping: options.ColumnMapping = None,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Import results of other benchmark tools as a run. It reads logs and tables."""
    read = within(
        _named(paths),
        lambda: imported(paths, title, mapping_of(mapping) if mapping else Mapping(), pattern),
    )
    for subject, text in read.notes.items():
        note(f"{subject}: {text}")
    stream = sys.stdout if output is Output.PLAIN else sys.stderr
    for part in understood(read):
        print_lines("\n".join(plain_lines(part, lang)), stream)
    command_line = options.stored_command(*sys.argv[1:])
    facts = {"files": _named(paths), **read.notes}
    with Store.open(workspace) as store:
        run = store.create_run(read.plan, command_line, facts, len(read.measurements))
        try:
            for measurement in read.measurements:
                trial = measurement.trial.model_copy(update={"run_id": run.run_id})
                store.append(measurement.model_copy(update={"trial": trial}))
            store.finish(run.run_id)
        except BaseException:  # a part of the files would be taken for the whole
            with contextlib.suppress(StoreError):  # a full disk may refuse this, too
                store.remove(run.run_id)
            raise
    flow.summarise(run.run_id, workspace, ReportOptions(output, lang))


def understood(read: ImportedRun) -> Iterator[Text | Table]:
    """System, workload and threads of each file, and how to say them otherwise."""
    is_long = len(read.files) > ROWS_MAX
    rows = list(_together(read.files)) if is_long else list(read.files)
    columns: list[tuple[Said | Column, Callable[[ImportedFile], str]]] = [
        (say("File"), lambda row: row.name),
        (say("System"), lambda row: row.system),
        (say("Workload"), lambda row: row.workload),
        (numeric(say("Threads")), lambda row: _numbers(row.threads)),
    ]
    if any(max(file.repeats) > 1 for file in read.files):
        columns.append((numeric(say("Repeat")), lambda row: _numbers(row.repeats)))
    yield table(say("Files as they were understood"), rows[:ROWS_MAX], *columns)
    if len(rows) > ROWS_MAX:
        yield say("and {rows}", rows=count(len(rows) - ROWS_MAX, "more row"))
    if read.patterns:
        patterns = listed(map(name, read.patterns[:PATTERNS_MAX]))
        yield say(
            "File names were read as {patterns}; --pattern and --mapping say it otherwise.",
            patterns=patterns,
        )
    if read.unclear:
        yield say(
            "Does {system} name a system and a workload? If so, say where they stand, such as"
            " {example}",
            system=read.unclear,
            example=EXAMPLE,
        )
    elif not _has_ratio(read.files):
        yield say(
            "No two systems have the same workload and threads, so there is no ratio. If the names"
            " mean something else, say where they stand, such as {example}",
            example=EXAMPLE,
        )
    yield name("")


def _together(files: Sequence[ImportedFile]) -> Iterator[ImportedFile]:
    """A row for the files of each system and workload."""
    groups: dict[tuple[str, str], list[ImportedFile]] = {}
    for file in files:
        groups.setdefault((file.system, file.workload), []).append(file)
    for (system, workload), group in groups.items():
        yield ImportedFile(
            str(count(len(group), "file")),
            system,
            workload,
            tuple(level for file in group for level in file.threads),
            tuple(repeat for file in group for repeat in file.repeats),
        )


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(set(numbers))))


def _has_ratio(files: Sequence[ImportedFile]) -> bool:
    """True if there is a single system, or a cell of two."""
    systems: dict[tuple[str, int], set[str]] = {}
    for file in files:
        for level in file.threads:
            systems.setdefault((file.workload, level), set()).add(file.system)
    return len({file.system for file in files}) < 2 or any(len(one) > 1 for one in systems.values())


def _named(paths: Sequence[Path]) -> str:
    named = [in_utf8(path.name) for path in paths[:FILES_NAMED_MAX]]
    more = len(paths) - len(named)
    return ", ".join([*named, *([f"and {more} more"] if more > 0 else [])])
