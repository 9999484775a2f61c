"""The load level of tables without one, and rates that fit none.

A page's settings may give the level. Points between thousands, as in Portuguese, look as decimals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from dbdyno.audit.page.captions import LEVEL, level_in, metric_in
from dbdyno.audit.page.columns import NO_MAPPING, RATE_METRICS, THREADS, column_of, level_of
from dbdyno.audit.page.forms import METRICS_MAX
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
NEAR: Final = 60
"""Signs around a setting; a processor among them may have the threads."""
POINTED: Final = re.compile(r"[1-9]\d{0,2}\.\d{3}")
FULL: Final = (0.5, 2.0)
"""Requests in flight for each connection of a test that is a closed loop."""


def with_page_level(
    grids: Sequence[Grid], text: str, source: str, assumed: list[str]
) -> Iterator[Grid]:
    """The tables of a page, those without a load level with the page's only one as last caption.

    Args:
        assumed: gets a line for each such table.
    """
    level = cache(lambda: sole_level_in(text))
    for grid in grids:
        if not _lacks_level(grid) or (said := level()) is None:
            yield grid
            continue
        assumed.append(f"{source}, line {grid.line}: {said[0]} threads, as line {said[1]} says")
        yield grid._replace(captions=(*grid.captions, f"threads = {said[0]}"))


def _lacks_level(grid: Grid) -> bool:
    """Recognises a table with a metric, and without a load level in it or above it."""
    names = [*grid.heading, *(row[0] for row in grid.rows[:METRICS_MAX] if row)]
    columns = [column for name in names if (column := column_of(name, NO_MAPPING))]
    has_metric = any(column.has_numbers for column in columns)
    is_column = any(column.metric == THREADS for column in columns)
    is_heading = any(level_of(name) is not None for name in grid.heading)
    return (has_metric or metric_in(grid.captions, NO_MAPPING) is not None) and not (
        is_column or is_heading or level_in(grid.captions)
    )


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
