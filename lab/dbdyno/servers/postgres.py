"""One running PostgreSQL: started with proven settings, asked through its socket, stopped cleanly.

The administrator logs in through the socket and by the kernel's word on who he is (``peer``), so he
needs no password and nobody else can be him; the load user gets a fresh one at each start. Ready
means that the answer came from the process that was started: its pid file, data directory and port
are compared.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.servers import postgres_readback, postgres_status, process
from dbdyno.servers.accounts import DATABASE
from dbdyno.servers.base import STOP_S, Credentials, Endpoint
from dbdyno.servers.mysql import PORT_TAKEN, START_S_MAX, PortTakenError, Site
from dbdyno.servers.observer import Observer, PostgresObserver
from dbdyno.servers.postgres_client import ANSWER_S_MAX, PostgresClient
from dbdyno.servers.words import last_lines

ADMIN: Final = Credentials("dbdyno_admin", "")
HOME_DATABASE: Final = "postgres"
"""Questions about the server are asked here, so that they do not count in the load's database."""
GIVE_UP_S: Final = 5.0
"""How long a server that is not wanted any more may take to end its children and free memory."""


class PostgresServer:
    """A running postgres; made by `postgres_starting.start`."""

    database = DATABASE

    def __init__(
        self, site: Site, running: subprocess.Popen[bytes], endpoint: Endpoint, load: Credentials
    ) -> None:
        self.label = site.label
        self.pid = running.pid
        self.endpoint = endpoint
        self.credentials = load
        self.stopped_cleanly = False
        self._site = site
        self._running = running
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

    def alive(self) -> bool:
        """Whether the started process still runs."""
        return self._running.poll() is None

    def last_words(self) -> str:
        """The end of its log."""
        return last_lines(self._site.work)

    def stop(self, patience_s: float = STOP_S) -> None:
        """SIGINT (sessions are ended, all is written out), wait for `patience_s`, kill at last.

        Raises:
            ServerError: it had died before, did not end in time, or ended with an error; its data
                directory is not to be trusted then.
        """
        self._log_out()
        if not self.alive():
            if self.stopped_cleanly:
                return
            raise self._failure(f"had ended before it was stopped ({self._ending()})")
        self._running.send_signal(signal.SIGINT)
        try:
            code = self._running.wait(patience_s)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise self._failure(f"did not stop within {patience_s:.0f} s and was killed") from error
        self._remove_traces()
        if code != 0:
            raise self._failure(f"did not stop cleanly ({self._ending()})")
        self.stopped_cleanly = True

    def kill(self) -> None:
        """End it at once; for a server that will not be used again.

        SIGQUIT first: it writes nothing out, but ends its children and frees their shared memory.
        """
        self._log_out()
        if self.alive():
            self._running.send_signal(signal.SIGQUIT)
            try:
                self._running.wait(GIVE_UP_S)
            except subprocess.TimeoutExpired:
                self._running.kill()
        self._running.wait()
        self._remove_traces()

    def wait_ready(self) -> None:
        """Wait until our own process answers; ServerError with its log if it does not."""
        limit = time.monotonic() + START_S_MAX
        while not self._client.try_login():
            if not self.alive():
                self._remove_traces()
                raise self._start_failure()
            if time.monotonic() > limit:
                raise self._failure(f"did not answer within {START_S_MAX:.0f} s of its start")
            time.sleep(0.02)
        self._check_identity()

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
        version = self.version()
        if version.partition(" ")[0] != self._site.entry.version:
            raise ServerError(
                f"{self.label}: the server is another version",
                wanted=self._site.entry.version,
                found=version,
            )
        answered = self._client.rows(postgres_readback.QUESTION)
        postgres_readback.check(self.label, self._site.asked, answered)
        line = Endpoint(self.endpoint.host, self.endpoint.port, None)  # as the load comes in
        with PostgresClient(self.label, line, self.credentials, DATABASE) as load:
            load.rows("SELECT 1")

    def _check_identity(self) -> None:
        """The one who answers is the process we started, not another that holds the place."""
        asked = "SELECT current_setting('data_directory'), current_setting('port')"
        found = self._client.rows(asked)[0]
        wanted = (str(self._site.work / "data"), str(self.endpoint.port))
        written = (self._site.work / "data" / "postmaster.pid").read_text().split("\n")[0]
        if found != wanted or written != str(self.pid) or not self.alive():
            raise ServerError(
                f"{self.label}: another server answered in place of the one started",
                wanted=f"pid {self.pid}, {', '.join(wanted)}",
                found=f"pid {written}, {', '.join(found)}",
                hint="end the other server, or use another workspace",
            )

    def _start_failure(self) -> ServerError:
        log = self.last_words() or "it left no log"
        message = f"{self.label}: the server did not start ({self._ending()})"
        if PORT_TAKEN in log:
            return PortTakenError(
                message,
                wanted=f"port {self.endpoint.port}",
                found=f"taken by {process.holder(self.endpoint.port)}",
            )
        return ServerError(message, found=log, hint="take out the setting the log complains of")

    def _failure(self, what: str) -> ServerError:
        return ServerError(f"{self.label}: the server {what}", found=self.last_words() or None)

    def _ending(self) -> str:
        code = self._running.poll()
        if code is None:
            return "still running"
        return f"exit code {code}" if code >= 0 else signal.Signals(-code).name

    def _log_out(self) -> None:
        self._client.close()
        self._asking.close()

    def _remove_traces(self) -> None:
        socket = self.endpoint.socket
        if socket is not None and socket.parent != self._site.work:
            shutil.rmtree(socket.parent, ignore_errors=True)
