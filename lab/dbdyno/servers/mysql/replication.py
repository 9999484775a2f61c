"""Replication by version: statements and settings, joining replicas to a primary, GTIDs.

The replicas' user is made anew at each start with a password that only the servers keep. The order
matters: no commit may wait before a replica can answer, and none may go unwaited afterwards; so the
user is made first, waiting is switched on next, and replicas are connected last.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.settings import SettingValue
from dbdyno.plan.systems import TopologyPlan
from dbdyno.servers import process
from dbdyno.servers.base import Credentials, Endpoint, Server, count_of, row_of, rows_of
from dbdyno.servers.local.topology import wait_joined
from dbdyno.servers.mysql.settings import OFF_WORDS, lines_of, normalise

# Names of statements, variables and counters. MySQL renamed all of them in 8.0.26 (master and slave
# became source and replica); MariaDB kept the old names and has GTIDs of its own kind.


MYSQL_GTID: Final = (5, 7)
MYSQL_PUBLIC_KEY: Final = (8, 0, 4)
MYSQL_NEW_WORDS: Final = (8, 0, 26)
MARIADB_SEMISYNC: Final = (10, 3)  # built into the server; a plugin before
MARIADB_ASKS_TLS: Final = (11, 3)  # a replica uses TLS unless it is switched off
MYSQL_ASKS_TLS: Final = (8, 4)
MARIADB: Final = "mariadb"
MYSQL_KIND: Final = ("mysql", "greatsql", "percona")


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
        return "SELECT @@global.gtid_binlog_pos" if self.mariadb else _EXECUTED

    @property
    def applied(self) -> str:
        """Query for the transactions that a replica has applied."""
        return "SELECT @@global.gtid_slave_pos" if self.mariadb else _EXECUTED

    def wait(self, position: str, seconds: float) -> str:
        """Query that makes a replica wait until `position` is applied; it answers 0 on success."""
        function = "MASTER_GTID_WAIT" if self.mariadb else "WAIT_FOR_EXECUTED_GTID_SET"
        return f"SELECT {function}('{position}', {seconds:.3f})"


_EXECUTED: Final = "SELECT @@global.gtid_executed"


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


# Configuration keys of a primary, a replica or a member of a group, laid over the system's own.
# Waiting for acknowledgements is switched on later, once replicas can answer.


PLUGINS: Final = "plugin_load_add"
GROUP_PLUGIN: Final = "group_replication.so"


def plugins_of(plan: TopologyPlan, words: ReplicationDialect) -> tuple[str, ...]:
    """Plugin files needed by the topology: the primary's, then the replicas'."""
    if plan.replication == "group":
        return (GROUP_PLUGIN, GROUP_PLUGIN)
    return words.semisync_plugins if plan.replication == "semisync" else ()


def loading_keys(
    plan: TopologyPlan, words: ReplicationDialect, own: Mapping[str, str]
) -> dict[str, SettingValue]:
    """Keys of the primary while rows are loaded: no binary log, so all copies begin equal."""
    return {"log_bin": False, **_plugin(plan, words, own, 0)}


def member_keys(
    plan: TopologyPlan, words: ReplicationDialect, own: Mapping[str, str], number: int
) -> dict[str, SettingValue]:
    """Keys of the primary (number 0) or of a replica in operation.

    Args:
        own: the system's own settings for this start, by variable name.
    """
    keys: dict[str, SettingValue] = {"server_id": number + 1}
    if own.get("log_bin", "OFF").lower() in OFF_WORDS:
        keys["log_bin"] = True
    if words.mariadb:
        keys["binlog_format"] = own.get("binlog_format", "ROW")
    else:
        keys |= {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}
    if number:
        keys["read_only"] = True
    if plan.replication == "semisync":
        keys |= _semisync(plan, words, number)
    return {**keys, **_plugin(plan, words, own, number)}


def group_keys(name: str, host: str, is_delayed: bool) -> dict[str, SettingValue]:
    """Keys of a member of the group `name`, whose members reach each other at `host`.

    A delayed group talks through the servers' own ports, possible since 8.0.27: by default it takes
    one port on all addresses, without room for a door.
    """
    return {
        **({"group_replication_communication_stack": "MYSQL"} if is_delayed else {}),
        "group_replication_group_name": name,
        "group_replication_start_on_boot": "OFF",
        "group_replication_ip_allowlist": host,
        "group_replication_ssl_mode": "DISABLED",  # required from 8.4 on; no server here has TLS
        "group_replication_recovery_use_ssl": "OFF",
        "group_replication_recovery_get_public_key": "ON",
        "report_host": host,
    }


def own_keys(*requested: Mapping[str, SettingValue]) -> dict[str, str]:
    """The settings of a system for a start, by variable name, later ones over earlier ones.

    Raises:
        UsageError: they switch off the binary log, which replicas read.
    """
    own: dict[str, str] = {}
    for given in requested:
        own |= normalise(given)
    if own.get("log_bin", "ON").lower() in OFF_WORDS:
        raise UsageError(
            "a system with replicas cannot be without a binary log: they read it",
            wanted="log_bin ON, or not given",
            found="log_bin OFF",
            hint="leave the setting out, or give the system no replicas",
        )
    return own


def _semisync(
    plan: TopologyPlan, words: ReplicationDialect, number: int
) -> dict[str, SettingValue]:
    if number:
        return {words.variable("replica", "enabled"): "ON"}
    return {
        words.variable("source", "timeout"): round(plan.timeout_s * 1000),
        words.variable("source", "wait_point"): plan.wait_point.upper(),
    }


def _plugin(
    plan: TopologyPlan, words: ReplicationDialect, own: Mapping[str, str], number: int
) -> dict[str, SettingValue]:
    """The topology's plugin, added to the plugins of the plan."""
    plugins = plugins_of(plan, words)
    if not plugins:
        return {}
    requested = [line for line in lines_of(own.get(PLUGINS, "")) if line]
    return {PLUGINS: ";".join([*requested, plugins[1 if number else 0]])}


USER: Final = "dbdyno_replica"
PASSWORD_BYTES: Final = 16  # as hexadecimal, all that a replica takes
RECEIVES, APPLIES, RECEIVE_ERROR, APPLY_ERROR = 10, 11, 35, 37
"""Columns of a replica's status; their order is the same in all versions."""
GROUP_RIGHTS: Final = "REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM"
ONLINE: Final = (
    "SELECT COUNT(*) FROM performance_schema.replication_group_members"
    " WHERE member_state = 'ONLINE'"
)


@dataclass(frozen=True)
class Links:
    """The links between a primary and its replicas.

    Attributes:
        authentication: plugin of the replicas' user.
        is_delayed: they reach each other by doors.
    """

    plan: TopologyPlan
    words: ReplicationDialect
    authentication: str
    is_delayed: bool = False

    def join(self, primary: Server, replicas: Sequence[Server], doors: Sequence[Endpoint]) -> None:
        """Have all replicas follow the primary, commits waiting as the plan says.

        Args:
            doors: addresses at which the servers reach each other, the primary first.

        Raises:
            ServerError: a replica did not follow; the server's own reason is quoted.
        """
        who = Credentials(USER, secrets.token_hex(PASSWORD_BYTES))
        begin = row_of(primary, self.words.position)[0]
        self._make_user(primary, who)
        if self.plan.replication == "group":
            self._join_group((primary, *replicas), doors, who)
            return
        if self.plan.replication == "semisync":
            primary.ask(f"SET GLOBAL {self.words.variable('source', 'enabled')} = ON")
        for replica in replicas:
            self._follow(doors[0], replica, who, begin)
        for replica in replicas:
            wait_joined(partial(self._follows, replica), replica, self._trouble(replica))
        if self.plan.replication == "semisync":
            wait_joined(lambda: self._answering(primary) == len(replicas), primary, self._silence)

    def running(self, primary: Server, replicas: Sequence[Server]) -> int:
        """Number of replicas that receive and apply now."""
        if self.plan.replication == "group":
            return max(0, count_of(primary, ONLINE) - 1)
        return sum(self._follows(replica) for replica in replicas)

    def _make_user(self, primary: Server, who: Credentials) -> None:
        name = f"'{who.user}'@'%'"
        rights = GROUP_RIGHTS if self.plan.replication == "group" else "REPLICATION SLAVE"
        if self.words.mariadb:
            orders = [f"GRANT {rights} ON *.* TO {name} IDENTIFIED BY '{who.password}'"]
        else:
            word = f"IDENTIFIED WITH {self.authentication} BY '{who.password}'"
            orders = [f"CREATE USER IF NOT EXISTS {name}", f"ALTER USER {name} {word}"]
            orders.append(f"GRANT {rights} ON *.* TO {name}")
        for order in orders:
            _send_secret(primary, order, who.password)

    def _follow(self, primary: Endpoint, replica: Server, who: Credentials, begin: str) -> None:
        words = self.words
        known = replica.ask(words.order("SHOW"))
        if known:  # its data was kept from an earlier start
            replica.ask(words.order("STOP"))
        elif words.mariadb:  # a copy of MySQL's data knows its GTIDs
            replica.ask("RESET MASTER")
            replica.ask(f"SET GLOBAL gtid_slave_pos = '{begin}'")
        follow = words.follow(primary.host, primary.port, who.user, who.password)
        _send_secret(replica, follow, who.password)
        replica.ask(words.order("START"))

    def _follows(self, replica: Server) -> bool:
        """True if a replica receives and applies; ServerError if it has given up."""
        status = rows_of(replica, self.words.order("SHOW"), 1 + APPLIES)
        return bool(status) and status[0][RECEIVES] == status[0][APPLIES] == "Yes"

    def _trouble(self, replica: Server) -> Callable[[], str]:
        def errors_in_status() -> str:
            status = rows_of(replica, self.words.order("SHOW"), 1 + APPLY_ERROR)
            errors = (status[0][RECEIVE_ERROR], status[0][APPLY_ERROR]) if status else ()
            return "; ".join(filter(None, errors)) or "no error in its status"

        return errors_in_status

    def _answering(self, primary: Server) -> int:
        """Number of acknowledging replicas, once waiting is on; else 0."""
        # MySQL shows ON as a word, which is dropped: only the replicas are counted here.
        return int(primary.status().get(self.words.counter("clients"), 0))

    def _silence(self) -> str:
        return "fewer replicas acknowledge than follow: see their error logs for semi-sync"

    def _join_group(
        self, members: Sequence[Server], doors: Sequence[Endpoint], who: Credentials
    ) -> None:
        primary, *replicas = members
        begin = f"START GROUP_REPLICATION USER='{who.user}', PASSWORD='{who.password}'"
        # Through the servers' own ports each lets the others in by their user.
        for replica in replicas if self.is_delayed else ():
            replica.ask("SET SQL_LOG_BIN = 0")
            self._make_user(replica, who)
            replica.ask("SET SQL_LOG_BIN = 1")
        ports = [door.port if self.is_delayed else process.free_port() for door in doors]
        talk = [f"{door.host}:{port}" for door, port in zip(doors, ports, strict=True)]
        for member, address in zip(members, talk, strict=True):
            member.ask(f"SET GLOBAL group_replication_local_address = '{address}'")
            member.ask(f"SET GLOBAL group_replication_group_seeds = '{','.join(talk)}'")
        primary.ask("SET GLOBAL group_replication_bootstrap_group = ON")
        _send_secret(primary, begin, who.password)
        primary.ask("SET GLOBAL group_replication_bootstrap_group = OFF")
        for number, replica in enumerate(replicas, start=1):
            _send_secret(replica, begin, who.password)
            wait_joined(
                partial(self._online, primary, number),
                replica,
                lambda: "the group did not take it in time",
            )

    def _online(self, primary: Server, number: int) -> bool:
        return count_of(primary, ONLINE) == 1 + number


def _send_secret(server: Server, order: str, secret: str) -> None:
    """Run a statement that holds a secret, which no error may repeat."""
    try:
        server.ask(order)
    except ServerError as error:
        texts = (error.message, error.found or "")
        message, reason = (text.replace(secret, "…") for text in texts)
        raise ServerError(message, found=reason or None, hint=error.hint) from None


# Transactions are counted in MySQL's GTID sets (``uuid:1-5:7``, several servers separated by
# commas, since 8.3 with tags between) and MariaDB's positions (the last of each domain,
# ``0-1-42``).


def count_of_set(text: str) -> int:
    """Number of transactions in a MySQL GTID set.

    Raises:
        ServerError: it is no GTID set.
    """
    total = 0
    for source in filter(None, (part.strip() for part in text.split(","))):
        _, *parts = source.split(":")
        ranges = [part for part in parts if not re.fullmatch(r"[A-Za-z_]\w{0,31}", part.strip())]
        if not ranges:
            raise _unreadable(text)
        total += sum(_length(part.strip(), text) for part in ranges)
    return total


def behind(primary: str, replica: str) -> int:
    """Number of transactions in MariaDB's position `primary` that `replica` lacks.

    Raises:
        ServerError: a position is malformed.
    """
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
