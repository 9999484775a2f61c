"""Which way a system takes for each kind of statement of a workload, as it explains it itself.

Two versions that read by other indexes, or sort where the other does not, do other work; then that
is what was compared, and a report should say so. The statements have the shape of the engine's and
fixed numbers: a plan is chosen by shape and statistics, and asking reads a handful of pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.experiment.engine.spec import table_names
from dbdyno.plan.plan import Plan
from dbdyno.servers.base import Server

RANGE: Final = "WHERE id BETWEEN 101 AND 200"
STATEMENTS: Final = {
    "point_selects": "SELECT c FROM {table} WHERE id = 101",
    "simple_ranges": f"SELECT c FROM {{table}} {RANGE}",
    "sum_ranges": f"SELECT SUM(k) FROM {{table}} {RANGE}",
    "order_ranges": f"SELECT c FROM {{table}} {RANGE} ORDER BY c",
    "distinct_ranges": f"SELECT DISTINCT c FROM {{table}} {RANGE} ORDER BY c",
    "index_updates": "UPDATE {table} SET k = k + 1 WHERE id = 101",
    "non_index_updates": "UPDATE {table} SET c = 'x' WHERE id = 101",
    "deletes": "DELETE FROM {table} WHERE id = 101",
    "random_points": "SELECT id, k, c, pad FROM {table} WHERE k IN (101, 202, 303, 404)",
    "random_ranges": "SELECT COUNT(k) FROM {table} WHERE k BETWEEN 101 AND 106 OR k BETWEEN 201"
    " AND 206",
}
READS: Final = ("point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges")
WRITES: Final = ("index_updates", "non_index_updates", "deletes")
KINDS: Final[dict[str, tuple[str, ...]]] = {
    "oltp_read_write": (*READS, *WRITES),
    "oltp_read_only": READS,
    "oltp_write_only": WRITES,
    "oltp_point_select": ("point_selects",),
    "oltp_update_index": ("index_updates",),
    "oltp_update_non_index": ("non_index_updates",),
    "oltp_delete": ("deletes",),
    "select_random_points": ("random_points",),
    "select_random_ranges": ("random_ranges",),
}
COLUMNS: Final = {10: (3, 5), 12: (4, 6)}
"""Where access and index stand in EXPLAIN's row: with partitions and filtered (from MySQL 5.7 on)
there are twelve columns. The last one always holds the remarks."""


def take(plan: Plan, server: Server) -> dict[str, str]:
    """The way of each kind of statement that the plan's workloads have; empty where none is told.

    Legacy and other workloads are not known here and have none.
    """
    kinds = dict.fromkeys(kind for w in plan.workloads for kind in KINDS.get(w.name, ()))
    table = f"`{server.database}`.`{table_names(plan)[0]}`"
    try:
        rows = {
            kind: server.ask("EXPLAIN " + STATEMENTS[kind].format(table=table)) for kind in kinds
        }
    except ServerError:
        return {}
    ways = {kind: _way(answer) for kind, answer in rows.items()}
    return {kind: way for kind, way in ways.items() if way}


def _way(rows: Iterable[tuple[str, ...]]) -> str:
    """`range PRIMARY, Using filesort, Using where`; empty for an answer of another shape."""
    told = []
    for row in rows:
        if len(row) not in COLUMNS:
            return ""
        access, index = (row[place] for place in COLUMNS[len(row)])
        remarks = sorted(filter(None, (part.strip() for part in row[-1].split(";"))))
        told.append(", ".join([f"{access or 'none'} {index or 'no index'}", *remarks]))
    return "; ".join(told)
