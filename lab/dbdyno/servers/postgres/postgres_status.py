"""A PostgreSQL's statistics as one flat list of numbers, as MySQL's status is.

The views grow and change with each version (``pg_stat_io`` came with 16, ``pg_stat_checkpointer``
with 17, most of ``pg_stat_wal``'s columns went with 18). So no column is named here: each row comes
as JSON, and every number in it is kept under the view's short name and its column's:
``database.xact_commit``, ``wal.wal_bytes``, ``io.client backend.relation.normal.reads``. Numbers of
a database are those of the load's own. A session reports what it did at most once a second, so
the last second of a busy one may be missing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Final

NAMES_OF_ROWS: Final = ("backend_type", "object", "context")
VIEWS: Final[Mapping[str, str]] = {
    "pg_stat_database": "database",
    "pg_stat_wal": "wal",
    "pg_stat_bgwriter": "bgwriter",
    "pg_stat_checkpointer": "checkpointer",
    "pg_stat_io": "io",
}
WHICH_VIEWS: Final = (
    "SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relname IN ("
    + ", ".join(f"'{view}'" for view in VIEWS)
    + ")"
)
SINCE_ITS_START: Final = (
    "SELECT 'Uptime', to_jsonb(u) FROM (SELECT "
    "extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) AS s) u"
)
NOT_COUNTED: Final = frozenset({"datid"})  # an identity, though a number


def question(views: Collection[str], database: str) -> str:
    """The SQL that asks for all of these views' rows at once, and for how long it has run.

    Args:
        views: those that this server has, as `WHICH_VIEWS` answers.
        database: the one whose row of ``pg_stat_database`` is wanted; a plain identifier.
    """
    parts = [SINCE_ITS_START]
    for view, short in VIEWS.items():
        if view in views:
            only = f" WHERE v.datname = '{database}'" if view == "pg_stat_database" else ""
            parts.append(f"SELECT '{short}', to_jsonb(v) FROM pg_catalog.{view} v{only}")
    return " UNION ALL ".join(parts)


def flattened(rows: Iterable[tuple[str, ...]]) -> dict[str, float]:
    """Every number of the answer, by name; what is text, time or missing is left out.

    Args:
        rows: short name of a view, and one of its rows as JSON.
    """
    found: dict[str, float] = {}
    for short, text in rows:
        row = json.loads(text)
        if short == "Uptime":
            found["Uptime"] = float(row["s"])
            continue
        place = ".".join([short, *(str(row[name]) for name in NAMES_OF_ROWS if name in row)])
        for column, value in row.items():
            if _is_number(value) and column not in NOT_COUNTED:
                found[f"{place}.{column}"] = float(value)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
