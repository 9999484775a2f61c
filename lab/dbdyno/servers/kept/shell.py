"""The command line of a server's own client, logged in: its own program, else one from PATH.

The password is handed over in the environment, which only the same user can read, and never stands
among the arguments.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.servers.kept.kept import KeptState

FOLDERS: Final = ("bin", "usr/bin", "package/server/bin")
"""Where a product's clients lie below the folder of its programs."""
CLIENTS: Final = {
    "mysql": ("mysql", "mariadb"),
    "mariadb": ("mariadb", "mysql"),
    "postgres": ("psql",),
}


@dataclass(frozen=True)
class Shell:
    """What to run, and the environment to run it in; the latter holds the password."""

    command: tuple[str, ...]
    environment: dict[str, str]

    def __repr__(self) -> str:
        return f"Shell({self.command!r})"


def shell(state: KeptState, password: str, arguments: Sequence[str]) -> Shell:
    """The client's command line with `arguments` behind the login.

    Raises:
        ServerError: there is no client for this product.
    """
    product = product_of(state)
    program = _client(product, state.programs)
    if product == "postgres":
        login = {"PGHOST": state.host, "PGPORT": str(state.port), "PGUSER": state.user}
        own = {**login, "PGDATABASE": state.database, "PGPASSWORD": password}
        return Shell((program, *arguments), {**os.environ, **own})
    command = (
        program,
        "--no-defaults",  # a password in a my.cnf would take the place of ours
        "--protocol=tcp",
        f"--host={state.host}",
        f"--port={state.port}",
        f"--user={state.user}",
        f"--database={state.database}",
        *_transport(program),
        *arguments,
    )
    return Shell(command, {**os.environ, "MYSQL_PWD": password})


def product_of(state: KeptState) -> str:
    """Whose client fits: a server says itself whether it is MariaDB or PostgreSQL."""
    said = f"{state.reference.partition(':')[0]} {state.version}".lower()
    return next((name for name in ("mariadb", "postgres") if name in said), "mysql")


def _client(product: str, programs: str) -> str:
    names = CLIENTS[product]
    own = [Path(programs) / folder / name for name in names for folder in FOLDERS]
    for path in own if programs else ():
        if os.access(path, os.X_OK):
            return str(path)
    for name in names:
        if found := shutil.which(name):
            return found
    raise ServerError(
        f"there is no client for {product} here",
        wanted=" or ".join(names),
        found="neither among the server's programs nor on PATH",
        hint="install one, or log in with a client of your own: dbdyno servers status says where",
    )


def _transport(program: str) -> tuple[str, ...]:
    """What a client must be told to log in without TLS, which servers here do not have."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return ("--skip-ssl",) if "MariaDB" in done.stdout else ()
