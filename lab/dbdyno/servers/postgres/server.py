"""One running PostgreSQL: started with proven settings, asked through its socket, stopped cleanly.

The administrator logs in through the socket and by the kernel's word on who he is (``peer``), so he
needs no password and nobody else can be him; the load user gets a fresh one at each start. Ready
means that the answer came from the process that was started: its pid file, data directory and port
are compared.
"""

from __future__ import annotations

import signal
import subprocess
from typing import Final

from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.local.server import Identity, Site, StartedServer
from dbdyno.servers.mysql.accounts import DATABASE
from dbdyno.servers.mysql.observer import Observer, PostgresObserver
from dbdyno.servers.postgres import postgres_status
from dbdyno.servers.postgres.client import ANSWER_S_MAX, PostgresClient
from dbdyno.servers.postgres.settings import QUESTION, check

ADMIN: Final = Credentials("dbdyno_admin", "")
HOME_DATABASE: Final = "postgres"
"""Questions about the server are asked here, so that they do not count in the load's database."""
GIVE_UP_S: Final = 5.0
"""How long a server that is not wanted any more may take to end its children and free memory."""


class PostgresServer(StartedServer):
    """A running postgres; made by `postgres_starting.start`."""

    stop_signal = signal.SIGINT  # sessions are ended, all is written out

    def __init__(
        self, site: Site, running: subprocess.Popen[bytes], endpoint: Endpoint, load: Credentials
    ) -> None:
        super().__init__(site, running, endpoint, load)
        self._client = self.session(HOME_DATABASE)
        self._asking = self.session(DATABASE)
        self._status_sql = ""

    def session(self, database: str, answer_s_max: float = ANSWER_S_MAX) -> PostgresClient:
        """A session of the administrator, which logs in when it is first asked; close it."""
        return PostgresClient(self.label, self.endpoint, ADMIN, database, answer_s_max)

    def version(self) -> str:
        """What the server says of itself, as 17.11; ServerError if it is gone."""
        return self._client.rows("SHOW server_version")[0][0]

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """The administrator's question or order in the load's database; ServerError if refused."""
        return self._asking.rows(sql)

    def settings(self) -> dict[str, str]:
        """Every effective parameter, in the server's own units; ServerError if it is gone."""
        return {row[0].lower(): row[1] for row in self._client.rows("SHOW ALL")}

    def status(self) -> dict[str, float]:
        """Every number of the statistics views, by name; ServerError if it is gone."""
        return self._numbers(self._client)

    def observer(self) -> Observer:
        """Somebody who reads the same numbers on a session of his own."""
        session = self.session(HOME_DATABASE)
        return PostgresObserver(lambda: self._numbers(session), session.close)

    def _numbers(self, client: PostgresClient) -> dict[str, float]:
        if not self._status_sql:
            views = [row[0] for row in client.rows(postgres_status.WHICH_VIEWS)]
            self._status_sql = postgres_status.question(views, DATABASE)
        return postgres_status.flattened(client.rows(self._status_sql))

    def open_to_the_load(self) -> None:
        """Give the load user its password, and a database of its own; ServerError if refused."""
        user = self.credentials.user
        kept = self._client.sealed(self.credentials)
        if not self._client.rows(f"SELECT FROM pg_roles WHERE rolname = '{user}'"):
            self._client.rows(f'CREATE ROLE "{user}"')
        sql = f"ALTER ROLE \"{user}\" LOGIN PASSWORD '{kept}'"
        self._client.rows(sql, told_as=f"the order that gives {user} its password")
        if not self._client.rows(f"SELECT FROM pg_database WHERE datname = '{DATABASE}'"):
            self._client.rows(f'CREATE DATABASE "{DATABASE}" OWNER "{user}"')

    def prove(self) -> None:
        """Version and settings are those asked for, the load user can log in; else ServerError."""
        self._check_version(self.version(), " ")
        answered = self._client.rows(QUESTION)
        check(self.label, self._site.asked, answered)
        line = Endpoint(self.endpoint.host, self.endpoint.port, None)  # as the load comes in
        with PostgresClient(self.label, line, self.credentials, DATABASE) as load:
            load.rows("SELECT 1")

    def _try_login(self) -> bool:
        return self._client.try_login()

    def _log_out(self) -> None:
        self._client.close()
        self._asking.close()

    def _end_at_once(self) -> None:
        """SIGQUIT first: it writes nothing out, but ends its children and frees their memory."""
        self._running.send_signal(signal.SIGQUIT)
        try:
            self._running.wait(GIVE_UP_S)
        except subprocess.TimeoutExpired:
            self._running.kill()

    def _identity(self) -> tuple[tuple[str, ...], Identity]:
        asked = "SELECT current_setting('data_directory'), current_setting('port')"
        answers = self._client.rows(asked)[0]
        data = self._site.work / "data"
        written = (data / "postmaster.pid").read_text().split("\n")[0]
        return (str(data), str(self.endpoint.port)), Identity(answers, written)

    def _log_of_start(self) -> str:
        return self.last_words() or "it left no log"
