"""Prints a publication as a page in eight forms, with the noise around the tables of real pages.

A page is a list of blocks: headings, words, lists, code, tables of text. A layout makes blocks of
a publication's tables, a form writes blocks down. A right reading of any such page gives the
publication's cells again, so `audit_rates` and the tests of the reader count wrong readings.
"""

from __future__ import annotations

import csv
import html
import io
import random
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Final

from dbdyno.audit.page.columns import BUFFER_POOL
from dbdyno.audit.tables import Publication, PublishedTable


@dataclass(frozen=True)
class Heading:
    """A heading of a level from 1; `number` stands before it where headings have no other mark."""

    level: int
    text: str
    number: str = ""


@dataclass(frozen=True)
class Words:
    """A paragraph, or a line in bold."""

    text: str
    is_bold: bool = False


@dataclass(frozen=True)
class Menu:
    """A list of links."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Command lines or a configuration file."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table of texts; `groups` are the names above columns, empty above the first."""

    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    groups: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Its columns in a single heading."""
        groups = self.groups or ("",) * len(self.heading)
        return [f"{a} {b}".strip() for a, b in zip(groups, self.heading, strict=True)]


@dataclass(frozen=True)
class Hidden:
    """Blocks in a comment."""

    blocks: tuple[Block, ...]


Block = Heading | Words | Menu | Code | Table | Hidden


# Words of authors.


@dataclass(frozen=True)
class Wording:
    """The words of a language (`authors.toml`), several for each name."""

    threads: Sequence[str]
    levels: Sequence[str]
    system: Sequence[str]
    workload: str
    change: str
    mean: str
    metrics: Mapping[str, Sequence[str]]
    workloads: Mapping[str, Sequence[str]]
    sections: Sequence[str]
    pools: Sequence[str]
    titles: Sequence[str]
    set_up: str
    machine: str
    results: str
    lines: Sequence[str]
    menu: Sequence[str]
    footers: Sequence[str]


LANGUAGES: Final = tuple(
    Wording(**words)
    for words in tomllib.loads(Path(__file__).with_name("authors.toml").read_text()).values()
)
SCRIPTS: Final = "sysbench {} --tables=10 --table-size=1000000 --time=600 --report-interval=10 run"
CONFIGURATION: Final = "[mysqld]\nsync_binlog = 1\ninnodb_flush_log_at_trx_commit = 1"
MACHINES: Final = Table(
    ("Component", "Machine"), (("Server", "c5d.4xlarge"), ("Client", "c5.2xlarge"))
)
"""A table without results."""
NOISE_MAX: Final = 0.5
"""Chance of each kind of noise on a page."""


@dataclass(frozen=True)
class Style:
    """An author's habits, the same on a whole page.

    Attributes:
        unit: of latencies: `ms` or `s` in the heading, or `ms` behind each number.
        has_commas: between thousands.
        has_marks: of a footnote, behind some numbers.
        is_bold: a line above a table, which else ends with a colon.
        names: words for threads, the system and each metric.
    """

    dice: random.Random
    wording: Wording
    unit: str
    has_commas: bool
    has_marks: bool
    is_bold: bool
    names: Mapping[str, str]
    level: str

    @classmethod
    def drawn(cls, dice: random.Random) -> Style:
        """Habits by chance."""
        wording = dice.choice(LANGUAGES)
        metrics = {metric: dice.choice(names) for metric, names in wording.metrics.items()}
        return cls(
            dice=dice,
            wording=wording,
            unit=dice.choice(("ms", "ms", "ms", "s", "cell")),
            has_commas=dice.random() < 0.3,
            has_marks=dice.random() < 0.1,
            is_bold=dice.random() < 0.5,
            names={
                "threads": dice.choice(wording.threads),
                "system": dice.choice(wording.system),
                **metrics,
            },
            level=dice.choice(wording.levels),
        )

    def heading(self, metric: str) -> str:
        """A metric's name with its unit."""
        name = self.names[metric]
        if self.unit == "cell":
            return name.replace("({u})", "").replace("（{u}）", "").strip()
        return name.replace("{u}", self.unit)

    def number(self, metric: str, text: str) -> str:
        """A printed number in this author's hand."""
        if metric.startswith("latency"):
            if self.unit == "s":
                text = f"{Decimal(text).scaleb(-3):f}"
            elif self.unit == "cell":
                return f"{text} ms"
        whole, point, digits = text.partition(".")
        if self.has_commas:
            whole = f"{int(whole):,}"
        mark = "†" if self.has_marks and self.dice.random() < 0.1 else ""
        return f"{whole}{point}{digits}{mark}"

    def column(self, table: PublishedTable, metric: str) -> list[str]:
        """A column of a table as printed."""
        return [self.number(metric, printed.text) for printed in table.values[metric]]

    def title_of(self, words: str) -> Block:
        """Words directly above a table."""
        return Words(words, True) if self.is_bold else Words(f"{words}:")

    def is_drawn(self) -> bool:
        """Decides by chance whether this page has a kind of noise."""
        return self.dice.random() < NOISE_MAX


# Layouts.

Layout = Callable[[Sequence[PublishedTable], Style], Iterator[Block]]


def _down(columns: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(zip(*columns, strict=True))


def _levels(tables: Sequence[PublishedTable]) -> list[str]:
    return [str(threads) for threads in tables[0].threads]


def a_table_each(tables: Sequence[PublishedTable], style: Style) -> Iterator[Block]:
    """The system above a table, a row for each load level, a column for each metric."""
    for table in tables:
        yield style.title_of(table.system)
        columns = [style.column(table, metric) for metric in table.values]
        heading = (style.names["threads"], *map(style.heading, table.values))
        yield Table(heading, _down([_levels(tables), *columns]))


def a_column_each(tables: Sequence[PublishedTable], style: Style) -> Iterator[Block]:
    """A column for each metric of each system."""
    pairs = [(table, metric) for table in tables for metric in table.values]
    yield Table(
        (style.names["threads"], *(style.heading(metric) for _, metric in pairs)),
        _down([_levels(tables), *(style.column(*pair) for pair in pairs)]),
        ("", *(table.system for table, _ in pairs)),
    )


def a_table_for_each_metric(tables: Sequence[PublishedTable], style: Style) -> Iterator[Block]:
    """The metric above a table, a column for each system, perhaps a change beside them."""
    has_change, has_mean = len(tables) == 2 and style.is_drawn(), style.is_drawn()
    for metric in tables[0].values:
        yield style.title_of(style.heading(metric))
        heading = [style.names["threads"], *(table.system for table in tables)]
        columns = [_levels(tables), *(style.column(table, metric) for table in tables)]
        if has_change:
            heading.append(style.wording.change)
            numbers = [[number.value for number in table.values[metric]] for table in tables]
            columns.append([f"{100 * (b / a - 1):+.1f}%" for a, b in zip(*numbers, strict=True)])
        rows = _down(columns)
        if has_mean and metric in ("tps", "qps") and not has_change:
            means = (
                sum(number.value for number in table.values[metric]) / len(rows) for table in tables
            )
            row = [style.number(metric, f"{mean:.2f}") for mean in means]
            rows = (*rows, (style.wording.mean, *row))
        yield Table(tuple(heading), rows)


def levels_in_the_heading(tables: Sequence[PublishedTable], style: Style) -> Iterator[Block]:
    """The metric above a table, a row for each system, a column for each load level."""
    for metric in tables[0].values:
        yield style.title_of(style.heading(metric))
        heading = ("", *(style.level.format(level) for level in _levels(tables)))
        yield Table(
            heading, tuple((table.system, *style.column(table, metric)) for table in tables)
        )


def a_row_each(tables: Sequence[PublishedTable], style: Style) -> Iterator[Block]:
    """A row for each system at each load level."""
    heading = (
        style.names["threads"],
        style.names["system"],
        *map(style.heading, tables[0].values),
    )
    by_system = [
        [(table.system, *row) for row in _down([style.column(table, m) for m in table.values])]
        for table in tables
    ]
    rows = [
        (level, *row)
        for level, of_level in zip(_levels(tables), _down(by_system), strict=True)
        for row in of_level
    ]
    yield Table(heading, tuple(rows))


LAYOUTS: Final[tuple[Layout, ...]] = (
    a_table_each,
    a_column_each,
    a_table_for_each_metric,
    levels_in_the_heading,
    a_row_each,
)


# Forms.


def _piped(row: Sequence[str]) -> str:
    return f"| {' | '.join(row)} |"


def _numbered(heading: Heading) -> str:
    return f"{heading.number} {heading.text}".strip()


def _text(
    page: Sequence[Block],
    table: Callable[[Table], str],
    *,
    heading: Callable[[Heading], str] = _numbered,
    bold: str = "{}",
    item: str = "{}",
    code: str = "{}",
    comment: str = "",
    gap: str = "\n\n",
) -> str:
    """A page as text: how it writes tables and headings, and templates of all other blocks."""
    parts: list[str] = []
    for block in page:
        match block:
            case Heading():
                parts.append(heading(block))
            case Words():
                parts.append(bold.format(block.text) if block.is_bold else block.text)
            case Code():
                parts.append(code.format(block.text))
            case Menu():
                parts.append("\n".join(map(item.format, block.items)))
            case Table():
                parts.append(table(block))
            case Hidden() if comment:
                inner = _text(block.blocks, table, heading=heading, bold=bold, gap=gap)
                parts.append(comment.format(inner))
    return gap.join(parts) + "\n"


def markdown(page: Sequence[Block], dice: random.Random) -> str:
    """Markdown, its rules with or without signs of alignment."""
    rule = dice.choice(("---", ":---", "---:", ":-:"))

    def table_of(table: Table) -> str:
        return "\n".join(map(_piped, (table.names(), [rule] * len(table.heading), *table.rows)))

    return _text(
        page,
        table_of,
        heading=lambda one: f"{'#' * one.level} {one.text}",
        bold="**{}**",
        item="- [{0}](/{0})",
        code="```sh\n{}\n```",
        comment="<!-- other settings\n\n{}-->",
    )


def html_page(page: Sequence[Block], dice: random.Random) -> str:
    """A page of a browser, a heading over several columns written out in each."""
    return _document(page, has_spans=False)


def html_with_spans(page: Sequence[Block], dice: random.Random) -> str:
    """The same, with cells that span columns and rows."""
    return _document(page, has_spans=True)


def _document(page: Sequence[Block], *, has_spans: bool) -> str:
    body = "\n".join(_element(block, has_spans=has_spans) for block in page)
    script = "<script>var rows = [[1, 2], [3, 4]]; track('page')</script>"
    style = "<style>td { padding: 2px }</style>"
    head = f"<head><meta charset=utf-8><title>Example</title>{style}{script}</head>"
    return f"<!doctype html>\n<html>{head}<body>\n{body}\n</body></html>\n"


def _element(block: Block, *, has_spans: bool) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{html.escape(block.text)}</h{block.level}>"
        case Words():
            text = html.escape(block.text)
            return f"<p><strong>{text}</strong></p>" if block.is_bold else f"<p>{text}</p>"
        case Menu():
            items = "".join(f"<li><a href='/{item}'>{item}</a></li>" for item in block.items)
            return f"<nav><ul>{items}</ul></nav>"
        case Code():
            return f"<pre><code>{html.escape(block.text)}</code></pre>"
        case Table():
            return f"<table class='t'>\n{_rows_of_html(block, has_spans=has_spans)}</table>"
        case Hidden():
            inner = "\n".join(_element(one, has_spans=has_spans) for one in block.blocks)
            return f"<!-- {inner} -->"


def _rows_of_html(table: Table, *, has_spans: bool) -> str:
    def cell(tag: str, text: str, spans: str = "") -> str:
        return f"<{tag}{spans}>{html.escape(text).replace('†', '<sup>1</sup>')}</{tag}>"

    if has_spans and table.groups:
        first, *names = table.heading
        groups = [(name, len([*run])) for name, run in groupby(table.groups[1:])]
        above = "".join(cell("th", name, f" colspan={count}") for name, count in groups)
        head = f"<tr>{cell('th', first, ' rowspan=2')}{above}</tr>\n<tr>"
        head += "".join(cell("th", name) for name in names) + "</tr>\n"
    else:
        head = f"<tr>{''.join(cell('th', name) for name in table.names())}</tr>\n"
    rows = ""
    for first, run in groupby(table.rows, key=lambda row: row[0]):
        alike = [*run]
        for place, row in enumerate(alike):
            begin = cell("td", first)
            if has_spans and len(alike) > 1:
                begin = "" if place else cell("td", first, f" rowspan={len(alike)}")
            rows += f"<tr>{begin}{''.join(cell('td', text) for text in row[1:])}</tr>\n"
    return f"{head}{rows}"


def framed(page: Sequence[Block], dice: random.Random) -> str:
    """Text with tables in frames of +---+, as clients of databases print them."""

    def table_of(table: Table) -> str:
        rows = [table.names(), *table.rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        frame = f"+{'+'.join('-' * (width + 2) for width in widths)}+"
        lines = [
            _piped([text.ljust(width) for text, width in zip(row, widths, strict=True)])
            for row in rows
        ]
        return "\n".join([frame, lines[0], frame, *lines[1:], frame])

    return _text(page, table_of)


def tabbed(page: Sequence[Block], dice: random.Random) -> str:
    """Text copied out of a browser: tabs between cells."""
    return _text(page, lambda one: "\n".join(map("\t".join, (one.names(), *one.rows))))


def _cells(table: Table) -> list[str]:
    return [text for row in (table.names(), *table.rows) for text in row if text]


def a_cell_a_line(page: Sequence[Block], dice: random.Random) -> str:
    """A page saved as text: a cell a line, blank lines between, the first headings underlined."""

    def heading_of(heading: Heading) -> str:
        if heading.level > 2:
            return f"{'#' * heading.level} {heading.text}"
        return f"{heading.text}\n{'=-'[heading.level - 1] * 12}"

    return _text(
        page,
        lambda table: "\n\n".join(_cells(table)),
        heading=heading_of,
        item="*   {}",
        code="```\n{}\n```",
    )


def a_cell_a_line_with_bars(page: Sequence[Block], dice: random.Random) -> str:
    """A page copied as text: a cell a line, each ended by a bar, no blank lines."""
    return _text(page, lambda one: "\n".join(f"{text} |" for text in _cells(one)), gap="\n")


def comma_separated(page: Sequence[Block], dice: random.Random) -> str:
    """A table of a spreadsheet, perhaps below lines with its title."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=dice.choice((",", ";", "\t")), lineterminator="\r\n")
    for block in page:
        match block:
            case Words():
                out.write(f"# {block.text}\r\n")
            case Table():
                writer.writerows([block.heading, *block.rows])
            case _:
                pass
    return out.getvalue()


@dataclass(frozen=True)
class Form:
    """A way to write pages down.

    Attributes:
        layouts: those that authors use with it; none for a sheet with all tables in a single one.
        has_marks_of_headings: other pages name workload and buffer pool in a single heading.
        has_comments: other pages leave hidden tables out.
    """

    name: str
    suffix: str
    write: Callable[[Sequence[Block], random.Random], str]
    layouts: tuple[Layout, ...] = LAYOUTS
    has_marks_of_headings: bool = True
    has_comments: bool = False


FORMS: Final = (
    Form("Markdown", ".md", markdown, has_comments=True),
    Form("HTML", ".html", html_page, has_comments=True),
    Form(
        "HTML, cells over several",
        ".html",
        html_with_spans,
        (a_column_each, a_row_each),
        has_comments=True,
    ),
    Form("text, tables in frames", ".txt", framed, has_marks_of_headings=False),
    Form("text, tabs between cells", ".txt", tabbed, has_marks_of_headings=False),
    Form(
        "text, a cell a line",
        ".txt",
        a_cell_a_line,
        (a_table_each, a_table_for_each_metric, levels_in_the_heading, a_row_each),
    ),
    Form(
        "text, a cell a line with bars",
        ".txt",
        a_cell_a_line_with_bars,
        (a_table_each, a_row_each),
        has_marks_of_headings=False,
    ),
    Form("CSV", ".csv", comma_separated, ()),
)


# Pages.


def shown_by(publication: Publication, form: Form) -> Publication:
    """The publication as far as a form can print it."""
    tables = (table for table in publication.tables if form.has_comments or not table.is_hidden)
    return publication.model_copy(update={"tables": tuple(tables)})


def printed(publication: Publication, form: Form, dice: random.Random) -> str:
    """The page of a publication: its tables in a layout of the form, noise around them."""
    style, publication = Style.drawn(dice), shown_by(publication, form)
    page = _page(publication, form, style) if form.layouts else _sheet(publication, style)
    return form.write([*page], dice)


def _sheet(publication: Publication, style: Style) -> Iterator[Block]:
    """All tables as rows of a single table."""
    if style.is_drawn():
        yield Words(style.wording.machine)
    heading = (
        style.wording.workload,
        style.names["system"],
        "Buffer pool (GB)",
        style.names["threads"],
        *map(style.heading, publication.tables[0].values),
    )
    rows = [
        (table.workload, table.system, table.at[BUFFER_POOL], *row)
        for table in publication.tables
        for row in _down([_levels([table]), *(style.column(table, m) for m in table.values)])
    ]
    yield Table(heading, tuple(rows))


def _page(publication: Publication, form: Form, style: Style) -> Iterator[Block]:
    wording, dice = style.wording, style.dice
    if style.is_drawn():
        yield Menu(wording.menu)
    yield Heading(1, dice.choice(wording.titles).format(*publication.systems))
    yield Heading(2, wording.set_up, "1.")
    yield Words(wording.machine)
    if style.is_drawn():
        yield MACHINES
    if style.is_drawn():
        names = dict.fromkeys(table.workload for table in publication.tables)
        yield Code("\n".join(SCRIPTS.format(name) for name in names))
    if style.is_drawn():
        yield Code(CONFIGURATION)
    yield Heading(2, wording.results, "2.")
    if style.is_drawn():
        yield Words(dice.choice(wording.lines))
    yield from _results(publication, form, style)
    if style.is_drawn():
        yield Words(dice.choice(wording.lines))
    for footer in wording.footers:
        if style.is_drawn():
            yield Words(footer)


def _results(publication: Publication, form: Form, style: Style) -> Iterator[Block]:
    """The tables by workload and buffer pool, which stand in nested headings or in a single one."""
    wording, dice, section = style.wording, style.dice, 0
    layout, pool = dice.choice(form.layouts), dice.choice(wording.pools)
    is_single = not form.has_marks_of_headings or style.is_drawn()
    for workload in dict.fromkeys(table.workload for table in publication.tables):
        name = dice.choice(wording.workloads[workload])
        title = dice.choice(wording.sections).format(name)
        if not is_single:
            yield Heading(3, title)
        of_it = [table for table in publication.tables if table.workload == workload]
        for size in dict.fromkeys(table.at[BUFFER_POOL] for table in of_it):
            section += 1
            memory = pool.format(size)
            text = f"{title}, {memory}" if is_single else memory
            yield Heading(3 if is_single else 4, text, f"2.{section}")
            if style.is_drawn():
                yield Words(dice.choice(wording.lines))
            tables = [table for table in of_it if table.at[BUFFER_POOL] == size]
            if hidden := [table for table in tables if table.is_hidden]:
                yield Hidden(tuple(a_table_each(hidden, style)))
            yield from layout([table for table in tables if not table.is_hidden], style)
