"""A running MySQL: started with proven settings, asked through its socket, stopped cleanly.

Ready means more than an answer: the answer must come from the process that was started, so its pid
file, data directory and port are compared. An old server still in the place cannot pass.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from dbdyno.files import private
from dbdyno.servers import process
from dbdyno.servers.base import (
    DATABASE,
    LOAD_USER,
    MYSQL,
    Credentials,
    Endpoint,
    Observer,
    row_of,
    rows_of,
)
from dbdyno.servers.local.files import socket_place
from dbdyno.servers.local.server import (
    Site,
    StartedServer,
    check_version,
    error_lines,
    printed_log,
)
from dbdyno.servers.mysql import readback, settings
from dbdyno.servers.mysql.client import MysqlClient, numbers, observer_of
from dbdyno.servers.mysql.dialect import MARIADB
from dbdyno.servers.mysql.versions import family_of
from dbdyno.servers.programs.catalog import CatalogEntry
from dbdyno.servers.programs.identify import files_of

REDO_CAPACITY: Final = "innodb_redo_log_capacity"
REDO_CAPACITY_STATUS: Final = "Innodb_redo_log_capacity_resized"
REDO_RESIZING_STATUS: Final = "Innodb_redo_log_resize_status"
REDO_RESIZED_S_MAX: Final = 120.0


class MysqlServer(StartedServer):
    """A running mysqld; made by `start`."""

    driver = MYSQL
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
        self._client = MysqlClient(site.label, endpoint, root)

    def version(self) -> str:
        return row_of(self._client, "SELECT VERSION()")[0]

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        return self._client.ask(sql)

    def settings(self) -> dict[str, str]:
        """Every effective global variable; ServerError if it is gone.

        MySQL 8.0.30 and later show the requested redo space, or the default where the old pair of
        settings counts; the actual space is a status.
        """
        rows = rows_of(self._client, "SHOW GLOBAL VARIABLES", 2)
        shown = {row[0].lower(): row[1] for row in rows}
        if REDO_CAPACITY in shown:
            real = row_of(self._client, f"SHOW GLOBAL STATUS LIKE '{REDO_CAPACITY_STATUS}'", 2)
            shown[REDO_CAPACITY] = real[1]
        return shown

    def status(self) -> dict[str, float]:
        return numbers(rows_of(self._client, "SHOW GLOBAL STATUS", 2))

    @property
    def ready_s(self) -> float | None:
        """As `ThreadPerSession`; MariaDB begins threads for its background work at any time."""
        return None if self._site.entry.product == MARIADB else self._ready_s

    def observer(self) -> Observer:
        """Reader of selected counters on a connection of its own."""
        return observer_of(self._client.another())

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Switch redo log and doublewrite off where possible; a failed load leaves them off.

        MySQL 8.0 manual, "Disabling Redo Logging". ServerError if it is refused.
        """
        if not family_of(self._site.entry.product, self._site.entry.version_numbers).redo_switch:
            yield
            return
        self.ask("ALTER INSTANCE DISABLE INNODB REDO_LOG")
        yield
        self.ask("ALTER INSTANCE ENABLE INNODB REDO_LOG")

    def prove(self) -> None:
        check_version(self.label, self._site.entry, self.version())
        self._wait_for_redo_capacity()
        readback.prove(self, self._site.requested)
        with closing(MysqlClient(self.label, self.endpoint, self.credentials)) as load:
            load.ask("SELECT 1")  # also warms the server's password cache for plain logins

    def _wait_for_redo_capacity(self) -> None:
        """Wait while MySQL 8.0.30 and later shrink the redo log of a copy in the background.

        MySQL 8.0 manual, "Configuring Redo Log Capacity". The readback tells if it never ends.
        """
        limit = time.monotonic() + REDO_RESIZED_S_MAX
        question = f"SHOW GLOBAL STATUS LIKE '{REDO_RESIZING_STATUS}'"
        while any(row[1] != "OK" for row in rows_of(self._client, question, 2)):
            if time.monotonic() > limit:
                return
            time.sleep(0.1)

    def _try_login(self) -> bool:
        return self._client.try_login()

    def _log_out(self) -> None:
        self._client.close()

    def _identity(self) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        place = "SELECT @@pid_file, @@datadir, @@port"
        pid_file, data, port = row_of(self._client, place, 3)[:3]
        work = self._site.work
        wanted = (str(work / "pid"), str(work / "data"), str(self.endpoint.port))
        return wanted, (str(Path(pid_file)), str(Path(data)), port), self._pid_in("pid")

    def _log_of_start(self) -> str:
        return error_lines(self._site.work)


# Passwords are new at each start and reach the server in a file that only it can read and that is
# removed once it is up: they are in no argument list and no log, and a restored data directory
# needs no older password.


def start(site: Site, port: int) -> MysqlServer:
    """Start the server on a port and return it when it is ready and proven.

    A server without networking has no port: clients reach it through its socket.

    Raises:
        ServerError: it did not start (PortTakenError for a lost port), or it did not take its
            settings; no process is left.
    """
    for path in (site.work / "pid", site.work / "err.log", printed_log(site.work)):
        path.unlink(missing_ok=True)
    socket = socket_place(site.label, site.work, "my.sock", site.user, commas=True)
    endpoint = Endpoint(site.address, 0 if settings.is_local(site.requested) else port, socket)
    root = Credentials.fresh("root")
    load = Credentials.fresh(LOAD_USER)
    passwords = site.work / "passwords.sql"
    try:
        private(passwords, accounts_sql(site.entry, root, load), site.user)
        where = {
            **settings.places_of(site.entry, site.home, site.work, socket),
            **{"port": str(endpoint.port), "bind_address": endpoint.host},
            "init_file": str(passwords),
        }
        family = family_of(site.entry.product, site.entry.version_numbers)
        text = settings.render({**site.requested, **where}, family)
        config = private(site.work / "my.cnf", text, site.user)
        files, log = files_of(site.home / site.entry.program), printed_log(site.work)
        command = [str(files.program), f"--defaults-file={config}"]
        running = process.spawn(command, site.work, site.user, log, libraries=files.libraries)
        server = MysqlServer(site, running, endpoint, root, load)
        server.wait_proven()
        return server
    finally:
        passwords.unlink(missing_ok=True)


def accounts_sql(entry: CatalogEntry, root: Credentials, load: Credentials) -> str:
    """SQL for fresh passwords of root and the load user, and for the load's database.

    One statement a line: the oldest servers read no other form from a file as they start.
    """
    admin, user = "'root'@'localhost'", f"'{load.user}'@'%'"
    if family_of(entry.product, entry.version_numbers).from_sql:
        accounts = [  # MySQL 5.6 cannot alter a password, MariaDB 10.1 no user
            f"GRANT ALL ON *.* TO {admin} IDENTIFIED BY '{root.password}' WITH GRANT OPTION;",
            f"GRANT ALL ON *.* TO {user} IDENTIFIED BY '{load.password}';",
        ]
    else:
        accounts = [
            f"ALTER USER {admin} IDENTIFIED BY '{root.password}';",
            f"CREATE USER IF NOT EXISTS {user};",
            f"ALTER USER {user} IDENTIFIED WITH {entry.authentication} BY '{load.password}';",
            f"GRANT ALL ON *.* TO {user};",
        ]
    database = f"CREATE DATABASE IF NOT EXISTS {DATABASE};"
    return "\n".join(["SET SESSION sql_log_bin = 0;", *accounts, database, ""])
