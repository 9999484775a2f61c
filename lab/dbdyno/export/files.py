"""Export of a run as Parquet or CSV, a file for each table, every column documented.

The store keeps a trial as one JSON value, which cannot be queried. An export turns a whole run into
columns for polars, pandas, DuckDB, SQL or R. The judge's word on a trial is in the column `state`,
and the verdicts are in the table `levels`.
CSV is written here, Parquet in `frames`, which needs polars.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from dbdyno.errors import StoreError
from dbdyno.export.tables import TABLES, Columns, Kind, Part, TableDefinition, parts_of
from dbdyno.files import replaced
from dbdyno.judge.judgement import Judgement
from dbdyno.report.rows import Attempt

TYPES: Final = {Kind.TEXT: str, Kind.INTEGER: int, Kind.NUMBER: float}


class Format(StrEnum):
    """The kind of files; also their extension."""

    PARQUET = "parquet"
    CSV = "csv"


def write(
    folder: Path, attempts: Sequence[Attempt], judgement: Judgement, kind: Format
) -> list[Path]:
    """Write a file for each table into the folder, each atomically; returns their paths.

    Raises:
        StoreError: the folder cannot be written. UsageError: polars is not installed.
    """
    write_table = write_csv
    if kind is Format.PARQUET:
        from dbdyno.export.frames import write_parquet  # noqa: PLC0415 - only Parquet takes polars

        write_table = write_parquet
    paths = [folder / f"{table.name}.{kind}" for table in TABLES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, table in zip(paths, TABLES, strict=True):
            with replaced(path) as new:
                write_table(new, table, parts_of(table, attempts, judgement))
    except OSError as error:
        raise StoreError(
            f"the tables cannot be written: {error}",
            wanted=f"{kind} files in {folder}",
            hint="give another folder, or make room and the right to write there",
        ) from error
    return paths


def write_csv(path: Path, table: TableDefinition, parts: Iterable[Part]) -> None:
    """Write a table under a line of column names; unknown values are empty."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow([*(column.name for column in table.keys), *table.schema])
        for part in parts:
            lines.writerows(_rows(table, *part))


def _rows(table: TableDefinition, keys: Mapping[str, Any], columns: Columns) -> Iterator[list[Any]]:
    types = [TYPES[kind] for kind in table.schema.values()]
    for row in zip(*columns.values(), strict=True):
        yield [*keys.values()] + [
            None if value is None else type_(value) for type_, value in zip(types, row, strict=True)
        ]
