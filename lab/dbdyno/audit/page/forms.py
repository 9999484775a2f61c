"""Other forms of a published table become rows of load levels below a single heading."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeVar

from dbdyno.audit.page.captions import (
    LEVEL,
    PageWords,
    are_workloads,
    level_in,
    metric_in,
    pair_in,
)
from dbdyno.audit.page.columns import (
    BARE_UNIT,
    BUFFER_POOL,
    CHANGE,
    HEADING_MAX,
    NO_MAPPING,
    OTHER,
    RATE_METRICS,
    SYSTEM,
    THREADS,
    UNIT,
    WORKLOAD,
    column_of,
    level_of,
    metric_of,
    size_gb_of,
)
from dbdyno.audit.page.grid import NUMERIC, Grid

METRICS_MAX: Final = 40
"""Rows of a table with its metrics in the first column."""
PAIR: Final = re.compile(
    r"(?P<before>[^()（）/]*)[(（]\s*(?P<first>[^()（）/]+?)\s*/\s*(?P<second>[^()（）/]+?)\s*[)）]"
    r"(?P<after>[^()（）]*)"
)
"""A heading over two numbers of a cell: "Latency (avg / .95)"; its rest may say both once more."""
TWO_NUMBERS: Final = re.compile(r"[\d.,]{1,20}\s?/\s?[\d.,]{1,20}")
OF_MEAN: Final = r"(?:overall )?(?:avg\.?|average|mean)|平均值?|均值"
"""Names of a mean of others."""
SUMMARY: Final = re.compile(
    rf"{OF_MEAN}|(?:overall )?(?:geo-?mean|median|total|sum)|合计|总计|总和", re.IGNORECASE
)
"""A row that sums up the others."""
BRACKETS: Final = re.compile(r"[(（\[]\s*[)）\]]|@|(?<![a-z])(?:at|with)\s*$", re.IGNORECASE)
"""Signs around a load level in a heading, once it is taken out."""
PLACES: Final = 3
"""Columns at the begin of a row that may name what it is of."""
Cell = TypeVar("Cell", str, int)
"""A cell's text, or its line."""


def side_by_side(grid: Grid) -> list[Grid]:
    """The tables side by side in a grid: names and the same load levels, repeated."""
    levels = list(map(level_of, grid.heading))
    begins = [place for place, level in enumerate(levels) if level is None]
    width = begins[1] if len(begins) > 1 else 0
    parts = [levels[begin + 1 : begin + width] for begin in begins]
    are_equal = all(part == parts[0] for part in parts) and width * len(parts) == len(levels)
    if width < 3 or not are_equal or any(len(row) != len(levels) for row in grid.rows):
        return [grid]
    return [
        grid._replace(
            heading=grid.heading[begin : begin + width],
            rows=tuple(row[begin : begin + width] for row in grid.rows),
            lines=tuple(line[begin : begin + width] for line in grid.lines),
        )
        for begin in begins
    ]


def plain(grid: Grid, words: PageWords) -> Grid:
    """The table of `one_heading` with a row for each load level and one number in a cell."""
    grid = _levels_beside(_levels_down(grid))
    grid = _metrics_down(_sizes_down(grid, words))
    return _pairs_apart(_filled_down(_groups_apart(grid)))


def one_heading(grid: Grid) -> Grid:
    """Joins a second row of headings, below cells that span several columns, to the first."""
    first, second = grid.heading, grid.rows[0]
    is_repeated, has_numbers = first[0] == second[0], any(map(NUMERIC.match, second))
    spans = len(set(first)) < len(first) or (is_repeated and not has_numbers)
    if not spans or len(grid.rows) < 2 or (has_numbers and not is_repeated):
        return grid
    pairs = zip(first, second, strict=True)
    heading = tuple(above if above == below else f"{above} {below}" for above, below in pairs)
    return grid._replace(heading=heading, rows=grid.rows[1:], lines=grid.lines[1:])


def _levels_down(grid: Grid) -> Grid:
    """Transpose a table with its load levels in the heading, without means over all of them."""
    names = list(enumerate(grid.heading))[1:]
    levels = {n: level_of(name) for n, name in names if not SUMMARY.fullmatch(name.strip())}
    if len(levels) < 2 or None in levels.values():
        return grid
    first = grid.heading[0].strip()
    metric, unit = metric_of(first), UNIT.search(first)
    if metric and any("," in name for _, name in names):
        return grid  # a row of rates
    said = "" if metric is None else f" {metric[0]}{unit[0] if unit else ''}"
    return grid._replace(
        heading=(THREADS, *(f"{row[0]}{said}" for row in grid.rows)),
        rows=tuple((str(level), *(row[n] for row in grid.rows)) for n, level in levels.items()),
        lines=tuple((grid.line, *(line[n] for line in grid.lines)) for n in levels),
        captions=(first, *grid.captions) if metric else grid.captions,  # it may name a workload
    )


def _sizes_down(grid: Grid, words: PageWords) -> Grid:
    """A row for each size of the buffer pool in the heading, without means over all sizes."""
    first, *names = grid.heading
    kept = [place for place, name in enumerate(names, 1) if not SUMMARY.fullmatch(name.strip())]
    sizes = {place: size_gb_of(grid.heading[place]) for place in kept}
    above = metric_in((first, *grid.captions), NO_MAPPING)
    if len(sizes) < 2 or above is None or above.metric not in RATE_METRICS:
        return grid
    if not all(size and words.is_pool(size, grid.captions) for size in sizes.values()):
        return grid
    kind = WORKLOAD if are_workloads([row[0] for row in grid.rows]) else SYSTEM
    both = list(zip(grid.rows, grid.lines, strict=True))
    each = [(row, line, place) for row, line in both for place in kept]
    return grid._replace(
        heading=(kind, BUFFER_POOL.removesuffix("_gb"), above.metric),
        rows=tuple((row[0], sizes[place] or "", row[place]) for row, _, place in each),
        lines=tuple((line[0], grid.line, line[place]) for _, line, place in each),
    )


def _levels_beside(grid: Grid) -> Grid:
    """A row for each load level beside the metrics of the heading, as in "TPS (8 threads)"."""
    parts = {place: _level_beside(name) for place, name in enumerate(grid.heading)}
    places = {part: place for place, part in parts.items() if part is not None}
    others = [place for place, part in parts.items() if part is None]
    columns = [column_of(grid.heading[place], NO_MAPPING) for place in others]
    is_other_form = any(c and (c.has_numbers or c.metric == THREADS) for c in columns)
    if not places or is_other_form or len(places) + len(others) < len(parts):
        return grid
    levels, names = (list(dict.fromkeys(part)) for part in zip(*places, strict=True))
    rows, lines = [], []
    for row, line in zip(grid.rows, grid.lines, strict=True):
        for level in levels:
            cells = [places.get((level, name)) for name in names]
            rows.append(
                (*(row[n] for n in others), level, *("-" if n is None else row[n] for n in cells))
            )
            lines.append(
                (
                    *(line[n] for n in others),
                    grid.line,
                    *(line[0] if n is None else line[n] for n in cells),
                )
            )
    heading = (*(grid.heading[place] for place in others), THREADS, *names)
    return grid._replace(heading=heading, rows=tuple(rows), lines=tuple(lines))


def _level_beside(name: str) -> tuple[str, str] | None:
    """The load level in the heading of a metric, and the rest of the heading; None without."""
    levels = list(LEVEL.finditer(name)) if len(name) <= HEADING_MAX else []
    if len(levels) != 1:
        return None
    rest = f"{name[: levels[0].start()]} {name[levels[0].end() :]}"
    rest = " ".join(BRACKETS.sub(" ", rest).split()).strip(" ,:-")
    column = column_of(rest, NO_MAPPING)
    return (levels[0][1] or levels[0][2], rest) if column and column.has_numbers else None


def _metrics_down(grid: Grid) -> Grid:
    """Transpose a table with its metrics in the first column, and a system in each other."""
    columns = [column_of(row[0], NO_MAPPING) for row in grid.rows[: METRICS_MAX + 1]]
    plain = [column for column in columns if column and not column.system]
    has_level = any(c.metric == THREADS for c in plain) or bool(level_in(grid.captions))
    names = {place: column_of(name, NO_MAPPING) for place, name in enumerate(grid.heading) if place}
    kept = [place for place, column in names.items() if column is None]
    is_other_form = any(column and column.has_numbers for column in names.values())
    if not has_level or not kept or is_other_form or len(plain) < len(grid.rows):
        return grid
    if not any(column.has_numbers for column in plain):
        return grid
    heading = (SYSTEM, *(row[0] for row in grid.rows))
    rows = tuple((grid.heading[n], *(row[n] for row in grid.rows)) for n in kept)
    lines = tuple((grid.line, *(line[n] for line in grid.lines)) for n in kept)
    return grid._replace(heading=heading, rows=rows, lines=lines)


def _turned(cells: Sequence[Sequence[Cell]]) -> tuple[tuple[Cell, ...], ...]:
    """Columns as rows."""
    return tuple(zip(*cells, strict=True))


def _pairs_apart(grid: Grid) -> Grid:
    """Splits columns with two numbers in each cell, as their heading says."""
    columns: list[tuple[str, ...]] = []
    lines: list[tuple[int, ...]] = []
    above = pair_in(grid.captions)
    for (heading, *cells), places in zip(
        _turned([grid.heading, *grid.rows]), _turned(grid.lines), strict=True
    ):
        match = PAIR.fullmatch(heading.strip()) if len(heading) <= HEADING_MAX else None
        if match and all(cell.count("/") == 1 for cell in cells):
            parts = [re.sub(r"^\.(\d\d)$", r"\1%", match[name]) for name in ("first", "second")]
            pair = [f"{match['before']} {part}{_of_both(match['after'])}" for part in parts]
        elif above and all(map(TWO_NUMBERS.fullmatch, cells)):
            pair = [f"{heading} {part}" for part in above]
        else:
            columns.append((heading, *cells))
            lines.append(places)
            continue
        for number, name in enumerate(pair):
            columns.append((name, *(cell.split("/")[number].strip() for cell in cells)))
            lines.append(places)
    names, *rows = _turned(columns)
    return grid._replace(heading=names, rows=tuple(rows), lines=_turned(lines))


def _of_both(after: str) -> str:
    """The words behind a pair that are of both its parts."""
    unit = BARE_UNIT.search(after)
    return after if "/" not in after else f" {unit[1]}" if unit else ""


def _groups_apart(grid: Grid) -> Grid:
    """Moves rows with a single text, which head the rows below them, into a column of their own.

    Rows that sum up others are left out.
    """
    group, rows = "", list[tuple[tuple[int, ...], tuple[str, ...]]]()
    for row, lines in zip(grid.rows, grid.lines, strict=True):
        texts = {cell.strip() for cell in row} - {""}
        if len(row) > 2 and len(texts) == 1 and is_word(row[0].strip()):
            group = row[0].strip()
        elif not any(SUMMARY.fullmatch(cell.strip()) for cell in row[:PLACES]):
            rows.append(((lines[0], *lines), (group, *row)))
    if not rows and not group:
        return grid
    begin = 0 if group else 1
    return grid._replace(
        heading=("", *grid.heading)[begin:],
        rows=tuple(row[begin:] for _, row in rows),
        lines=tuple(lines[begin:] for lines, _ in rows),
    )


def _filled_down(grid: Grid) -> Grid:
    """Repeats names and load levels in the blank cells below them."""
    names = [_names(grid, place) for place in range(len(grid.heading))]
    above, rows = [""] * len(names), []
    for row in grid.rows:
        above = [
            before if is_name and not cell.strip() else cell
            for before, is_name, cell in zip(above, names, row, strict=True)
        ]
        rows.append(tuple(above))
    return grid._replace(rows=tuple(rows))


def _names(grid: Grid, place: int) -> bool:
    """Recognises a column of names or load levels."""
    column = column_of(grid.heading[place], NO_MAPPING)
    if column is not None:
        return not column.has_numbers and column.metric not in (CHANGE, OTHER)
    texts = [row[place].strip() for row in grid.rows]
    return bool(texts and texts[0]) and all(is_word(text) for text in texts if text)


def is_word(text: str) -> bool:
    """Recognises a name: letters, and neither a number with its unit nor a load level."""
    is_number = NUMERIC.match(text) or level_of(text) is not None
    return bool(re.search(r"[^\W\d_]", text)) and not is_number
