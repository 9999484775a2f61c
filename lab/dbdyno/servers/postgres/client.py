"""dbdyno's own connection to a PostgreSQL, and its statistics as numbers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from dbdyno.servers.base import PGSQL, Answering, Credentials, Endpoint, odd_answer, rows_of
from dbdyno.servers.client import ANSWER_S_MAX, Client

BEYOND_S: Final = 5.0
"""Extra time for a server that does not keep a question's limit itself."""
ROUNDS: Final = 4096
"""Iterations of SCRAM's hash, as PostgreSQL's own clients have it."""


def limited_to(seconds: float) -> str:
    """Statement that makes a session's server give up a question after so long.

    No option of the login: it would show up as the server's own setting.
    """
    return f"SET statement_timeout = {round(seconds * 1000)}"


def sealed(password: str) -> str:
    """A password as PostgreSQL keeps it (RFC 5803), so that it is never sent or logged.

    Args:
        password: in ASCII, which needs no preparation.
    """
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, ROUNDS)
    client_key, server_key = (
        hmac.digest(salted, f"{whose} Key".encode(), "sha256") for whose in ("Client", "Server")
    )
    parts = (salt, hashlib.sha256(client_key).digest(), server_key)
    spelled, stored_key, checked = (base64.b64encode(part).decode() for part in parts)
    return f"SCRAM-SHA-256${ROUNDS}:{spelled}${stored_key}:{checked}"


class PostgresClient(Client):
    """A session whose server itself ends a question that takes too long, unless it is foreign: a
    pooler may pass a session with its settings on to another client.

    Args:
        database: the session's own, the default for names without a schema.
        answer_s_max: limit of the server's work on a question.
    """

    def __init__(
        self,
        label: str,
        endpoint: Endpoint,
        who: Credentials,
        database: str,
        answer_s_max: float = ANSWER_S_MAX,
    ) -> None:
        orders = () if endpoint.is_foreign else (limited_to(answer_s_max),)
        super().__init__(label, PGSQL, endpoint, who, database, orders)
        self.answer_s_max = answer_s_max + BEYOND_S


# Statistics views as one flat list of numbers, as MySQL's status is. The views change with each
# version, so no column is named here: each row comes as JSON, and every number in it is kept under
# the view's short name and its column's, as ``database.xact_commit`` or ``io.client
# backend.relation.normal.reads``. A session reports what it did at most once a second, so the last
# second of a busy one may be missing.


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
    """SQL for all rows of these views at once, and for the server's uptime.

    Args:
        views: the server's own, as `WHICH_VIEWS` answers.
        database: selects its row of ``pg_stat_database``; a plain identifier.
    """
    parts = [SINCE_ITS_START]
    for view, short in VIEWS.items():
        if view in views:
            only = f" WHERE v.datname = '{database}'" if view == "pg_stat_database" else ""
            parts.append(f"SELECT '{short}', to_jsonb(v) FROM pg_catalog.{view} v{only}")
    return " UNION ALL ".join(parts)


def answered(session: Answering, sql: str) -> dict[str, float]:
    """The numbers in the answer to a `question`; ServerError if it is malformed."""
    rows = rows_of(session, sql, 2)
    try:
        return _flattened(rows)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        wanted = "the name of a view and its numbers as JSON"
        raise odd_answer(session.label, sql, wanted, f"{rows!r:.200}") from None


def _flattened(rows: Iterable[tuple[str, ...]]) -> dict[str, float]:
    """Every number of the answer, by name; text, times and NULL are left out."""
    numbers: dict[str, float] = {}
    for short, text in rows:
        row = json.loads(text)
        if short == "Uptime":
            numbers["Uptime"] = float(row["s"])
            continue
        place = ".".join([short, *(str(row[name]) for name in NAMES_OF_ROWS if name in row)])
        for column, value in row.items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if is_number and column not in NOT_COUNTED:
                numbers[f"{place}.{column}"] = float(value)
    return {name: number for name, number in numbers.items() if math.isfinite(number)}


def without_idle_io(numbers: Mapping[str, float]) -> dict[str, float]:
    """Drop the zeros of ``pg_stat_io``, which are most of its thousand numbers."""
    return {name: n for name, n in numbers.items() if n or not name.startswith("io.")}
