"""Servers kept up between commands: start under a supervisor, find, log in, stop.

Each has a folder in the workspace. A supervisor of its own (`supervisor`) holds the folder's lock
while it lives, and the kernel drops the lock however it ends: a pid in a file could have passed to
another process since. The password lies in a file that only its owner can read, and goes with the
server.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dbdyno import interpreter
from dbdyno.errors import ServerError, UsageError
from dbdyno.files import (
    TOLD_EVERY_S,
    holder,
    is_locked,
    locked,
    open_own,
    refuse_shared,
    remove_tree,
)
from dbdyno.plan.settings import SettingValue
from dbdyno.servers import process
from dbdyno.servers.base import MYSQL, PGSQL

FOLDER: Final = "servers"
LOCK: Final = "lock"
STATE: Final = "state.json"
PASSWORD: Final = "password"  # noqa: S105 - a file's name
LOG: Final = "supervisor.log"
FILES: Final = "files"
SUPERVISOR: Final = interpreter.module("dbdyno.servers.kept.supervisor")
STOP_S_MAX: Final = 180.0
CLIENT_S_MAX: Final = 10.0
LOG_SHOWN: Final = 2000
PROGRAM_FOLDERS: Final = ("bin", "usr/bin", "package/server/bin")
"""Folders of a product's clients below the folder of its programs."""
CLIENTS: Final = {
    "mysql": ("mysql", "mariadb"),
    "mariadb": ("mariadb", "mysql"),
    "postgres": ("psql",),
}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


@dataclass(frozen=True)
class KeptState:
    """State of a server as written by its supervisor, without secrets.

    Attributes:
        pid: the server's process, as seen from this machine; 0 if it cannot be seen.
        since: ISO 8601 time with offset at which it was ready.
        programs: folder of its programs, perhaps with its own client; empty if there is none.
        ending: last words of a server that ended by itself; empty while it runs.
    """

    reference: str
    version: str
    pid: int
    host: str
    port: int
    user: str
    database: str
    since: str
    programs: str
    ending: str = ""
    driver: str = MYSQL

    @property
    def dsn(self) -> str:
        """Its address as a reference to an endpoint, without the password."""
        scheme = "postgresql" if self.driver == PGSQL else "mysql"
        return f"{scheme}://{self.user}@{self.host}:{self.port}/{self.database}"


@dataclass(frozen=True)
class KeptServer:
    """A workspace's server by name.

    Attributes:
        is_held: its supervisor lives.
        state: None while it is starting, or if it never came up.
    """

    name: str
    folder: Path
    is_held: bool
    state: KeptState | None

    @property
    def status(self) -> str:
        """``running``, ``starting`` or ``ended``."""
        if not self.is_held or (self.state and self.state.ending):
            return "ended"
        return "running" if self.state else "starting"


def all_of(workspace: Path) -> list[KeptServer]:
    """All servers of a workspace, by name, including crashed servers.

    Raises:
        StoreError: others can change the workspace, and so may have written its files.
    """
    folder = workspace / FOLDER
    folders = sorted(place for place in folder.glob("*") if (place / LOCK).exists())
    if folders:
        refuse_shared(workspace, "the workspace")
        refuse_shared(folder, "the folder")
    return [_at(place) for place in folders]


def find(workspace: Path, name: str | None) -> KeptServer:
    """The server of this name, or the workspace's only server.

    Raises:
        UsageError: no server has this name, or the name is missing and there are several.
    """
    servers = all_of(workspace)
    fitting = [server for server in servers if name in (None, server.name)]
    if len(fitting) == 1:
        return fitting[0]
    raise UsageError(
        f"no server is called {name}" if name else "which server?",
        wanted="the name of a server that was started here",
        found=", ".join(server.name for server in servers) or f"none in {workspace}",
        hint="see: dbdyno servers status",
    )


def start(
    workspace: Path,
    name: str,
    reference: str,
    settings: Mapping[str, SettingValue],
    report: Callable[[str], None],
) -> KeptServer:
    """Start a server that stays until `stop`, and return when it is ready.

    Raises:
        UsageError: the name is odd or taken, or the settings are impossible.
        ServerError, ProvisionError: it did not start.
        StoreError: the workspace cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a server", wanted="letters, digits, . _ + -")
    folder = (workspace / FOLDER / name).absolute()
    if workspace.is_dir():
        refuse_shared(workspace, "the workspace")
    with locked(folder.parent / f".{name}.lock", f"the server {name}", wait=report):
        return _start(folder, {"reference": reference, "settings": {**settings}}, report)


def _start(folder: Path, request: Mapping[str, Any], report: Callable[[str], None]) -> KeptServer:
    """Start a server in the folder of its name, locked against other commands."""
    name = folder.name
    if (folder / LOCK).exists():
        there = _at(folder)
        if there.status != "ended":
            raise UsageError(
                f"a server called {name} is {there.status} already",
                hint=f"give another --name, or: dbdyno servers stop {name}",
            )
        _wait_released(there, report)  # its supervisor removes its files at last
        remove_tree(folder)
    folder.mkdir(mode=0o755, exist_ok=True)
    try:
        _supervised(folder, {"label": name, **request}, report)
    except BaseException:
        remove_tree(folder)
        raise
    return _at(folder)


def stop(server: KeptServer, report: Callable[[str], None]) -> None:
    """End a server and remove its files; ServerError if it does not end in time."""
    _terminate(server.folder)
    _wait_released(server, report)
    remove_tree(server.folder)


def _wait_released(server: KeptServer, report: Callable[[str], None]) -> None:
    began = reported = time.monotonic()
    while is_locked(server.folder / LOCK):
        now = time.monotonic()
        if now - began > STOP_S_MAX:
            raise ServerError(
                f"{server.name}: the server did not end within {STOP_S_MAX:.0f} s",
                found=f"its supervisor, process {holder(server.folder / LOCK)}, still runs",
                hint=f"look at {server.folder / LOG}; kill -9 of the supervisor ends both",
            )
        if now - reported > TOLD_EVERY_S:
            reported = now
            report(f"{server.name}: still stopping after {now - began:.0f} s")
        time.sleep(0.05)


def password(server: KeptServer) -> str:
    """The load user's password; ServerError if the server is gone."""
    try:
        return _own_text(server.folder / PASSWORD)
    except OSError as error:
        raise ServerError(
            f"{server.name}: the server does not run", hint="see: dbdyno servers status"
        ) from error


def _at(folder: Path) -> KeptServer:
    held = is_locked(folder / LOCK)
    try:
        state = KeptState(**json.loads(_own_text(folder / STATE)))
    except (OSError, ValueError, TypeError):
        state = None
    return KeptServer(folder.name, folder, held, state)


def _own_text(path: Path) -> str:
    """A file written by our supervisor; raises as `open_own`."""
    with os.fdopen(open_own(path, os.O_RDONLY | os.O_NONBLOCK)) as file:
        return file.read()


def _terminate(folder: Path) -> None:
    """Send SIGTERM to the folder's holder, and to no other process."""
    pid = holder(folder / LOCK)
    if pid is None:
        return
    try:
        handle = os.pidfd_open(pid)
    except (OSError, ValueError):
        return
    try:
        if is_locked(folder / LOCK):  # so the handle is that of its holder
            signal.pidfd_send_signal(handle, signal.SIGTERM)
    except ProcessLookupError:
        return
    finally:
        os.close(handle)


def _supervised(folder: Path, request: Mapping[str, Any], report: Callable[[str], None]) -> None:
    """Run a supervisor until it reports its server ready."""
    with (
        os.fdopen(open_own(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as log,
        subprocess.Popen(
            [*SUPERVISOR, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # Ctrl-C is for the command that waits here
        ) as child,
    ):
        assert child.stdin
        assert child.stdout
        with suppress(BrokenPipeError):  # it ended; its log says why
            child.stdin.write(json.dumps(request))
        with suppress(BrokenPipeError):  # of what is still to be written
            child.stdin.close()
        try:
            for line in child.stdout:
                message = json.loads(line)
                if "ready" in message:
                    return
                _handle(message, report)
        except BaseException:
            # It may not hold the folder yet; its own child, which it becomes, is in its group.
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
            raise
    said = (folder / LOG).read_text(errors="replace")[-LOG_SHOWN:].strip()
    raise ServerError(
        f"{folder.name}: its supervisor ended before it was ready", found=said or None
    )


def _handle(message: Mapping[str, Any], report: Callable[[str], None]) -> None:
    if "report" in message:
        report(message["report"])
    if error := message.get("error"):
        kind = UsageError if error.pop("exit_status") == UsageError.exit_status else ServerError
        raise kind(error.pop("message"), **error)


@dataclass(frozen=True)
class Shell:
    """The command line of a server's client, and its environment, which holds the password.

    Only the same user can read a process's environment; everybody can read its arguments.
    """

    command: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)


def shell(state: KeptState, password: str, arguments: Sequence[str]) -> Shell:
    """The client's command line with `arguments` behind the login.

    Raises:
        ServerError: there is no client for this product, or it does not answer.
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
    """Product of the fitting client; MySQL and MariaDB are told apart by the server's version."""
    if state.driver == PGSQL:
        return "postgres"
    said = f"{state.reference.partition(':')[0]} {state.version}".lower()
    return "mariadb" if "mariadb" in said else "mysql"


def _client(product: str, programs: str) -> str:
    names = CLIENTS[product]
    own = [Path(programs) / folder / name for name in names for folder in PROGRAM_FOLDERS]
    for path in own if programs else ():
        if os.access(path, os.X_OK):
            return str(path)
    for name in names:
        if installed := shutil.which(name):
            return installed
    raise ServerError(
        f"there is no client for {product} here",
        wanted=" or ".join(names),
        found="neither among the server's programs nor on PATH",
        hint="install one, or log in with a client of your own: dbdyno servers status says where",
    )


def _transport(program: str) -> tuple[str, ...]:
    """The option for a login without TLS, which servers here do not have."""
    try:
        done = process.run([program, "--version"], CLIENT_S_MAX)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerError(
            f"{program} does not say its version",
            wanted=f"an answer to --version within {CLIENT_S_MAX:g} s",
            found=str(error),
            hint="log in with a client of your own: dbdyno servers status says where",
        ) from error
    return ("--skip-ssl",) if "MariaDB" in done.stdout else ()
