"""A system that runs in a container: its data in a volume, a copy of it in another.

Volumes and not folders, because what a container writes belongs to users of its own. A new volume
is set up by the image itself, with a password in a file of environment that is removed at once; a
volume that has data gets its passwords anew from SQL that the server runs as it starts.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.settings import SettingValue
from dbdyno.servers.base import DATABASE, LOAD_USER, MYSQL, Credentials, Endpoint, ServerSpec
from dbdyno.servers.foreign.container import (
    ContainerServer,
    ContainerWatcher,
    find,
    log_end_of,
    look,
)
from dbdyno.servers.local.server import OwnInstance
from dbdyno.servers.mysql import readback, settings
from dbdyno.servers.mysql.client import Client
from dbdyno.servers.mysql.server import accounts_sql
from dbdyno.servers.mysql.versions import family_of
from dbdyno.servers.process import LOOPBACK
from dbdyno.servers.reference import ImageReference

MARKER: Final = "snapshot.json"
PORT: Final = "3306"
SQL: Final = "/dbdyno.sql"
COPY: Final = "cp -a /from/. /to/ && sync"
SIZE: Final = f"du -sk /from/{DATABASE}"
"""The folder of the load's tables, in KiB: images have a `du` that knows no more."""
COPY_S_MAX: Final = 3600.0


class ContainerInstance(OwnInstance[ContainerServer]):
    """Made by `open.instance`."""

    driver = MYSQL

    def __init__(
        self, spec: ServerSpec, asked: ImageReference, folder: Path, report: Callable[[str], None]
    ) -> None:
        if spec.topology.replicas:
            raise UsageError(f"{spec.label}: replicas of containers cannot be made yet")
        super().__init__(spec, folder.absolute(), report)
        self._program = find()
        self._image = look(self._program, asked, report)
        self._entry = self._image.entry
        self._asked = settings.effective(self._entry, spec.settings)
        self.folder.mkdir(parents=True, exist_ok=True)
        named = hashlib.sha256(str(self.folder).encode()).hexdigest()[:12]
        self._label = f"dbdyno.folder={named}"
        self._data, self._copy = f"dbdyno-{named}-data", f"dbdyno-{named}-copy"
        self._watcher: ContainerWatcher | None = None
        self._has_data = False
        self._clear()  # a lab that died may have left its own

    def start(self, settings: Mapping[str, SettingValue] | None = None) -> ContainerServer:
        """Start a container and wait until its settings are proven.

        Raises:
            UsageError: a setting cannot be.
            ServerError: it did not start, or a setting is not in force.
        """
        self._must_be_stopped("started")
        self._remove_container()  # of the container before
        asked = self._with(settings or {})
        if not self._has_data and self.has_snapshot():
            self.restore()
        self._untouched = False
        root = Credentials.fresh("root")
        load = Credentials.fresh(LOAD_USER)
        sql = accounts_sql(self._entry, root, load)
        try:
            container = self._create(asked, root, sql)
            self._watcher = ContainerWatcher(self._program, container)
            server = self._begin(container, load)
            self._server = server
            if not self._has_data:
                server.wait_ready(root)
                self._make_accounts(server.endpoint, root, sql)
                self._has_data = True
            server.wait_ready(load)
            self._prove(server, asked)
        except BaseException:
            self._remove_container()
            raise
        return server

    def has_snapshot(self) -> bool:
        """Whether a complete snapshot of this image and format exists."""
        try:
            kept = bool(json.loads((self.folder / MARKER).read_text()) == self._identity())
        except (OSError, ValueError):
            return False
        return kept and self._program.says("volume", "inspect", self._copy) is not None

    def data_bytes(self) -> int:
        """Bytes on disk of the snapshot's tables and indexes; ServerError if there is none."""
        self._must_have_snapshot("measure")
        volume = ("--volume", f"{self._copy}:/from:ro")
        size = self._program.call(*self._alone(SIZE, *volume), seconds_max=COPY_S_MAX)
        return 1024 * int(size.split()[0])

    def discard(self) -> None:
        """Remove container and volumes, the snapshot too."""
        self.close()
        (self.folder / MARKER).unlink(missing_ok=True)
        self._program.says("volume", "rm", "--force", self._copy)

    def _copy_aside(self) -> None:
        (self.folder / MARKER).unlink(missing_ok=True)
        self._copy_volume(self._data, self._copy)
        (self.folder / MARKER).write_text(json.dumps(self._identity()))

    def _bring_back(self) -> None:
        self._has_data = False  # half a copy is none
        self._copy_volume(self._copy, self._data)
        self._has_data = True

    def _with(self, more: Mapping[str, SettingValue]) -> dict[str, str]:
        own = {**settings.normalise(self.spec.settings), **settings.normalise(more)}
        if settings.is_local(own):
            raise UsageError(
                f"{self.spec.label}: a container is reached over the network alone",
                hint="leave skip_networking out",
            )
        return settings.effective(self._entry, own)

    def _create(self, asked: Mapping[str, str], root: Credentials, sql: str) -> str:
        """Make the container, not started yet; what holds passwords here is gone on return."""
        with tempfile.TemporaryDirectory(prefix="dbdyno-") as closed:  # of mode 0700
            first = Path(closed) / "env"
            first.touch(0o600)
            own: tuple[str, ...] = (f"--init-file={SQL}",)
            if not self._has_data:
                own = ()
                first.write_text(f"MYSQL_ROOT_PASSWORD={root.password}\nMYSQL_ROOT_HOST=%\n")
            self._program.call("volume", "create", "--label", self._label, self._data)
            container = self._program.call(
                "create",
                *("--label", self._label, "--publish", f"{LOOPBACK}::{PORT}"),
                *("--volume", f"{self._data}:{self._image.data}", "--env-file", str(first)),
                *(self._image.name, *own, *self._arguments(asked)),
            ).splitlines()[-1]
            if self._has_data:
                said = Path(closed) / "sql"
                said.write_text(sql)
                said.chmod(0o644)  # within the container the server's user reads it
                self._program.call("cp", str(said), f"{container}:{SQL}")
        return container

    def _arguments(self, asked: Mapping[str, str]) -> list[str]:
        """The settings as the image's entry point hands them to the server."""
        family = family_of(self._entry.product, self._entry.version_numbers)
        arguments = []
        for name, texts in asked.items():
            for text in settings.lines_of(texts):
                line = settings.render({name: text}, family).splitlines()[1]
                arguments.append(f"--{name}={text}" if '"' in line else f"--{line}")
        return arguments

    def _begin(self, container: str, load: Credentials) -> ContainerServer:
        self._program.call("start", container)
        said = self._program.says("port", container, f"{PORT}/tcp") or ""
        port = re.match(r"\S+:(\d{1,5})\b", said)
        if port is None:
            raise ServerError(
                f"{self.spec.label}: its container has no port {PORT}: it ended as it began",
                found=log_end_of(self._program, container) or None,
                hint="take out the setting that its log complains of",
            )
        endpoint = Endpoint(LOOPBACK, int(port[1]), None)
        return ContainerServer(self.spec.label, self._program, container, endpoint, load)

    def _make_accounts(self, endpoint: Endpoint, root: Credentials, sql: str) -> None:
        with closing(Client(self.spec.label, endpoint, root)) as client:
            for statement in sql.splitlines():
                try:
                    client.ask(statement.rstrip(";"))
                except ServerError:  # what it quotes may hold a password
                    begins = " ".join(statement.split()[:3])
                    raise ServerError(
                        f"{self.spec.label}: the load's account could not be made",
                        found=f"the server refused {begins} …",
                        hint="use an image whose entry point makes root by MYSQL_ROOT_PASSWORD",
                    ) from None

    def _prove(self, server: ContainerServer, asked: Mapping[str, str]) -> None:
        version = server.version()
        if version.partition("-")[0] != self._entry.version:
            raise ServerError(
                f"{self.spec.label}: the server is another version than its image said",
                wanted=self._entry.version,
                found=version,
            )
        readback.check(self.spec.label, asked, server.settings())

    def _copy_volume(self, source: str, target: str) -> None:
        self._program.says("volume", "rm", "--force", target)
        self._program.call("volume", "create", "--label", self._label, target)
        volumes = ("--volume", f"{source}:/from:ro", "--volume", f"{target}:/to")
        self._program.call(*self._alone(COPY, *volumes), seconds_max=COPY_S_MAX)

    def _alone(self, script: str, *volumes: str) -> tuple[str, ...]:
        """A container of the image that runs a line of shell on volumes, and is gone after it."""
        options = ("--rm", "--network", "none", "--user", "0", "--entrypoint", "sh")
        return ("run", *options, "--label", self._label, *volumes, self._image.name, "-c", script)

    def _identity(self) -> dict[str, object]:
        return {"image": self._image.name, "format": settings.data_format(self._entry, self._asked)}

    def _remove_container(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.remove()

    def _clear(self) -> None:
        self._remove_container()
        left = self._program.says("ps", "--all", "--quiet", "--filter", f"label={self._label}")
        for container in (left or "").split():
            self._program.says("rm", "--force", "--volumes", container)
        with suppress(ServerError):
            self._program.call("volume", "rm", "--force", self._data)
        self._has_data = False
