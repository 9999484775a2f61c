"""The load level of tables without one, and rates that fit none.

The words above a table, or the settings of its page, may give the level. Points between thousands,
as in Portuguese, look as decimals.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from dbdyno.audit.facts import BREAK, FENCE, NOT_PROSE, bare
from dbdyno.audit.page.captions import LEVEL, OPTION, level_in, levels_named, metric_in
from dbdyno.audit.page.columns import (
    HEADING_MAX,
    NO_MAPPING,
    RATE_METRICS,
    THREADS,
    column_of,
    level_of,
)
from dbdyno.audit.page.forms import METRICS_MAX, SUMMARY
from dbdyno.audit.page.grid import Grid
from dbdyno.audit.tables import MEAN, PublishedTable
from dbdyno.errors import UsageError

OF_CLIENTS: Final = (
    r"clients?|connections?|conns?|virtual users?|v?users?|vus?|terminals?|并发|连接"
)
SETTING: Final = re.compile(
    r"(?:^[^\w\n]*(?:number of |concurrent )?"
    rf"(?P<name>threads?|concurrency|线程数?|(?:{OF_CLIENTS})数?)"
    r"[^\w\n]{0,8}[:=：][^\w\n]{0,8}(?P<level>\d{1,6})[^\w\n]*$"
    r"|(?<![\w-])--(?:num[-_])?(?P<option>threads|clients?|connections?)[= ]"
    r"(?P<value>\d{1,6})(?!\d))",
    re.IGNORECASE | re.MULTILINE,
)
"""A setting that fills a line, or an option of a command."""
CLIENTS: Final = re.compile(OF_CLIENTS, re.IGNORECASE)
PROCESSOR: Final = re.compile(r"\b(?:cores?|cpus?|sockets?|processors?|ghz)\b|核", re.IGNORECASE)
NAMED_MAX: Final = 100
"""Load levels above a table that are looked at."""
NEAR: Final = 60
"""Signs around a setting; a processor among them may have the threads."""
POINTED: Final = re.compile(r"[1-9]\d{0,2}\.\d{3}")
FULL: Final = (0.5, 2.0)
"""Requests in flight for each connection of a test that is a closed loop."""


def with_page_level(
    grids: Sequence[Grid], text: str, source: str, assumed: list[str]
) -> Iterator[Grid]:
    """The tables of a page, those without a load level with that of its words as first caption.

    The only level between a table's heading and the table counts before other captions, and these
    before the page's settings.

    Args:
        assumed: gets a line for each such table.
    """
    named, settings = cache(lambda: [*_named_in(text, grids)]), cache(lambda: sole_level_in(text))
    for grid in grids:
        said = (_level_above(grid, named()) or settings()) if _lacks_level(grid) else None
        if said is None:
            yield grid
            continue
        level, line = said
        where = f"line {line} says" if line else "the words above it say"
        assumed.append(f"{source}, line {grid.line}: {level} threads, as {where}")
        yield grid._replace(captions=(f"threads = {level}", *grid.captions))


def _lacks_level(grid: Grid) -> bool:
    """Recognises a table with a metric and without a load level."""
    names = [*grid.heading, *(row[0] for row in grid.rows[:METRICS_MAX] if row)]
    own = (name for name in names if not SUMMARY.fullmatch(name.strip()))
    columns = [column for name in own if (column := column_of(name, NO_MAPPING))]
    has_metric = any(column.has_numbers for column in columns)
    is_column = any(column.metric == THREADS for column in columns)
    is_heading = any(
        level_of(name) is not None or LEVEL.search(name[:HEADING_MAX]) for name in grid.heading
    )
    return (has_metric or metric_in(grid.captions, NO_MAPPING) is not None) and not (
        is_column or is_heading
    )


def _level_above(grid: Grid, named: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """The load level of the words above a table, and their line, which is 0 if it is unknown.

    Args:
        named: as `_named_in` gives them.
    """
    end = bisect_left(named, (grid.line, -1))
    near = named[max(0, end - NAMED_MAX) : end]
    own = [(line, level) for line, level in near if line >= grid.section]
    levels = {level for _, level in own}
    if len(levels) == 1 and 0 not in levels and len(own) < NAMED_MAX:
        return own[-1][1], own[-1][0]
    if not (caption := level_in(grid.captions)):
        return None
    lines = (line for line, level in reversed(near) if level == int(caption))
    return int(caption), next(lines, 0)


def _named_in(text: str, grids: Sequence[Grid]) -> Iterator[tuple[int, int]]:
    """Lines of a page's sentences with a load level, and the level as `levels_named` gives it."""
    of_tables = {n for grid in grids for n in range(grid.line, grid.last_line + 1)}
    lines, prose, is_code = bare(text, NOT_PROSE), list[str](), False
    is_markup = any(BREAK in line for line in lines)
    for number, line in enumerate(lines, 1):
        words = line.replace(BREAK, " ")
        is_code ^= bool(FENCE.match(words.strip()))
        is_code_line = is_code or (words.startswith(("    ", "\t")) and not is_markup)
        is_prose = not (is_code_line or number in of_tables or OPTION.search(words))
        prose.append(words if is_prose else "")
    page, line_number, place = "\n".join(prose), 1, 0
    for level, match in levels_named(page):
        line_number += page.count("\n", place, match.start())
        place = match.start()
        if not _is_near_processor(page, match):
            yield line_number, 0 if "\n" in match[0] else level


def sole_level_in(text: str) -> tuple[int, int] | None:
    """The load level of a page's settings, and its line; None if the page names another one.

    Clients count before threads, which a generator may have fewer of.
    """
    settings = [
        (match["name"] or match["option"], int(match["level"] or match["value"]), match.start())
        for match in SETTING.finditer(text)
        if match["option"] or not _is_near_processor(text, match)
    ]
    of_clients = [one for one in settings if CLIENTS.fullmatch(one[0].removesuffix("数"))]
    levels = {level for _, level, _ in of_clients or settings} - {0}
    named = {
        int(match[1] or match[2])
        for match in LEVEL.finditer(text)
        if text[match.start() - 1 : match.start()] != "_"  # max_connections
        and (not of_clients or CLIENTS.search(match[0]))
    }
    if len(levels) != 1 or not levels.issuperset(named):
        return None
    (_, level, place), *_ = of_clients or settings
    return level, text.count("\n", 0, place) + 1


def _is_near_processor(text: str, match: re.Match[str]) -> bool:
    around = text[max(0, match.start() - NEAR) : match.end() + NEAR]
    return bool(PROCESSOR.search(around))


def with_levels(grid: Grid, level: int, source: str) -> tuple[Grid, list[UsageError]]:
    """The rows with a load level, and the reasons why others have none."""
    kept, refusals = list[int](), list[UsageError]()
    for number, (row, lines) in enumerate(zip(grid.rows, grid.lines, strict=True)):
        try:
            whole_level(row[level], lines[level], source)
            kept.append(number)
        except UsageError as refusal:
            refusals.append(refusal)
    return grid.of_rows(kept), refusals


def whole_level(text: str, line: int, source: str) -> int:
    """The load level of a cell; UsageError for other text."""
    level = level_of(text)
    if not level:
        raise UsageError(
            f"line {line} of {source}: {text!r} is no load level",
            wanted="a whole number of threads",
        )
    return level


def check_points(tables: Sequence[PublishedTable], source: str) -> None:
    """UsageError if all rates of a table would have to be a thousand times as high."""
    for table in tables:
        means = table.values.get(MEAN, ())
        for metric in RATE_METRICS.intersection(table.values) if means else ():
            rates = table.values[metric]
            in_flight = [
                rate.value * mean.value / threads
                for rate, mean, threads in zip(rates, means, table.threads, strict=True)
            ]
            are_thousands = all(FULL[0] < each < FULL[1] for each in in_flight)
            if are_thousands and all(POINTED.fullmatch(rate.text) for rate in rates):
                line = table.lines[metric][0] if metric in table.lines else 0
                raise UsageError(
                    f"line {line} of {source}: does the point in {rates[0].text} part thousands?",
                    wanted="rates that fit their mean latency and load level",
                    hint="write these rates without points",
                )
