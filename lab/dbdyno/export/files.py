"""Export of a run as Parquet or CSV, a file for each table, every column documented.

The store keeps a trial as one JSON value, which cannot be queried. An export turns a whole run into
columns for polars, pandas, DuckDB, SQL or R. The judge's word on a trial is in the column `state`.
CSV is written here, Parquet in `frames`, which needs polars.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from dbdyno.errors import StoreError
from dbdyno.export.tables import KEYS, TABLES, Kind, TableDefinition, columns, keys
from dbdyno.files import replaced
from dbdyno.report.rows import Attempt

TYPES: Final = {Kind.TEXT: str, Kind.INTEGER: int, Kind.NUMBER: float}


class Format(StrEnum):
    """The kind of files; also their extension."""

    PARQUET = "parquet"
    CSV = "csv"


def write(folder: Path, attempts: Sequence[Attempt], kind: Format) -> list[Path]:
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
                write_table(new, table, attempts)
    except OSError as error:
        raise StoreError(
            f"the tables cannot be written: {error}",
            wanted=f"{kind} files in {folder}",
            hint="give another folder, or make room and the right to write there",
        ) from error
    return paths


def write_csv(path: Path, table: TableDefinition, attempts: Sequence[Attempt]) -> None:
    """Write a table under a line of column names; unknown values are empty."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow([*(column.name for column in KEYS), *table.schema])
        for place in range(len(attempts)):
            lines.writerows(_rows(table, attempts, place))


def _rows(table: TableDefinition, attempts: Sequence[Attempt], place: int) -> Iterator[list[Any]]:
    own = [TYPES[kind] for kind in table.schema.values()]
    named = list(keys(attempts, place).values())
    for row in zip(*columns(table, attempts, place).values(), strict=True):
        yield named + [
            None if value is None else type_(value) for type_, value in zip(own, row, strict=True)
        ]
