"""Starts a MySQL: free port, fresh passwords, configuration, process, proof.

Passwords are made anew at each start and reach the server in a file that only it can read and that
is removed once it is up: they are in no argument list and no log, and a restored data directory
never depends on a password somebody had to keep.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.servers import process, settings
from dbdyno.servers.accounts import accounts_sql
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.families import family_of
from dbdyno.servers.mysql import MysqlServer, PortTakenError, Site
from dbdyno.servers.process import LOOPBACK, ServerUser
from dbdyno.servers.server_files import files_of
from dbdyno.servers.words import printed_log

LOAD_USER: Final = "dbdyno"
PORT_ATTEMPTS: Final = 5
SOCKET_BYTES_MAX: Final = 107  # of a unix socket's path


def start(site: Site) -> MysqlServer:
    """Start the server and return it when it is ready and proven.

    Raises:
        ServerError: it did not start, a port it was told to use is taken, or it did not take its
            settings; no process is left.
    """
    fixed = site.asked.get("port")
    if fixed is not None:
        return _start_on(site, _fixed_port(site, fixed))
    for _ in range(PORT_ATTEMPTS - 1):
        try:
            return _start_on(site, process.free_port())
        except PortTakenError:
            continue
    return _start_on(site, process.free_port())


def _fixed_port(site: Site, text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise ServerError(f"{site.label}: port {text!r} is not a port number")
    port = int(text)
    if not process.port_is_free(port):
        raise ServerError(
            f"{site.label}: its settings want port {port}, which is taken",
            wanted=f"port {port} of {LOOPBACK} for {site.label} ({site.entry.reference})",
            found=f"held by {process.holder(port)}",
            hint="leave port out: dbdyno finds a free one",
        )
    return port


def _start_on(site: Site, port: int) -> MysqlServer:
    for path in (site.work / "pid", site.work / "err.log", printed_log(site.work)):
        path.unlink(missing_ok=True)
    endpoint = Endpoint(site.place.address, port, _socket(site))
    root = Credentials("root", secrets.token_hex(24))
    load = Credentials(LOAD_USER, secrets.token_hex(24))
    passwords = site.work / "passwords.sql"
    try:
        _write(passwords, accounts_sql(site.entry, root, load), site.user)
        config = _write(site.work / "my.cnf", _configuration(site, endpoint, passwords), site.user)
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


def _socket(site: Site) -> Path:
    """The socket in the working folder, or in a short folder if its path would be too long."""
    beside = site.work / "my.sock"
    if len(os.fsencode(beside)) <= SOCKET_BYTES_MAX:
        return beside
    short = Path(tempfile.mkdtemp(prefix="dbdyno-"))
    if len(os.fsencode(short / "my.sock")) > SOCKET_BYTES_MAX:
        short.rmdir()
        raise ServerError(
            f"{site.label}: a socket's path may have {SOCKET_BYTES_MAX} bytes at most",
            found=str(short / "my.sock"),
            hint="set TMPDIR to a folder with a shorter name",
        )
    process.give_to(short, site.user, 0o700)
    return short / "my.sock"


def _write(path: Path, text: str, user: ServerUser | None) -> Path:
    """A new file that only the server's user can read, never written through a link."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w") as written:
        if user is not None:
            os.fchown(handle, user.uid, user.gid)
        written.write(text)
    return path
