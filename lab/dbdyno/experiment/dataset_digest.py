"""A digest of the loaded rows, so that two systems can be shown to hold the same ones.

Each table is told by its number of rows and the sum of the first 32 bits of each row's MD5: a sum
does not depend on the order in which a server reads rows, and every product can work it out. It is
taken once, before the snapshot; later copies of that are compared file by file, which leaves the
caches of a server that is to be measured alone.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.experiment.engine.spec import table_names
from dbdyno.plan.plan import Plan
from dbdyno.servers.base import Server

FILE: Final = "dataset.json"
PIECE_ROWS: Final = 500_000
SHOWN: Final = 16
"""Characters of the digest that are kept: it is compared, not defended."""


def take(plan: Plan, server: Server) -> str:
    """The digest of the plan's tables on a running server; ServerError if it cannot be asked."""
    return digest(tables(plan, server))


def tables(plan: Plan, server: Server) -> list[tuple[str, int, int]]:
    """Name, rows and sum of each of the plan's tables; ServerError if it cannot be asked."""
    return [(table, *_of_table(plan, server, table)) for table in table_names(plan)]


def digest(told: list[tuple[str, int, int]]) -> str:
    """One text that stands for all of it."""
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:SHOWN]


def _of_table(plan: Plan, server: Server, table: str) -> tuple[int, int]:
    """Rows and sum of one table, asked for in pieces so that each answer comes soon."""
    rows = total = 0
    for first in range(1, plan.dataset.rows + 1, PIECE_ROWS):
        count, part = server.ask(
            "SELECT COUNT(*), COALESCE(SUM(CAST(CONV(LEFT(MD5("
            "CONCAT_WS('/', id, k, c, pad)), 8), 16, 10) AS UNSIGNED)), 0)"
            f" FROM `{server.database}`.`{table}`"
            f" WHERE id BETWEEN {first} AND {first + PIECE_ROWS - 1}"
        )[0]
        rows, total = rows + int(count), total + int(part)
    return rows, total


def keep(folder: Path, digest: str) -> None:
    """Notes the digest beside the snapshot it is about to be of."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps({"rows": digest}))


def kept(folder: Path) -> str:
    """The digest that was noted; empty where none was, as for an endpoint's own tables."""
    try:
        return str(json.loads((folder / FILE).read_text())["rows"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def taken_or_empty(plan: Plan, server: Server) -> str:
    """`take`, or an empty text where the server does not know these words."""
    try:
        return take(plan, server)
    except ServerError:
        return ""
