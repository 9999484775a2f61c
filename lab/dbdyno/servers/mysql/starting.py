"""Starts a MySQL: free port, fresh passwords, configuration, process, proof.

Passwords are made anew at each start and reach the server in a file that only it can read and that
is removed once it is up: they are in no argument list and no log, and a restored data directory
never depends on a password somebody had to keep.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from dbdyno.servers import process
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.local import ports
from dbdyno.servers.local.server import Site
from dbdyno.servers.local.words import printed_log
from dbdyno.servers.local.work_files import socket_place, write_private
from dbdyno.servers.mysql import settings
from dbdyno.servers.mysql.accounts import accounts_sql
from dbdyno.servers.mysql.server import MysqlServer
from dbdyno.servers.mysql.versions import family_of
from dbdyno.servers.programs.server_files import files_of

LOAD_USER: Final = "dbdyno"


def start(site: Site) -> MysqlServer:
    """Start the server and return it when it is ready and proven.

    Raises:
        ServerError: it did not start, a port it was told to use is taken, or it did not take its
            settings; no process is left.
    """
    return ports.on_a_port(site, lambda port: _start_on(site, port))


def _start_on(site: Site, port: int) -> MysqlServer:
    for path in (site.work / "pid", site.work / "err.log", printed_log(site.work)):
        path.unlink(missing_ok=True)
    socket = socket_place(site.label, site.work, "my.sock", site.user, commas=True)
    endpoint = Endpoint(site.place.address, port, socket)
    root = Credentials("root", secrets.token_hex(24))
    load = Credentials(LOAD_USER, secrets.token_hex(24))
    passwords = site.work / "passwords.sql"
    try:
        write_private(passwords, accounts_sql(site.entry, root, load), site.user)
        configuration = _configuration(site, endpoint, passwords)
        config = write_private(site.work / "my.cnf", configuration, site.user)
        found, log = files_of(site.home / site.entry.program), printed_log(site.work)
        command = [str(found.program), f"--defaults-file={config}"]
        running = process.spawn(
            command, site.work, site.user, log, libraries=found.libraries, place=site.place
        )
        server = MysqlServer(site, running, endpoint, root, load)
        try:
            server.wait_ready()
            server.prove()
        except BaseException:
            server.kill()
            raise
        return server
    finally:
        passwords.unlink(missing_ok=True)


def _configuration(site: Site, endpoint: Endpoint, passwords: Path) -> str:
    owned = settings.places_of(site.entry, site.home, site.work, endpoint.socket or site.work)
    where = {**owned, "port": str(endpoint.port), "init_file": str(passwords)}
    where["bind_address"] = endpoint.host
    family = family_of(site.entry.product, site.entry.version_numbers)
    return settings.render({**site.asked, **where}, family)
