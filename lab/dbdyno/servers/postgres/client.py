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
"""A server that does not keep a question's limit itself gets so much more."""
ROUNDS: Final = 4096
"""Of SCRAM's hash, as PostgreSQL's own clients have it."""


def limited_to(seconds: float) -> str:
    """The order by which a session has its server give up a question after so long.

    No option of the login: that would count as the server's own setting, whoever asks in it.
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
    """A session in which the server itself ends a question that takes too long.

    Args:
        database: the session's own, in which names without a schema are looked up.
        answer_s_max: how long the server works on one question before it gives up.
    """

    def __init__(
        self,
        label: str,
        endpoint: Endpoint,
        who: Credentials,
        database: str,
        answer_s_max: float = ANSWER_S_MAX,
    ) -> None:
        orders = (limited_to(answer_s_max),)
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


def answered(session: Answering, sql: str) -> dict[str, float]:
    """The numbers in the answer to a `question`; ServerError if it is none."""
    rows = rows_of(session, sql, 2)
    try:
        return flattened(rows)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        wanted = "the name of a view and its numbers as JSON"
        raise odd_answer(session.label, sql, wanted, f"{rows!r:.200}") from None


def flattened(rows: Iterable[tuple[str, ...]]) -> dict[str, float]:
    """Every number of the answer, by name; what is text, time or missing is left out.

    Args:
        rows: short name of a view, and one of its rows as JSON.

    Raises:
        ValueError, or another of Python's own: they are not so.
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
    return {name: number for name, number in found.items() if math.isfinite(number)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def without_idle_io(numbers: Mapping[str, float]) -> dict[str, float]:
    """Leaves out the zeros of ``pg_stat_io``, which are most of its thousand numbers."""
    return {name: n for name, n in numbers.items() if n or not name.startswith("io.")}
