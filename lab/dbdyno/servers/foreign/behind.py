"""Servers behind an endpoint's addresses: their identities, their processes, and what TiDB reports.

An address may lead to a server that another address leads to as well, or to several servers by
turns. Counters of a server must be added up once, and those behind a balancer not at all. TiDB
speaks MySQL's protocol and has its variables, most of them without an effect; its own facts are in
tables of `information_schema`, which cover the whole cluster from any node.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.servers.base import Endpoint, row_of, rows_of
from dbdyno.servers.client import Client
from dbdyno.servers.process import listener

UNSEEN: Final = 0
"""The pid of servers whose processes are not seen; no process has it."""
WHOLE_SERVER: Final = re.compile(r"mysqld(?:-debug)?|mariadbd|postgres|postmaster")
"""Programs that are a whole server, in one process with its children. Behind other programs (a
proxy, a forwarded port, a TiDB with its stores apart) the server's work is not seen."""
SESSIONS_TRIED: Final = 4
"""Sessions open at once at an address: a balancer hands them to different servers."""
IDENTITY_S_MAX: Final = 5.0

Identity = tuple[str, ...]
"""Distinguishes a server from others; empty if unknown."""


@dataclass(frozen=True)
class Behind:
    """Servers behind the addresses of an endpoint.

    Attributes:
        sessions: a session at each server, one where an address leads to several.
        balanced: addresses that lead to several servers.
    """

    sessions: tuple[Client, ...]
    balanced: tuple[str, ...]


def look_behind(
    sessions: Sequence[Client],
    places: Sequence[Endpoint],
    another: Callable[[str, Endpoint], Client],
    identity_of: Callable[[Client], Identity],
) -> Behind:
    """Identify the servers at these places.

    Args:
        sessions: a session at each place.
        another: makes a further session, of a label at a place.
        identity_of: asks a session for its server; ServerError if it cannot be asked.
    """
    servers: dict[Identity, Client] = {}
    balanced = []
    for session, place in zip(sessions, places, strict=True):
        address = f"{place.host}:{place.port}"
        others = [another(session.label, place) for _ in range(SESSIONS_TRIED - 1)]
        identities = _identities(session, others, identity_of)
        if len(identities) > 1:
            balanced.append(address)
        servers.setdefault(min(identities, default=(address,)), session)
    return Behind(tuple(servers.values()), tuple(balanced))


def _identities(
    session: Client, others: Sequence[Client], identity_of: Callable[[Client], Identity]
) -> set[Identity]:
    """Identities of the servers to which these sessions lead."""
    identities: set[Identity] = set()
    with suppress(ServerError):  # a pool may have fewer sessions
        identities.add(identity_of(session))
        for other in others:
            other.answer_s_max = IDENTITY_S_MAX
            identities.add(identity_of(other))
    for other in others:
        other.close()
    return identities - {()}


def pid_of_all(places: Iterable[Endpoint]) -> int:
    """The process that listens at all places, if it is seen here and is a whole server."""
    seen = {listener(place.host, place.port) for place in places}
    pid, program = (seen.pop() if len(seen) == 1 else None) or (UNSEEN, "")
    return pid if WHOLE_SERVER.fullmatch(program) else UNSEEN


TIDB: Final = "TiDB"
"""Mark in TiDB's version, which begins with a MySQL's."""
INERT: Final = re.compile(
    r"innodb_.*|log_bin|sync_binlog|performance_schema|query_cache_.*|thread_handling"
)
"""Variables of MySQL that servers without InnoDB have for clients' sake only."""


IDENTIFYING: Final = ("hostname", "port", "server_id", "server_uid", "wsrep_node_address")
"""Variables that are different on two servers, all together."""


def of_variables(client: Client, variables_sql: str, *, is_tidb: bool) -> Identity:
    """Identity of a server by its variables: MySQL's uuid, or host name and port.

    All servers of a TiDB may have the same uuid, and MariaDB has none.
    """
    shown = {row[0].lower(): row[1] for row in rows_of(client, variables_sql, 2)}
    if not is_tidb and (uuid := shown.get("server_uuid")):
        return (uuid,)
    return tuple(shown.get(name, "") for name in IDENTIFYING) if shown.get("hostname") else ()


VERSION_SQL: Final = "SELECT tidb_version()"
NODES_SQL: Final = (
    "SELECT type, version, COUNT(*) FROM information_schema.cluster_info"
    " GROUP BY type, version ORDER BY type, version"
)
CONFIG_SQL: Final = "SHOW CONFIG"
ITEMS_LEFT_OUT: Final = re.compile(
    r"(?:.*[.-])?(?:host|port|address|addr|socket|name|password|secret|token|key)"
)
"""Names of configuration items that belong to a node or must not be stored."""
VALUES_LEFT_OUT: Final = re.compile(r"[/\\]|:[0-9]{2,5}\b")
"""Part of a value that is a path or an address."""


def tidb_settings(client: Client) -> dict[str, str]:
    """Version, nodes and configuration of a TiDB by name, as ``tikv.log.level``.

    Values that differ among nodes are listed; parts that the user may not read are left out.
    """
    values: dict[str, dict[str, None]] = {}
    with suppress(ServerError):
        for line in row_of(client, VERSION_SQL)[0].splitlines():
            key, colon, value = line.partition(":")
            if colon and value.strip():
                name = f"tidb_version.{key.strip().lower().replace(' ', '_')}"
                values.setdefault(name, {})[value.strip()] = None
    with suppress(ServerError):
        for kind, version, count, *_ in rows_of(client, NODES_SQL, 3):
            values.setdefault(f"cluster.{kind}", {})[f"{count} × {version or 'unknown'}"] = None
    with suppress(ServerError):
        for kind, _, name, value, *_ in rows_of(client, CONFIG_SQL, 4):
            if not ITEMS_LEFT_OUT.fullmatch(name) and not VALUES_LEFT_OUT.search(value):
                values.setdefault(f"{kind}.{name}", {})[value] = None
    return {name: " / ".join(sorted(seen)) for name, seen in values.items()}


SUMMARY: Final = "cluster_statements_summary"
HISTORY: Final = "cluster_statements_summary_history"
SUMMARY_SQL: Final = (
    "SELECT summary_begin_time, stmt_type, SUM(exec_count), SUM(exec_count * avg_affected_rows)"
    " FROM information_schema.{} GROUP BY summary_begin_time, stmt_type"
)


class StatementSummary:
    """Counters of a TiDB's statements, from the cluster's own summary.

    The summary begins anew every half hour; then the last counts of the intervals before are in
    its history. So each interval's counts are kept as last read, and added up.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], tuple[float, float]] = {}
        self._begins: list[str] = []

    def read(self, client: Client) -> dict[str, float]:
        """Executions by kind of statement, and affected rows, since the first reading.

        Empty if the server has no summary, or the user may not read it.
        """
        try:
            now = self._asked(client, SUMMARY)
            latest = max((begin for begin, _ in now), default="")
            if self._begins and latest > self._begins[-1]:
                self._counts |= self._asked(client, HISTORY)
        except (ServerError, ValueError):
            return {}
        if latest and latest not in self._begins:
            self._begins.append(latest)
        self._counts |= now
        counters: dict[str, float] = {}
        for (_, kind), counts in self._counts.items():
            for name, count in zip((kind or "other", "affected_rows"), counts, strict=True):
                key = f"statements_summary.{name}"
                counters[key] = counters.get(key, 0.0) + count
        return counters

    def _asked(self, client: Client, table: str) -> dict[tuple[str, str], tuple[float, float]]:
        """Executions and affected rows by interval and kind, of intervals read before or later."""
        first = self._begins[0] if self._begins else ""
        return {
            (begin, kind): (_finite(executions), _finite(rows))
            for begin, kind, executions, rows, *_ in rows_of(client, SUMMARY_SQL.format(table), 4)
            if begin >= first
        }


def _finite(text: str) -> float:
    number = float(text or 0)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
