"""A table for a terminal: columns side by side, numbers to the right, ordinary spaces only."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from dbdyno.language.words import PARTED
from dbdyno.report.parts import Table

GAP = "  "


def lines(table: Table) -> Iterator[str]:
    """The heading, then a line for each row."""
    headings = [column.heading for column in table.columns]
    rows = [[printable(cell) for cell in row] for row in (headings, *table.rows)]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    numeric = [column.numeric for column in table.columns]
    for row in rows:
        yield _line(row, widths, numeric).rstrip()


def printable(text: str) -> str:
    """Ordinary spaces, and nothing that would steer a terminal."""
    return "".join(sign if sign.isprintable() and sign != PARTED else " " for sign in text)


def padded(cell: str, width: int, *, right: bool = False) -> str:
    """The cell with spaces behind it, or before it, up to so many columns."""
    space = " " * (width - _width(cell))
    return space + cell if right else cell + space


def _line(row: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    return GAP.join(
        padded(cell, width, right=right)
        for cell, width, right in zip(row, widths, numeric, strict=True)
    )


def _width(text: str) -> int:
    """Columns on a terminal; Chinese signs take two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)
