"""Starts a PostgreSQL: free port, who may log in how, configuration, process, password, proof.

No password is written to a file, an argument list or a log: the server lets the lab's own user in
through its socket as the administrator, who then gives the load user a password of this start. It
travels as the SCRAM secret that the server would make of it, never as itself.
"""

from __future__ import annotations

import os
import pwd
import secrets
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.servers import process
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.local import ports
from dbdyno.servers.local.server import Site
from dbdyno.servers.local.words import printed_log
from dbdyno.servers.local.work_files import socket_place, write_private
from dbdyno.servers.postgres import postgres_settings
from dbdyno.servers.postgres.server import ADMIN, PostgresServer
from dbdyno.servers.process import LOOPBACK

LOAD_USER: Final = "dbdyno"
MAP: Final = "lab"


def start(site: Site) -> PostgresServer:
    """Start the server and return it when it is ready and proven.

    Raises:
        ServerError: it did not start, a port it was told to use is taken, or it did not take its
            settings; no process is left.
    """
    return ports.on_a_port(site, lambda port: _start_on(site, port))


def _start_on(site: Site, port: int) -> PostgresServer:
    printed_log(site.work).unlink(missing_ok=True)
    name = f".s.PGSQL.{port}"
    socket = socket_place(site.label, site.work, name, site.user, commas=False)
    endpoint = Endpoint(LOOPBACK, port, socket)
    load = Credentials(LOAD_USER, secrets.token_hex(24))
    data = site.work / "data"
    where = postgres_settings.places_of(site.work, socket.parent, port)
    write_private(site.work / "pg_hba.conf", login_rules(load.user), site.user)
    write_private(site.work / "pg_ident.conf", f"{MAP} {_own_name(site)} {ADMIN.user}\n", site.user)
    configuration = postgres_settings.render({**site.asked, **where})
    write_private(data / "postgresql.auto.conf", configuration, site.user)
    command = [str(site.home / site.entry.program), "-D", str(data)]
    running = process.spawn(command, site.work, site.user, printed_log(site.work))
    server = PostgresServer(site, running, endpoint, load)
    try:
        server.wait_ready()
        server.open_to_the_load()
        server.prove()
    except BaseException:
        server.kill()
        raise
    return server


def login_rules(load_user: str) -> str:
    """The text of a ``pg_hba.conf``: the administrator by the socket, the load with a password."""
    rules = (
        ("local", "all", ADMIN.user, "peer", f"map={MAP}"),
        ("local", "all", load_user, "scram-sha-256"),
        ("host", "all", load_user, f"{LOOPBACK}/32", "scram-sha-256"),
    )
    return "".join(" ".join(rule) + "\n" for rule in rules)


def _own_name(site: Site) -> str:
    """The lab's user as the server will see him at the other end of its socket."""
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError as error:
        raise ServerError(
            f"{site.label}: PostgreSQL runs only for users that have a name",
            found=f"user id {os.geteuid()}, which has none",
            hint="run the lab as a user of the system's user list",
        ) from error
    quoted = name.replace('"', '""')
    return f'"{quoted}"'
