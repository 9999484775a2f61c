"""One running MySQL: started with proven settings, asked through its socket, stopped cleanly.

Ready means more than an answer: the answer must come from the process that was started, so its pid
file, data directory and port are compared. An old server that still holds the place cannot pass.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.servers import process, readback
from dbdyno.servers.accounts import DATABASE
from dbdyno.servers.base import STOP_S, Credentials, Endpoint
from dbdyno.servers.catalog_entry import CatalogEntry
from dbdyno.servers.client import Client
from dbdyno.servers.observer import MysqlObserver, Observer, numbers
from dbdyno.servers.process import HERE, Place, ServerUser
from dbdyno.servers.words import error_lines, last_lines

START_S_MAX: Final = 120.0
REDO_CAPACITY: Final = "innodb_redo_log_capacity"
REDO_CAPACITY_STATUS: Final = "Innodb_redo_log_capacity_resized"
PORT_TAKEN: Final = "Address already in use"


@dataclass(frozen=True)
class Site:
    """What a start needs to know: whose server, its programs, its working folder, its settings.

    Attributes:
        home: the programs.
        work: the folder of the running server, its user's own; data lies in ``data`` below it.
        asked: settings by variable name; a ``port`` among them is kept to.
        place: the network it is on.
    """

    label: str
    entry: CatalogEntry
    home: Path
    work: Path
    user: ServerUser | None
    asked: Mapping[str, str]
    place: Place = HERE


class PortTakenError(ServerError):
    """Another program took the port between our look and the server's."""


class MysqlServer:
    """A running mysqld; made by `starting.start`."""

    database = DATABASE

    def __init__(
        self,
        site: Site,
        running: subprocess.Popen[bytes],
        endpoint: Endpoint,
        root: Credentials,
        load: Credentials,
    ) -> None:
        self.label = site.label
        self.pid = running.pid
        self.endpoint = endpoint
        self.credentials = load
        self.stopped_cleanly = False
        self._site = site
        self._running = running
        self._client = Client(site.label, endpoint, root)

    def version(self) -> str:
        """What the server says of itself; ServerError if it is gone."""
        return self._client.rows("SELECT VERSION()")[0][0]

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """The administrator's question or order, every value as text; ServerError if refused."""
        return self._client.rows(sql)

    def settings(self) -> dict[str, str]:
        """Every effective global variable; ServerError if it is gone.

        MySQL 8.0.30 and later show the redo space that was asked for, or the default where the old
        pair of settings is what counts; the space there is, is a status.
        """
        shown = {row[0].lower(): row[1] for row in self._client.rows("SHOW GLOBAL VARIABLES")}
        if REDO_CAPACITY in shown:
            real = self._client.rows(f"SHOW GLOBAL STATUS LIKE '{REDO_CAPACITY_STATUS}'")
            shown[REDO_CAPACITY] = real[0][1]
        return shown

    def status(self) -> dict[str, float]:
        """Every numeric global status counter; ServerError if it is gone."""
        return numbers(self._client.rows("SHOW GLOBAL STATUS"))

    def observer(self) -> Observer:
        """Somebody who reads selected counters on a connection of his own."""
        return MysqlObserver(self._client.another())

    def alive(self) -> bool:
        """Whether the started process still runs."""
        return self._running.poll() is None

    def last_words(self) -> str:
        """The end of its error log."""
        return last_lines(self._site.work)

    def stop(self, patience_s: float = STOP_S) -> None:
        """SIGTERM, wait for `patience_s`, SIGKILL at last.

        Raises:
            ServerError: it had died before, did not end in time, or ended with an error; its data
                directory is not to be trusted then.
        """
        self._client.close()
        if not self.alive():
            if self.stopped_cleanly:
                return
            raise self._failure(f"had ended before it was stopped ({self._ending()})")
        self._running.send_signal(signal.SIGTERM)
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
        """End it at once; for a server that will not be used again."""
        self._client.close()
        if self.alive():
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

    def prove(self) -> None:
        """Version and settings are those asked for, the load user can log in; else ServerError."""
        version = self.version()
        if version.partition("-")[0] != self._site.entry.version:
            raise ServerError(
                f"{self.label}: the server is another version",
                wanted=self._site.entry.version,
                found=version,
            )
        asked = self._site.asked
        readback.check(self.label, asked, self.settings())
        if any(name in asked for name in readback.PLUGINS_ASKED):
            readback.check_plugins(self.label, asked, self.ask("SHOW PLUGINS"))
        with Client(self.label, self.endpoint, self.credentials) as load:
            load.rows("SELECT 1")  # also warms the server's password cache for plain logins

    def _check_identity(self) -> None:
        """The one who answers is the process we started, not another that holds the place."""
        answers = self._client.rows("SELECT @@pid_file, @@datadir, @@port")[0]
        wanted = (self._site.work / "pid", self._site.work / "data", str(self.endpoint.port))
        found = (Path(answers[0]), Path(answers[1]), answers[2])
        written = (self._site.work / "pid").read_text().strip()
        if found != wanted or written != str(self.pid) or not self.alive():
            raise ServerError(
                f"{self.label}: another server answered in place of the one started",
                wanted=f"pid {self.pid}, {', '.join(map(str, wanted))}",
                found=f"pid {written}, {', '.join(map(str, found))}",
                hint="end the other server, or use another workspace",
            )

    def _start_failure(self) -> ServerError:
        log = error_lines(self._site.work)
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

    def _remove_traces(self) -> None:
        socket = self.endpoint.socket
        if socket is not None and socket.parent != self._site.work:
            shutil.rmtree(socket.parent, ignore_errors=True)
