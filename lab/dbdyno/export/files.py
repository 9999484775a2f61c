"""A run as tables that anyone can read: Parquet or CSV, one file a table, every column explained.

The store keeps a trial as one JSON value, which cannot be queried. An export turns a whole run into
columns for polars, pandas, DuckDB, SQL or R. Nothing is
judged here: which trials count is in the column `state`, as the judge said it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

import polars

from dbdyno.errors import StoreError
from dbdyno.export import tables
from dbdyno.export.tables import KEYS, TABLES, TableDefinition
from dbdyno.files import replaced
from dbdyno.report.rows import Attempt


class Format(StrEnum):
    """The kind of files; also their extension."""

    PARQUET = "parquet"
    CSV = "csv"


def frames(attempts: Sequence[Attempt]) -> Iterator[tuple[str, polars.DataFrame]]:
    """Every table with its name, one after the other; empty tables have their columns too."""
    for table in TABLES:
        yield table.name, frame(table, attempts)


def frame(table: TableDefinition, attempts: Sequence[Attempt]) -> polars.DataFrame:
    """One table of all attempts."""
    parts = [
        _frame(table, attempt, attempts, _keys(attempts, place))
        for place, attempt in enumerate(attempts)
    ]
    return polars.concat([_empty(table), *parts])


def write(folder: Path, attempts: Sequence[Attempt], kind: Format) -> list[Path]:
    """Writes one file a table into the folder, each whole or not at all; returns their paths.

    Raises:
        StoreError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_file(folder / f"{name}.{kind}", frame, kind) for name, frame in frames(attempts)]
    except (OSError, polars.exceptions.PolarsError) as error:
        raise StoreError(
            f"the tables cannot be written: {error}",
            wanted=f"{kind} files in {folder}",
            hint="give another folder, or make room and the right to write there",
        ) from error


def _frame(
    table: TableDefinition,
    attempt: Attempt,
    attempts: Sequence[Attempt],
    keys: Sequence[polars.Expr],
) -> polars.DataFrame:
    peers = [other.measurement for other in attempts if other.cell == attempt.cell]
    columns = tables.ROWS_BY_TABLE[table.name](attempt, peers)
    return polars.DataFrame(columns, schema=table.schema, strict=False).select(
        *keys, polars.col(*table.schema)
    )


def _keys(attempts: Sequence[Attempt], place: int) -> list[polars.Expr]:
    """The trial's keys as columns of one value each."""
    attempt = attempts[place]
    trial = attempt.measurement.trial
    before = [other for other in attempts[:place] if other.measurement.trial.place == trial.place]
    values = {
        **trial.model_dump(
            include={"run_id", "sequence", "block", "position", "system", "control"}
        ),
        **trial.cell.model_dump(include={"workload", "threads", "rate_per_s", "setting"}),
        "attempt": len(before),
        "state": attempt.state.value,
    }
    return [polars.lit(values[c.name], c.kind.dtype).alias(c.name) for c in KEYS]


def _empty(table: TableDefinition) -> polars.DataFrame:
    return polars.DataFrame(schema={**{c.name: c.kind.dtype for c in KEYS}, **table.schema})


def _file(path: Path, frame: polars.DataFrame, kind: Format) -> Path:
    with replaced(path) as new:
        if kind is Format.PARQUET:
            frame.write_parquet(new)
        else:
            frame.write_csv(new)
    return path
