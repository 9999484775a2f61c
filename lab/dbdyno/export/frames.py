"""A run's tables as polars frames, and as Parquet files, which polars writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from dbdyno.errors import not_installed
from dbdyno.export.tables import Kind, Part, TableDefinition

try:
    import polars
except ImportError as error:
    raise not_installed("data frames and Parquet files take polars", "export", error) from error

TYPES: Final = {
    Kind.TEXT: polars.String,
    Kind.INTEGER: polars.Int64,
    Kind.NUMBER: polars.Float64,
}
NUMBERS: Final = ("ratio", "low", "high", "log_sd", "value", "margin")
COUNTS: Final = ("blocks", "blocks_needed")


def frame(table: TableDefinition, parts: Iterable[Part]) -> polars.DataFrame:
    """A table of its parts; it keeps its columns without rows."""
    schema = {name: TYPES[kind] for name, kind in table.schema.items()}
    of_keys = {column.name: TYPES[column.kind] for column in table.keys}
    frames = [polars.DataFrame(schema={**of_keys, **schema})]
    for keys, columns in parts:
        own = polars.DataFrame(columns, schema=schema, strict=False)
        named = [polars.lit(value, of_keys[name]).alias(name) for name, value in keys.items()]
        frames.append(own.select(*named, polars.col(*schema)))
    return polars.concat(frames)


def write_parquet(path: Path, table: TableDefinition, parts: Iterable[Part]) -> None:
    """Write a table; OSError if the file cannot be written."""
    try:
        frame(table, parts).write_parquet(path)
    except polars.exceptions.PolarsError as error:
        raise OSError(str(error)) from error


def of_rows(rows: list[dict[str, Any]], texts: Sequence[str] = ()) -> polars.DataFrame:
    """A frame of plain rows, numbers as numbers even where all of them are missing.

    Args:
        texts: columns of text, which a frame without rows has too.
    """
    if texts:
        return polars.DataFrame(rows, schema=dict.fromkeys(texts, polars.String))
    known = dict.fromkeys(NUMBERS, polars.Float64) | dict.fromkeys(COUNTS, polars.Int64)
    kinds = {name: kind for name, kind in known.items() if rows and name in rows[0]}
    return polars.DataFrame(rows, schema_overrides=kinds, infer_schema_length=None)
