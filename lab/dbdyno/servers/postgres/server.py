"""A running PostgreSQL: started with proven settings, asked through its socket, stopped cleanly.

The administrator logs in through the socket, identified by the kernel (``peer``), so it needs no
password and nobody else can be the administrator; the load user gets a fresh password at each
start. Ready means that the answer came from the process that was started: its pid file, data
directory and port are compared.
"""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
from collections.abc import Mapping
from contextlib import closing
from typing import Final, TypeVar

from dbdyno.errors import ServerError
from dbdyno.files import private
from dbdyno.servers import process
from dbdyno.servers.base import (
    DATABASE,
    LOAD_USER,
    PGSQL,
    Credentials,
    Endpoint,
    Observer,
    row_of,
    rows_of,
)
from dbdyno.servers.local.files import socket_place
from dbdyno.servers.local.server import Site, StartedServer, check_version, printed_log
from dbdyno.servers.postgres import settings
from dbdyno.servers.postgres.client import (
    WHICH_VIEWS,
    PostgresClient,
    answered,
    question,
    sealed,
    without_idle_io,
)
from dbdyno.servers.postgres.settings import QUESTION, SETTINGS, check
from dbdyno.servers.process import LOOPBACK

ADMIN: Final = Credentials("dbdyno_admin", "")
REPLICA_USER: Final = "dbdyno_replica"
HOME_DATABASE: Final = "postgres"
"""Database for questions about the server, so that they do not count in the load's database."""
GIVE_UP_S: Final = 1.5
"""Time for a server to end its children and free memory if its data is not needed any more."""


class PostgresServer(StartedServer):
    """A running postgres; made by `start`."""

    driver = PGSQL
    stop_signal = signal.SIGINT  # sessions are ended, all is written out

    def __init__(
        self, site: Site, running: subprocess.Popen[bytes], endpoint: Endpoint, load: Credentials
    ) -> None:
        super().__init__(site, running, endpoint, load)
        self._client = self.session(HOME_DATABASE)
        self._asking = self.session(DATABASE)
        self._status_sql = ""

    def session(self, database: str) -> PostgresClient:
        """A session of the administrator, which logs in when it is first asked; close it."""
        return PostgresClient(self.label, self.endpoint, ADMIN, database)

    def version(self) -> str:
        return row_of(self._client, "SHOW server_version")[0]

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        return self._asking.ask(sql)

    def settings(self) -> dict[str, str]:
        """Every effective parameter, in the server's own units."""
        return {row[0].lower(): row[1] for row in rows_of(self._client, SETTINGS, 2)}

    def status(self) -> dict[str, float]:
        return self._numbers(self._client)

    def observer(self) -> Observer:
        """Reader of the same numbers, without idle I/O, on a session of its own."""
        session = self.session(HOME_DATABASE)
        return Observer(lambda: without_idle_io(self._numbers(session)), session.close)

    def _numbers(self, client: PostgresClient) -> dict[str, float]:
        if not self._status_sql:
            views = [row[0] for row in rows_of(client, WHICH_VIEWS, 1)]
            self._status_sql = question(views, DATABASE)
        return answered(client, self._status_sql)

    def change(self, parameters: Mapping[str, str]) -> None:
        """Change parameters that need no restart, until its end; ServerError if refused."""
        for name, text in parameters.items():
            quoted = text.replace("'", "''")
            self._client.ask(f"ALTER SYSTEM SET {name} = '{quoted}'")
        self._client.ask("SELECT pg_reload_conf()")

    def admit_load(self) -> None:
        admit_load(self._client, self.credentials)

    def admit(self, who: Credentials, rights: str = "LOGIN") -> None:
        admit(self._client, who, rights)

    def prove(self) -> None:
        self._prove_settings()
        line = Endpoint(self.endpoint.host, self.endpoint.port, None)  # as the load comes in
        with closing(PostgresClient(self.label, line, self.credentials, DATABASE)) as load:
            load.ask("SELECT 1")

    def _prove_settings(self) -> None:
        check_version(self.label, self._site.entry, self.version())
        check(self.label, self._site.requested, self._client.ask(QUESTION))

    def _try_login(self) -> bool:
        return self._client.try_login()

    def _log_out(self) -> None:
        self._client.close()
        self._asking.close()

    def _end_at_once(self) -> None:
        """Send SIGQUIT first: no writing out, but children are ended and memory is freed."""
        self._running.send_signal(signal.SIGQUIT)
        self._running.send_signal(signal.SIGCONT)  # a stopped process takes signals only then
        try:
            self._running.wait(GIVE_UP_S)
        except subprocess.TimeoutExpired:
            self._running.kill()

    def _identity(self) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        place = "SELECT current_setting('data_directory'), current_setting('port')"
        answers = row_of(self._client, place, 2)
        wanted = (str(self._site.work / "data"), str(self.endpoint.port))
        return wanted, answers, self._pid_in("data/postmaster.pid")

    def _log_of_start(self) -> str:
        return self.last_words() or "it left no log"


class PostgresStandby(PostgresServer):
    """A running postgres that follows a primary and takes no writes; made by `start`."""

    def admit_load(self) -> None:
        """Do nothing: the load's user and password come from the primary."""

    def prove(self) -> None:
        self._prove_settings()

    def follow(self, primary: Endpoint, who: Credentials, name: str) -> None:
        """Have it receive the primary's log, and report its progress under this name."""
        secret = private(
            self._site.work / "replication.password",
            f"*:*:*:{who.user}:{who.password}\n",
            self._site.user,
        )
        path = str(secret).replace("\\", "\\\\").replace("'", "\\'")
        connection = (
            f"host={primary.host} port={primary.port} user={who.user} passfile='{path}' "
            f"sslmode=disable application_name={name}"
        )
        self.change({"primary_conninfo": connection, "primary_slot_name": name})


# The load's password is in no file, argument list or log: the server lets the lab's own user in
# through its socket as the administrator, who then gives the load user a password of this start. It
# travels as the SCRAM secret that the server would make of it, never as itself. The password of the
# replicas' user is in a file that only the server's user can read, as a standby needs it to log in
# again.


MAP: Final = "lab"
AnyPostgres = TypeVar("AnyPostgres", bound=PostgresServer)


def start(site: Site, port: int, kind: type[AnyPostgres]) -> AnyPostgres:
    """Start a server of the given class on a port and return it when it is ready and proven.

    Raises:
        ServerError: it did not start (PortTakenError for a lost port), or it did not take its
            settings; no process is left.
    """
    printed_log(site.work).unlink(missing_ok=True)
    name = f".s.PGSQL.{port}"
    socket = socket_place(site.label, site.work, name, site.user, commas=False)
    endpoint = Endpoint(site.address, port, socket)
    load = Credentials.fresh(LOAD_USER)
    data = site.work / "data"
    where = settings.places_of(site.work, socket.parent, port, endpoint.host)
    private(site.work / "pg_hba.conf", login_rules(load.user, endpoint.host), site.user)
    private(site.work / "pg_ident.conf", f"{MAP} {_own_name(site)} {ADMIN.user}\n", site.user)
    configuration = settings.render({**site.requested, **where})
    private(data / "postgresql.auto.conf", configuration, site.user)
    command = [str(site.home / site.entry.program), "-D", str(data)]
    log = printed_log(site.work)
    running = process.spawn(command, site.work, site.user, log)
    server = kind(site, running, endpoint, load)
    server.wait_proven()
    return server


def admit_load(client: PostgresClient, load: Credentials) -> None:
    """As administrator, give the load user its password and a database of its own."""
    admit(client, load)
    if not client.ask(f"SELECT FROM pg_database WHERE datname = '{DATABASE}'"):
        client.ask(f'CREATE DATABASE "{DATABASE}" OWNER "{load.user}"')


def admit(client: PostgresClient, who: Credentials, rights: str = "LOGIN") -> None:
    """As administrator, give a user these rights and its password, creating it if need be."""
    if not client.ask(f"SELECT FROM pg_roles WHERE rolname = '{who.user}'"):
        client.ask(f'CREATE ROLE "{who.user}"')
    sql = f"ALTER ROLE \"{who.user}\" {rights} PASSWORD '{sealed(who.password)}'"
    client.ask(sql, shown_as=f"the order that gives {who.user} its password")


def login_rules(load_user: str, address: str = LOOPBACK) -> str:
    """Text of a ``pg_hba.conf``: the administrator by the socket, others with a password.

    Args:
        address: address to listen on; a loopback address admits this machine's clients only.
    """
    anybody = f"{LOOPBACK}/32" if address.startswith("127.") else "all"
    rules = (
        ("local", "all", ADMIN.user, "peer", f"map={MAP}"),
        ("local", "all", load_user, "scram-sha-256"),
        ("host", "all", load_user, anybody, "scram-sha-256"),
        ("host", "replication", REPLICA_USER, anybody, "scram-sha-256"),
    )
    return "".join(" ".join(rule) + "\n" for rule in rules)


def _own_name(site: Site) -> str:
    """The lab's user as the server will see it at the other end of its socket."""
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError as error:
        raise ServerError(
            f"{site.label}: PostgreSQL runs only for users that have a name",
            found=f"user id {os.geteuid()}, which has none",
            hint="run dbdyno as a user of the system's user list",
        ) from error
    quoted = name.replace('"', '""')
    return f'"{quoted}"'
