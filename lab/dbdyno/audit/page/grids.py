"""Finds the tables of a page: HTML, Markdown, text with +---+, CSV, or a cell a line as in blogs.

A grid holds the original text with the line of each row, and the headings above it; `page.py`
interprets it. Comments are not read. There is no guessing: a table with rows of unequal lengths is
refused with its line.
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
COLUMNS_MAX: Final = 500
RULE: Final = re.compile(r"^[|+]?\s*:?[-=]+:?\s*([|+]\s*:?[-=]+:?\s*)*[|+]?$")
"""Line below a table's heading; with + also above it, between its rows and below them."""
HEADING: Final = re.compile(r"(#{1,6})\s+(\S.*)")
BOLD: Final = re.compile(r"(\*\*|__)(?P<text>(?:(?!\1).)+)\1[:：]?")
CAPTION_MAX: Final = 400
"""Signs of a heading, and of the end of a paragraph that may describe a table."""
LOOSE_MAX: Final = 20
"""Lines in bold that may describe the tables of others."""
BOLD_LEVEL: Final = 7
"""Of a line in bold, below all headings."""
ANCHOR: Final = re.compile(r"\{#[^{}]*\}\s*$")
PROMPT: Final = re.compile(r"(?:[\w@~:.-]+[>#]|\$)\s")
UNDERLINE: Final = re.compile(r"={3,}|-{3,}")
ESCAPED: Final = re.compile(r"\\([|*_<>~])")
FENCE: Final = re.compile(r"\s*(?:```|~~~)")
HTML_BLOCKS: Final = frozenset(
    ("p", "div", "li", "ul", "ol", "section", "article", "figcaption", "caption", "br", "pre")
)
HTML_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
DELIMITERS: Final = ("\t", ";", ",")
NUMERIC: Final = re.compile(r"^[+-]?\d[\d\s.,\u00a0\u202f]*(%|ms|s|us|µs|μs|毫秒|秒|微秒|k|K|万)?$")


class Grid(NamedTuple):
    """A table as it stood on the page.

    Attributes:
        heading: the text of its columns; rows: of equal length, if `check` passes.
        line: of the heading in the source, counted from 1; lines: of each cell, row by row.
        captions: the last words before it, then the headings above it, innermost first.
    """

    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[tuple[int, ...], ...]
    line: int = 1
    captions: tuple[str, ...] = ()

    def check(self, source: str) -> None:
        """Raises UsageError for a row of another length than the heading, or without an end."""
        if len(self.heading) > COLUMNS_MAX:
            raise UsageError(
                f"line {self.line} of {source}: a table with {len(self.heading):,} columns",
                wanted=f"{COLUMNS_MAX} at most",
                hint="copy the columns that count into a file of their own",
            )
        for row, lines in zip(self.rows, self.lines, strict=True):
            if len(row) != len(self.heading):
                raise UsageError(
                    f"line {lines[0]} of {source}: a row of another length than its table",
                    wanted=f"{len(self.heading)} cells, as in the heading",
                    found=f"{len(row)}: {' | '.join(row)[:100]}",
                    hint="is a cell missing, or one that holds a separator? correct the row",
                )


class Captions:
    """Headings in force and the last words, while a page is read from top to bottom."""

    def __init__(self) -> None:
        self._headings: list[tuple[int, str]] = []
        self._loose: list[str] = []
        self._is_used = True
        self._is_below_words = False
        self._words = ""

    def heading(self, level: int, text: str) -> None:
        """A heading ends all others of its level and below.

        A line in bold without a table of its own is kept, as it may describe the tables of others.
        """
        if level < BOLD_LEVEL:
            self._loose = []
        elif self._headings and self._headings[-1][0] == BOLD_LEVEL and not self._is_used:
            self._loose = [self._headings[-1][1], *self._loose[: LOOSE_MAX - 1]]
        self._is_used = False
        self._headings = [known for known in self._headings if known[0] < level]
        self._headings.append((level, ANCHOR.sub("", text).strip(" #*_:：")))
        self._words = ""

    def words(self, line: str) -> None:
        """A line of text, which may be a heading of Markdown or bold as a whole."""
        text = line.strip()[-CAPTION_MAX:]
        is_below_words, self._is_below_words = self._is_below_words, False
        if (heading := HEADING.fullmatch(text)) and not line.startswith(("    ", "\t")):
            self.heading(len(heading[1]), heading[2])
        elif bold := BOLD.fullmatch(text):
            self.heading(BOLD_LEVEL, bold["text"])
        elif UNDERLINE.fullmatch(text) and is_below_words:
            self.heading(1 if "=" in text else 2, self._words)
        elif re.search(r"\w", text) and not PROMPT.match(text):
            self._words, self._is_below_words = text.strip(" #*_:："), True

    def now(self) -> tuple[str, ...]:
        """The captions of a table that begins here; its successor has none of the last words."""
        words, self._words, self._is_used = self._words, "", True
        headings = (text for _, text in reversed(self._headings))
        return tuple(filter(None, (words, *headings, *self._loose)))


def grids_in(text: str, source: str, is_heading: Callable[[str], bool]) -> list[Grid]:
    """Every table of a text.

    Args:
        is_heading: recognises a column's name; needed where nothing else marks a table.

    Raises:
        UsageError: a table without end.
    """
    shown = _without_comments(text)
    grids = [*_markdown(shown)]
    if re.search(r"<table\b", shown, re.IGNORECASE):
        parser = _Tables(source)
        # html.parser looks for each end up to the text's: what has none is made to end at a tag's
        ended = shown.replace("<![", "<!").replace("<!--", "<!")
        parser.feed(ended[: ended.rfind(">") + 1])
        parser.close()
        grids = sorted([*grids, *parser.tables], key=lambda grid: grid.line)
    return grids or [*_delimited(shown, is_heading)] or [*_cell_a_line(shown, is_heading)]


def _without_comments(text: str) -> str:
    """The text, with only the line ends of its comments."""
    kept, place = [], 0
    while (begin := text.find("<!--", place)) >= 0 and (end := text.find("-->", begin + 4)) >= 0:
        kept += [text[place:begin], "\n" * text.count("\n", begin, end)]
        place = end + 3
    return "".join([*kept, text[place:]])


def _grid(rows: Sequence[Sequence[str]], lines: Sequence[int], captions: tuple[str, ...]) -> Grid:
    heading, *body = (tuple(row) for row in rows)
    each = ((line,) * len(row) for row, line in zip(body, lines[1:], strict=True))
    return Grid(heading, tuple(body), tuple(each), lines[0], captions)


class _Tables(HTMLParser):
    """HTML tables, cells that span rows or columns written out."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self._source = source
        self._cells = 0
        self.tables: list[Grid] = []
        self._rows: list[list[str]] | None = None
        self._lines: list[int] = []
        self._row: list[str] = []
        self._cell: list[str] | None = None
        self._spans = (1, 1)
        self._below: dict[int, tuple[int, str]] = {}
        self._captions = Captions()
        self._block: list[tuple[str, bool]] = []
        self._bold = 0
        self._is_note = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._cell is None and (tag in HTML_BLOCKS or tag in HTML_HEADINGS or tag == "table"):
            self._end_block()
        self._bold += tag in ("b", "strong")
        self._is_note |= tag == "sup"
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
        if self._cell is None and (tag in HTML_BLOCKS or tag in HTML_HEADINGS):
            self._end_block(HTML_HEADINGS.get(tag))
        self._bold = max(0, self._bold - (tag in ("b", "strong")))
        self._is_note &= tag not in ("sup", "td", "th", "tr", "table")
        if tag in ("td", "th") and self._cell is not None:
            self._end_cell()
        elif tag == "tr" and self._rows is not None:
            self._end_row()
        elif tag == "table" and self._rows is not None:
            self._end_row()
            if len(self._rows) > 1:
                self.tables.append(_grid(self._rows, self._lines, self._captions.now()))
            self._rows = None

    def handle_data(self, data: str) -> None:
        if self._is_note:  # the mark of a footnote is no digit of its number
            return
        if self._cell is not None:
            self._cell.append(data)
        elif self.cdata_elem is None:  # else a script or a style
            self._block.append((data, self._bold > 0))

    def _end_block(self, level: int | None = None) -> None:
        """Takes the words of a paragraph as a caption, a heading if they are one or all bold."""
        words = [(text, is_bold) for text, is_bold in self._block if re.search(r"\w", text)]
        text = "".join(text for text, _ in self._block)
        self._block, self._bold = [], 0
        if level is None and words and all(is_bold for _, is_bold in words):
            level = BOLD_LEVEL
        if level is not None and words:
            self._captions.heading(level, " ".join(text.split()))
        elif re.search(r"^\s{0,3}(?:#{1,6}\s|\*\*)", text, re.MULTILINE):  # HTML in Markdown
            for line in text.splitlines():
                self._captions.words(line)
        elif words:
            self._captions.words(" ".join(text.split()))

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


def _markdown(text: str) -> Iterator[Grid]:
    """Tables whose cells stand between bars, below a rule."""
    lines, captions = text.splitlines(), Captions()
    number, is_code = 0, False
    while number < len(lines):
        line = lines[number]
        number += 1
        if "|" in line and number < len(lines) and RULE.match(lines[number].strip()):
            rows, places = [_piped(line)], [number]
            number += 1
            while number < len(lines):
                row, number = lines[number], number + 1
                is_rule = re.search("--|==", row) and RULE.match(row.strip())
                if not (is_rule and "+" in row) and (is_rule or "|" not in row):
                    number -= 1
                    break
                if not is_rule:
                    rows.append(_piped(row))
                    places.append(number)
            if len(rows) > 1:
                yield _grid(rows, places, captions.now())
        elif FENCE.match(line):
            is_code = not is_code
        elif not is_code and "|" not in line:
            captions.words(line)


def _piped(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [ESCAPED.sub(r"\1", cell.strip(" *`")) for cell in re.split(r"(?<!\\)\|", inner)]


def _delimited(text: str, is_heading: Callable[[str], bool]) -> Iterator[Grid]:
    """The table of a CSV file; its delimiter is the first to split the heading.

    A text whose first line names no column, and whose lines have unequal lengths, is no table.
    """
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
            if any(map(is_heading, rows[0])) or len({len(row) for row in rows}) == 1:
                yield _grid(rows, numbers, ())
            return


def _cell_a_line(text: str, is_heading: Callable[[str], bool]) -> Iterator[Grid]:
    """Tables with a cell a line: the names of columns, then rows, alike in words and numbers."""
    stripped = ((n, line.strip(" \t|")) for n, line in enumerate(text.splitlines(), 1))
    lines = [(n, line) for n, line in stripped if line]
    place = 0
    while place < len(lines):
        width = 0
        while place + width < len(lines) and is_heading(lines[place + width][1]):
            width += 1
        end = place + width
        starts = range(place, place + 3)
        ends = {start: _end_of_rows(lines, end, end - start) for start in starts}
        several = [
            start
            for start, last in ends.items()
            if last > end + end - start and not (start > place and all(_numeric(lines[end:last])))
        ]
        start = min(several, default=place)  # words above may be a column's name, too
        if (last := ends[start]) > end:
            cells = [cell for _, cell in lines[start:last]]
            rows = [tuple(cells[i : i + end - start]) for i in range(0, len(cells), end - start)]
            numbers = [n for n, _ in lines[start:last]]
            each = [tuple(numbers[i : i + end - start]) for i in range(0, len(cells), end - start)]
            captions = (lines[start - 1][1].strip(" #*_:："),) if start else ()
            yield Grid(rows[0], tuple(rows[1:]), tuple(each[1:]), lines[start][0], captions)
        place = max(last, place + 1)


def _end_of_rows(lines: Sequence[tuple[int, str]], begin: int, width: int) -> int:
    """The line behind rows of so many cells; all have numbers in the same columns."""
    alike, end = _numeric(lines[begin : begin + width]), begin
    while 1 < width <= len(lines) - end and any(alike[1:]):
        if _numeric(lines[end : end + width]) != alike:
            break
        end += width
    return end


def _numeric(cells: Sequence[tuple[int, str]]) -> list[bool]:
    return [bool(NUMERIC.match(text)) for _, text in cells]
