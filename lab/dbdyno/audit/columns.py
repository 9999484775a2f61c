"""Meaning of a published table's columns, in English and Chinese, and their numbers.

A heading is a load level, a metric, a system, or a system with a metric ("v2.1 QPS"); load levels
may stand in the heading too, and systems and workloads in columns of their own. A small mapping
adds the rest (the metric of columns that name systems only, the workload)::

    columns: {并发: threads, "A 库": {system: A, metric: tps}}
    metric: tps
    workload: oltp_read_write
    decimal: ","
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BeforeValidator

from dbdyno.audit.grids import Grid
from dbdyno.audit.tables import Printed, PublishedChange, PublishedTable
from dbdyno.errors import UsageError
from dbdyno.measurement.parts import FiniteNoun

THREADS: Final = "threads"
SYSTEM: Final = "system"
WORKLOAD: Final = "workload"
BUFFER_POOL: Final = "buffer_pool_gb"
CHANGE: Final = "change"
ROLES: Final = {
    THREADS: r"(?:#\s*)?(?:threads?|thds|concurrency|connections?|clients?"
    r"|并发(?:数|线程数?|用户数?)?|线程(?:数)?|连接数?)(?:\s*[(（].*[)）])?",
    SYSTEM: r"systems?|databases?|db|product|server|engine|version|branch|数据库|产品|版本|系统",
    WORKLOAD: r"workloads?|tests?|scenarios?|benchmark|script|case"
    r"|场景|测试(?:场景|项|类型)?|负载|模型",
    CHANGE: r"(?=.{1,30}$)[^。，,;；!！?？]*"
    r"(?:improve(?:d|ment)?|gain|change|diff(?:erence)?|delta|ratio|speed-?up|increase"
    r"|提升|增幅|变化|差异|差距|增长|比例|对比)[^。，,;；!！?？]*",
    BUFFER_POOL: r"(?:innodb[ _])?buffer[ _]pool(?:[ _]size)?(?:[ _]gb)?"
    r"(?:\s*[(（]G(?:i?B)?[)）])?",
}
"""Roles of columns without numbers to compare, and their headings."""
BUFFER_POOL_SIZE: Final = re.compile(
    r"buffer[ _]pool(?:[ _]size)?\s*(?:=|:|：|of|is|为)?\s*(\d+)\s*G", re.IGNORECASE
)
HEADING_MAX: Final = 400
"""Signs of a heading; longer ones would take patterns long."""
SPACES: Final = "\u00a0\u202f\u2009 _'"
PERCENTILE: Final = re.compile(
    r"(?<![a-z\d.])(?:t?p(?P<p>50|75|9\d|99\.9|999)(?!\d|\.\d)"
    r"|(?P<share>50|75|9\d|99\.9)\s*(?:%|％|th|分位[数值点]?|线)(?:\s*percentile)?)(?![a-z])",
    re.IGNORECASE,
)
AVERAGED: Final = r"(?:(?<![a-z])(?:avg\.?|average|mean)(?![a-z])|平均)"
RATES: Final[tuple[tuple[str, str], ...]] = (
    (r"tps|transactions?\s*(?:/s|per sec(?:ond)?)|每秒事务数?|事务数?/秒", "tps"),
    (r"qps|quer(?:y|ies)\s*(?:/s|per sec(?:ond)?)|每秒查询数?|查询数?/秒", "qps"),
)
KINDS: Final[tuple[tuple[str, str], ...]] = (
    (r"max(?:imum)?|最大|最高|最长", "latency_ms_max"),
    (r"min(?:imum)?|最小|最低|最短", "latency_ms_min"),
    (r"std\.?[ _]?dev(?:iation)?|标准差", "stddev"),
)
"""Statistics of a latency heading; the mean without any."""
MEANS: Final = ((r"avg\.?|average|mean", "latency_ms_avg"),)
OTHERS: Final[tuple[tuple[str, str], ...]] = (
    (r"读请求(?:数|/秒)?|reads?(?:/s| requests)?", "reads"),
    (r"写请求(?:数|/秒)?|writes?(?:/s| requests)?", "writes"),
)
LATENCY: Final = re.compile(
    r"(?:latenc(?:y|ies)|response times?|(?<![a-z])(?:lat|rt)(?![a-z])|延迟|时延|响应时间|耗时)",
    re.IGNORECASE,
)
RESOURCE: Final = re.compile(
    r"(?<![a-z])(?:cpu|memory|ram|disks?|storage|space|i/?o|iops|bandwidth|costs?|prices?|cheaper"
    r"|energy|errors?|deadlocks?|lag|compress\w*)(?![a-z])"
    r"|内存|磁盘|空间|带宽|资源|成本|价格|能耗|错误|死锁|压缩",
    re.IGNORECASE,
)
"""In a heading: an average of it is no latency."""
LEVEL_UNIT: Final = r"(?:threads?|connections?|clients?|users|concurren\w*|个?并发|个?线程|个?连接)"
WORKLOADS: Final = {
    "update_non_index": r"(?:update[ _-])?non[ _-]?index(?:ed)?|非索引更新",
    "update_index": r"update[ _-]index|索引更新",
    "point_select": r"point[ _-]selects?|点查",
    "read_write": r"read[ _/-](?:and )?write|读写|混合",
    "read_only": r"read[ _-]only|只读",
    "write_only": r"write[ _-]only|只写|纯写",
    "insert": r"\binserts?\b|插入",
    "select": r"(?<!point[ _-])\bselects?\b|纯读|读(?:性能|测试|场景)",
    "update": r"(?<![ _-])\bupdates?\b(?![ _-](?:non|index))|(?<!索引)更新",
}
UNIT: Final = re.compile(
    r"[(（\[]\s*(ms|msec|毫秒|s|sec|seconds|秒|us|µs|μs|微秒|/s|次/秒|k|千|万)\s*[)）\]]",
    re.IGNORECASE,
)
THOUSANDS: Final = re.compile(r"[(（\[]\s*(k|千|万)\s*[)）\]]", re.IGNORECASE)
BARE_UNIT: Final = re.compile(r"(?<![a-z\d])(ms|msec|毫秒|us|µs|μs|微秒)(?![a-z])", re.IGNORECASE)
CELL_UNIT: Final = re.compile(r"(?<=[\d.])\s*(ms|毫秒|s|秒|us|µs|μs|微秒)$", re.IGNORECASE)
UNITS_MS: Final = {
    **{"ms": 1.0, "msec": 1.0, "毫秒": 1.0},
    **{"s": 1e3, "sec": 1e3, "seconds": 1e3, "秒": 1e3},
    **{"us": 1e-3, "\u03bcs": 1e-3, "微秒": 1e-3},  # of both letters mu as `casefold` gives it
}


class TableColumn(FiniteNoun):
    """A column: one of `ROLES`, or a metric of a system."""

    metric: str
    system: str = ""
    ms: float = 1.0


def _column(value: object) -> object:
    return {"metric": value} if isinstance(value, str) else value


class Mapping(FiniteNoun):
    """Hints of the reader of a page; all may be empty.

    Attributes:
        columns: by the heading's text.
        metric, system, workload: where the page does not say.
        systems: labels of imported systems, by the names in their files' names.
        decimal: the sign before decimals; "," where commas are no thousands.
        at: further conditions of a whole table.
    """

    columns: dict[str, Annotated[TableColumn, BeforeValidator(_column)]] = {}
    metric: str = ""
    system: str = ""
    workload: str = ""
    systems: dict[str, str] = {}
    decimal: Literal[".", ","] = "."
    at: dict[str, str] = {}


def is_heading(text: str) -> bool:
    """Recognises the name of a column."""
    return _role_of(text) is not None or _metric_of(text) is not None


def column_of(heading: str, mapping: Mapping) -> TableColumn | None:
    """Meaning of a heading; None if unknown."""
    text = heading.strip()
    if text in mapping.columns:
        return mapping.columns[text]
    if role := _role_of(text):
        return TableColumn(metric=role)
    named = _metric_of(text)
    if named is None:
        return TableColumn(metric=mapping.metric, system=text) if mapping.metric and text else None
    metric, rest = named
    return TableColumn(metric=metric, system=rest or mapping.system, ms=_unit_ms(text, metric))


def _unit_ms(text: str, metric: str) -> float:
    """A latency heading's unit in ms; 1 without a unit, and for other metrics."""
    unit = UNIT.search(text) or BARE_UNIT.search(text)
    if unit is None or not metric.startswith("latency"):
        return 1.0
    return UNITS_MS.get(unit[1].casefold(), 1.0)


def _role_of(text: str) -> str | None:
    """The role of a column; None for a metric or an unknown heading."""
    bare = text.strip()
    if len(bare) > HEADING_MAX:
        return None
    return next((r for r, words in ROLES.items() if re.fullmatch(words, bare, re.I)), None)


def _metric_of(text: str) -> tuple[str, str] | None:
    """The metric of a heading, and its other words."""
    if len(text) > HEADING_MAX:
        return None
    bare = UNIT.sub("", text)
    match = _percentile_of(bare) or _first_of(RATES, bare)
    if match is None and LATENCY.search(bare):
        match = _first_of(KINDS, bare) or ("latency_ms_avg", bare)
    match = match or _first_of(OTHERS, bare)
    if match is None and not RESOURCE.search(bare):
        match = _first_of(MEANS, bare)
    if match is None:
        return None
    metric, rest = match
    rest = re.sub(AVERAGED, " ", rest, flags=re.IGNORECASE)
    if metric.startswith("latency") or metric == "stddev":
        rest = BARE_UNIT.sub(" ", LATENCY.sub(" ", rest))
    return metric, " ".join(rest.strip(" :-/()（）[]_,，").split())


def _percentile_of(bare: str) -> tuple[str, str] | None:
    match = PERCENTILE.search(bare)
    if match is None:
        return None
    is_plain = match["share"] in (None, "95", "99", "99.9")
    if not is_plain and not LATENCY.search(bare):  # 50 % may be anything
        return None
    digits = (match["p"] or match["share"]).replace(".", "")
    return f"latency_ms_p{digits}", f"{bare[: match.start()]} {bare[match.end() :]}"


def _first_of(known: Sequence[tuple[str, str]], bare: str) -> tuple[str, str] | None:
    """The first metric of which a heading has the words, and its other words."""
    for pattern, metric in known:
        if match := re.search(rf"(?<![a-z])(?:{pattern})(?![a-z])", bare, re.IGNORECASE):
            return metric, f"{bare[: match.start()]} {bare[match.end() :]}"
    return None


def number_of(text: str, decimal: str, line: int, source: str) -> Printed:
    """Parse a printed number: "12,345.6", "12 345,6" with a decimal comma, "84.5%", "3.2万",
    "1.2 ms".

    Raises:
        UsageError: it is no number, or its comma is ambiguous; with its line.
    """
    bare = text.strip()
    for space in SPACES:
        bare = bare.replace(space, "")
    factor, dropped = 1, 0
    if bare.endswith("万"):
        bare, factor = bare[:-1], 10_000
    elif bare[-1:] in ("k", "K"):
        bare, factor = bare[:-1], 1000
    bare = CELL_UNIT.sub("", bare).removesuffix("%")
    if decimal == ",":
        is_plain = re.fullmatch(r"[+-]?(\d+|\d{1,3}(\.\d{3}){1,4})(,\d+)?", bare)
        bare = bare.replace(".", "").replace(",", ".") if is_plain else ""
    elif re.fullmatch(r"[+-]?[1-9]\d{0,2}(,\d{3}){1,4}(\.\d+)?", bare):
        bare = bare.replace(",", "")
    if not re.fullmatch(r"[+-]?\d{1,15}(\.\d{1,15})?", bare):
        raise UsageError(
            f"line {line} of {source}: {text!r} is no number",
            wanted="digits with a decimal point, commas between thousands only",
            hint='correct the cell, or say decimal: "," in the mapping if commas begin decimals',
        )
    if factor > 1:
        whole, _, digits = bare.partition(".")
        places = len(str(factor)) - 1
        dropped = min(0, len(digits) - places)
        bare = whole + digits.ljust(places, "0")
        if len(digits) > places:
            bare = f"{bare[: len(whole) + places]}.{digits[places:]}"
    return Printed(text=bare, dropped=dropped)


class Published(NamedTuple):
    """The tables of a grid, and its columns of changes between two systems."""

    tables: list[PublishedTable]
    changes: list[PublishedChange]


def published(grid: Grid, mapping: Mapping, source: str) -> Published:
    """The tables of a grid, by system, workload and further setting.

    A grid without load levels and without any metric is no table of results and gives no tables.

    Raises:
        UsageError: no column has load levels, a heading is not known, or a cell is no number.
    """
    grid = _levels_down(grid)
    said = _said_by(grid.caption, mapping)
    columns = [column_of(heading, said) for heading in grid.heading]
    levels = [n for n, one in enumerate(columns) if one is not None and one.metric == THREADS]
    if not levels and not any(one and one.metric not in ROLES for one in columns):
        return Published([], [])
    if len(levels) != 1:
        raise UsageError(
            f"line {grid.line} of {source}: which column has the load levels?",
            wanted="one column of threads, connections or 并发",
            found=", ".join(grid.heading),
            hint="say it in the mapping: columns: {NAME: threads}",
        )
    unknown = [head for head, one in zip(grid.heading, columns, strict=True) if one is None]
    if unknown:
        raise UsageError(
            f"line {grid.line} of {source}: what do these columns mean? {', '.join(unknown)}",
            wanted="a metric (tps, qps, latency) in each heading, or metric: in the mapping",
            hint="say it in the mapping: columns: {NAME: {system: …, metric: …}}, or metric: tps",
        )
    known = [one for one in columns if one is not None]
    _check_each_once(grid, known, source)
    signs = [_sign_of(*one) for one in zip(grid.heading, known, strict=True)]
    rows_by_place: dict[tuple[str, str, tuple[tuple[str, str], ...], tuple[str, ...]], _Rows] = {}
    for row, line in zip(grid.rows, grid.lines, strict=True):
        own = {one.metric: text.strip() for one, text in zip(known, row, strict=True)}
        at = dict(said.at)
        if (size := own.get(BUFFER_POOL)) is not None:
            at[BUFFER_POOL] = re.sub(r"\s*G(i?B)?$", "", size)
        threads = _whole(row[levels[0]], line, source)
        texts = [f"{text.strip()}{sign}" for text, sign in zip(row, signs, strict=True)]
        for system, values in _row_values(known, texts, said, line, source).items():
            place = (
                system or own.get(SYSTEM) or grid.caption or PurePath(source).stem,
                own.get(WORKLOAD) or said.workload,
                tuple(at.items()),
                tuple(values),  # a system may have a row here and a column there
            )
            rows_by_place.setdefault(place, []).append((threads, values))
    tables = [
        PublishedTable(
            system=system,
            workload=workload,
            at=dict(at),
            threads=tuple(threads for threads, _ in rows),
            values={metric: tuple(row[metric] for _, row in rows) for metric in metrics},
            place=f"{source}, line {grid.line}",
        )
        for (system, workload, at, metrics), rows in rows_by_place.items()
    ]
    return Published(tables, list(_changes(grid, known, said, levels[0], source)))


def _sign_of(heading: str, column: TableColumn) -> str:
    """Suffix of all numbers of a column, given by its heading: 万."""
    is_rate = column.metric in {metric for _, metric in RATES}
    sign = THOUSANDS.search(heading) if is_rate else None
    return sign[1].replace("千", "k") if sign else ""


def _check_each_once(grid: Grid, columns: Sequence[TableColumn], source: str) -> None:
    """UsageError if two columns hold the same metric of one system, as one would be lost."""
    seen: set[tuple[str, str]] = set()
    for heading, column in zip(grid.heading, columns, strict=True):
        place = column.metric, column.system
        if place in seen and column.metric not in ROLES:
            raise UsageError(
                f"line {grid.line} of {source}: two columns hold the same: {heading}",
                wanted="one column for each metric of a system",
                found=", ".join(grid.heading),
                hint="write into each heading which system it is of",
            )
        seen.add(place)


def _changes(
    grid: Grid, columns: Sequence[TableColumn], mapping: Mapping, level: int, source: str
) -> Iterator[PublishedChange]:
    """Columns of changes, each between the two nearest columns of its metric before it."""
    for at, column in enumerate(columns):
        if column.metric != CHANGE:
            continue
        named = _metric_of(grid.heading[at])
        before = [c for c in columns[:at] if c.metric not in ROLES and c.system]
        before = [c for c in before if named is None or c.metric == named[0]]
        pair = [c for c in before if before and c.metric == before[-1].metric][-2:]
        if len(pair) < 2 or any(one.metric in (SYSTEM, WORKLOAD) for one in columns):
            continue
        for row, line in zip(grid.rows, grid.lines, strict=True):
            yield PublishedChange(
                systems=(pair[0].system, pair[1].system),
                workload=mapping.workload,
                threads=_whole(row[level], line, source),
                at=mapping.at,
                metric=pair[0].metric,
                text=row[at],
                place=f"{source}, line {line}",
            )


_Rows = list[tuple[int, dict[str, Printed]]]


def _row_values(
    columns: Sequence[TableColumn], row: Sequence[str], mapping: Mapping, line: int, source: str
) -> dict[str, dict[str, Printed]]:
    """The numbers of a row by system; "" for columns without a system."""
    values: dict[str, dict[str, Printed]] = {}
    for column, text in zip(columns, row, strict=True):
        if column.metric not in ROLES:
            number = number_of(text, mapping.decimal, line, source)
            is_time = column.metric.startswith("latency")
            unit = CELL_UNIT.search(text.strip()) if is_time else None
            ms = UNITS_MS[unit[1].casefold()] if unit else column.ms
            values.setdefault(column.system, {})[column.metric] = _in_ms(number, ms)
    return values


def _levels_down(grid: Grid) -> Grid:
    """Transpose a table with its load levels in the heading."""
    levels = [
        re.sub(rf"\s*{LEVEL_UNIT}$", "", one, flags=re.IGNORECASE) for one in grid.heading[1:]
    ]
    if len(levels) < 2 or not all(one.isdigit() for one in levels):
        return grid
    first = grid.heading[0].strip()
    metric, unit = _metric_of(first), UNIT.search(first)
    said = "" if metric is None else f" {metric[0]}{unit[0] if unit else ''}"
    names = [f"{row[0]}{said}" for row in grid.rows]
    columns = [levels, *(row[1:] for row in grid.rows)]
    rows = tuple(tuple(cells) for cells in zip(*columns, strict=True))
    return grid._replace(heading=(THREADS, *names), rows=rows, lines=(grid.line,) * len(rows))


def _said_by(caption: str, mapping: Mapping) -> Mapping:
    """The mapping, completed by the words before a table: metric, workload, …"""
    caption = caption[-HEADING_MAX:]
    workloads = [
        one for one, words in WORKLOADS.items() if re.search(words, caption, re.IGNORECASE)
    ]
    size = BUFFER_POOL_SIZE.search(caption)
    metric = mapping.metric or (_metric_of(caption) or ("",))[0]
    return mapping.model_copy(
        update={
            "metric": metric,
            "workload": mapping.workload or (f"oltp_{workloads[0]}" if len(workloads) == 1 else ""),
            "at": mapping.at or ({BUFFER_POOL: size[1]} if size else {}),
        }
    )


def _whole(text: str, line: int, source: str) -> int:
    number = number_of(text, ".", line, source)
    if number.value != int(number.value) or number.value < 1:
        raise UsageError(
            f"line {line} of {source}: {text!r} is no load level",
            wanted="a whole number of threads",
        )
    return int(number.value)


def _in_ms(number: Printed, factor: float) -> Printed:
    """Another unit's number in ms, as exact as it was printed."""
    if factor == 1.0:
        return number
    places = number.decimals - (3 if factor > 1 else -3)
    text = f"{number.value * factor:.{max(0, places)}f}"
    return Printed(text=text, dropped=min(0, places))
