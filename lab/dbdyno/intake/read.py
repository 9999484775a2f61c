"""The door: files of any of these kinds become a publication that can be audited."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from dbdyno.audit.publication import Printed, Publication, PublishedTable, publication_of, read_as
from dbdyno.errors import UsageError
from dbdyno.intake.columns import Mapping, is_heading, published
from dbdyno.intake.grids import grids_in
from dbdyno.intake.other_logs import LoggedRow, rows_in
from dbdyno.intake.prose import claims_in, disclosed_in, facts_in, sentences
from dbdyno.intake.sysbench_log import LoggedRun, runs_in

YAML_SUFFIXES: Final = (".yaml", ".yml")
SIZE_MAX: Final = 64 * 1024**2
MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
OWN: Final = re.compile(
    r'\s*\{[\s\S]{0,9999}"dbdyno|#\[dbdyno: |time_s,interval_s,threads,|run_id,'
)
"""Beginnings of dbdyno's own files: JSON, an interval log, `--output=csv`, an exported table."""
RATE_LIMITED: Final = re.compile(r"Target transaction rate: [1-9]\d*|rate limit schedule lag")
"""What sysbench and pgbench print of an open loop: its latencies have the wait for a connection."""


def read(paths: Sequence[Path], mapping: Path | None = None) -> tuple[Publication, ...]:
    """What the files say: one publication as a rule.

    Each YAML file is one. Logs, and pages whose tables have one system, are parts of one. Pages
    that compare systems are parts of one too, unless they compare others, or print other numbers
    for the same cells.

    Args:
        paths: publications as YAML; pages with tables; logs of sysbench, one system a file.
        mapping: a YAML file that says what columns mean.

    Raises:
        UsageError: a file that cannot be read, or holds nothing; with its line.
    """
    said = mapping_of(mapping) if mapping else Mapping()
    whole = [
        publication_of(text_of(path), str(path)) for path in paths if path.suffix in YAML_SUFFIXES
    ]
    pages = [_page(path, said) for path in paths if path.suffix not in YAML_SUFFIXES]
    if len(whole) == 1:
        return (_joined([whole[0], *pages]),)
    groups: list[list[Publication]] = []
    for page in pages:
        fitting = (group for group in groups if _is_part_of(page, _joined(group)))
        if group := next(fitting, None):
            group.append(page)
        else:
            groups.append([page])
    return (*whole, *map(_joined, groups))


def _is_part_of(page: Publication, known: Publication) -> bool:
    """Whether two pages belong to one publication."""
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
    """Several files of one publication; what the first of them says of the set-up holds."""
    return parts[0].model_copy(
        update={
            "title": ", ".join(dict.fromkeys(one.title for one in parts if one.title)),
            "tool": next((one.tool for one in parts if one.tool), ""),
            **{
                name: tuple(value for one in parts for value in getattr(one, name))
                for name in ("tables", "changes", "unread", "claims")
            },
            **{
                name: {k: v for one in reversed(parts) for k, v in getattr(one, name).items()}
                for name in ("disclosed", "dataset", "environment", "settings")
            },
        }
    )


def mapping_of(path: Path) -> Mapping:
    """What a mapping file says; UsageError with the lines of its mistakes."""
    return read_as(Mapping, text_of(path), str(path), wanted="columns, metric, workload, decimal")


def _page(path: Path, mapping: Mapping) -> Publication:
    """What one file says: a log's runs, or a page's tables with the sentences around them."""
    text = foreign_text_of(path)
    if runs := [run for run in runs_in(text, str(path)) if run.has_report]:
        return _of_log(path, text, [_of_runs(runs, path, mapping)])
    if rows := rows_in(text, str(path)):
        return _of_log(path, text, _of_rows(rows, path, mapping))
    tables, changes, unread = [], [], []
    for grid in grids_in(text, str(path), is_heading):
        found = published(grid, mapping, str(path))
        tables += found.tables
        changes += found.changes
        if not found.tables:
            unread.append(f"{path}, line {grid.line}: {', '.join(grid.heading)}"[:200])
    if not tables:
        raise UsageError(
            f"{path} has neither a table of results nor a log that is known",
            wanted="HTML, Markdown, CSV, cells one a line; logs of sysbench, pgbench, HammerDB",
            found="; ".join(unread) or None,
            hint="copy the table into a CSV file, or write it as YAML (docs/how-to/audit.md)",
        )
    facts = facts_in(text)
    page = Publication(
        title=path.name,
        workload=mapping.workload,
        tables=tuple(tables),
        changes=tuple(changes),
        unread=tuple(unread),
        disclosed=disclosed_in(text),
        **facts._asdict(),
    )
    labels = [table.system for table in tables]
    claims = tuple(claims_in(sentences(text), labels, page.cells()))
    return page.model_copy(update={"claims": claims})


def _of_log(path: Path, text: str, tables: Iterable[PublishedTable]) -> Publication:
    limited = RATE_LIMITED.search(text)
    disclosed = {"rate": limited[0]} if limited else {}
    return Publication(title=path.name, tables=tuple(tables), disclosed=disclosed)


def _of_runs(runs: Sequence[LoggedRun], path: Path, mapping: Mapping) -> PublishedTable:
    """A log as the table that somebody would make of it: its runs, a column each metric."""
    names = {"tps": "tps", "qps": "qps", "latency_ms_avg": "avg"}
    values = {}
    for metric, name in names.items():
        printed = [_printed(run, name) for run in runs]
        if all(printed):
            values[metric] = tuple(Printed(text=text) for text in printed)
    return PublishedTable(
        system=mapping.system or path.stem,
        workload=mapping.workload,
        threads=tuple(run.threads for run in runs),
        values=values,
        place=f"{path}, lines {runs[0].first_line} to {runs[-1].last_line}",
    )


def _of_rows(rows: Sequence[LoggedRow], path: Path, mapping: Mapping) -> Iterator[PublishedTable]:
    """A table for each workload and set of metrics that a log has."""
    found: dict[tuple[str, tuple[str, ...]], list[LoggedRow]] = {}
    for row in rows:
        found.setdefault((row.workload, tuple(row.values)), []).append(row)
    for (workload, metrics), alike in found.items():
        yield PublishedTable(
            system=mapping.system or path.stem,
            workload=mapping.workload or workload,
            threads=tuple(row.threads for row in alike),
            values={m: tuple(Printed(text=row.values[m]) for row in alike) for m in metrics},
            place=f"{path}, lines {alike[0].line} to {alike[-1].line}",
        )


def _printed(run: LoggedRun, name: str) -> str:
    return {"tps": run.tps, "qps": run.qps}.get(name) or run.latency_ms.get(name, "")


def foreign_text_of(path: Path) -> str:
    """The text of another tool's file.

    Raises:
        UsageError: as `text_of`; or dbdyno wrote it.
    """
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
        with path.open("rb") as file:  # what has no end may have no size either
            whole = file.read(SIZE_MAX + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read", found=str(error)) from error
    if len(whole) > SIZE_MAX:
        raise UsageError(
            f"{path} is too large",
            wanted=f"{SIZE_MAX // 1024**2} MiB at most",
            hint="cut it into files of single runs",
        )
    encoding = next((name for mark, name in MARKS if whole.startswith(mark)), "")
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
