"""Finds the tables of a page, whatever their form; `page.py` understands them.

HTML, Markdown, text with +---+, CSV, or a cell a line as in blogs; comments have tables, too, which
a browser does not show. A grid holds the original text with the line of each cell, and the headings
above it. Its rows may have other lengths than its heading: `Grid.checked` leaves these out.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from typing import Final

from dbdyno.audit.page.grid import Grid
from dbdyno.audit.page.html_tables import html_tables
from dbdyno.audit.page.text_tables import text_tables

DELIMITERS: Final = ("\t", ";", ",")
TABLE: Final = re.compile(r"<table\b", re.IGNORECASE)


def grids_in(text: str, source: str, is_heading: Callable[[str], bool]) -> list[Grid]:
    """Every table of a text, in its order.

    Args:
        is_heading: recognises a column's name; needed where nothing else marks a table.

    Raises:
        UsageError: a table without end.
    """
    shown, comments = _comments_apart(text)
    is_html = TABLE.search(shown) or any(map(TABLE.search, comments))
    if not is_html and "|" not in shown and (grids := [*_delimited(shown, is_heading)]):
        return grids
    grids = [*text_tables(shown, is_heading, comments)]
    if is_html:
        grids += html_tables(shown, source, comments)
    return sorted(grids, key=lambda grid: grid.line)


def _comments_apart(text: str) -> tuple[str, list[str]]:
    """The text without its comments, and the comments in which a table may stand.

    The number of a comment marks its place: `<!7>`. A comment without an end is text.
    """
    shown: list[str] = []
    comments: list[str] = []
    place = 0
    while (begin := text.find("<!--", place)) >= 0 and (end := text.find("-->", begin + 4)) >= 0:
        shown.append(_unmarked(text[place:begin]))
        comment = text[begin + 4 : end]
        if "\n" in comment or TABLE.search(comment):
            shown.append(f"<!{len(comments)}>")
            comments.append(_unmarked(comment))
        shown.append("\n" * comment.count("\n"))
        place = end + 3
    return "".join([*shown, _unmarked(text[place:])]), comments


def _unmarked(text: str) -> str:
    """A text without the begin of a declaration, as a parser would search far for its end."""
    return text.replace("<!", "<! ")


def _delimited(text: str, is_heading: Callable[[str], bool]) -> Iterator[Grid]:
    """The table of a CSV file; its delimiter is the first to split the heading.

    Lines above the first name of a column are its captions. A text without such a name, and whose
    lines have unequal lengths, is no table.
    """
    filled = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    for delimiter in DELIMITERS:
        rows, numbers = list[list[str]](), list[int]()
        reader = csv.reader((line for _, line in filled), delimiter=delimiter)
        try:
            for row in reader:  # one between quotes may have several lines
                rows.append([cell.strip() for cell in row])
                numbers.append(filled[reader.line_num - 1][0])
        except csv.Error:  # no cell is so long
            continue
        named = (n for n, row in enumerate(rows) if len(row) > 1 and any(map(is_heading, row)))
        begin = next(named, 0)
        captions = tuple(" ".join(row).strip("# ") for row in reversed(rows[:begin]))
        rows, numbers = rows[begin:], numbers[begin:]
        if len(rows) > 1 and len(rows[0]) > 1:
            alike = sum(len(row) == len(rows[0]) for row in rows)
            is_named = not begin and alike * 2 >= len(rows) and any(map(is_heading, rows[0]))
            if is_named or alike == len(rows):  # else sentences
                lines = [[line] * len(row) for row, line in zip(rows, numbers, strict=True)]
                yield Grid.of(rows, lines, captions)
                return
            if not begin:
                return
