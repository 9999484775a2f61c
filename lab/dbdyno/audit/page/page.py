"""Reads the tables of a page: each by system, workload, load level and further conditions.

Load levels may stand in the heading, metrics in the first column, a second row may belong to the
heading; systems and workloads have columns of their own, or stand above the table. Tables that
print other numbers for the same cells under other headings are cells of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import partial
from pathlib import PurePath
from typing import Final, NamedTuple

from dbdyno.audit.facts import PageFact, instance_types
from dbdyno.audit.page.captions import (
    LABEL_MAX,
    NO_WORDS,
    PageWords,
    are_workloads,
    by_workload,
    level_in,
    metric_in,
    said_by,
    sole_workload_in,
    system_in,
    workload_names,
)
from dbdyno.audit.page.changes import changes_beside, ratios_in, with_mean_below
from dbdyno.audit.page.columns import (
    CELL_UNIT,
    CHANGE,
    CONDITION,
    OTHER,
    RATE_METRICS,
    RATE_UNIT,
    REPEATS,
    SYSTEM,
    THOUSANDS,
    THREADS,
    UNITS_MS,
    WORKLOAD,
    Mapping,
    TableColumn,
    column_of,
    conditions_of,
    is_heading,
    is_missing,
    level_of,
    metric_column,
    number_of,
    without_remark,
)
from dbdyno.audit.page.forms import METRICS_MAX, is_word, one_heading, plain, side_by_side
from dbdyno.audit.page.grid import NUMERIC, Grid
from dbdyno.audit.page.grids import grids_in
from dbdyno.audit.page.levels import check_points, whole_level, with_levels, with_page_level
from dbdyno.audit.tables import HIDDEN, SECTION, Printed, PublishedChange, PublishedTable
from dbdyno.errors import UsageError

SHOWN: Final = 200
"""Signs of a table's heading in a list of unread tables."""
RESPELLED_MIN: Final = 0.8
"""Likeness of a heading with a spelling mistake to the right heading."""
PICTURE: Final = re.compile(r"!\[[^\]\n]{0,400}\]\(|<img\b", re.IGNORECASE)
RATE_WEIGHT: Final = 1_000_000
"""Rates of two measurements differ; their percentiles may be equal."""
UNREAD_MAX: Final = 0.5
"""Reasons against parts of a table for each number that was read; with more it is refused."""


class Published(NamedTuple):
    """The tables of a grid, and its columns of changes between two systems.

    Attributes:
        left_out: the reasons why parts of the grid cannot be read.
        not_understood: its numbers that no table and no change has, with their lines.
    """

    tables: list[PublishedTable]
    changes: list[PublishedChange]
    left_out: Sequence[UsageError] = ()
    not_understood: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """The tables of a page.

    Attributes:
        unread: tables without results, by their headings; refused tables, by the reason; pictures
            where no table has results.
        assumed: headings read as others, load levels and workloads of the text, with their lines.
        refusals: the reasons why tables with results cannot be read.
        pictures: number of pictures.
        facts: of tables without results.
    """

    tables: list[PublishedTable]
    changes: list[PublishedChange]
    unread: list[str]
    assumed: list[str]
    refusals: list[UsageError]
    pictures: int = 0
    facts: list[PageFact] = field(default_factory=list)


def page_of(text: str, source: str, mapping: Mapping) -> Page:
    """The tables of a text, each with its section; UsageError for a table without end."""
    printed = grids_in(text, source, partial(is_heading, mapping=mapping))
    grids, assumed = _respelled(printed, mapping, source)
    words = PageWords.of([grid.captions for grid in grids])
    grids = list(with_page_level(grids, text, source, assumed))
    lines = text.splitlines()
    parts_of = [with_mean_below(part, lines) for grid in grids for part in side_by_side(grid)]
    page = Page([], [], [], assumed, [], len(PICTURE.findall(text)))
    readable = list[tuple[Grid, Published]]()
    parted = [(part, list(ratios_in(part, words, source))) for part in parts_of]
    for grid, ratios in sorted(parted, key=lambda part: bool(part[1])):
        are_ratios = bool(ratios) and _are_of(readable, ratios)
        try:
            parts = (
                _of_ratios(grid, ratios, source)
                if are_ratios
                else published(grid, mapping, source, words)
            )
        except UsageError as refusal:
            page.refusals.append(refusal)
            page.unread.append(refusal.message[:SHOWN])
            continue
        readable.append((grid, parts))
        page.refusals.extend(parts.left_out)
        page.unread.extend(refusal.message[:SHOWN] for refusal in parts.left_out)
        page.unread.extend(text[:SHOWN] for text in parts.not_understood)
        if not parts.tables and not parts.changes:
            if types := instance_types(grid):
                page.facts.extend(types)
                continue
            page.unread.append(f"{source}, line {grid.line}: {', '.join(grid.heading)}"[:SHOWN])
    _into_sections(page, readable)
    _name_workload(page, text, source)
    if page.pictures and not page.tables:
        line = text.count("\n", 0, next(PICTURE.finditer(text)).start()) + 1
        page.unread.append(
            f"{source}, line {line}: {page.pictures} pictures, and no table of results"
        )
    return page


def _are_of(readable: Sequence[tuple[Grid, Published]], ratios: Sequence[PublishedChange]) -> bool:
    """Recognises ratios of systems that other tables have."""
    systems = {table.system for _, parts in readable for table in parts.tables}
    return all(systems.issuperset(change.systems) for change in ratios)


def _into_sections(page: Page, readable: Sequence[tuple[Grid, Published]]) -> None:
    """Adds the tables of a page; each in contradiction to another has its headings."""
    for (_, parts), section in zip(readable, _sections(readable), strict=True):
        at = {SECTION: section} if section else {}
        for table in parts.tables:
            page.tables.append(table.model_copy(update={"at": {**table.at, **at}}))
        for change in parts.changes:
            page.changes.append(change.model_copy(update={"at": {**change.at, **at}}))


def _name_workload(page: Page, text: str, source: str) -> None:
    """Takes the only test in the words of a page for its tables, if no table has a workload."""
    said = sole_workload_in(text)
    if said is None or not page.tables or any(table.workload for table in page.tables):
        return
    name, line = said
    page.tables[:] = [table.model_copy(update={"workload": name}) for table in page.tables]
    page.changes[:] = [change.model_copy(update={"workload": name}) for change in page.changes]
    page.assumed.append(f"{source}: {name}, as line {line} says")


def _respelled(
    grids: Sequence[Grid], mapping: Mapping, source: str
) -> tuple[list[Grid], list[str]]:
    """The tables, with misspelled headings as in another table; and the places of these.

    The other table has the same headings but for the misspelled.
    """

    def rest(grid: Grid, place: int) -> tuple[int, str]:
        return place, "|".join((*grid.heading[:place], *grid.heading[place + 1 :])).lower()

    names = {heading for grid in grids for heading in grid.heading}
    known = {heading for heading in names if is_heading(heading, mapping)}
    wrong = [
        [n for n, name in enumerate(grid.heading) if name and name not in known] for grid in grids
    ]
    places = {place for unknown in wrong for place in unknown[:1]}
    right = {
        rest(grid, place): (grid.heading[place], grid.line)
        for grid in reversed(grids)
        for place in places
        if place < len(grid.heading) and grid.heading[place] in known
    }
    respelled, assumed = list[Grid](), list[str]()
    for grid, unknown in zip(grids, wrong, strict=True):
        heading = list(grid.heading)
        for place in (n for n in unknown[:1] if len(heading[n]) <= LABEL_MAX):
            word, line = right.get(rest(grid, place), ("", 0))
            likeness = SequenceMatcher(None, heading[place].lower(), word.lower()).ratio()
            if likeness >= RESPELLED_MIN:
                was = f"{source}, line {grid.line}: {heading[place]}"
                assumed.append(f"{was} as {word}, like line {line}"[-SHOWN:])
                heading[place] = word
        respelled.append(grid._replace(heading=tuple(heading)))
    return respelled, assumed


def _sections(readable: Sequence[tuple[Grid, Published]]) -> list[str]:
    """For each grid its own headings, if others contradict it; empty for all other grids."""
    holders: dict[tuple[object, ...], tuple[int, Printed]] = {}
    same, other = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for number, (_, parts) in enumerate(readable):
        for table in parts.tables:
            at = tuple(sorted(table.at.items()))
            for metric, values in table.values.items():
                for threads, printed in zip(table.threads, values, strict=True):
                    cell = (table.system, table.workload, at, threads, metric)
                    holder, before = holders.get(cell, (number, printed))
                    if holder != number:
                        weight = RATE_WEIGHT if metric in RATE_METRICS else 1
                        (same if before.may_be(printed) else other)[holder, number] += weight
                    holders[cell] = number, printed
    apart = {
        number
        for pair, times in other.items()
        if times > same[pair] and len({readable[number][0].captions for number in pair}) == 2
        for number in pair
    }
    captions = [set(readable[number][0].captions) for number in apart]
    shared = set.intersection(*captions) if captions else set()
    return [
        _section_of(grid, parts, shared) if number in apart else ""
        for number, (grid, parts) in enumerate(readable)
    ]


def _section_of(grid: Grid, parts: Published, shared: set[str]) -> str:
    """The headings of a grid without its systems' names, the outermost first."""
    systems = {table.system for table in parts.tables}
    own = [c for c in grid.captions if c not in shared and system_in([c], ()) not in systems]
    return ", ".join(reversed(own))[:SHOWN]


def published(grid: Grid, mapping: Mapping, source: str, words: PageWords = NO_WORDS) -> Published:
    """The tables of a grid, by system, workload and further setting.

    A grid without load levels and without any metric is no table of results and gives no tables.

    Args:
        words: of the page around the grid.

    Raises:
        UsageError: no column has load levels, or much of the grid cannot be read.
    """
    if not _may_have_results(grid, mapping):
        return Published([], [])
    grid, left_out = grid.checked(source)
    whole = one_heading(grid)
    grid = plain(whole, words)
    lost = _not_understood(_numbers(whole) - _numbers(grid, first=0), source)
    grid, turned = grid.checked(source)
    left_out += turned
    said = said_by(grid.captions, mapping, words)
    if grid.is_hidden:
        said = said.model_copy(update={"at": {**said.at, **HIDDEN}})
    grid, columns, unknown = _columns(grid, said, source)
    if not columns:
        return Published([], [])
    _check_each_once(grid, columns, source)
    level = next(n for n, column in enumerate(columns) if column.metric == THREADS)
    grid, without = with_levels(grid, level, source)
    left_out += unknown + without
    default = system_in(grid.captions, words.products) or PurePath(source).stem
    rows_by_place: dict[tuple[str, str, tuple[tuple[str, str], ...], tuple[str, ...]], _Rows] = {}
    names = workload_names([_words_of(WORKLOAD, columns, row) for row in grid.rows])
    parts = by_workload([column.system for column in columns if column.has_numbers])
    for row, lines in zip(grid.rows, grid.lines, strict=True):
        threads = whole_level(row[level], lines[level], source)
        at = {**said.at, **conditions_of(columns, row)}
        numbers, unreadable = _row_values(grid, columns, row, mapping, lines, source)
        left_out += unreadable
        for name, values in numbers.items():
            workload, system = parts[name]
            label = system or _words_of(SYSTEM, columns, row) or default
            system, pool = words.without_pool(label, grid.captions)
            place = (
                system,
                names[_words_of(WORKLOAD, columns, row)] or workload or said.workload,
                tuple({**at, **pool}.items()),
                tuple(values),  # a system may have a row here and a column there
            )
            rows_by_place.setdefault(place, []).append((threads, values))
    tables = [
        PublishedTable(
            system=system,
            workload=workload,
            at=dict(at),
            threads=tuple(threads for threads, _ in rows),
            values={metric: tuple(row[metric].number for _, row in rows) for metric in metrics},
            lines={metric: tuple(row[metric].line for _, row in rows) for metric in metrics},
            place=f"{source}, line {grid.line}",
            is_mean_said=all(column.is_mean_said for column in columns),
            is_hidden=grid.is_hidden,
        )
        for (system, workload, at, metrics), rows in rows_by_place.items()
    ]
    check_points(tables, source)
    _check_left_out(left_out, unknown, tables)
    changes = list(changes_beside(grid, columns, said, level, source))
    return Published(tables, changes, left_out, lost)


def _check_left_out(
    left_out: Sequence[UsageError],
    unknown: Sequence[UsageError],
    tables: Sequence[PublishedTable],
) -> None:
    """Raises the first reason if much cannot be read, or if a column left out told rows apart."""
    read = sum(len(numbers) for table in tables for numbers in table.values.values())
    is_mixed = any(len({*table.threads}) < len(table.threads) for table in tables)
    if unknown and is_mixed:
        raise unknown[0]
    if left_out and UNREAD_MAX * read < len(left_out):
        raise left_out[0]


def _of_ratios(grid: Grid, ratios: Sequence[PublishedChange], source: str) -> Published:
    """A table of ratios, and its numbers that are neither a ratio nor a mean of them."""
    used = {(change.place, change.text) for change in ratios}
    lost = Counter(
        (line, text)
        for line, text in _numbers(grid).elements()
        if (f"{source}, line {line}", text) not in used
    )
    return Published([], [*ratios], (), _not_understood(lost, source))


def _numbers(grid: Grid, first: int = 1) -> Counter[tuple[int, str]]:
    """The numbers of a grid, each with its line.

    Args:
        first: the first column that counts; a name before it may look like a number.
    """
    return Counter(
        (line, text.strip())
        for row, lines in zip(grid.rows, grid.lines, strict=True)
        for text, line in zip(row[first:], lines[first:], strict=True)
        if NUMERIC.match(without_remark(text))
    )


def _not_understood(numbers: Counter[tuple[int, str]], source: str) -> list[str]:
    """Words for the numbers of each line."""
    texts: dict[int, list[str]] = {}
    for line, text in numbers.elements():
        texts.setdefault(line, []).append(text)
    return [
        f"{source}, line {line}: not understood: {', '.join(of_line)}"
        for line, of_line in texts.items()
    ]


def _may_have_results(grid: Grid, mapping: Mapping) -> bool:
    """Recognises load levels or a metric in the heading or the first column."""
    spans = len({*grid.heading}) < len(grid.heading)  # above a second row of the heading
    below = grid.rows[0] if spans and grid.rows else ()
    names = [*grid.heading, *below, *(row[0] for row in grid.rows[:METRICS_MAX])]
    columns = [column_of(name, mapping) for name in names]
    levels = [heading for heading in grid.heading if level_of(heading) is not None]
    is_said = _is_said_above(grid, columns[: len(grid.heading)], mapping)
    has_column = any(c and (c.has_numbers or c.metric == THREADS) for c in columns)
    return len(levels) > 1 or has_column or is_said


def _is_said_above(grid: Grid, columns: Sequence[TableColumn | None], mapping: Mapping) -> bool:
    """Recognises a table of systems or workloads whose metric and load level its captions name."""
    is_named = any(c and c.metric in (SYSTEM, WORKLOAD) for c in columns)
    return is_named and bool(level_in(grid.captions) and metric_in(grid.captions, mapping))


def _columns(
    grid: Grid, mapping: Mapping, source: str
) -> tuple[Grid, list[TableColumn], list[UsageError]]:
    """The meaning of all columns, with a load level from the captions; none without results.

    Unknown columns beside columns of metrics are left out, for a reason.
    """
    known = [
        column_of(heading, mapping)
        or _by_unit(heading, [row[n] for row in grid.rows], mapping)
        or _quotient(heading, grid.heading)
        or _repeat(heading, [row[n] for row in grid.rows])
        for n, heading in enumerate(grid.heading)
    ]
    has_metric = any(column and column.has_numbers for column in known)
    has_metric = has_metric or _is_said_above(grid, known, mapping)
    is_load = [column is not None and column.metric == THREADS for column in known]
    if sum(is_load) == 2:  # threads of a generator beside its connections
        threads = [re.match(r"(?:#\s*)?threads|线程", head, re.IGNORECASE) for head in grid.heading]
        for place in [n for n, is_level in enumerate(is_load) if is_level and threads[n]][:1]:
            known[place], is_load[place] = TableColumn(metric=OTHER), False
    levels = sum(is_load)
    if not levels and not has_metric:
        return grid, [], []
    if not levels and (level := level_in(grid.captions)):
        rows = tuple((*row, level) for row in grid.rows)
        lines = tuple((*line, grid.line) for line in grid.lines)
        grid = grid._replace(heading=(*grid.heading, THREADS), rows=rows, lines=lines)
        known.append(TableColumn(metric=THREADS))
        levels = 1
    if levels != 1:
        raise UsageError(
            f"line {grid.line} of {source}: which column has the load levels?",
            wanted="one column of threads, connections or 并发",
            found=", ".join(grid.heading),
            hint="say it in the mapping: columns: {NAME: threads}",
        )
    known = _with_words(grid, known)
    metric = metric_in(grid.captions, mapping)
    columns = [
        metric.model_copy(update={"system": head.strip()})
        if column is None and metric and head.strip()
        else column
        for head, column in zip(grid.heading, known, strict=True)
    ]
    unknown = [h for h, column in zip(grid.heading, columns, strict=True) if column is None]
    refusal = UsageError(
        f"line {grid.line} of {source}: what do these columns mean? {', '.join(unknown)}",
        wanted="a metric (tps, qps, latency) in each heading, or metric: in the mapping",
        hint="say it in the mapping: columns: {NAME: {system: …, metric: …}}, or metric: tps",
    )
    if unknown and not any(column and column.has_numbers for column in columns):
        raise refusal
    meant = [TableColumn(metric=OTHER) if column is None else column for column in columns]
    return grid, meant, [refusal] if unknown else []


def _with_words(grid: Grid, columns: Sequence[TableColumn | None]) -> list[TableColumn | None]:
    """Unknown columns of words before all numbers become workloads, systems if no other column
    names them, or conditions."""
    filled = list(columns)
    numeric = [n for n, column in enumerate(columns) if _is_numeric(grid, n, column)]
    is_named = any(c and (c.metric == SYSTEM or (c.has_numbers and c.system)) for c in columns)
    for place, heading in enumerate(grid.heading):
        if columns[place] is not None:
            continue
        texts = [row[place] for row in grid.rows]
        if not all(map(is_word, texts)):
            continue
        if numeric and place > numeric[0]:
            filled[place] = TableColumn(metric=OTHER)  # a remark
        elif are_workloads(texts) and not any(c and c.metric == WORKLOAD for c in filled):
            filled[place] = TableColumn(metric=WORKLOAD)
        elif not is_named:
            filled[place], is_named = TableColumn(metric=SYSTEM), True
        else:
            filled[place] = TableColumn(metric=CONDITION, system=heading.strip().lower() or "row")
    return filled


def _by_unit(heading: str, texts: Sequence[str], mapping: Mapping) -> TableColumn | None:
    """The rate that the cells of a column name, as in "80.7 req/s"; None without."""
    units = [RATE_UNIT.search(without_remark(text)) for text in texts[:METRICS_MAX]]
    first = units[0] if units else None
    return metric_column(f"{heading} {first[1]}", mapping) if first and all(units) else None


def _quotient(heading: str, others: Sequence[str]) -> TableColumn | None:
    """A change between two columns that its heading names, as in "8.0 / 5.7"; None without."""
    parts = [part.strip() for part in re.split(r"[/\u00f7-]", heading)]
    is_change = len(parts) == 2 and {part.strip() for part in others}.issuperset(parts)
    return TableColumn(metric=CHANGE) if is_change else None


def _repeat(heading: str, texts: Sequence[str]) -> TableColumn | None:
    """A column that numbers repeats; None for any other."""
    is_repeat = REPEATS.fullmatch(heading.strip()) and not any(map(is_word, texts))
    return TableColumn(metric=OTHER) if is_repeat else None


def _is_numeric(grid: Grid, place: int, column: TableColumn | None) -> bool:
    if column is not None:
        return column.has_numbers
    return any(NUMERIC.match(row[place]) for row in grid.rows)


def _words_of(role: str, columns: Sequence[TableColumn], row: Sequence[str]) -> str:
    """The cells of a row that name its system, or its workload."""
    cells = zip(columns, row, strict=True)
    return " ".join(text.strip() for column, text in cells if column.metric == role).strip()


def _sign_of(heading: str, column: TableColumn) -> str:
    """Suffix of all numbers of a column, given by its heading: 万."""
    sign = THOUSANDS.search(heading) if column.metric in RATE_METRICS else None
    return sign[1].replace("千", "k") if sign else ""


def _check_each_once(grid: Grid, columns: Sequence[TableColumn], source: str) -> None:
    """UsageError if two columns hold the same metric of one system, as one would be lost."""
    seen: set[tuple[str, str]] = set()
    for heading, column in zip(grid.heading, columns, strict=True):
        place = column.metric, column.system
        if place in seen and column.has_numbers:
            raise UsageError(
                f"line {grid.line} of {source}: two columns hold the same: {heading}",
                wanted="one column for each metric of a system",
                found=", ".join(grid.heading),
                hint="write into each heading which system it is of",
            )
        seen.add(place)


@dataclass(frozen=True)
class PrintedAt:
    """A number, and its line."""

    number: Printed
    line: int


_Rows = list[tuple[int, dict[str, PrintedAt]]]


def _row_values(
    grid: Grid,
    columns: Sequence[TableColumn],
    row: Sequence[str],
    mapping: Mapping,
    lines: Sequence[int],
    source: str,
) -> tuple[dict[str, dict[str, PrintedAt]], list[UsageError]]:
    """The numbers of a row by system, "" for columns without; and why others cannot be read."""
    values, refusals = dict[str, dict[str, PrintedAt]](), list[UsageError]()
    for heading, column, text, line in zip(grid.heading, columns, row, lines, strict=True):
        if column.has_numbers and not is_missing(text):
            bare = without_remark(text)
            signed = f"{bare}{_sign_of(heading, column)}"
            try:
                number = number_of(signed, mapping.decimal, line, source)
            except UsageError as refusal:
                refusals.append(refusal)
                continue
            unit = CELL_UNIT.search(bare) if column.metric.startswith("latency") else None
            ms = UNITS_MS[unit[1].casefold()] if unit else column.ms
            printed = PrintedAt(_in_ms(number, ms), line)
            values.setdefault(column.system, {})[column.metric] = printed
    return values, refusals


def _in_ms(number: Printed, factor: float) -> Printed:
    """Another unit's number in ms, as exact as it was printed."""
    if factor == 1.0:
        return number
    places = number.decimals - (3 if factor > 1 else -3)
    text = f"{number.value * factor:.{max(0, places)}f}"
    return Printed(text=text, dropped=min(0, places))
