"""Facts of a running server's tables, from which `draft.py` writes a template.

`servers/tables.py` reads them from the catalog and from a sample of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dbdyno.plan.template import ROWS_MAX


class ColumnKind(StrEnum):
    """Class of a column's values, by which a template makes them up."""

    WHOLE = "whole"
    DECIMAL = "decimal"
    TEXT = "text"
    BYTES = "bytes"
    DATE = "date"
    DATETIME = "datetime"
    TIME = "time"
    UUID = "uuid"
    JSON = "json"
    LABEL = "label"
    CONSTANT = "constant"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ColumnSample:
    """Facts of a column's values in a sample of rows.

    Attributes:
        rows: number of rows in the sample.
        values: number of values; the other rows have NULL.
        least, greatest: ends of numbers and dates, or of the lengths of texts.
        counts: number of rows by value, the most frequent first; empty unless the values are few
            and the template may show them.
        top: number of rows with the most frequent value of a foreign key.
    """

    rows: int
    values: int
    least: str = ""
    greatest: str = ""
    counts: tuple[tuple[str, int], ...] = ()
    top: int = 0


@dataclass(frozen=True)
class SourceColumn:
    """A column of a server's table.

    Attributes:
        type: SQL of its type, without NOT NULL.
        limit: greatest whole number, or most letters; None without a limit.
        places: decimal places; None if its type leaves them open.
        choices: labels of an enumeration, or the value of a constant.
        reason: why the template leaves it out, for the kind `UNKNOWN`.
        server_name: its name on the server, if the template has another.
    """

    name: str
    type: str
    kind: ColumnKind
    is_nullable: bool = True
    limit: int | None = None
    places: int | None = None
    choices: tuple[str, ...] = ()
    reason: str = ""
    sample: ColumnSample | None = None
    server_name: str = ""


@dataclass(frozen=True)
class SourceIndex:
    """An index of a server's table.

    Attributes:
        is_unique: true for primary keys, too.
        lengths: indexed letters of each column, 0 for whole values; empty if all are whole.
        trouble: why a template cannot have it; empty if it can.
    """

    columns: tuple[str, ...]
    is_primary: bool = False
    is_unique: bool = False
    lengths: tuple[int, ...] = ()
    trouble: str = ""

    @property
    def text(self) -> str:
        """Its columns as SQL and a template have them."""
        lengths = self.lengths or (0,) * len(self.columns)
        pairs = zip(self.columns, lengths, strict=True)
        return ", ".join(f"{name} ({length})" if length else name for name, length in pairs)


@dataclass(frozen=True)
class SourceTable:
    """A table of a server.

    Attributes:
        is_counted: its rows were counted; otherwise the number is the server's estimate.
        parents: foreign keys of one column: the table and column to which a column refers.
        server_name: its name on the server, if the template has another.
    """

    name: str
    rows: int
    is_counted: bool
    columns: tuple[SourceColumn, ...]
    indexes: tuple[SourceIndex, ...] = ()
    parents: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    server_name: str = ""

    @property
    def made_rows(self) -> int:
        """Rows of the template's table, which has at least one to draw."""
        return max(1, min(self.rows, ROWS_MAX))
