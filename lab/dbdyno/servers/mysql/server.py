"""One running MySQL: started with proven settings, asked through its socket, stopped cleanly.

Ready means more than an answer: the answer must come from the process that was started, so its pid
file, data directory and port are compared. An old server that still holds the place cannot pass.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Final

from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.local.server import Identity, Site, StartedServer
from dbdyno.servers.local.words import error_lines
from dbdyno.servers.mysql import readback
from dbdyno.servers.mysql.client import Client
from dbdyno.servers.mysql.observer import MysqlObserver, Observer, numbers

REDO_CAPACITY: Final = "innodb_redo_log_capacity"
REDO_CAPACITY_STATUS: Final = "Innodb_redo_log_capacity_resized"


class MysqlServer(StartedServer):
    """A running mysqld; made by `starting.start`."""

    stop_signal = signal.SIGTERM

    def __init__(
        self,
        site: Site,
        running: subprocess.Popen[bytes],
        endpoint: Endpoint,
        root: Credentials,
        load: Credentials,
    ) -> None:
        super().__init__(site, running, endpoint, load)
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

    def prove(self) -> None:
        """Version and settings are those asked for, the load user can log in; else ServerError."""
        self._check_version(self.version(), "-")
        asked = self._site.asked
        readback.check(self.label, asked, self.settings())
        if any(name in asked for name in readback.PLUGINS_ASKED):
            readback.check_plugins(self.label, asked, self.ask("SHOW PLUGINS"))
        with Client(self.label, self.endpoint, self.credentials) as load:
            load.rows("SELECT 1")  # also warms the server's password cache for plain logins

    def _try_login(self) -> bool:
        return self._client.try_login()

    def _log_out(self) -> None:
        self._client.close()

    def _identity(self) -> tuple[tuple[str, ...], Identity]:
        pid_file, data, port = self._client.rows("SELECT @@pid_file, @@datadir, @@port")[0]
        written = (self._site.work / "pid").read_text().strip()
        work = self._site.work
        wanted = (str(work / "pid"), str(work / "data"), str(self.endpoint.port))
        return wanted, Identity((str(Path(pid_file)), str(Path(data)), port), written)

    def _log_of_start(self) -> str:
        return error_lines(self._site.work)
