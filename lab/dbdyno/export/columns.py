"""What a table of an export is made of: columns with a type, a unit and a meaning.

The definitions are data so that files, their docs and the tests are made from the same words:
`reference` writes the tables of `docs/reference/export.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import polars


class Kind(StrEnum):
    """What a column holds, in the words of the docs."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"

    @property
    def dtype(self) -> type[polars.DataType]:
        """The type in a file."""
        kinds = {"text": polars.String, "integer": polars.Int64, "number": polars.Float64}
        return kinds[self.value]


@dataclass(frozen=True)
class Column:
    """One column; `meaning` names the unit where the name does not."""

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True)
class TableDefinition:
    """One table, which is one file.

    Attributes:
        name: the file's name without extension.
        row: what one row is.
        columns: its own columns, behind the keys that every table has.
    """

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> dict[str, type[polars.DataType]]:
        """Its own columns with their types."""
        return {column.name: column.kind.dtype for column in self.columns}


def text(name: str, meaning: str) -> Column:
    """A column of words."""
    return Column(name, Kind.TEXT, meaning)


def integer(name: str, meaning: str) -> Column:
    """A column of whole numbers."""
    return Column(name, Kind.INTEGER, meaning)


def number(name: str, meaning: str) -> Column:
    """A column of numbers."""
    return Column(name, Kind.NUMBER, meaning)


def reference(keys: Iterable[Column], tables: Iterable[TableDefinition]) -> str:
    """The part of the docs that names every table and column, as Markdown."""
    blocks = ["### Keys: in every table\n\n" + _rows(keys)]
    blocks += [f"### `{t.name}`: {t.row}\n\n" + _rows(t.columns) for t in tables]
    return "\n".join(blocks)


def _rows(columns: Iterable[Column]) -> str:
    head = "| column | type | meaning |\n| --- | --- | --- |\n"
    return head + "".join(f"| `{c.name}` | {c.kind.value} | {c.meaning} |\n" for c in columns)
