"""PostgreSQL in a container, as far as its image and server differ from MySQL's.

The image makes new data for an administrator, whose password is in the environment file. A
PostgreSQL runs no SQL as it starts: on existing data the program first runs alone, without a port,
to give the administrator a new password, and then as the server. The administrator lets the load
in, as in the lab's own servers. The image runs a server of its own while it sets up, but on no
port: the server at the port is the final server.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import ClassVar, Final

from dbdyno.servers.base import PGSQL, Credentials, Endpoint
from dbdyno.servers.client import Client
from dbdyno.servers.foreign.container import ContainerProgram, ContainerServer
from dbdyno.servers.foreign.container_instance import SQL, ContainerInstance, Creation
from dbdyno.servers.foreign.postgres_endpoint import PostgresEndpointServer
from dbdyno.servers.local.server import ProductSettings
from dbdyno.servers.postgres import settings
from dbdyno.servers.postgres.client import PostgresClient
from dbdyno.servers.postgres.server import ADMIN, HOME_DATABASE, admit_load

FOLDER: Final = "pgdata"
"""Data folder within the volume. The default differs: 18 moved it, and the volume too."""
OPTIONS: Final = ("--stop-signal", "SIGINT", "--shm-size", "1g")
"""Stop by ending sessions and writing everything out; the default 64 MB are too few for parallel
queries.
"""
AS_THE_SERVER: Final = ("--user", "postgres", "--entrypoint", "sh")
START: Final = (
    f"postgres --single -c log_min_messages=fatal {HOME_DATABASE} <{SQL} >/dev/null"
    ' && exec postgres "$@"'
)
"""Command for existing data. The single-user run logs no statement, whatever the image has set."""


class PostgresContainerServer(ContainerServer, PostgresEndpointServer):
    """Questions go by its administrator, since the load's user may not see all settings."""

    def __init__(
        self,
        label: str,
        program: ContainerProgram,
        container: str,
        endpoint: Endpoint,
        load: Credentials,
        admin: Credentials,
    ) -> None:
        self._admin = admin
        super().__init__(label, program, container, endpoint, load)

    def _client(self, label: str, place: Endpoint) -> Client:
        return PostgresClient(label, place, self._admin, self.database)

    def _session(self, who: Credentials) -> Client:
        return PostgresClient(self.label, self.endpoint, who, HOME_DATABASE)


class PostgresContainerInstance(ContainerInstance):
    """PostgreSQL in a container; made by `open.instance`."""

    driver = PGSQL
    rules: ClassVar[ProductSettings] = settings
    port = "5432"
    admin = ADMIN.user
    size = f"du -sk /from/{FOLDER}/base/[0-9][0-9]*"
    """Databases besides its own three, whose folders have single-digit numbers."""

    def _creation(
        self, requested: Mapping[str, str], admin: Credentials, load: Credentials
    ) -> Creation:
        place = f"PGDATA={self._image.data}/{FOLDER}\n"
        given = [
            f"{n}={text}" for n, text in requested.items() if n not in settings.AT_INITIALISATION
        ]
        arguments = tuple(word for setting in given for word in ("-c", setting))
        if self._has_data:
            return Creation(
                environment=place,
                options=(*OPTIONS, *AS_THE_SERVER),
                arguments=("-c", START, "sh", *arguments),
                sql=f"ALTER ROLE \"{admin.user}\" PASSWORD '{admin.password}'\n",
            )
        initdb = " ".join([*settings.INITDB, *settings.initdb_options(self._entry, requested)])
        variables = {
            "POSTGRES_USER": admin.user,
            "POSTGRES_PASSWORD": admin.password,
            "POSTGRES_DB": HOME_DATABASE,  # else another, with the user's name
            "POSTGRES_INITDB_ARGS": initdb,
        }
        lines = "".join(f"{name}={text}\n" for name, text in variables.items())
        return Creation(place + lines, arguments, OPTIONS)

    def _server_of(
        self, container: str, endpoint: Endpoint, admin: Credentials, load: Credentials
    ) -> ContainerServer:
        label, program = self.spec.label, self._program
        return PostgresContainerServer(label, program, container, endpoint, load, admin)

    def _admit(self, server: ContainerServer, admin: Credentials, load: Credentials) -> None:
        server.wait_ready(admin)
        label, endpoint = self.spec.label, server.endpoint
        with closing(PostgresClient(label, endpoint, admin, HOME_DATABASE)) as client:
            admit_load(client, load)

    def _check(self, server: ContainerServer, requested: Mapping[str, str]) -> None:
        settings.check(self.spec.label, requested, server.ask(settings.QUESTION))
