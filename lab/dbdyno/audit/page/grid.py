"""A table as it stood on a page: the face between finding tables and understanding them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from dbdyno.errors import UsageError

COLUMNS_MAX: Final = 500
ODD_MAX: Final = 0.25
"""Share of rows of another length than the heading; with more, the heading is another table's."""
NUMERIC: Final = re.compile(
    r"^[+-]?\d[\d\s.,\u00a0\u202f]*(%|ms|s|us|µs|μs|毫秒|秒|微秒|k|K|万)?[*†‡]{0,3}$"
)


class Grid(NamedTuple):
    """A table as it stood on the page.

    Attributes:
        heading: the text of its columns; rows: of equal length once it is `checked`.
        line: of the heading in the source, counted from 1; lines: of each cell, row by row.
        captions: the last words before it, then the headings above it, innermost first.
        is_hidden: True in a comment, which a browser does not show.
        section: line of the heading above it; 0 without.
    """

    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[tuple[int, ...], ...]
    line: int = 1
    captions: tuple[str, ...] = ()
    is_hidden: bool = False
    section: int = 0

    @classmethod
    def of(
        cls,
        rows: Sequence[Sequence[str]],
        lines: Sequence[Sequence[int]],
        captions: tuple[str, ...] = (),
        is_hidden: bool = False,
        section: int = 0,
    ) -> Grid:
        """The grid whose heading is the first row."""
        heading, *body = map(tuple, rows)
        (line, *_), *each = map(tuple, lines)
        return cls(heading, tuple(body), tuple(each), line, captions, is_hidden, section)

    @property
    def last_line(self) -> int:
        """Line of its last cell."""
        return max((line for of_row in self.lines for line in of_row), default=self.line)

    def of_rows(self, places: Sequence[int]) -> Grid:
        """The grid with some of its rows."""
        rows = tuple(self.rows[place] for place in places)
        return self._replace(rows=rows, lines=tuple(self.lines[place] for place in places))

    def checked(self, source: str) -> tuple[Grid, list[UsageError]]:
        """The grid without rows of another length than the heading, and a reason for each of these.

        Raises:
            UsageError: too many columns, or too many such rows.
        """
        if len(self.heading) > COLUMNS_MAX:
            raise UsageError(
                f"line {self.line} of {source}: a table with {len(self.heading):,} columns",
                wanted=f"{COLUMNS_MAX} at most",
                hint="copy the columns that count into a file of their own",
            )
        refusals = [
            UsageError(
                f"line {lines[0]} of {source}: a row of another length than its table",
                wanted=f"{len(self.heading)} cells, as in the heading",
                found=f"{len(row)}: {' | '.join(row)[:100]}",
                hint="is a cell missing, or one that holds a separator? correct the row",
            )
            for row, lines in zip(self.rows, self.lines, strict=True)
            if len(row) != len(self.heading)
        ]
        if len(refusals) > ODD_MAX * len(self.rows):
            raise refusals[0]
        fitting = [n for n, row in enumerate(self.rows) if len(row) == len(self.heading)]
        return (self.of_rows(fitting) if refusals else self), refusals
