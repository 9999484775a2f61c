"""MySQL and MariaDB as a primary with replicas: settings of each, joining, state, and waiting.

The primary writes no binary log while it is loaded. The replicas' user is made anew at each start
with a password that only the servers keep. The order matters: no commit may wait before a replica
can answer, and none may go unwaited afterwards; so the user is made first, waiting is switched on
next, and replicas are connected last.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError, UsageError
from dbdyno.measurement import replication
from dbdyno.plan.settings import SettingValue
from dbdyno.servers import process
from dbdyno.servers.base import (
    Credentials,
    Endpoint,
    Server,
    ServerSpec,
    count_of,
    odd_answer,
    row_of,
    rows_of,
)
from dbdyno.servers.local.topology import Keys, wait_joined
from dbdyno.servers.mysql.dialect import (
    MARIADB,
    MYSQL_KIND,
    ReplicationDialect,
    behind,
    count_of_set,
    dialect_of,
)
from dbdyno.servers.mysql.instance import MysqlInstance
from dbdyno.servers.mysql.settings import OFF_WORDS, is_local, lines_of, normalise
from dbdyno.servers.process import LOOPBACK
from dbdyno.servers.programs.catalog import CatalogEntry
from dbdyno.servers.programs.identify import files_of

PLUGINS: Final = "plugin_load_add"
GROUP_PLUGIN: Final = "group_replication.so"
USER: Final = "dbdyno_replica"
PASSWORD_BYTES: Final = 16  # as hexadecimal, all that a replica takes
RECEIVES, APPLIES, RECEIVE_ERROR, APPLY_ERROR = 10, 11, 35, 37
"""Columns of a replica's status; their order is the same in all versions."""
GROUP_RIGHTS: Final = "REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM"
ONLINE: Final = (
    "SELECT COUNT(*) FROM performance_schema.replication_group_members"
    " WHERE member_state = 'ONLINE'"
)
WAIT_S_MAX: Final = 10.0
"""Longest single question to a replica while it catches up."""


def check(spec: ServerSpec, entry: CatalogEntry) -> ReplicationDialect:
    """Validate the topology for the version; fetches nothing.

    Raises:
        UsageError: this product or version cannot have it.
    """
    if entry.product not in (MARIADB, *MYSQL_KIND):
        raise UsageError(
            f"{entry.reference} cannot have replicas",
            wanted=f"one of {', '.join((MARIADB, *MYSQL_KIND))}, postgres",
            hint="leave topology out for it",
        )
    return dialect_of(entry.reference, entry.product, entry.version_numbers, spec.topology)


class MysqlReplication:
    """`local.topology.Replication` of MySQL and MariaDB.

    Raises:
        UsageError: its programs lack a plugin, or its settings the binary log.
    """

    def __init__(
        self, spec: ServerSpec, entry: CatalogEntry, home: Path, report: Callable[[str], None]
    ) -> None:
        self._spec, self._files, self._report = spec, (entry, home), report
        self._plan, self.words = spec.topology, check(spec, entry)
        self._plugins: tuple[str, ...] = ()  # the primary's, then the replicas'
        if self._plan.replication == "group":
            self._plugins = (GROUP_PLUGIN, GROUP_PLUGIN)
        elif self._plan.replication == "semisync":
            self._plugins = self.words.semisync_plugins
        _check_plugins(entry, home, self._plugins)
        self._own({})
        self._is_delayed = spec.replica_ms > 0
        self._group = str(uuid.uuid4())

    def member(self, spec: ServerSpec, folder: Path, copy: Path | None) -> MysqlInstance:
        return MysqlInstance(spec, *self._files, folder, self._report, copy=copy)

    def loading_keys(self, requested: Keys) -> Keys:
        """No binary log while rows are loaded, so all copies begin equal."""
        return {"log_bin": False, **self._plugin(self._own(requested), 0)}

    def member_keys(self, requested: Keys) -> Sequence[Keys]:
        """Each member's number, its binary log, and the commits' wait for acknowledgements.

        Waiting is switched on later, once replicas can answer.
        """
        own = self._own(requested)
        return [self._member(own, number) for number in range(self._plan.replicas + 1)]

    def join(self, primary: Server, replicas: Sequence[Server], doors: Sequence[Endpoint]) -> None:
        who = Credentials(USER, secrets.token_hex(PASSWORD_BYTES))
        begin = row_of(primary, self.words.position)[0]
        self._make_user(primary, who)
        if self._plan.replication == "group":
            self._join_group((primary, *replicas), doors, who)
            return
        if self._plan.replication == "semisync":
            primary.ask(f"SET GLOBAL {self.words.variable('source', 'enabled')} = ON")
        for replica in replicas:
            self._follow(doors[0], replica, who, begin)
        for replica in replicas:
            trouble = partial(self._trouble, replica)
            wait_joined(partial(self._follows, replica), replica, trouble)
        if self._plan.replication == "semisync":
            wait_joined(
                lambda: self._answering(primary) == len(replicas),
                primary,
                lambda: "fewer replicas acknowledge than follow: see their logs for semi-sync",
            )

    def running(self, primary: Server, replicas: Sequence[Server]) -> int:
        """Number of replicas that receive and apply now."""
        if self._plan.replication == "group":
            return max(0, count_of(primary, ONLINE) - 1)
        return sum(self._follows(replica) for replica in replicas)

    def state(self, primary: Server, replicas: Sequence[Server]) -> dict[str, float]:
        """Replicas in operation, their lag, and the acknowledged commits."""
        committed = row_of(primary, self.words.position)[0]
        state = {
            replication.TRANSACTIONS_BEHIND: max(
                self._behind(committed, primary, replica) for replica in replicas
            ),
            replication.REPLICAS_RUNNING: self.running(primary, replicas),
        }
        if self._plan.replication == "semisync":
            state |= self._semisync(primary)
        return state

    def catch_up(self, primary: Server, replicas: Sequence[Server], ends_s: float) -> None:
        """Have each replica wait for the primary's position."""
        committed = row_of(primary, self.words.position)[0]
        for replica in replicas if committed else ():
            while (left_s := ends_s - time.monotonic()) > 0:
                sql = self.words.wait(committed, min(left_s, WAIT_S_MAX))
                if row_of(replica, sql)[0] == "0":
                    break

    def before_stop(self, primary: Server) -> None:
        """End the threads that send to replicas, for whose idle ones a primary waits 8 s."""
        with suppress(ServerError):
            if self._plan.replication == "semisync":
                off = self.words.variable("source", "enabled")
                primary.ask(f"SET GLOBAL {off} = OFF")
            for number, *_, command in (row[:5] for row in rows_of(primary, "SHOW PROCESSLIST", 5)):
                if command.startswith("Binlog Dump"):
                    primary.ask(f"KILL {number}")

    def _member(self, own: Mapping[str, str], number: int) -> Keys:
        """Keys of the primary (number 0) or of a replica, over the `own` of this start."""
        words = self.words
        keys: dict[str, SettingValue] = {"server_id": number + 1}
        if own.get("log_bin", "OFF").lower() in OFF_WORDS:
            keys["log_bin"] = True
        if words.mariadb:
            keys["binlog_format"] = own.get("binlog_format", "ROW")
        else:
            keys |= {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}
        if number:
            keys["read_only"] = True
        if self._plan.replication == "semisync" and number:
            keys[words.variable("replica", "enabled")] = "ON"
        elif self._plan.replication == "semisync":
            keys[words.variable("source", "timeout")] = round(self._plan.timeout_s * 1000)
            keys[words.variable("source", "wait_point")] = self._plan.wait_point.upper()
        elif self._plan.replication == "group":
            keys |= self._group_keys()
        return {**keys, **self._plugin(own, number)}

    def _group_keys(self) -> Keys:
        """Keys of a member of the group.

        A delayed group talks through the servers' own ports, possible since 8.0.27: by default it
        takes one port on all addresses, without room for a door.
        """
        host = LOOPBACK if self._is_delayed else self._spec.address
        return {
            **({"group_replication_communication_stack": "MYSQL"} if self._is_delayed else {}),
            "group_replication_group_name": self._group,
            "group_replication_start_on_boot": "OFF",
            "group_replication_ip_allowlist": host,
            "group_replication_ssl_mode": "DISABLED",  # a must from 8.4 on; no server here has TLS
            "group_replication_recovery_use_ssl": "OFF",
            "group_replication_recovery_get_public_key": "ON",
            "report_host": host,
        }

    def _plugin(self, own: Mapping[str, str], number: int) -> Keys:
        """The topology's plugin, added to the plugins of the plan."""
        if not self._plugins:
            return {}
        requested = [line for line in lines_of(own.get(PLUGINS, "")) if line]
        return {PLUGINS: ";".join([*requested, self._plugins[1 if number else 0]])}

    def _own(self, requested: Keys) -> dict[str, str]:
        """The system's own settings for a start; UsageError if they rule replicas out."""
        own = normalise(self._spec.settings) | normalise(requested)
        if is_local(own):
            raise UsageError(
                f"{self._spec.label}: replicas need a network",
                found="skip_networking",
                hint="leave skip_networking out, or the replicas",
            )
        if own.get("log_bin", "ON").lower() in OFF_WORDS:
            raise UsageError(
                f"{self._spec.label}: cannot be without a binary log, which replicas read",
                wanted="log_bin ON, or not given",
                found="log_bin OFF",
                hint="leave the setting out, or give the system no replicas",
            )
        return own

    def _make_user(self, primary: Server, who: Credentials) -> None:
        name = f"'{who.user}'@'%'"
        rights = GROUP_RIGHTS if self._plan.replication == "group" else "REPLICATION SLAVE"
        if self.words.mariadb:
            orders = [f"GRANT {rights} ON *.* TO {name} IDENTIFIED BY '{who.password}'"]
        else:
            word = f"IDENTIFIED WITH {self._files[0].authentication} BY '{who.password}'"
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

    def _trouble(self, replica: Server) -> str:
        status = rows_of(replica, self.words.order("SHOW"), 1 + APPLY_ERROR)
        errors = (status[0][RECEIVE_ERROR], status[0][APPLY_ERROR]) if status else ()
        return "; ".join(filter(None, errors)) or "no error in its status"

    def _answering(self, primary: Server) -> int:
        """Number of acknowledging replicas, once waiting is on; else 0."""
        # MySQL shows ON as a word, which is dropped: only the replicas are counted here.
        return int(primary.status().get(self.words.counter("clients"), 0))

    def _join_group(
        self, members: Sequence[Server], doors: Sequence[Endpoint], who: Credentials
    ) -> None:
        primary, *replicas = members
        begin = f"START GROUP_REPLICATION USER='{who.user}', PASSWORD='{who.password}'"
        # Through the servers' own ports each lets the others in by their user.
        for replica in replicas if self._is_delayed else ():
            replica.ask("SET SQL_LOG_BIN = 0")
            self._make_user(replica, who)
            replica.ask("SET SQL_LOG_BIN = 1")
        ports = [door.port if self._is_delayed else process.free_port() for door in doors]
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
                partial(_is_online, primary, 1 + number),
                replica,
                lambda: "the group did not take it in time",
            )

    def _behind(self, committed: str, primary: Server, replica: Server) -> float:
        applied = row_of(replica, self.words.applied)[0]
        if self.words.mariadb:
            return behind(committed, applied)
        left = row_of(primary, f"SELECT GTID_SUBTRACT('{committed}', '{applied}')")[0]
        return count_of_set(left)

    def _semisync(self, primary: Server) -> dict[str, float]:
        words = self.words
        status = f"SHOW GLOBAL STATUS LIKE '{words.counter('%')}'"
        variables = f"SHOW GLOBAL VARIABLES LIKE '{words.variable('source', '%')}'"
        rows = [row for sql in (status, variables) for row in rows_of(primary, sql, 2)]
        seen = {row[0].lower(): row[1] for row in rows}

        def counter(name: str) -> str:
            return seen[words.counter(name).lower()]

        try:
            return {
                replication.SEMISYNC_ON: float(counter("status") == "ON"),
                replication.SEMISYNC_REPLICAS: float(counter("clients")),
                replication.COMMITS_ACKNOWLEDGED: float(counter("yes_tx")),
                replication.COMMITS_NOT_ACKNOWLEDGED: float(counter("no_tx")),
                replication.TIMES_OFF: float(counter("no_times")),
                replication.AFTER_SYNC: float(
                    seen[words.variable("source", "wait_point")] == "AFTER_SYNC"
                ),
                replication.TIMEOUT_S: float(seen[words.variable("source", "timeout")]) / 1000,
            }
        except (KeyError, ValueError) as error:
            wanted = "counters and variables of semi-synchronous replication"
            raise odd_answer(primary.label, status, wanted, f"{error!r}") from error


def _is_online(primary: Server, members: int) -> bool:
    return count_of(primary, ONLINE) == members


def _send_secret(server: Server, order: str, secret: str) -> None:
    """Run a statement that holds a secret, which no error may repeat."""
    try:
        server.ask(order)
    except ServerError as error:
        texts = (error.message, error.found or "")
        message, reason = (text.replace(secret, "…") for text in texts)
        raise ServerError(message, found=reason or None, hint=error.hint) from None


def _check_plugins(entry: CatalogEntry, home: Path, files: tuple[str, ...]) -> None:
    folder = files_of(home / entry.program).plugins
    missing = [name for name in files if folder is None or not (folder / name).is_file()]
    if missing:
        raise UsageError(
            f"{entry.reference} as it is fetched cannot replicate so: its plugins are not in it",
            wanted=", ".join(sorted(set(missing))),
            found="no folder of plugins" if folder is None else f"not among those in {folder}",
            hint="use mysql:8.0.33, mysql:9.7.4 or MariaDB 10.11 and newer, or replication: async",
        )
