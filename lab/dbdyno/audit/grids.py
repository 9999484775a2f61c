"""Finds the tables of a page: HTML, Markdown, CSV, or a cell a line as copied from blogs.

A grid holds the original text with the line of each row; `columns.py` interprets it. There is no
guessing: a table with rows of unequal lengths is refused with its line.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from typing import Final, NamedTuple

from dbdyno.errors import UsageError

SPAN_MAX: Final = 200
"""No published table has a cell over more columns or rows."""
CELLS_MAX: Final = 1_000_000
RULE: Final = re.compile(r"^\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?$")
DELIMITERS: Final = ("\t", ";", ",")
NUMERIC: Final = re.compile(r"^[+-]?\d[\d\s.,\u00a0\u202f]*(%|ms|s|us|µs|μs|毫秒|秒|微秒|k|K|万)?$")


class Grid(NamedTuple):
    """A table as it stood on the page.

    Attributes:
        heading: the text of its columns; rows: of equal length.
        line: of the heading in the source, counted from 1; lines: of each row.
        caption: the last words before it.
    """

    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    line: int = 1
    caption: str = ""


def grids_in(text: str, source: str, is_heading: Callable[[str], bool]) -> list[Grid]:
    """Every table of a text.

    Args:
        is_heading: recognises a column's name; needed to find tables with a cell a line.

    Raises:
        UsageError: a table whose rows have unequal lengths.
    """
    if re.search(r"<table\b", text, re.IGNORECASE):
        parser = _Tables(source)
        parser.feed(text)
        parser.close()
        return [_checked(rows, lines, caption, source) for rows, lines, caption in parser.tables]
    grids = [*_markdown(text, source)]
    return grids or [*_delimited(text, source)] or [*_cell_a_line(text, is_heading)]


def _checked(
    rows: Sequence[Sequence[str]], lines: Sequence[int], caption: str, source: str
) -> Grid:
    width = len(rows[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise UsageError(
                f"line {line} of {source}: a row of another length than its table",
                wanted=f"{width} cells, as in the heading",
                found=f"{len(row)}: {' | '.join(row)[:100]}",
                hint="is a cell missing, or one that holds a separator? correct the row",
            )
    heading, *body = (tuple(row) for row in rows)
    return Grid(heading, tuple(body), tuple(lines[1:]), lines[0], caption)


class _Tables(HTMLParser):
    """HTML tables, cells that span rows or columns written out."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self._source = source
        self._cells = 0
        self.tables: list[tuple[list[list[str]], list[int], str]] = []
        self._rows: list[list[str]] | None = None
        self._lines: list[int] = []
        self._row: list[str] = []
        self._cell: list[str] | None = None
        self._spans = (1, 1)
        self._below: dict[int, tuple[int, str]] = {}
        self._words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table" and self._rows is None:
            self._rows, self._lines, self._below = [], [], {}
        elif tag == "tr" and self._rows is not None:
            self._end_row()
        elif tag in ("td", "th") and self._rows is not None:
            if self._cell is not None:  # HTML may leave the ends of cells and rows out
                self._end_cell()
            known = dict(attrs)
            self._spans = _span(known.get("colspan")), _span(known.get("rowspan"))
            self._cell = []
        elif tag == "br" and self._cell is not None:
            self._cell.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell is not None:
            self._end_cell()
        elif tag == "tr" and self._rows is not None:
            self._end_row()
        elif tag == "table" and self._rows is not None:
            self._end_row()
            if len(self._rows) > 1:
                self.tables.append((self._rows, self._lines, " ".join(self._words[-1:])))
            self._rows, self._words = None, []

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)
        elif self._rows is None and data.strip():
            self._words.append(" ".join(data.split()))

    def _end_cell(self) -> None:
        self._fill_from_above()
        text, (columns, rows) = " ".join("".join(self._cell or ()).split()), self._spans
        for _ in range(columns):
            if rows > 1:
                self._below[len(self._row)] = (rows - 1, text)
            self._append(text)
        self._cell = None

    def _end_row(self) -> None:
        if self._cell is not None:
            self._end_cell()
        if self._row and self._rows is not None:
            self._fill_from_above()
            self._rows.append(self._row)
            self._lines.append(self.getpos()[0])
        self._row = []

    def _fill_from_above(self) -> None:
        while (place := len(self._row)) in self._below:
            left, text = self._below.pop(place)
            if left > 1:
                self._below[place] = (left - 1, text)
            self._append(text)

    def _append(self, text: str) -> None:
        self._cells += 1  # a few that span rows and columns make any number of them
        if self._cells > CELLS_MAX:
            raise UsageError(
                f"line {self.getpos()[0]} of {self._source}: a table without end",
                wanted=f"{CELLS_MAX:,} cells on a page at most",
                hint="copy the table that counts into a file of its own",
            )
        self._row.append(text)


def _span(text: str | None) -> int:
    is_number = re.fullmatch(r"[0-9]{1,9}", text or "")
    return max(1, min(SPAN_MAX, int(text))) if text and is_number else 1


def _markdown(text: str, source: str) -> Iterator[Grid]:
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if number == 0 or "|" not in lines[number - 1] or not RULE.match(line.strip()):
            continue
        rows, places = [_piped(lines[number - 1])], [number]
        for place, row in enumerate(lines[number + 1 :], number + 2):
            if "|" not in row or RULE.match(row.strip()):
                break
            rows.append(_piped(row))
            places.append(place)
        if len(rows) > 1:
            before = (one.strip("#* ") for one in reversed(lines[: number - 1]) if one.strip())
            yield _checked(rows, places, next(before, ""), source)


def _piped(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.replace("\\|", "|").strip(" *`") for cell in re.split(r"(?<!\\)\|", inner)]


def _delimited(text: str, source: str) -> Iterator[Grid]:
    """The table of a CSV file; its delimiter is the first to split the heading."""
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    for delimiter in DELIMITERS:
        rows, numbers = [], []
        reader = csv.reader((line for _, line in lines), delimiter=delimiter)
        try:
            for row in reader:  # one between quotes may have several lines
                rows.append([cell.strip() for cell in row])
                numbers.append(lines[reader.line_num - 1][0])
        except csv.Error:  # no cell is so long
            continue
        if len(rows) > 1 and len(rows[0]) > 1:
            yield _checked(rows, numbers, "", source)
            return


def _cell_a_line(text: str, is_heading: Callable[[str], bool]) -> Iterator[Grid]:
    """Tables with a cell a line: the names of columns, then rows, of a word and numbers."""
    lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    place = 0
    while place < len(lines):
        width = 0
        while place + width < len(lines) and is_heading(lines[place + width][1]):
            width += 1
        end = place + width
        while 1 < width <= len(lines) - end and all(
            NUMERIC.match(cell) for _, cell in lines[end + 1 : end + width]
        ):
            end += width
        if end > place + width:
            cells = [cell for _, cell in lines[place:end]]
            rows = [tuple(cells[i : i + width]) for i in range(0, len(cells), width)]
            numbers = [lines[i][0] for i in range(place + width, end, width)]
            caption = lines[place - 1][1] if place else ""
            yield Grid(rows[0], tuple(rows[1:]), tuple(numbers), lines[place][0], caption)
        place = max(end, place + 1)
