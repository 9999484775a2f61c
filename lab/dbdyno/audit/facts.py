"""Facts of a page around its results: versions, data, machine, load, settings, with their lines.

They stand in sentences, in printed command lines (`printed_commands`), in blocks of settings as
my.cnf and TOML have them, and in tables of instance types. A fact with several values on a page is
left out.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from dbdyno.audit.page.captions import PRODUCTS
from dbdyno.audit.page.grid import Grid
from dbdyno.audit.printed_commands import PrintedCommand, printed_commands
from dbdyno.audit.tables import QUANTILE, Publication, PublishedTable

SIZE: Final = r"(?<![\d.])(?P<value>\d{1,9}(?:\.\d{1,6})?)\s*(?P<unit>[GT])i?B?(?![A-Za-z])"
ROWS: Final = (
    r"(?<![\d,.])(?P<value>\d[\d,]{0,14}(?:\.\d{1,6})?)\s*"
    r"(?P<unit>万|亿|million|M(?![A-Za-z])|k(?![A-Za-z]))?"
)
EACH: Final = r"(?:(?:each|every|per|one) table|每[张个]?(?:数据)?表|单表|一张表)"
SENTENCES: Final[dict[str, tuple[str, ...]]] = {
    "dataset.tables": (
        r"(?<![\d.,])(?P<value>\d{1,6})\s*(?:[张个]\s*(?:数据)?表|tables\b(?!\s*[:=：]))",
    ),
    "dataset.size_gb": (rf"(?:总大小|总数据量|total size|database size)[^\d.。;；]{{0,12}}{SIZE}",),
    "dataset.rows_per_table": (
        rf"{EACH}[^\d.。;；]{{0,20}}{ROWS}\s*(?:rows|records|行|条)",
        rf"{ROWS}\s*(?:rows|records|行|条)\s*(?:per|in each|in every|a) table",
    ),
    "dataset.gb_per_table": (
        rf"{EACH}[^。;；\n]{{0,30}}?(?<![\d.]){SIZE}",
        rf"{SIZE} (?:per|for each|a) table",
    ),
    "environment.memory_gb": (
        rf"(?:\b(?:memory|RAM)\b|内存)[^\d.,。;；]{{0,12}}{SIZE}",
        rf"{SIZE}\s*(?:of\s+)?(?:(?:DDR\d\s+)?\b(?:memory|RAM)\b|内存)",
    ),
    "environment.round_trip_ms": (
        r"(?:\bping\b|\bRTT\b|round[ -]trip|network(?:'s)? (?:mean |average )?(?:latency|delay)"
        r"|网络(?:平均)?(?:延迟|时延|延时))[^\d.。;；]{0,20}(?P<value>\d{1,9}(?:\.\d{1,6})?)\s*(?:ms|毫秒)",
        r"(?<![\d.])(?P<value>\d{1,9}(?:\.\d{1,6})?)\s*(?:ms|毫秒) "
        r"(?:\w+ )?(?:network|LAN) (?:latency|delay)",
    ),
}
"""Patterns of each fact in sentences; the first with a match counts."""
FACTORS: Final = {"万": 1e4, "亿": 1e8, "million": 1e6, "m": 1e6, "k": 1e3, "g": 1.0, "t": 1024.0}
SETTING: Final = re.compile(
    r"\b(innodb_buffer_pool_size|sync_binlog|innodb_flush_log_at_trx_commit|shared_buffers"
    r"|synchronous_commit)\b\s*(?:=|:|：|为|is|of)\s*['\"]?"
    r"(\d{1,3}(?:,\d{3}){1,5}(?!\d)|\w[\w.]{0,60}\w|\w)",
    re.IGNORECASE,
)
VARIABLE: Final = re.compile(
    r"\bset\s+(?:global|persist)\s+([A-Za-z]\w{1,80})\s*=\s*['\"]?([^\s'\";,]{1,80})", re.IGNORECASE
)
TOOL: Final = re.compile(
    r"\bsysbench\s*(?:version\s*|版本\s*[:：]?\s*)?v?([01]\.\d+(?:\.\d+)?)", re.IGNORECASE
)
PRODUCT: Final = re.compile(rf"(?<![A-Za-z])(?:{PRODUCTS})[a-z]*(?:-X\b)?", re.IGNORECASE)
VERSION: Final = (
    r"\d{1,2}(?:\.\d{1,4}){1,3}(?:-(?:\d{1,3}|[a-z]{1,10}(?:\.?\d{1,3})?))?"
    r"(?![A-Za-z0-9_%-]|\.\d)"
)
VERSIONS: Final = re.compile(
    rf"(?P<other>\b(?:for|based on|built on|fork of|compatible with|since|{PRODUCTS}) ?"
    rf"|(?:基于|兼容) ?)?(?P<product>{PRODUCT.pattern})"
    r"(?: ?(?:community|enterprise|server|edition|version|社区版|企业版|数据库|版本)){0,3}"
    r"(?:[*`]{0,3} [*`]{0,3}|[*`]{0,3} ?[:：(（][ *`]{0,3}(?=v|\d+\.\d+\.\d))v?"
    rf"(?P<versions>{VERSION}(?: ?(?:版本|版)? ?"
    rf"(?:[,、/&~]|and|or|to|vs\.?|versus|和|与|及|或|对比) ?v?{VERSION}){{0,9}}+)"
    r"(?! ?(?:\d|%|倍|万|(?:[mµμ]?s|[KMG]i?B?|x|times|seconds|million|tps|qps)(?![A-Za-z])))",
    re.IGNORECASE,
)
"""Versions directly behind a product's name, no numbers of a row or with a unit."""
INSTANCE: Final = re.compile(
    r"\b(?:instance|machine|node|VM)\b|configuration|机型|实例|机器|配置|规格", re.IGNORECASE
)
CLOUD_TYPE: Final = re.compile(
    r"(?:(?:db|cache|ecs|rds)\.)?[a-z]{1,5}\d{1,2}[a-z-]{0,8}"
    r"\.(?:\d{1,2}-?x)?(?:nano|micro|small|medium|x?large|metal)\d{0,3}"
    r"|[a-z]\d[a-z]?-(?:standard|high(?:mem|cpu)|megamem|ultramem)-\d{1,3}"
    r"|Standard_[A-Z]\w{1,20}",
    re.IGNORECASE,
)
"""Instance types of clouds: "c5d.xlarge", "ecs.g7.2xlarge", "n2-standard-8", "Standard_D4s_v3"."""
SECTION: Final = re.compile(r"\[{1,2}([A-Za-z][\w.-]{0,60})\]{1,2}")
ENTRY: Final = re.compile(r"([A-Za-z][\w.-]{0,80})\s*=\s*(\S.{0,200})")
FLAG: Final = re.compile(r"[a-z]+(?:[-_][a-z]+)+")
"""An entry of my.cnf without a value, as skip-networking."""
COMMENT: Final = re.compile(r"(?:^|\s)[#;].*")
FENCE: Final = re.compile(
    r"(?:```|~~~)\s*(?P<language>toml|ini|cnf|conf|properties)?", re.IGNORECASE
)
SERVERS: Final = re.compile(r"mysqld(?:[-_.].*)?|server|mariadb(?:d|-.*)?", re.IGNORECASE)
CLIENTS: Final = re.compile(r"client.*|mysql|mysqldump|mysqld_safe|mariadb-client", re.IGNORECASE)
TAG: Final = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][\w-]{0,30})\b[^<>]{0,500}>|<!--|-->")
UNSEEN: Final = frozenset(("script", "style"))
NOT_PROSE: Final = UNSEEN | {"table", "pre", "svg", "nav", "footer", "select", "button", "textarea"}
BREAK: Final = "\x1f"
"""In place of a tag that ends a sentence."""
BLOCKS: Final = re.compile(r"p|div|li|[uod]l|d[dt]|h[1-6]|t[drh]|br|pre|section|article|figcaption")

OF_KIND: Final = {
    "select": ("oltp_point_select",),
    "read": ("oltp_point_select", "oltp_read_only"),
    "update": ("oltp_update_index", "oltp_update_non_index"),
    "write": ("oltp_update_index", "oltp_update_non_index", "oltp_write_only"),
    "mixed": ("oltp_read_write",),
}
"""Workloads of headings that name only a kind, and the tests that it may be."""


@dataclass(frozen=True)
class PageFact:
    """A fact with its line; its name begins with a field of `Publication`: `dataset.tables`."""

    name: str
    value: str
    line: int


def bare(text: str, unseen: frozenset[str] = UNSEEN) -> list[str]:
    """The lines of a page without tags and comments, `BREAK` between blocks.

    Args:
        unseen: elements of HTML to leave out whole.
    """
    parts: list[str] = []
    place, hidden = 0, ""
    for match in TAG.finditer(text):
        between = text[place : match.start()]
        name = "!" if match["name"] is None else match["name"].lower()
        parts.append(between if not hidden else "\n" * between.count("\n"))
        parts.append(f"{BREAK if BLOCKS.fullmatch(name) else ' '}" + "\n" * match[0].count("\n"))
        place = match.end()
        if not hidden and (match[0] == "<!--" or (name in unseen and not match["end"])):
            hidden = name
        elif hidden == name and (match[0] == "-->" or match["end"]):
            hidden = ""
    rest = text[place:]
    parts.append(rest if not hidden else "\n" * rest.count("\n"))
    return [html.unescape(line) for line in "".join(parts).split("\n")]


def facts_in(
    text: str,
    source: str,
    of_tables: Iterable[PageFact] = (),
    systems: Mapping[str, str] | None = None,
) -> Publication:
    """The facts with a single value, as a publication without tables.

    Args:
        of_tables: facts that its tables have.
        systems: the names of its systems by their printed labels.
    """
    parted = bare(text)
    lines = [line.replace(BREAK, " ") for line in parted]
    values: dict[str, dict[str, int]] = {}
    versions = _versions(parted, systems or {})
    for fact in (*of_tables, *versions, *_in_commands(lines), *_in_blocks(lines)):
        values.setdefault(fact.name, {}).setdefault(fact.value, fact.line)
    exact = {name for name in values if name.startswith("dataset.")}
    for fact in _in_sentences(lines):
        if fact.name not in exact:
            values.setdefault(fact.name, {}).setdefault(fact.value, fact.line)
    parts: dict[str, dict[str, str]] = {}
    places = {}
    for name, lines_by_value in values.items():
        if len(lines_by_value) == 1:
            ((value, line),) = lines_by_value.items()
            part, _, key = name.partition(".")
            parts.setdefault(part, {})[key] = value
            places[name] = f"{source}, line {line}"
    tool = parts.pop("tool", {}).get("version", "")
    return Publication.model_validate({**parts, "tool": tool, "places": places})


def instance_types(grid: Grid) -> list[PageFact]:
    """The facts of a table with a component and its instance type in each row; else empty."""
    if len(grid.heading) != 2 or grid.is_hidden or not INSTANCE.search(grid.heading[1]):
        return []
    rows = [[text.strip("` ") for text in row] for row in grid.rows]
    are_types = all(len(row) == 2 and row[0] and CLOUD_TYPE.fullmatch(row[1]) for row in rows)
    if not are_types or len({row[0] for row in rows}) < len(rows):
        return []
    return [
        PageFact(f"environment.instance_type.{name}", kind, line)
        for (name, kind), (line, *_) in zip(rows, grid.lines, strict=True)
    ]


def _versions(lines: Sequence[str], systems: Mapping[str, str]) -> Iterator[PageFact]:
    """Versions behind the product's name of each system whose own name has none.

    "8.0" beside "8.0.30" is the same version. A name with several products has no version, as
    "Aurora MySQL 8.0" tells that of MySQL.
    """
    lines_by_version: dict[str, dict[str, int]] = {}
    for number, line in enumerate(lines, 1):
        for match in VERSIONS.finditer(line):
            if not match["other"]:
                known = lines_by_version.setdefault(match["product"].lower(), {})
                for version in re.findall(VERSION, match["versions"], re.IGNORECASE):
                    known.setdefault(version, number)
    for label, name in systems.items():
        products = {match[0].lower() for match in PRODUCT.finditer(label)}
        if len(products) == 1 and not re.search(r"\d", label):
            known = lines_by_version.get(products.pop(), {})
            for version, number in known.items():
                if not any(re.match(rf"{re.escape(version)}[.-]", other) for other in known):
                    yield PageFact(f"systems.{name}", version, number)


def opposed(load: Mapping[str, str], tables: Sequence[PublishedTable]) -> list[str]:
    """Names of the facts of a load that are not true of all tables.

    A command line with 500 threads beside tables of 50 to 1,000 threads is an example.
    """
    printed = {
        "threads": {str(level) for table in tables for level in table.threads},
        "percentile": {
            quantile[1]
            for table in tables
            for metric in table.values
            if (quantile := QUANTILE.fullmatch(metric))
        },
    }
    return [
        name
        for name, seen in printed.items()
        if name in load and seen - {load[name].replace(".", "")}
    ]


def _in_commands(lines: Sequence[str]) -> Iterator[PageFact]:
    for command in printed_commands(lines):
        for name, value in command.options.items():
            part = "dataset" if name in ("tables", "rows_per_table") else "load"
            yield PageFact(f"{part}.{name}", _plain(value), command.line)
        for workload in _names(command):
            yield PageFact(f"statements.{workload}", str(command.statements), command.line)


def _names(command: PrintedCommand) -> Iterator[str]:
    """Names of a command's workload in tables, if its number of statements is known."""
    if command.statements is not None:
        yield command.workload
        yield from (kind for kind, tests in OF_KIND.items() if command.workload in tests)


def _plain(value: str) -> str:
    """A number as it is compared and shown; any other value as it is."""
    try:
        return f"{float(value):.15g}"
    except ValueError:
        return value


def _in_blocks(lines: Sequence[str]) -> Iterator[PageFact]:
    """Entries below a section's name, or in a fence of TOML or the like."""
    section: str | None = None
    is_fenced = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if fence := FENCE.match(text):
            is_fenced = not is_fenced
            section = "" if is_fenced and fence["language"] else None
            continue
        text = COMMENT.sub("", text).strip()
        if match := SECTION.fullmatch(text):
            section = match[1]
        elif section is not None and (entry := ENTRY.fullmatch(text)):
            if not CLIENTS.fullmatch(section):
                bare_name = not section or SERVERS.fullmatch(section)
                name = entry[1] if bare_name else f"{section}.{entry[1]}"
                yield PageFact(f"settings.{name}", entry[2].strip().strip("'\""), number)
        elif text and not is_fenced and not FLAG.fullmatch(text):
            section = None


def _in_sentences(lines: Sequence[str]) -> Iterator[PageFact]:
    """Facts in sentences, which may go over several lines."""
    every = ((number, " ".join(line.split())) for number, line in enumerate(lines, 1))
    kept = [(number, line) for number, line in every if line]
    text = "\n".join(line for _, line in kept)  # long white space would take patterns long
    starts = list(accumulate((len(line) + 1 for _, line in kept), initial=0))

    def fact(name: str, value: str, match: re.Match[str]) -> PageFact:
        return PageFact(name, value, kept[bisect_right(starts, match.start()) - 1][0])

    for name, patterns in SENTENCES.items():
        matches = ([*re.finditer(one, text, re.IGNORECASE)] for one in patterns)
        for match in next(filter(None, matches), []):
            yield fact(name, f"{_value(match):.15g}", match)
    for match in SETTING.finditer(text):
        yield fact(f"settings.{match[1].lower()}", match[2].replace(",", ""), match)
    for match in VARIABLE.finditer(text):
        yield fact(f"settings.{match[1]}", match[2], match)
    for match in TOOL.finditer(text):
        yield fact("tool.version", f"sysbench {match[1]}", match)


def _value(match: re.Match[str]) -> float:
    unit = match.groupdict().get("unit") or ""
    return float(match["value"].replace(",", "")) * FACTORS.get(unit.lower(), 1.0)
