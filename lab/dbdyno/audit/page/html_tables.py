"""Finds the tables of HTML, also in its comments; cells over several columns are written out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Final

from dbdyno.audit.page.above import BOLD_LEVEL, Captions
from dbdyno.audit.page.grid import Grid
from dbdyno.errors import UsageError

SPAN_MAX: Final = 200
"""No published table has a cell over more columns or rows."""
CELLS_MAX: Final = 1_000_000
BLOCKS: Final = frozenset(
    ("p", "div", "li", "ul", "ol", "section", "article", "figcaption", "caption", "br", "pre")
)
HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}


def html_tables(text: str, source: str, comments: Sequence[str]) -> list[Grid]:
    """The tables of HTML.

    Args:
        comments: texts of comments; their numbers mark their places in the text.

    Raises:
        UsageError: a table without end.
    """
    parser = _Tables(source, comments)
    parser.read(text)
    return parser.tables


class _Tables(HTMLParser):
    """The tables of a text, with the headings and words above each."""

    def __init__(
        self, source: str, comments: Sequence[str], above: Captions | None = None, line: int = 0
    ) -> None:
        super().__init__(convert_charrefs=True)
        self._source, self._comments = source, comments
        self._comment_line = line
        """The first of a comment; 0 for a page."""
        self.cells = 0
        self.tables: list[Grid] = []
        self._rows: list[list[str]] | None = None
        self._lines: list[list[int]] = []
        self._row: list[str] = []
        self._row_lines: list[int] = []
        self._cell: list[str] | None = None
        self._spans = (1, 1)
        self._below: dict[int, tuple[int, str]] = {}
        self._cell_line = 0
        self._captions = above or Captions()
        self._block: list[tuple[str, bool]] = []
        self._bold = 0
        self._is_note = False

    @property
    def _line(self) -> int:
        return self.getpos()[0] + max(0, self._comment_line - 1)

    def read(self, text: str) -> None:
        """Takes the tables of a whole text."""
        self.feed(text[: text.rfind(">") + 1])  # what ends at no tag is no table
        self.close()

    def handle_comment(self, data: str) -> None:
        number = int(data) if re.fullmatch("[0-9]{1,9}", data) else len(self._comments)
        if self._rows is not None or number >= len(self._comments):
            return
        self._end_block()
        hidden = _Tables(self._source, (), self._captions.of_comment(), self._line)
        hidden.cells = self.cells
        hidden.read(self._comments[number])
        self.tables, self.cells = [*self.tables, *hidden.tables], hidden.cells

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._cell is None and (tag in BLOCKS or tag in HEADINGS or tag == "table"):
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
            self._cell, self._cell_line = [], self._line
        elif tag == "br" and self._cell is not None:
            self._cell.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if self._cell is None and (tag in BLOCKS or tag in HEADINGS):
            self._end_block(HEADINGS.get(tag))
        self._bold = max(0, self._bold - (tag in ("b", "strong")))
        self._is_note &= tag not in ("sup", "td", "th", "tr", "table")
        if tag in ("td", "th") and self._cell is not None:
            self._end_cell()
        elif tag == "tr" and self._rows is not None:
            self._end_row()
        elif tag == "table" and self._rows is not None:
            self._end_row()
            if len(self._rows) > 1:
                above, is_hidden = self._captions.now(), self._comment_line > 0
                section = self._captions.section
                self.tables.append(Grid.of(self._rows, self._lines, above, is_hidden, section))
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
        first = max(1, self._line - text.count("\n"))
        if level is None and words and all(is_bold for _, is_bold in words):
            level = BOLD_LEVEL
        if level is not None and words:
            self._captions.heading(level, " ".join(text.split()), first)
        elif re.search(r"^\s{0,3}(?:#{1,6}\s|\*\*)", text, re.MULTILINE):  # HTML in Markdown
            for number, line in enumerate(text.splitlines(), first):
                self._captions.words(line, number)
        elif words:
            self._captions.words(" ".join(text.split()), first)

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
            self._lines.append(self._row_lines)
        self._row, self._row_lines = [], []

    def _fill_from_above(self) -> None:
        while (place := len(self._row)) in self._below:
            left, text = self._below.pop(place)
            if left > 1:
                self._below[place] = (left - 1, text)
            self._append(text)

    def _append(self, text: str) -> None:
        self.cells += 1  # a few that span rows and columns make any number of them
        if self.cells > CELLS_MAX:
            raise UsageError(
                f"line {self._line} of {self._source}: a table without end",
                wanted=f"{CELLS_MAX:,} cells on a page at most",
                hint="copy the table that counts into a file of its own",
            )
        self._row.append(text)
        self._row_lines.append(self._cell_line)


def _span(text: str | None) -> int:
    is_number = re.fullmatch(r"[0-9]{1,9}", text or "")
    return max(1, min(SPAN_MAX, int(text))) if text and is_number else 1
