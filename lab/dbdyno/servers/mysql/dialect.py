"""Replication's words by version of MySQL and MariaDB, and the counting of transactions.

MySQL renamed statements, variables and counters in 8.0.26 (master and slave became source and
replica); MariaDB kept the old names and has GTIDs of its own kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.systems import TopologyPlan

MYSQL_GTID: Final = (5, 7)
MYSQL_PUBLIC_KEY: Final = (8, 0, 4)
MYSQL_NEW_WORDS: Final = (8, 0, 26)
MARIADB_SEMISYNC: Final = (10, 3)  # built into the server; a plugin before
MARIADB_ASKS_TLS: Final = (11, 3)  # a replica uses TLS unless it is switched off
MYSQL_ASKS_TLS: Final = (8, 4)
MARIADB: Final = "mariadb"
MYSQL_KIND: Final = ("mysql", "greatsql", "percona")
EXECUTED: Final = "SELECT @@global.gtid_executed"


@dataclass(frozen=True)
class ReplicationDialect:
    """Names of a version's replication statements, variables and counters.

    Attributes:
        mariadb: transactions are numbered MariaDB's way.
        source: the primary's side in names: ``source`` or ``master``.
        replica: the other side: ``replica`` or ``slave``.
        semisync_plugins: files of the primary's and the replicas' plugin; empty if built in.
        public_key: a replica asks the primary for the key that encrypts its password.
        tls_refused: TLS must be switched off for a replica's connection.
    """

    mariadb: bool
    source: str
    replica: str
    semisync_plugins: tuple[str, ...] = ()
    public_key: bool = False
    tls_refused: bool = False

    def variable(self, side: str, name: str) -> str:
        """A variable of semi-synchronous replication, of the ``source`` or the ``replica`` side."""
        return f"rpl_semi_sync_{self.source if side == 'source' else self.replica}_{name}"

    def counter(self, name: str) -> str:
        return f"Rpl_semi_sync_{self.source}_{name}"

    def follow(self, host: str, port: int, user: str, password: str) -> str:
        """The statement that makes a replica follow a primary; it holds the password."""
        verb = "CHANGE MASTER TO" if self.source == "master" else "CHANGE REPLICATION SOURCE TO"
        key = self.source.upper()
        terms = [
            f"{key}_HOST='{host}'",
            f"{key}_PORT={port}",
            f"{key}_USER='{user}'",
            f"{key}_PASSWORD='{password}'",
            f"{key}_CONNECT_RETRY=1",
            f"{key}_USE_GTID=slave_pos" if self.mariadb else f"{key}_AUTO_POSITION=1",
        ]
        if self.public_key:
            terms.append(f"GET_{key}_PUBLIC_KEY=1")
        if self.tls_refused:
            terms.append(f"{key}_SSL=0")
        return f"{verb} {', '.join(terms)}"

    def order(self, verb: str) -> str:
        """``START``, ``STOP`` or ``SHOW … STATUS`` for the replica's threads."""
        threads = self.replica.upper()
        return f"SHOW {threads} STATUS" if verb == "SHOW" else f"{verb} {threads}"

    @property
    def position(self) -> str:
        """Query for the transactions that a primary has committed."""
        return "SELECT @@global.gtid_binlog_pos" if self.mariadb else EXECUTED

    @property
    def applied(self) -> str:
        """Query for the transactions that a replica has applied."""
        return "SELECT @@global.gtid_slave_pos" if self.mariadb else EXECUTED

    def wait(self, position: str, seconds: float) -> str:
        """Query that makes a replica wait until `position` is applied; it answers 0 on success."""
        function = "MASTER_GTID_WAIT" if self.mariadb else "WAIT_FOR_EXECUTED_GTID_SET"
        return f"SELECT {function}('{position}', {seconds:.3f})"


def dialect_of(
    reference: str, product: str, version: tuple[int, ...], plan: TopologyPlan
) -> ReplicationDialect:
    """The dialect of a version for a topology.

    Raises:
        UsageError: this product or version cannot have it.
    """
    wanted = plan.replication
    if product == MARIADB:
        if wanted == "group":
            raise _refusal(reference, wanted, "MariaDB has no group replication", "semisync")
        if wanted == "semisync" and version < MARIADB_SEMISYNC:
            reason = "semi-synchronous replication is built in from MariaDB 10.3 on"
            raise _refusal(reference, wanted, reason, "MariaDB 10.11 or newer")
        return ReplicationDialect(True, "master", "slave", tls_refused=version >= MARIADB_ASKS_TLS)
    if product not in MYSQL_KIND:
        reason = f"dbdyno puts replicas behind MySQL and MariaDB only, not behind {product}"
        raise _refusal(reference, wanted, reason, "a topology without replicas")
    if version < MYSQL_GTID:
        reason = "dbdyno follows a primary by its GTIDs, which need MySQL 5.7"
        raise _refusal(reference, wanted, reason, "a newer version")
    if version < MYSQL_NEW_WORDS:
        if wanted == "group":
            reason = "dbdyno makes groups with statements that MySQL has since 8.0.26"
            raise _refusal(reference, wanted, reason, "MySQL 8.0.33 or 9.7")
        plugins = ("semisync_master.so", "semisync_slave.so")
        return ReplicationDialect(
            False, "master", "slave", plugins, public_key=version >= MYSQL_PUBLIC_KEY
        )
    plugins = ("semisync_source.so", "semisync_replica.so")
    return ReplicationDialect(False, "source", "replica", plugins, True, version >= MYSQL_ASKS_TLS)


def _refusal(reference: str, wanted: str, reason: str, instead: str) -> UsageError:
    return UsageError(
        f"{reference} cannot have {wanted} replicas: {reason}",
        wanted=f"replication: {wanted}",
        hint=f"use {instead}",
    )


# Transactions are counted in MySQL's GTID sets (``uuid:1-5:7``, several servers separated by
# commas, since 8.3 with tags between) and MariaDB's positions (the last of each domain,
# ``0-1-42``).


def count_of_set(text: str) -> int:
    """Number of transactions in a MySQL GTID set; ServerError if it is malformed."""
    total = 0
    for source in filter(None, (part.strip() for part in text.split(","))):
        _, *parts = source.split(":")
        ranges = [part for part in parts if not re.fullmatch(r"[A-Za-z_]\w{0,31}", part.strip())]
        if not ranges:
            raise _unreadable(text)
        total += sum(_length(part.strip(), text) for part in ranges)
    return total


def behind(primary: str, replica: str) -> int:
    """Number of transactions in MariaDB's position `primary` that `replica` lacks."""
    applied = _last_of_domains(replica)
    committed = _last_of_domains(primary)
    return sum(max(0, last - applied.get(domain, 0)) for domain, last in committed.items())


def _length(part: str, text: str) -> int:
    match = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", part)
    if match is None:
        raise _unreadable(text)
    first, last = int(match[1]), int(match[2] or match[1])
    if not 0 < first <= last:
        raise _unreadable(text)
    return last - first + 1


def _last_of_domains(text: str) -> dict[int, int]:
    domains: dict[int, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"([0-9]+)-[0-9]+-([0-9]+)", part)
        if match is None:
            raise _unreadable(text)
        domains[int(match[1])] = max(domains.get(int(match[1]), 0), int(match[2]))
    return domains


def _unreadable(text: str) -> ServerError:
    return ServerError(
        "the server's account of its transactions cannot be read",
        wanted="a GTID set such as uuid:1-5, or a position such as 0-1-42",
        found=repr(text[:200]),
    )
