"""Containers of MySQL, MariaDB and PostgreSQL: Docker or Podman as a command line, images, servers.

Both programs have the same commands for all operations here, so the first to answer is used.
Passwords never stand in a command: they go into a container by files. A container belongs to its
engine and would outlive the lab. So a small process waits on a pipe from the lab; when the pipe
closes, however the lab ended, it removes the container by its id.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError, ServerError
from dbdyno.servers import process
from dbdyno.servers.base import DATABASE, STOP_S, Credentials, Endpoint
from dbdyno.servers.client import Client
from dbdyno.servers.foreign.behind import UNSEEN
from dbdyno.servers.foreign.endpoint import EndpointServer
from dbdyno.servers.mysql.client import MysqlClient
from dbdyno.servers.programs import identify
from dbdyno.servers.programs.catalog import CatalogEntry
from dbdyno.servers.programs.given import FolderSource
from dbdyno.servers.reference import ImageReference

PROGRAMS: Final = ("docker", "podman")
ANSWER_S_MAX: Final = 120.0
PULL_S_MAX: Final = 3600.0
STDERR_SHOWN: Final = 600
DATA_OF_MYSQL: Final = ("/var/lib/mysql",)
DATA_OF_POSTGRES: Final = ("/var/lib/postgresql/data", "/var/lib/postgresql")
"""The volume of images before 18, and from 18 on."""
ASK: Final = 'exec "$(command -v mariadbd || command -v mysqld || command -v postgres)" --version'
START_S_MAX: Final = 300.0
LINES_SHOWN: Final = "12"
PROC: Final = Path("/proc")
VOLUME: Final = re.compile(r"(/(?!\.\.?(/|$))[A-Za-z0-9._-]+)+/?")
"""A folder within an image: no colon, which docker takes for the folder's end, and no ``..``."""
REMOVE_WHEN_THE_LAB_IS_GONE: Final = 'read -r _; exec "$0" rm --force --volumes "$1"'


@dataclass(frozen=True)
class ContainerProgram:
    """The program that runs containers: docker or podman."""

    path: str

    def call(self, *arguments: str, seconds_max: float = ANSWER_S_MAX) -> str:
        """Run a command and return its output; ServerError with its complaint if it fails."""
        try:
            done = process.run([self.path, *arguments], seconds_max)
        except subprocess.TimeoutExpired as error:
            raise ServerError(
                f"{self.path} {arguments[0]} did not end within {seconds_max:.0f} s",
                hint="look whether its service runs",
            ) from error
        if done.returncode != 0:
            raise ServerError(
                f"{self.path} {arguments[0]} failed (exit {done.returncode})",
                found=done.stderr.strip()[-STDERR_SHOWN:] or None,
            )
        return done.stdout.strip()

    def says(self, *arguments: str) -> str | None:
        """Output of a command, None if it fails."""
        try:
            return self.call(*arguments)
        except ServerError:
            return None


def find() -> ContainerProgram:
    """Docker or Podman, the first to answer.

    Raises:
        ProvisionError: neither does; quotes their complaints.
    """
    complaints = []
    for name in PROGRAMS:
        path = shutil.which(name)
        if path is None:
            complaints.append(f"{name} is not on PATH")
            continue
        program = ContainerProgram(path)
        try:
            program.call("version")
        except ServerError as error:
            complaints.append(f"{name}: {error.found or error.message}")
        else:
            return program
    raise ProvisionError(
        "no containers can be run here",
        wanted="docker or podman with its service running",
        found="; ".join(complaints),
        hint="start its service, or name a folder with the server's programs: path:/folder",
    )


@dataclass(frozen=True)
class ContainerImage:
    """A local image.

    Attributes:
        name: ``IMAGE@sha256:HEX``.
        entry: its server, as a catalog row.
        data: folder of the server's data within it.
    """

    name: str
    entry: CatalogEntry
    data: str


def look(
    program: ContainerProgram, requested: ImageReference, report: Callable[[str], None]
) -> ContainerImage:
    """Pull an image if needed and ask its program for its version: a name proves nothing.

    Raises:
        UsageError: its PostgreSQL is too old.
        ProvisionError: it cannot be pulled, or its server cannot be identified.
    """
    name, reference = requested.name, requested.text
    volumes = _volumes(program, name)
    if volumes is None:
        report(f"{reference}: pulling the image")
        try:
            program.call("pull", name, seconds_max=PULL_S_MAX)
        except ServerError as error:
            raise ProvisionError(
                f"{reference} cannot be pulled", found=error.found, hint="check name and digest"
            ) from error
        volumes = _volumes(program, name) or []
    entry = _entry(program, name, reference)
    return ContainerImage(name, entry, _data(reference, entry.product, volumes))


def _volumes(program: ContainerProgram, name: str) -> list[str] | None:
    """Folders that an image declares as data volumes; None if the image is not here.

    Raises:
        ProvisionError: it declares anything else.
    """
    said = program.says("image", "inspect", "--format", "{{json .Config.Volumes}}", name)
    if said is None:
        return None
    with suppress(ValueError, RecursionError):
        declared = json.loads(said) or {}
        if isinstance(declared, dict) and all(map(VOLUME.fullmatch, declared)):
            return list(declared)
    raise ProvisionError(
        f"{name} declares data volumes that are no folders",
        wanted="absolute paths of plain characters",
        found=said,
    )


def _entry(program: ContainerProgram, name: str, reference: str) -> CatalogEntry:
    container = f"dbdyno-asks-{secrets.token_hex(8)}"
    alone = ("--rm", "--name", container, "--network", "none", "--entrypoint", "sh")
    try:
        words = program.call("run", *alone, name, "-c", ASK)
        server = identify.understood(words)
    except ServerError as error:
        # It goes on without the client that was ended.
        program.says("rm", "--force", "--volumes", container)
        words, server = error.found or error.message, None
    if server is None:
        raise ProvisionError(
            f"{reference} does not say that it holds a server dbdyno can run",
            wanted="an image with mysqld, mariadbd or postgres that answers --version",
            found=words or "nothing",
        )
    identify.refuse_too_old(reference, server)
    source = FolderSource(Path(name), name.partition("@sha256:")[2])  # its files stay within it
    return CatalogEntry(
        server.product, server.version, source, (), server.authentication, "", named=reference
    )


def _data(reference: str, product: str, volumes: list[str]) -> str:
    usual = DATA_OF_POSTGRES if product == "postgres" else DATA_OF_MYSQL
    known = [place for place in usual if place in volumes]
    if known or not volumes:
        return (known or usual)[0]
    if len(volumes) == 1:
        return volumes[0]
    raise ProvisionError(
        f"{reference}: it is not clear where its server keeps its data",
        wanted=f"a volume {' or '.join(usual)}, or one volume in all",
        found=", ".join(volumes),
    )


class ContainerServer(EndpointServer):
    """A server of MySQL's protocol, started and stopped by its container's id."""

    def __init__(
        self,
        label: str,
        program: ContainerProgram,
        container: str,
        endpoint: Endpoint,
        load: Credentials,
    ) -> None:
        super().__init__(label, endpoint, load, DATABASE)
        self.container = container
        self.stopped_cleanly = False
        self._program = program
        said = self._inspect("{{.State.Pid}}") or ""
        self.pid = int(said) if said.isdecimal() and self._is_here(said) else UNSEEN

    def alive(self) -> bool:
        """True while the container runs; looks at its process if visible, else asks the engine."""
        if self.pid and self._is_here(str(self.pid)):
            return True
        return self._inspect("{{.State.Running}}") == "true"

    def last_words(self) -> str:
        return log_end_of(self._program, self.container)

    def stop(self, patience_s: float = STOP_S) -> None:
        """Ask it to end, wait, and remove the container; its data stay in their volume.

        Raises:
            ServerError: it had ended before, or did not end cleanly.
        """
        super().stop()
        if self.stopped_cleanly:
            return
        was_alive, words = self.alive(), self.last_words()
        try:
            seconds = str(int(patience_s))
            self._program.call("stop", "-t", seconds, self.container, seconds_max=patience_s + 60)
            code = self._inspect("{{.State.ExitCode}}")
        finally:
            self._program.says("rm", "--force", "--volumes", self.container)
        if not was_alive or code != "0":
            failure = (
                f"stop cleanly (exit code {code})" if was_alive else "live until it was stopped"
            )
            raise ServerError(f"{self.label}: the container did not {failure}", found=words or None)
        self.stopped_cleanly = True

    def kill(self) -> None:
        """Remove the running container, giving its data up."""
        super().stop()
        self._program.says("rm", "--force", "--volumes", self.container)

    def wait_ready(self, who: Credentials) -> None:
        """Wait until a login works; ServerError with its last words if the container ends."""
        ends = time.monotonic() + START_S_MAX
        with closing(self._session(who)) as client:
            while not client.try_login():
                if not self.alive():
                    words = self.last_words()
                    raise ServerError(f"{self.label}: its container ended", found=words or None)
                if time.monotonic() > ends:
                    raise ServerError(
                        f"{self.label}: no answer within {START_S_MAX:.0f} s of its start",
                        found=self.last_words() or None,
                    )
                time.sleep(0.1)

    def _session(self, who: Credentials) -> Client:
        return MysqlClient(self.label, self.endpoint, who)

    def _is_here(self, pid: str) -> bool:
        """True for a process of the container: its control group has the container's id.

        If containers run in a virtual machine, the number is another process's here, or unused.
        """
        try:
            return self.container in (PROC / pid / "cgroup").read_text()
        except OSError:
            return False

    def _inspect(self, template: str) -> str | None:
        return self._program.says("inspect", "--format", template, self.container)


class ContainerWatcher:
    """Remover of a container, once the lab is gone or on request."""

    def __init__(self, program: ContainerProgram, container: str) -> None:
        self._container = container
        self._waiting = subprocess.Popen(
            ["sh", "-c", REMOVE_WHEN_THE_LAB_IS_GONE, program.path, container],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # it may be gone already
            start_new_session=True,  # what ends the lab's group shall not end it
        )

    def remove(self) -> None:
        """Remove the container now, if it is still there; ServerError if that takes too long."""
        assert self._waiting.stdin
        self._waiting.stdin.close()
        try:
            self._waiting.wait(ANSWER_S_MAX)
        except subprocess.TimeoutExpired as error:
            raise ServerError(
                f"a container was not removed within {ANSWER_S_MAX:.0f} s",
                found=f"{self._container} is still being removed",
                hint="look whether the service of docker or podman runs",
            ) from error


def log_end_of(program: ContainerProgram, container: str) -> str:
    """The end of a container's output on both streams; empty if it is gone."""
    try:
        logs = [program.path, "logs", "--tail", LINES_SHOWN, container]
        done = process.run(logs, ANSWER_S_MAX, merged=True)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
