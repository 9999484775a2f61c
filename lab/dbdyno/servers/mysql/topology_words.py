"""How each version says replication: statements, variables and counters of primary and replica.

MySQL renamed all of it in 8.0.26 (master and slave became source and replica), MariaDB kept the old
words and has identifiers of transactions of its own kind. What a version cannot do is refused here,
before anything is fetched, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dbdyno.errors import UsageError
from dbdyno.plan.plan_systems import TopologyPlan

MYSQL_GTID: Final = (5, 7)
MYSQL_PUBLIC_KEY: Final = (8, 0, 4)
MYSQL_NEW_WORDS: Final = (8, 0, 26)
MARIADB_SEMISYNC: Final = (10, 3)  # built into the server; a plugin before
MARIADB_ASKS_TLS: Final = (11, 3)  # a replica wants TLS unless told not to
MYSQL_ASKS_TLS: Final = (8, 4)
MARIADB: Final = "mariadb"
MYSQL_KIND: Final = ("mysql", "greatsql", "percona")


@dataclass(frozen=True)
class Words:
    """A version's vocabulary.

    Attributes:
        mariadb: whether transactions are numbered MariaDB's way.
        source: the primary's side in names: ``source`` or ``master``.
        replica: the other side: ``replica`` or ``slave``.
        semisync_plugins: files of the primary's and the replicas' plugin; empty if built in.
        public_key: a replica asks the primary for the key its password is sent with.
        tls_refused: a replica must be told to do without TLS.
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
        """A status counter of the primary's side of it."""
        return f"Rpl_semi_sync_{self.source}_{name}"

    def follow(self, host: str, port: int, user: str, password: str) -> str:
        """Tells a replica whom to follow; the password stands in it."""
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
        what = self.replica.upper()
        return f"SHOW {what} STATUS" if verb == "SHOW" else f"{verb} {what}"

    @property
    def position(self) -> str:
        """Asks a primary which transactions it has committed."""
        return "SELECT @@global.gtid_binlog_pos" if self.mariadb else _EXECUTED

    @property
    def applied(self) -> str:
        """Asks a replica which transactions it has applied."""
        return "SELECT @@global.gtid_slave_pos" if self.mariadb else _EXECUTED

    def wait(self, position: str, seconds: float) -> str:
        """Has a replica wait until it has applied all of `position`; answers 0 when it has."""
        function = "MASTER_GTID_WAIT" if self.mariadb else "WAIT_FOR_EXECUTED_GTID_SET"
        return f"SELECT {function}('{position}', {seconds:.3f})"


_EXECUTED: Final = "SELECT @@global.gtid_executed"


def words_of(reference: str, product: str, version: tuple[int, ...], plan: TopologyPlan) -> Words:
    """The vocabulary of a version for what the plan wants of it.

    Raises:
        UsageError: this product or version cannot have such a topology.
    """
    wanted = plan.replication
    if product == MARIADB:
        if wanted == "group":
            raise _refusal(reference, wanted, "MariaDB has no group replication", "semisync")
        if wanted == "semisync" and version < MARIADB_SEMISYNC:
            reason = "semi-synchronous replication is built in from MariaDB 10.3 on"
            raise _refusal(reference, wanted, reason, "MariaDB 10.11 or newer")
        return Words(True, "master", "slave", tls_refused=version >= MARIADB_ASKS_TLS)
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
        return Words(False, "master", "slave", plugins, public_key=version >= MYSQL_PUBLIC_KEY)
    plugins = ("semisync_source.so", "semisync_replica.so")
    return Words(False, "source", "replica", plugins, True, version >= MYSQL_ASKS_TLS)


def _refusal(reference: str, wanted: str, reason: str, instead: str) -> UsageError:
    return UsageError(
        f"{reference} cannot have {wanted} replicas: {reason}",
        wanted=f"replication: {wanted}",
        hint=f"use {instead}",
    )
