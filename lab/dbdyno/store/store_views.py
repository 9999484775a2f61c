"""Views of the store: what each second saw as columns, for whoever has the file and SQL.

A trial is kept as one JSON value, as it must never change; these views read columns out of it, so
that `sqlite3`, polars and pandas can ask the store itself while a run goes on. They are made from
the nouns' fields and hold nothing, so a newer dbdyno may make them anew in an old store. Whole
runs, joined with what the judge says of them, are for `dbdyno export`.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from dbdyno.measurement.measurement_parts import Interval
from dbdyno.measurement.parts import WatchSample

KEYS: Final = (
    "m.run_id, m.sequence, m.attempt, m.block, m.system, m.cell, m.failure,"
    " coalesce(json_extract(m.measurement, '$.trial.control'), '') AS control"
)
"""Columns with which every view begins; run_id, sequence and attempt name a trial."""
NOT_COLUMNS: Final = frozenset({"histograms", "errors", "disks", "networks"})


def _seconds(name: str, path: str, fields: list[str]) -> str:
    """A view with one row for each entry of a list of the measurement."""
    columns = ", ".join(f"json_extract(s.value, '$.{field}') AS {field}" for field in fields)
    return (
        f"CREATE VIEW {name} AS SELECT {KEYS}, {columns}"
        f" FROM measurements m, json_each(m.measurement, '$.{path}') s"
    )


def _fields(noun: type[Interval] | type[WatchSample]) -> list[str]:
    return [field for field in noun.model_fields if field not in NOT_COLUMNS]


VIEWS: Final[dict[str, str]] = {
    "interval_seconds": _seconds("interval_seconds", "intervals", _fields(Interval)),
    "watch_seconds": _seconds("watch_seconds", "watch", _fields(WatchSample)),
    "status_seconds": (
        f"CREATE VIEW status_seconds AS SELECT {KEYS}, a.value AS at_s, c.key AS name,"
        " json_extract(c.value, '$[' || a.key || ']') AS value"
        " FROM measurements m, json_each(m.measurement, '$.status_seconds.at_s') a,"
        " json_each(m.measurement, '$.status_seconds.counters') c"
    ),
}
"""Each view's name and the SQL that makes it."""


def make_views(connection: sqlite3.Connection) -> None:
    """Makes those views that the store lacks, or has as an older dbdyno made them."""
    if _stored(connection) == VIEWS:
        return
    connection.execute("BEGIN IMMEDIATE")  # another lab may have made them meanwhile
    stored = _stored(connection)
    for name, sql in VIEWS.items():
        if stored.get(name) != sql:
            connection.execute(f"DROP VIEW IF EXISTS {name}")
            connection.execute(sql)
    connection.execute("COMMIT")


def _stored(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'view'")
    return {name: sql for name, sql in rows if name in VIEWS}
