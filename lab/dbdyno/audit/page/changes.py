"""Printed changes between two systems: columns beside their numbers, and tables of ratios.

A table of ratios has a row for each pair of systems, and a column for each load level or size of
the buffer pool. A mean of the ratios stands in a column, in a row, or in the line below::

    |        | 48G  | 96G  | avg  |
    | A vs B | 0.62 | 0.74 | 0.68 |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.audit.page.captions import PageWords
from dbdyno.audit.page.columns import (
    BUFFER_POOL,
    CHANGE,
    SYSTEM,
    WORKLOAD,
    Mapping,
    TableColumn,
    conditions_of,
    is_missing,
    level_of,
    metric_of,
    size_gb_of,
)
from dbdyno.audit.page.forms import OF_MEAN, SUMMARY
from dbdyno.audit.page.grid import NUMERIC, Grid
from dbdyno.audit.page.levels import whole_level
from dbdyno.audit.tables import Printed, PublishedChange

AGAINST: Final = re.compile(r"(.{1,48}?)\s*(?:\bvs\b\.?|\bversus\b|/|÷|对比|相比)\s*(.{1,48})")
"""Name of a row of ratios: "A vs B"."""
RATIO: Final = re.compile(r"\d{1,3}\.\d{1,6}")
MEAN_NAME: Final = re.compile(OF_MEAN, re.IGNORECASE)
MEAN_BELOW: Final = re.compile(
    rf"\W{{0,4}}(?P<name>{OF_MEAN})\W{{1,4}}(?P<ratio>{RATIO.pattern})\W{{0,4}}", re.IGNORECASE
)
LINES_BELOW: Final = 6
"""Lines below a table in which its mean may stand, blank ones too."""
OF_ROWS: Final = re.compile(r"prev|scal|speed-?up|\b1 thread|环比", re.IGNORECASE)
"""A change between two load levels."""


def changes_beside(
    grid: Grid, columns: Sequence[TableColumn], mapping: Mapping, level: int, source: str
) -> Iterator[PublishedChange]:
    """Columns of changes, each between the two nearest columns of its metric before it.

    Args:
        level: place of the column of load levels.
    """
    for at, column in enumerate(columns):
        if column.metric != CHANGE or OF_ROWS.search(grid.heading[at]):
            continue
        named = metric_of(grid.heading[at])
        before = [c for c in columns[:at] if c.has_numbers and c.system]
        before = [c for c in before if named is None or c.metric == named[0]]
        pair = [c for c in before if before and c.metric == before[-1].metric][-2:]
        if len(pair) < 2 or any(c.metric in (SYSTEM, WORKLOAD) for c in columns):
            continue
        for row, lines in zip(grid.rows, grid.lines, strict=True):
            yield PublishedChange(
                systems=(pair[0].system, pair[1].system),
                workload=mapping.workload,
                threads=whole_level(row[level], lines[level], source),
                at={**mapping.at, **conditions_of(columns, row)},
                metric=pair[0].metric,
                text=row[at],
                place=f"{source}, line {lines[at]}",
            )


def ratios_in(grid: Grid, words: PageWords, source: str) -> Iterator[PublishedChange]:
    """The ratios of a table, and the means of each pair's ratios; empty for any other table."""
    names = {n: name for n, name in enumerate(grid.heading) if n and not SUMMARY.fullmatch(name)}
    sizes = {n: size for n, name in names.items() if (size := size_gb_of(name))}
    levels = {n: level for n, name in names.items() if (level := level_of(name))}
    of_pairs = [n for n, row in enumerate(grid.rows) if not SUMMARY.fullmatch(row[0].strip())]
    pairs = {n: AGAINST.fullmatch(grid.rows[n][0]) for n in of_pairs}
    if {*sizes, *levels} != {*names} or len(names) < 2 or None in pairs.values():
        return
    if not all(words.is_pool(size, grid.captions) for size in sizes.values()):
        return
    below = _means_in_rows(grid) if len(pairs) == 1 else []
    for place, pair in pairs.items():
        row, lines = grid.rows[place], grid.lines[place]
        if pair is None or len(row) != len(grid.heading):
            continue
        systems, cells = (pair[1], pair[2]), {n: row[n].strip() for n in names}
        ratios = {n: text for n, text in cells.items() if RATIO.fullmatch(text)}
        for n, text in ratios.items():
            yield PublishedChange(
                systems=systems,
                threads=levels.get(n, 0),
                at={BUFFER_POOL: sizes[n]} if n in sizes else {},
                metric="",
                text=text,
                place=f"{source}, line {lines[n]}",
            )
        are_whole = ratios and all(n in ratios or is_missing(text) for n, text in cells.items())
        beside = [
            (row[n].strip(), lines[n])
            for n, name in enumerate(grid.heading)
            if n and MEAN_NAME.fullmatch(name.strip())
        ]
        for text, line in (*beside, *below) if are_whole else ():
            if RATIO.fullmatch(text):
                yield PublishedChange(
                    systems=systems,
                    threads=0,
                    metric="",
                    text=text,
                    mean_of=tuple(Printed(text=ratio) for ratio in ratios.values()),
                    place=f"{source}, line {line}",
                )


def _means_in_rows(grid: Grid) -> list[tuple[str, int]]:
    """The number of each row that is called a mean and has no other number, with its line."""
    means = list[tuple[str, int]]()
    for row, lines in zip(grid.rows, grid.lines, strict=True):
        cells = [(text.strip(), line) for text, line in zip(row, lines, strict=True)]
        numbers = [cell for cell in cells[1:] if NUMERIC.match(cell[0])]
        if MEAN_NAME.fullmatch(cells[0][0]) and len(numbers) == 1:
            means += numbers
    return means


def with_mean_below(grid: Grid, lines: Sequence[str]) -> Grid:
    """A table of ratios with the mean in the text directly below it ("avg 0.68") as a last row.

    Args:
        lines: of the page.
    """
    if len(grid.heading) < 2 or not all(AGAINST.fullmatch(row[0]) for row in grid.rows):
        return grid
    end = grid.last_line
    below = enumerate(lines[end : end + LINES_BELOW], end + 1)
    filled = [(number, line.strip()) for number, line in below if line.strip()]
    for count in (1, 2):  # a cell a line
        match = MEAN_BELOW.fullmatch(" ".join(line for _, line in filled[:count]))
        if match and len(filled) >= count:
            row = (match["name"], match["ratio"], *[""] * (len(grid.heading) - 2))
            places = (filled[count - 1][0],) * len(row)
            return grid._replace(rows=(*grid.rows, row), lines=(*grid.lines, places))
    return grid
