"""Servers run by somebody else, one or several behind a system, reached by login only.

dbdyno can question and load them. It cannot restart them, read their processes' counters or look at
their logs: readings of a server's own process are empty here, and findings say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.settings import SettingValue
from dbdyno.servers.base import (
    MYSQL,
    STOP_S,
    Answering,
    Credentials,
    Endpoint,
    Observer,
    ServerSpec,
    count_of,
    row_of,
    rows_of,
)
from dbdyno.servers.client import Client
from dbdyno.servers.foreign.behind import (
    INERT,
    TIDB,
    UNSEEN,
    Identity,
    StatementSummary,
    look_behind,
    of_variables,
    pid_of_all,
    tidb_settings,
)
from dbdyno.servers.mysql.client import MysqlClient, numbers
from dbdyno.servers.reference import PROTOCOLS, EndpointReference, credentials

LEAST: Final = frozenset({"Uptime", "Uptime_since_flush_status"})
"""Counters of which the minimum over all servers counts, so that a restart of any of them shows."""
PAGE_SIZE: Final = "Innodb_page_size"
REFUSED: Final = ("error 1045", "password authentication failed")
"""Marks of a rejected login in a server's error message."""
LONG_S_MAX: Final = 3600.0
MARK: Final = "dbdyno_dataset"
LOADING: Final = "loading"
LOADED: Final = "loaded"
TABLE: Final = "table "
"""Prefix of a script's table in the mark, since its name may be `state`."""
GROWTH_MAX: Final = 0.1
"""Tolerated drift of a table's largest id by the load's own inserts and deletes, as a fraction;
beyond it the table counts as replaced.
"""
_TABLE = re.compile(r"sbtest[0-9]*")
_END = re.compile(r"[0-9]{1,19}")


class EndpointServer:
    """Foreign servers, ready for logins when `EndpointInstance.start` hands them out.

    Attributes:
        pid: the process of the only server, if it runs on this machine and is seen; else 0.
        balanced: addresses that lead to several servers by turns.
    """

    driver = MYSQL
    version_sql = "SELECT VERSION()"
    settings_sql = "SHOW GLOBAL VARIABLES"

    def __init__(
        self, label: str, endpoint: Endpoint, credentials: Credentials, database: str
    ) -> None:
        self.label = label
        self.endpoint = endpoint
        self.credentials = credentials
        self.database = database
        self._clients = [
            self._client(f"{label} ({place.host}:{place.port})", place)
            for place in (endpoint, *endpoint.others)
        ]
        self.pid = UNSEEN
        self.balanced: tuple[str, ...] = ()
        self._servers: Sequence[Client] = ()
        self._summary = StatementSummary()

    def _client(self, label: str, place: Endpoint) -> Client:
        return MysqlClient(label, place, self.credentials, self.database)

    def _numbers(self, client: Client) -> dict[str, float]:
        return numbers(rows_of(client, "SHOW GLOBAL STATUS", 2))

    def login(self) -> None:
        """Log in to every server and compare versions; ServerError if refused or different."""
        places = (self.endpoint, *self.endpoint.others)
        for client in self._clients:
            client.login()
        versions = [row_of(client, self.version_sql)[0] for client in self._clients]
        if len(set(versions)) > 1:
            raise ServerError(
                f"{self.label}: its servers are of different versions",
                wanted="one version behind one system",
                found=", ".join(versions),
                hint="make a system of each",
            )
        if not self._servers:
            behind = look_behind(self._clients, places, self._client, self._identity)
            self._servers, self.balanced = behind.sessions, behind.balanced
        self.pid = UNSEEN if self.balanced else pid_of_all(places)  # it may have been restarted

    def _identity(self, client: Client) -> Identity:
        return of_variables(client, self.settings_sql, is_tidb=self._is_tidb)

    @property
    def sessions(self) -> Sequence[Client]:
        """A session at each server, once login has told the servers apart; else at each address."""
        return self._servers or self._clients

    def version(self) -> str:
        return row_of(self._clients[0], self.version_sql)[0]

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """The first server's answer to the load user, all as text; ServerError if refused."""
        return self._clients[0].ask(sql)

    def ask_long(self, sql: str) -> None:
        """Let the first server run a statement for up to an hour; ServerError if it refuses."""
        first = self._clients[0]
        limit_s, first.answer_s_max = first.answer_s_max, LONG_S_MAX
        try:
            first.ask(sql)
        finally:
            first.answer_s_max = limit_s

    def ask_all(self, sql: str) -> None:
        """Run a statement on every server; ServerError if a server refuses it."""
        for client in self._clients:
            client.ask(sql)

    def settings(self) -> dict[str, str]:
        """Every variable with an effect; ServerError if the server is gone."""
        first = self._clients[0]
        shown = {row[0].lower(): row[1] for row in rows_of(first, self.settings_sql, 2)}
        if not self._lacks_innodb:
            return shown
        cluster = tidb_settings(first) if self._is_tidb else {}
        return {name: shown[name] for name in shown if not INERT.fullmatch(name)} | cluster

    @cached_property
    def _is_tidb(self) -> bool:
        return TIDB in self.version()

    @cached_property
    def _lacks_innodb(self) -> bool:
        """True for TiDB and others that speak MySQL's protocol over stores of their own.

        They may have all variables and counters of InnoDB, but no pages of it.
        """
        if self.driver != MYSQL or self._is_tidb:
            return self._is_tidb
        return not self._numbers(self._clients[0]).get(PAGE_SIZE)

    def status(self) -> dict[str, float]:
        """Numeric global status counters, added up over all servers; ServerError if one is gone.

        Behind a balancer a session sees the counters of one of its servers: then only the uptime.
        TiDB counts statements for its whole cluster.
        """
        summary = self._summary.read(self._clients[0]) if self._is_tidb else {}
        return self._counters() | summary

    def observer(self) -> Observer:
        """Reader of the servers' own counters, without a cluster's summary, which costs more."""
        return Observer(self._counters, lambda: None)

    def _counters(self) -> dict[str, float]:
        counters = added([self._numbers(session) for session in self.sessions])
        if self.balanced:
            counters = {name: value for name, value in counters.items() if name in LEAST}
        if self._lacks_innodb:  # then a counter at 0 may be there for clients' sake only
            counters = {n: v for n, v in counters.items() if v and not n.startswith("Innodb_")}
        return counters

    def alive(self) -> bool:
        """True if every server answers, if only with an error of its own."""
        return all(client.is_answered() for client in self._clients)

    def last_words(self) -> str:
        """Empty: its log is not ours to read."""
        return ""

    def stop(self, patience_s: float = STOP_S) -> None:
        """Log out; the servers go on."""
        for client in self._clients:
            client.close()

    def kill(self) -> None:
        """Log out; the servers are not ours to end."""
        self.stop()


def added(counters: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Sum of each counter that all servers have; the minimum of uptimes."""
    shared = [name for name in counters[0] if all(name in each for each in counters)]
    return {
        name: (min if name in LEAST else sum)([each[name] for each in counters]) for name in shared
    }


class EndpointDataset:
    """The load's tables in a foreign database, and a small table there (the mark) that lists them.

    The mark alone distinguishes our rows from the owner's tables of the same names, which loading
    would drop. It travels with the rows, so another workspace knows them again. Rows cannot be
    restored; only the tables' largest ids are compared with their values after loading, since
    counting every row would take minutes on a large dataset.

    Scripts drop and make tables of any name. So with scripts every table must have been loaded by
    dbdyno, and the mark names the scripts' tables.
    """

    quote = "`"
    backslash = "\\\\"
    """A backslash within a string literal."""
    schema = ""
    """Schema of the tables; empty if the product calls the database a schema."""
    analyze = "ANALYZE TABLE"
    """Statement that collects a table's statistics."""

    def __init__(
        self, server: Answering, database: str, dataset: str, *, has_scripts: bool = False
    ) -> None:
        self._server = server
        self._database = database
        self._schema = self.schema or database
        self._dataset = dataset
        self._has_scripts = has_scripts

    def begin(self) -> None:
        """Prepare for loading: create the database and mark the load as under way.

        Raises:
            ServerError: the user lacks the right, or there are tables that dbdyno did not load.
        """
        wanted = f"SELECT 1 FROM information_schema.schemata WHERE schema_name = '{self._schema}'"
        if not self._server.ask(wanted):
            self._create()
        foreign = self._foreign()
        if foreign:
            raise ServerError(
                f"{self._server.label}: the database {self._database} has tables that dbdyno "
                "did not load",
                wanted="a database for dbdyno alone: loading drops and makes tables",
                found=", ".join(foreign[:5]) + (", …" if len(foreign) > 5 else ""),
                hint="name another database in the reference, or drop these tables yourself",
            )
        self._write(LOADING, self._of_scripts())

    def _create(self) -> None:
        """Create the database and enter it, as the session's login could not."""
        name = self._quoted(self._schema)
        self._server.ask(f"CREATE DATABASE {name}")
        self._server.ask(f"USE {name}")

    def _foreign(self) -> list[str]:
        """Tables that loading might drop and that dbdyno did not make."""
        tables = self._tables()
        own = {MARK, *self._of_scripts()}
        if MARK in tables:
            own |= {name for name in tables if _TABLE.fullmatch(name)}
        return [
            name
            for name in tables
            if name not in own and (self._has_scripts or _TABLE.fullmatch(name))
        ]

    def _of_scripts(self) -> list[str]:
        """Tables made here by scripts, in this run or before it."""
        mark = self._read() if MARK in self._tables() else {}
        return [name.removeprefix(TABLE) for name in mark if name.startswith(TABLE)]

    def analyses(self) -> list[str]:
        """SQL that collects the statistics of each loaded table."""
        return [f"{self.analyze} {self._placed(name)}" for name in self._tables() if name != MARK]

    def finish(self) -> None:
        """Mark the rows as loaded, with their tables and largest ids."""
        tables = [name for name in self._tables() if name != MARK]
        ends = {name: str(self._end(name)) for name in tables if _TABLE.fullmatch(name)}
        known = tables if self._has_scripts else self._of_scripts()
        self._write(LOADED, [name for name in tables if name in known and name not in ends], ends)

    def trouble(self) -> str | None:
        """Difference from the loaded tables, None if intact."""
        tables = self._tables()
        mark = self._read() if MARK in tables else {}
        if mark.pop("dataset", "") != self._dataset or mark.pop("state", "") != LOADED:
            return "this dataset was not loaded there"
        for name, end in mark.items():
            if name.startswith(TABLE):
                if (table := name.removeprefix(TABLE)) not in tables:
                    return f"the table {table} is gone"
                continue
            last = self._end(name) if name in tables else 0
            if not _END.fullmatch(end) or abs(last - int(end)) > GROWTH_MAX * int(end):
                return f"{name} ends at id {last}, and at {end} when it was loaded"
        return None

    def data_bytes(self) -> int:
        """The database's size by the server's estimate; 0 without an estimate."""
        return count_of(
            self._server,
            "SELECT SUM(data_length + index_length) FROM information_schema.tables "
            f"WHERE table_schema = '{self._schema}'",
        )

    def _tables(self) -> list[str]:
        requested = f"FROM information_schema.tables WHERE table_schema = '{self._schema}'"
        return [row[0] for row in rows_of(self._server, f"SELECT table_name {requested}", 1)]

    def _end(self, table: str) -> int:
        return count_of(self._server, f"SELECT MAX(id) FROM {self._placed(table)}")

    def _placed(self, table: str) -> str:
        return f"{self._quoted(self._schema)}.{self._quoted(table)}"

    def _quoted(self, name: str) -> str:
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def _read(self) -> dict[str, str]:
        sql = f"SELECT name, value FROM {self._placed(MARK)}"
        return {row[0]: row[1] for row in rows_of(self._server, sql, 2)}

    def _write(
        self, state: str, of_scripts: Iterable[str], ends: Mapping[str, str] | None = None
    ) -> None:
        script_tables = dict.fromkeys((TABLE + name for name in of_scripts), "script")
        mark = {"dataset": self._dataset, "state": state, **(ends or {}), **script_tables}
        table = self._placed(MARK)
        columns = "name VARCHAR(80) NOT NULL PRIMARY KEY, value VARCHAR(128) NOT NULL"
        self._server.ask(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        named = {name.replace("\\", self.backslash).replace("'", "''"): mark[name] for name in mark}
        values = ", ".join(f"('{name}', '{value}')" for name, value in named.items())
        try:  # whole or not at all: without the mark, scripts' tables would count as foreign
            self._server.ask("BEGIN")
            self._server.ask(f"DELETE FROM {table}")
            self._server.ask(f"INSERT INTO {table} VALUES {values}")
            self._server.ask("COMMIT")
        except ServerError:
            with suppress(ServerError):
                self._server.ask("ROLLBACK")
            raise


class EndpointInstance:
    """An endpoint in the place of an instance, without files or restarts.

    A run treats every system alike, so an endpoint answers as far as it can: a snapshot is the mark
    of a loaded dataset, a restore checks that its tables are still there, a start is a login.
    Findings of `judge.checks` report the cost.
    """

    driver = MYSQL
    server_type: ClassVar = EndpointServer
    dataset_type: ClassVar = EndpointDataset

    def __init__(
        self,
        spec: ServerSpec,
        requested: EndpointReference,
        folder: Path,
        report: Callable[[str], None],
    ) -> None:
        _refuse(spec, spec.settings)
        if spec.topology.replicas:
            raise UsageError(
                f"{spec.label}: replicas of an endpoint are not dbdyno's to make",
                hint="set them up yourself, and leave topology out",
            )
        self.spec = spec
        self.folder = folder
        self._report = report
        who, database = credentials(requested, spec.password_env), requested.database
        self._server = self.server_type(spec.label, requested.endpoint, who, database)
        self._dataset = self.dataset_type(
            self._server, database, spec.dataset, has_scripts=spec.has_scripts
        )
        self._password_variable = PROTOCOLS[requested.driver].password_variable
        self._is_loading = False
        self._was_loaded = False

    def start(self, settings: Mapping[str, SettingValue] | None = None) -> EndpointServer:
        """Log in; the first time without our rows, also prepare the database for loading."""
        _refuse(self.spec, settings or {})
        self.login()
        if not self._is_loading and not self._has_rows():
            self._dataset.begin()
            self._is_loading = True
        return self._server

    def snapshot(self) -> None:
        """Mark the dataset as loaded in the database; ServerError if it refuses."""
        self.login()
        self._analyze()
        self._dataset.finish()
        self._is_loading, self._was_loaded = False, True

    def _analyze(self) -> None:
        """Have statistics collected now: servers do it later by themselves, in a measured window.

        A refusal leaves it to them.
        """
        with suppress(ServerError):
            for sql in self._dataset.analyses():
                self._report(f"{self.spec.label}: {sql}")
                self._server.ask_long(sql)

    def has_snapshot(self) -> bool:
        """True if the dataset was loaded and intact when first seen.

        Later changes are found by `restore`: rows are not loaded twice in a run.
        """
        self.login()
        return self._has_rows()

    def restore(self) -> None:
        """Restore no rows: raise ServerError unless the tables are still the loaded tables."""
        self.login()
        trouble = self._dataset.trouble()
        if trouble is not None:
            raise ServerError(
                f"{self.spec.label}: the tables are not as they were loaded, and on an endpoint "
                "dbdyno cannot restore them",
                wanted="the tables of this run's dataset",
                found=trouble,
                hint=f"begin a new run to load them again ({MARK} in the database says what is "
                "loaded); a plan with `procedure: {fresh_data: once}` goes on with grown tables",
            )

    def data_bytes(self) -> int:
        """Bytes of the loaded tables and indexes, by the server's own estimate."""
        size = self._dataset.data_bytes() if self.has_snapshot() else 0
        if not size:
            raise ServerError(f"{self.spec.label}: there is no loaded dataset to measure")
        return size

    def close(self) -> None:
        """Log out; the servers and the rows stay."""
        self._server.stop()

    def _has_rows(self) -> bool:
        self._was_loaded = self._was_loaded or self._dataset.trouble() is None
        return self._was_loaded

    def login(self) -> EndpointServer:
        """Log in and change nothing; ServerError says where a refused password comes from."""
        try:
            self._server.login()
        except ServerError as error:
            if not any(words in (error.found or "") for words in REFUSED):
                raise
            named = self.spec.password_env or self._password_variable
            raise ServerError(
                error.message,
                wanted=f"a login as {self._server.credentials.user}",
                found=error.found,
                hint=f"check the user's rights and the password in {named}{_tls_hint(error)}",
            ) from error
        return self._server


def _tls_hint(error: ServerError) -> str:
    """A remedy where MySQL refuses a password; accounts that want TLS are refused alike."""
    if REFUSED[0] not in (error.found or ""):
        return ""
    return "; if the account wants TLS, as caching_sha2_password on TiDB does: ?ssl-mode=REQUIRED"


def _refuse(spec: ServerSpec, settings: Mapping[str, SettingValue]) -> None:
    if settings:
        raise UsageError(
            f"{spec.label}: the settings of an endpoint are its owner's: dbdyno only reads them",
            wanted="no settings for this system",
            found=", ".join(sorted(settings)),
            hint="set them at the server; the report shows what is in force",
        )
