"""Columns are data: files and docs are made from the same words."""

from __future__ import annotations

import polars

from dbdyno.export.tables import TableDefinition, integer, number, reference, text

TABLE = TableDefinition("t", "one thing", (integer("count", "how many"), number("size", "KB")))


def test_every_kind_has_a_type_in_the_file() -> None:
    assert TABLE.schema == {"count": polars.Int64, "size": polars.Float64}
    assert text("name", "a word").kind.dtype is polars.String


def test_the_docs_name_every_column_with_its_type_and_meaning() -> None:
    assert reference([text("key", "which")], [TABLE]) == (
        "### Keys: in every table\n\n"
        "| column | type | meaning |\n| --- | --- | --- |\n| `key` | text | which |\n\n"
        "### `t`: one thing\n\n"
        "| column | type | meaning |\n| --- | --- | --- |\n"
        "| `count` | integer | how many |\n| `size` | number | KB |\n"
    )
