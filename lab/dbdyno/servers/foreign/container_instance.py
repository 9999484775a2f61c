"""A system in a container: its data in a volume, the snapshot in another.

Volumes and not folders, because a container's files belong to users of its own. The image itself
sets up a new volume, with a password in an environment file that is removed at once; a volume with
data gets its passwords anew from SQL that the server runs as it starts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from dbdyno.errors import ServerError, UsageError
from dbdyno.files import temporary_folder
from dbdyno.plan.settings import SettingValue
from dbdyno.servers.base import DATABASE, LOAD_USER, MYSQL, Credentials, Endpoint, ServerSpec
from dbdyno.servers.foreign.container import (
    ContainerImage,
    ContainerProgram,
    ContainerServer,
    ContainerWatcher,
    log_end_of,
)
from dbdyno.servers.local.server import (
    OwnInstance,
    ProductSettings,
    check_version,
    requested_settings,
)
from dbdyno.servers.mysql import readback, settings
from dbdyno.servers.mysql.client import MysqlClient
from dbdyno.servers.mysql.server import accounts_sql
from dbdyno.servers.mysql.versions import family_of
from dbdyno.servers.process import LOOPBACK

MARKER: Final = "snapshot.json"
SQL: Final = "/dbdyno.sql"
COPY: Final = "cp -a /from/. /to/ && sync"
COPY_S_MAX: Final = 3600.0
ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
SIZES: Final = re.compile(r"([0-9]{1,15}[ \t][^\n]*(\n|$))*")


@dataclass(frozen=True)
class Creation:
    """Inputs of a container's creation besides its volume and port.

    Attributes:
        environment: a line for each variable; they may hold a password.
        arguments: of the program in the container.
        options: of the command that creates it.
        sql: content of a file within it that the server runs as it starts; empty for no file.
    """

    environment: str
    arguments: tuple[str, ...]
    options: tuple[str, ...] = ()
    sql: str = ""


class ContainerInstance(OwnInstance[ContainerServer]):
    """MySQL or MariaDB in a container, base of other products; made by `open.instance`."""

    driver = MYSQL
    rules: ClassVar[ProductSettings] = settings
    port = "3306"
    admin = "root"
    size = f"du -sk /from/{DATABASE}"
    """Prints KiB of the load's tables by folder; the images' `du` lacks finer options."""

    def __init__(
        self,
        spec: ServerSpec,
        program: ContainerProgram,
        image: ContainerImage,
        folder: Path,
        report: Callable[[str], None],
    ) -> None:
        super().__init__(spec, folder.absolute(), report)
        self._program, self._image, self._entry = program, image, image.entry
        self._requested = self._with({})
        self.folder.mkdir(parents=True, exist_ok=True)
        named = hashlib.sha256(str(self.folder).encode()).hexdigest()[:12]
        self._label = f"dbdyno.folder={named}"
        self._data, self._copy = f"dbdyno-{named}-data", f"dbdyno-{named}-copy"
        self._watcher: ContainerWatcher | None = None
        self._has_data = False
        self._clear()  # remains of a lab that died

    def start(self, settings: Mapping[str, SettingValue] | None = None) -> ContainerServer:
        self._must_be_stopped("started")
        self._remove_container()  # the former start's
        requested = self._with(settings or {})
        if not self._has_data and self.has_snapshot():
            self.restore()
        self._untouched = False
        admin = Credentials.fresh(self.admin)
        load = Credentials.fresh(LOAD_USER)
        try:
            container = self._create(self._creation(requested, admin, load))
            self._watcher = ContainerWatcher(self._program, container)
            server = self._server_of(container, self._begin(container), admin, load)
            self._server = server
            self._admit(server, admin, load)
            self._has_data = True
            server.wait_ready(load)
            check_version(self.spec.label, self._entry, server.version())
            self._check(server, requested)
        except BaseException:
            self._remove_container()
            raise
        return server

    def has_snapshot(self) -> bool:
        try:
            kept = bool(json.loads((self.folder / MARKER).read_text()) == self._identity())
        except (OSError, ValueError):
            return False
        return kept and self._program.says("volume", "inspect", self._copy) is not None

    def data_bytes(self) -> int:
        self._must_have_snapshot("measure")
        settings.check_tables_apart(self.spec.label, self._requested)
        volume = ("--volume", f"{self._copy}:/from:ro")
        sizes = self._program.call(*self._alone(self.size, *volume), seconds_max=COPY_S_MAX)
        if SIZES.fullmatch(sizes) is None:
            raise ServerError(
                f"{self.spec.label}: the image's du does not say the size of the data",
                wanted="a number of KiB and a folder on each line",
                found=sizes,
            )
        return 1024 * sum(int(line.split()[0]) for line in sizes.splitlines())

    def _copy_aside(self) -> None:
        (self.folder / MARKER).unlink(missing_ok=True)
        self._copy_volume(self._data, self._copy)
        (self.folder / MARKER).write_text(json.dumps(self._identity()))

    def _bring_back(self) -> None:
        self._has_data = False  # half a copy does not count
        self._copy_volume(self._copy, self._data)
        self._has_data = True

    def _with(self, more: Mapping[str, SettingValue]) -> dict[str, str]:
        requested = requested_settings(self.spec, self.rules, self._entry, more)
        if "port" in requested or settings.is_local(requested):
            raise UsageError(
                f"{self.spec.label}: a container is reached over the network alone, at a port that "
                f"{Path(self._program.path).name} finds",
                hint="leave port and skip_networking out",
            )
        return requested

    def _create(self, wanted: Creation) -> str:
        """Make the container, not yet started; its files with passwords here are gone on return."""
        with temporary_folder() as closed:
            environment = closed / "env"
            environment.touch(0o600)
            environment.write_text(wanted.environment)
            if not self._has_data:
                self._make_volume(self._data)
            said = self._program.call(
                "create",
                *("--label", self._label, "--publish", f"{LOOPBACK}::{self.port}"),
                *("--volume", f"{self._data}:{self._image.data}", "--env-file", str(environment)),
                *(*wanted.options, self._image.name, *wanted.arguments),
            )
            container = said.rpartition("\n")[2]
            if ID.fullmatch(container) is None:
                raise ServerError(
                    f"{self.spec.label}: {self._program.path} create gave no container's id",
                    found=said or "nothing",
                )
            if wanted.sql:
                sql = closed / "sql"
                sql.write_text(wanted.sql)
                sql.chmod(0o644)  # within the container the server's user reads it
                self._program.call("cp", str(sql), f"{container}:{SQL}")
        return container

    def _begin(self, container: str) -> Endpoint:
        self._program.call("start", container)
        said = self._program.says("port", container, f"{self.port}/tcp") or ""
        port = re.match(r"\S+:([0-9]{1,5})\b", said)
        if port is None or not 0 < int(port[1]) < 65536:
            raise ServerError(
                f"{self.spec.label}: its container has no port {self.port}: it ended as it began",
                found=log_end_of(self._program, container) or None,
                hint="take out the setting that its log complains of",
            )
        return Endpoint(LOOPBACK, int(port[1]), None)

    # Parts that differ between products.

    def _creation(
        self, requested: Mapping[str, str], admin: Credentials, load: Credentials
    ) -> Creation:
        """Inputs of a container for a new volume, or for a volume with data."""
        family = family_of(self._entry.product, self._entry.version_numbers)
        arguments = []
        for name, texts in requested.items():
            for text in settings.lines_of(texts):
                line = settings.render({name: text}, family).splitlines()[1]
                arguments.append(f"--{name}={text}" if '"' in line else f"--{line}")
        if self._has_data:
            sql = accounts_sql(self._entry, admin, load)
            return Creation("", (f"--init-file={SQL}", *arguments), sql=sql)
        first = f"MYSQL_ROOT_PASSWORD={admin.password}\nMYSQL_ROOT_HOST=%\n"
        return Creation(first, tuple(arguments))

    def _server_of(
        self, container: str, endpoint: Endpoint, admin: Credentials, load: Credentials
    ) -> ContainerServer:
        return ContainerServer(self.spec.label, self._program, container, endpoint, load)

    def _admit(self, server: ContainerServer, admin: Credentials, load: Credentials) -> None:
        """Let the load log in, unless the server's start did."""
        if self._has_data:
            return
        server.wait_ready(admin)
        with closing(MysqlClient(self.spec.label, server.endpoint, admin)) as client:
            for statement in accounts_sql(self._entry, admin, load).splitlines():
                try:
                    client.ask(statement.rstrip(";"))
                except ServerError:  # its quotation may hold a password
                    begins = " ".join(statement.split()[:3])
                    raise ServerError(
                        f"{self.spec.label}: the load's account could not be made",
                        found=f"the server refused {begins} …",
                        hint="use an image whose entry point makes root by MYSQL_ROOT_PASSWORD",
                    ) from None

    def _check(self, server: ContainerServer, requested: Mapping[str, str]) -> None:
        readback.prove(server, requested)

    def _copy_volume(self, source: str, target: str) -> None:
        self._make_volume(target)
        volumes = ("--volume", f"{source}:/from:ro", "--volume", f"{target}:/to")
        self._program.call(*self._alone(COPY, *volumes), seconds_max=COPY_S_MAX)

    def _make_volume(self, name: str) -> None:
        """Make an empty volume, in place of one with this name if there is one."""
        self._program.says("volume", "rm", "--force", name)
        self._program.call("volume", "create", "--label", self._label, name)

    def _alone(self, script: str, *volumes: str) -> tuple[str, ...]:
        """Command for a temporary container of the image that runs a line of shell on volumes."""
        options = ("--rm", "--network", "none", "--user", "0", "--entrypoint", "sh")
        return ("run", *options, "--label", self._label, *volumes, self._image.name, "-c", script)

    def _identity(self) -> dict[str, object]:
        made_for = self.rules.data_format(self._entry, self._requested)
        return {"image": self._image.name, "format": made_for}

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
