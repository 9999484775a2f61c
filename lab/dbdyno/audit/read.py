"""The door: YAML, pages and logs become publications."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from dbdyno.audit.facts import facts_in, opposed
from dbdyno.audit.logs.apart import told_apart
from dbdyno.audit.logs.other_logs import RESULT_TOOLS, LoggedRow, LoggedText, logs_in
from dbdyno.audit.logs.sysbench_log import LoggedRun
from dbdyno.audit.names import UNKNOWN, NamedLog, Names, names_of, parts_of
from dbdyno.audit.page.columns import Mapping
from dbdyno.audit.page.page import page_of
from dbdyno.audit.tables import (
    MEAN,
    QPS,
    TPS,
    Printed,
    Publication,
    PublishedTable,
    publication_of,
    read_as,
)
from dbdyno.budget import content
from dbdyno.errors import UsageError

YAML_SUFFIXES: Final = (".yaml", ".yml")
SIZE_MAX: Final = 64 * 1024**2
TOOLS: Final = ", ".join(["sysbench", "pgbench", *(tool.name for tool in RESULT_TOOLS)])
MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
OWN: Final = re.compile(
    r'\s*\{[\s\S]{0,9999}"dbdyno|#\[dbdyno: |time_s,interval_s,threads,|run_id,'
)
"""Beginnings of dbdyno's own files: JSON, an interval log, `--output=csv`, an exported table."""
BY_NAME: Final = (
    *("systems", "disclosed", "dataset", "environment", "settings"),
    *("load", "statements", "places"),
)
"""Fields of a publication with facts by their names."""
RATE_LIMITED: Final = re.compile(r"Target transaction rate: [1-9]\d*|rate limit schedule lag")
"""Printed for an open loop, where latency includes the wait for a connection."""


def read(paths: Sequence[Path], mapping: Path | None = None) -> tuple[Publication, ...]:
    """Read files, as a rule parts of a single publication.

    Each YAML file is a publication; a single YAML file belongs to the pages beside it. Logs, and
    pages about one system, are parts of the same publication. So are pages that compare systems,
    unless they compare others, or print other numbers for the same cells.

    Args:
        paths: publications as YAML; pages with tables; logs, as a rule one system a file.
        mapping: a YAML file with the meaning of columns.

    Raises:
        UsageError: a file that cannot be read, or holds nothing; with its line. Claims without
            tables.
    """
    said = mapping_of(mapping) if mapping else Mapping()
    whole = [
        publication_of(text_of(path), str(path)) for path in paths if path.suffix in YAML_SUFFIXES
    ]
    foreign = [path for path in paths if path.suffix not in YAML_SUFFIXES]
    texts = {path: foreign_text_of(path) for path in foreign}
    logs = {path: logs_in(text, str(path)) for path, text in texts.items()}
    names = _names_of(logs, said)
    pages = [
        _renamed(_page(path, text, logs[path], said, names.get(path, UNKNOWN)), said.systems)
        for path, text in texts.items()
    ]
    if pages and not any(one.tables or one.has_prose for one in (*whole, *pages)):
        raise _without_results(paths, [text for page in pages for text in page.unread])
    groups: list[list[Publication]] = [[one] for one in whole]
    for page in pages:
        fitting = (group for group in groups[len(whole) :] if _is_part_of(page, _joined(group)))
        if len(whole) == 1:
            groups[0].append(page)
        elif group := next(fitting, None):
            group.append(page)
        else:
            groups.append([page])
    publications = tuple(_unopposed(_joined(group)) for group in groups)
    if not all(one.tables or one.has_prose for one in publications):
        raise UsageError(
            f"there are claims and no tables in {', '.join(map(str, paths))}",
            wanted="tables in the YAML, or one YAML file beside the pages or logs that have them",
            hint="docs/how-to/audit.md shows both",
        )
    return publications


def _renamed(page: Publication, names: dict[str, str]) -> Publication:
    """The page with the mapping's names of its systems."""
    return page.model_copy(
        update={
            "tables": tuple(
                one.model_copy(update={"system": names.get(one.system, one.system)})
                for one in page.tables
            ),
            "changes": tuple(
                one.model_copy(update={"systems": tuple(names.get(of, of) for of in one.systems)})
                for one in page.changes
            ),
        }
    )


def _is_part_of(page: Publication, known: Publication) -> bool:
    """Decides if two pages belong to one publication."""
    own, theirs = ({table.system for table in one.tables} for one in (page, known))
    if len(own) > 1 and len(theirs) > 1 and own != theirs:
        return False
    cells = {(cell.system, cell.key): cell for cell in known.cells()}
    return not any(
        before.values[metric].value != number.value
        for cell in page.cells()
        if (before := cells.get((cell.system, cell.key)))
        for metric, number in cell.values.items()
        if metric in before.values
    )


def _joined(parts: Sequence[Publication]) -> Publication:
    """Merge the files of a publication; for the set-up the first file with a value counts."""
    return parts[0].model_copy(
        update={
            "title": ", ".join(dict.fromkeys(one.title for one in parts if one.title)),
            "tool": next((one.tool for one in parts if one.tool), ""),
            "has_prose": any(one.has_prose for one in parts)
            and not any(one.disclosed and not one.is_record for one in parts),
            "is_record": all(one.is_record for one in parts),
            "is_partly_read": any(one.is_partly_read for one in parts),
            "is_set_up_of_prose": any(one.is_set_up_of_prose for one in parts),
            **{
                name: tuple(value for one in parts for value in getattr(one, name))
                for name in ("tables", "changes", "unread", "assumed", "claims")
            },
            **{
                name: {k: v for one in reversed(parts) for k, v in getattr(one, name).items()}
                for name in BY_NAME
            },
        }
    )


def _unopposed(publication: Publication) -> Publication:
    """The publication without facts of printed command lines that its tables contradict.

    Facts without a place are a person's, and stay.
    """
    load, places = publication.load, publication.places
    gone = {f"load.{name}" for name in opposed(load, publication.tables)} & places.keys()
    return publication.model_copy(
        update={
            "load": {k: v for k, v in load.items() if f"load.{k}" not in gone},
            "places": {k: v for k, v in places.items() if k not in gone},
        }
    )


def mapping_of(path: Path) -> Mapping:
    """Read a mapping file; UsageError with the lines of its mistakes."""
    return read_as(Mapping, text_of(path), str(path), wanted="columns, metric, workload, decimal")


def _names_of(logs: dict[Path, LoggedText], mapping: Mapping) -> dict[Path, Names]:
    """The names in the paths of logs with runs."""
    paths = [path for path, log in logs.items() if log.runs or log.rows]
    named = []
    for path, parts in zip(paths, parts_of(paths), strict=True):
        runs, rows = logs[path].runs, logs[path].rows
        levels = {*(run.threads for run in runs), *(row.threads for row in rows)}
        workloads = [*(run.command.test for run in runs), *(row.workload for row in rows)]
        has_workload = bool(mapping.workload) or all(workloads)
        named.append(NamedLog(parts, frozenset(levels - {0}), has_workload))
    return dict(zip(paths, names_of(named), strict=True))


def _page(path: Path, text: str, log: LoggedText, mapping: Mapping, names: Names) -> Publication:
    """A log's runs, or a page's tables with the facts of its set-up; its sentences are not read."""
    has_runs = bool(log.runs or log.rows)
    if log.is_whole:
        return _log(log, path, text, mapping, names)
    if log.begun:
        raise _without_results([path], [log.begun])
    page = page_of(text, str(path), mapping)
    systems = {one.system: mapping.systems.get(one.system, one.system) for one in page.tables}
    facts = facts_in(text, str(path), page.facts, systems)
    if not page.tables and has_runs:
        return _log(log, path, text, mapping, names)
    has_facts = bool(facts.dataset or facts.environment or facts.settings or page.pictures)
    if not page.tables and not has_facts:
        raise page.refusals[0] if page.refusals else _without_results([path], page.unread)
    lines = [*(run.first_line for run in log.runs), *(row.line for row in log.rows)]
    quoted = [f"{path}, line {line}: a run of a log that the page quotes" for line in lines]
    return facts.model_copy(
        update={
            "title": path.name,
            "workload": mapping.workload,
            "statements": {
                name: facts.statements[name]
                for name in dict.fromkeys(table.workload for table in page.tables)
                if name in facts.statements
            },
            "tables": tuple(page.tables),
            "changes": tuple(page.changes),
            "unread": (*page.unread, *quoted),
            "is_partly_read": bool(page.refusals),
            "assumed": tuple(page.assumed),
            "has_prose": True,
            "is_set_up_of_prose": True,
        }
    )


def _without_results(paths: Sequence[Path], unread: Sequence[str]) -> UsageError:
    return UsageError(
        f"{', '.join(map(str, paths))} has neither a table of results nor a log that is known",
        wanted=f"HTML, Markdown, CSV, cells one a line; logs of {TOOLS}",
        found="; ".join(unread) or None,
        hint="copy the table into a CSV file, or write it as YAML (docs/how-to/audit.md)",
    )


def _log(log: LoggedText, path: Path, text: str, mapping: Mapping, names: Names) -> Publication:
    """A log's runs; those that cannot be read are named, unless none is left."""
    unfinished = [_unfinished(run, path) for run in log.runs]
    unread = list(filter(None, unfinished))
    runs = [run for run, words in zip(log.runs, unfinished, strict=True) if not words]
    refusals = [*log.refusals, *_without_threads(runs, log.rows, path)]
    tables = [
        *_of_runs([run for run in runs if run.threads], path, mapping, names),
        *_of_rows([row for row in log.rows if row.threads], path, mapping, names),
    ]
    if refusals and not (tables or unread):
        raise refusals[0]
    unread += [refusal.message for refusal in refusals]
    limited = RATE_LIMITED.search(text)
    repeats = max((n for one in tables for n in Counter(one.threads).values()), default=1)
    disclosed = {"rate": limited[0]} if limited else {}
    if repeats > 1:
        disclosed["repeats"] = f"{repeats} runs"
    return Publication(
        title=path.name,
        tables=tuple(tables),
        disclosed=disclosed,
        unread=tuple(unread),
        is_partly_read=bool(unread),
        is_record=True,
    )


def _unfinished(run: LoggedRun, path: Path) -> str:
    """Words for a run without results: it has no end, or asks no database; else empty."""
    place = f"{path}, line {run.first_line}"
    if run.test_without_sql:
        return f"{place}: sysbench's test {run.test_without_sql}, which asks no database"
    if run.has_report:
        return ""
    failure = f", with {run.failure}" if run.failure else ""
    return f"{place}: the run ends at line {run.last_line} without {', '.join(run.lacks)}{failure}"


def _of_runs(
    runs: Sequence[LoggedRun], path: Path, mapping: Mapping, names: Names
) -> Iterator[PublishedTable]:
    """Tables of a log, one for each work and stream: a row for each run, a column a metric."""
    labels = [mapping.workload or run.command.test or names.workload for run in runs]
    works = told_apart(labels, [run.work for run in runs])
    alike: dict[tuple[str, str], list[LoggedRun]] = {}
    for run, workload in zip(runs, works, strict=True):
        alike.setdefault((run.stream, workload), []).append(run)
    for (stream, workload), of_kind in alike.items():
        columns = {
            TPS: [run.tps for run in of_kind],
            QPS: [run.qps for run in of_kind],
            MEAN: [run.latency("avg") for run in of_kind],
        }
        yield PublishedTable(
            system=mapping.system or f"{names.label(path)} {stream}".strip(),
            workload=workload.strip(),
            threads=tuple(run.threads for run in of_kind),
            values={
                metric: tuple(Printed(text=text) for text in printed)
                for metric, printed in columns.items()
                if all(printed)
            },
            place=f"{path}, lines {of_kind[0].first_line} to {of_kind[-1].last_line}",
        )


def _without_threads(
    runs: Sequence[LoggedRun], rows: Sequence[LoggedRow], path: Path
) -> list[UsageError]:
    """The reason for each run whose connections no line tells."""
    lines = [
        *(run.first_line for run in runs if not run.threads),
        *(row.line for row in rows if not row.threads),
    ]
    return [
        UsageError(
            f"line {line} of {path}: how many connections had this run?",
            wanted="the head of its log, which says so",
            hint="import it with a name that says it: dbdyno import --pattern"
            " '{workload}_{threads}.log'",
        )
        for line in lines
    ]


def _of_rows(
    rows: Sequence[LoggedRow], path: Path, mapping: Mapping, names: Names
) -> Iterator[PublishedTable]:
    """A table for each system, work and set of metrics in a log."""
    labels = [mapping.workload or row.workload or names.workload for row in rows]
    works = told_apart(labels, [row.work for row in rows])
    systems = {row.system for row in rows}
    rows_by_kind: dict[tuple[str, str, tuple[str, ...]], list[LoggedRow]] = {}
    for row, workload in zip(rows, works, strict=True):
        system = row.system if len(systems) > 1 else ""
        rows_by_kind.setdefault((system, workload, tuple(row.values)), []).append(row)
    for (system, workload, metrics), alike in rows_by_kind.items():
        yield PublishedTable(
            system=mapping.system or f"{names.label(path)} {system}".strip(),
            workload=workload.strip(),
            threads=tuple(row.threads for row in alike),
            values={m: tuple(Printed(text=row.values[m]) for row in alike) for m in metrics},
            place=f"{path}, lines {alike[0].line} to {alike[-1].line}",
        )


def foreign_text_of(path: Path) -> str:
    """The text of another tool's file; UsageError as `text_of`, or if dbdyno wrote it."""
    is_own = path.name.endswith(".dbdyno.zip")
    text = "" if is_own else text_of(path)
    if not is_own and not OWN.match(text):
        return text
    raise UsageError(
        f"{path} was written by dbdyno itself",
        wanted="what another tool printed, a page with tables, or a publication as YAML",
        hint="a run travels as a bundle (dbdyno bundle), which dbdyno report and replay take as it"
        " is; of dbdyno sysbench keep the plain log, without --output",
    )


def text_of(path: Path) -> str:
    """A stranger's file as text: UTF-8, UTF-16 with its mark, else GB 18030 (Chinese Windows).

    Raises:
        UsageError: it cannot be read, is too large, or is no text in any of these encodings.
    """
    try:
        whole = content(path, SIZE_MAX)
    except OSError as error:
        raise UsageError(f"{path} cannot be read", found=str(error)) from error
    if len(whole) > SIZE_MAX:
        raise UsageError(
            f"{path} is too large",
            wanted=f"{SIZE_MAX // 1024**2} MiB at most",
            hint="cut it into files of single runs",
        )
    encoding = next((name for mark, name in MARKS if whole.startswith(mark)), "")
    if not encoding and b"\0" in whole[:2]:  # of a program that leaves the mark out
        encoding = "utf-16-le" if whole[1:2] == b"\0" else "utf-16-be"
    for tried in [encoding] if encoding else ["utf-8", "gb18030"]:
        try:
            text = whole.decode(tried)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise UsageError(
        f"{path} is no text",
        wanted="UTF-8, UTF-16 with a byte order mark, or GB 18030",
        hint="is it compressed, or a table of another program? export it as CSV",
    )
