"""Servers that the lab starts itself, whatever the product: child processes and their data.

A server counts as started only when our own child process answers, and as stopped only when it
exited cleanly. `OwnInstance` decides when a server's data may be used, for containers too.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, Generic, Protocol, TypeVar

from dbdyno.errors import ServerError, UsageError
from dbdyno.files import remove_tree
from dbdyno.plan.settings import SettingValue
from dbdyno.servers import process
from dbdyno.servers.base import DATABASE, STOP_S, Credentials, Endpoint, ServerSpec
from dbdyno.servers.local import pristine
from dbdyno.servers.local.files import InstanceFiles, read_file
from dbdyno.servers.local.pristine import Making
from dbdyno.servers.process import LOOPBACK, ServerUser
from dbdyno.servers.programs import places
from dbdyno.servers.programs.catalog import CatalogEntry

START_S_MAX: Final = 120.0
PORT_TAKEN: Final = "Address already in use"
PORT_ATTEMPTS: Final = 5
LINES_SHOWN: Final = 12
Bound = TypeVar("Bound")


@dataclass(frozen=True)
class Site:
    """What a start needs to know: whose server, its programs, its working folder, its settings.

    Attributes:
        home: the programs.
        work: the folder of the running server, its user's own; data lies in ``data`` below it.
        asked: settings by variable name; a ``port`` among them is kept to.
        address: on which it listens.
    """

    label: str
    entry: CatalogEntry
    home: Path
    work: Path
    user: ServerUser | None
    asked: Mapping[str, str]
    address: str = LOOPBACK


class PortTakenError(ServerError):
    """Another program took the port after it was found free."""


@dataclass(frozen=True)
class ListenerIdentity:
    """Which server answers: the files and port it names, and the pid in its pid file."""

    answers: tuple[str, ...]
    pid: str


class StartedServer(ABC):
    """A running server process; its subclass has what differs between products."""

    driver: ClassVar[str]
    database = DATABASE
    stop_signal: ClassVar[signal.Signals]

    def __init__(
        self, site: Site, running: subprocess.Popen[bytes], endpoint: Endpoint, load: Credentials
    ) -> None:
        self.label = site.label
        self.pid = running.pid
        self.endpoint = endpoint
        self.credentials = load
        self.stopped_cleanly = False
        self._site = site
        self._running = running

    def alive(self) -> bool:
        """Whether the started process still runs."""
        return self._running.poll() is None

    def last_words(self) -> str:
        """The end of its error log."""
        return last_lines(self._site.work)

    def stop(self, patience_s: float = STOP_S) -> None:
        """Ask it by its product's signal to end, wait for `patience_s`, kill it at last.

        Raises:
            ServerError: it had died before, did not end in time, or ended with an error; its data
                directory is not to be trusted then.
        """
        self._log_out()
        if not self.alive():
            if self.stopped_cleanly:
                return
            self._remove_traces()
            raise self._failure(f"had ended before it was stopped ({self._ending()})")
        self._running.send_signal(self.stop_signal)
        try:
            code = self._running.wait(patience_s)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise self._failure(f"did not stop within {patience_s:.0f} s and was killed") from error
        self._remove_traces()
        if code != 0:
            raise self._failure(f"did not stop cleanly ({self._ending()})")
        self.stopped_cleanly = True

    def kill(self) -> None:
        """End it at once; for a server that will not be used again."""
        if self.alive():
            self._end_at_once()
        self._running.wait()
        self._log_out()  # now nobody waits for its answers any more
        self._remove_traces()

    def wait_proven(self) -> None:
        """Wait until it is ready for the load and its settings are proven; else it is killed."""
        try:
            self.wait_ready()
            self.admit_load()
            self.prove()
        except BaseException:
            self.kill()
            raise

    def wait_ready(self) -> None:
        """Wait until our own process answers; ServerError with its log if it does not."""
        limit = time.monotonic() + START_S_MAX
        while not self._try_login():
            if not self.alive():
                self._remove_traces()
                raise self._start_failure()
            if time.monotonic() > limit:
                raise self._failure(f"did not answer within {START_S_MAX:.0f} s of its start")
            time.sleep(0.02)
        self._check_identity()

    def admit_load(self) -> None:  # noqa: B027 - most servers did so as they started
        """Let the load user log in, where the server did not do so as it started."""

    @abstractmethod
    def prove(self) -> None:
        """Version and settings are those asked for, the load user can log in; else ServerError."""

    @abstractmethod
    def _try_login(self) -> bool:
        """Whether the administrator can log in now; ServerError if refused for good."""

    @abstractmethod
    def _log_out(self) -> None:
        """Close the administrator's connections."""

    @abstractmethod
    def _identity(self) -> tuple[tuple[str, ...], ListenerIdentity]:
        """What our own server would answer, and what the one that answers does."""

    @abstractmethod
    def _log_of_start(self) -> str:
        """What its log says of a start that failed."""

    def _end_at_once(self) -> None:
        self._running.kill()

    def _check_version(self, version: str, suffix: str) -> None:
        """The version is the one asked for; what follows `suffix` in it is the packager's."""
        if version.partition(suffix)[0] != self._site.entry.version:
            raise ServerError(
                f"{self.label}: the server is another version",
                wanted=self._site.entry.version,
                found=version,
            )

    def _check_identity(self) -> None:
        """The server that answers is the process we started, not another on the same port."""
        wanted, found = self._identity()
        if found != ListenerIdentity(wanted, str(self.pid)) or not self.alive():
            raise ServerError(
                f"{self.label}: another server answered in place of the one started",
                wanted=f"pid {self.pid}, {', '.join(wanted)}",
                found=f"pid {found.pid}, {', '.join(found.answers)}",
                hint="end the other server, or use another workspace",
            )

    def _pid_in(self, name: str) -> str:
        """The first line of a pid file in the server's folder; ServerError if it is not its own."""
        try:
            return read_file(self._site.work, name).decode("utf-8", "replace").partition("\n")[0]
        except OSError as error:
            raise ServerError(
                f"{self.label}: the server's pid file cannot be read",
                wanted=f"a file of the server's user in {self._site.work}",
                found=f"{name}: {error.strerror}",
            ) from error

    def _start_failure(self) -> ServerError:
        log = self._log_of_start()
        message = f"{self.label}: the server did not start ({self._ending()})"
        if PORT_TAKEN in log:
            return PortTakenError(
                message,
                wanted=f"port {self.endpoint.port}",
                found=f"taken by {process.holder(self.endpoint.port)}",
            )
        return ServerError(message, found=log, hint="take out the setting the log complains of")

    def _failure(self, what: str) -> ServerError:
        return ServerError(f"{self.label}: the server {what}", found=self.last_words() or None)

    def _ending(self) -> str:
        code = self._running.poll()
        if code is None:
            return "still running"
        return f"exit code {code}" if code >= 0 else signal.Signals(-code).name

    def _remove_traces(self) -> None:
        socket = self.endpoint.socket
        if socket is not None and socket.parent != self._site.work:
            remove_tree(socket.parent)


def on_a_port(site: Site, start_on: Callable[[int], Bound]) -> Bound:
    """What `start_on` gives for the port that the settings name, else for a free one.

    A port that was free a moment ago may be taken when the server binds it, so a lost race is tried
    again on another port; a port that the user named is kept to.

    Args:
        start_on: starts the server on a port; raises PortTakenError if it is taken.

    Raises:
        ServerError: the port named in the settings is none or is taken, or every free one was lost.
    """
    fixed = site.asked.get("port")
    if fixed is not None:
        return start_on(_fixed(site, fixed))
    for _ in range(PORT_ATTEMPTS - 1):
        try:
            return start_on(process.free_port())
        except PortTakenError:
            continue
    return start_on(process.free_port())


def _fixed(site: Site, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise ServerError(
            f"{site.label}: port {text!r} is not a port number",
            wanted="1 to 65535",
            hint="leave port out: dbdyno finds a free one",
        )
    port = int(text)
    if not process.port_is_free(port):
        raise ServerError(
            f"{site.label}: its settings want port {port}, which is taken",
            wanted=f"port {port} of {LOOPBACK} for {site.label} ({site.entry.reference})",
            found=f"held by {process.holder(port)}",
            hint="leave port out: dbdyno finds a free one",
        )
    return port


class OwnServer(Protocol):
    """What is asked of a server before its data are touched."""

    pid: int
    stopped_cleanly: bool

    def alive(self) -> bool:
        """Whether it runs."""

    def kill(self) -> None:
        """End it at once."""


Owned = TypeVar("Owned", bound=OwnServer)
Started = TypeVar("Started", bound=StartedServer)


class OwnInstance(ABC, Generic[Owned]):
    """The data of one system, and the one server that the lab may start on them.

    Nothing is done to data while a server runs on them, and no snapshot is taken of a server that
    did not stop cleanly.

    Args:
        report: receives a line about each step that takes time.
    """

    driver: ClassVar[str]

    def __init__(self, spec: ServerSpec, folder: Path, report: Callable[[str], None]) -> None:
        self.spec = spec
        self.folder = folder
        self._report = report
        self._server: Owned | None = None
        self._untouched = False  # whether no server has run on the data since they were laid out

    def snapshot(self) -> None:
        """Copy the stopped server's data aside; an older snapshot is replaced.

        Raises:
            ServerError: it runs, did not stop cleanly, or the disk is short.
        """
        self._must_be_stopped("copied")
        if not self._untouched and not (self._server and self._server.stopped_cleanly):
            raise ServerError(
                f"{self.spec.label}: no snapshot of a server that did not stop cleanly",
                hint="restore the older snapshot, or load the rows again",
            )
        self._report(f"{self.spec.label}: keeping a copy of the loaded data")
        self._copy_aside()

    @abstractmethod
    def has_snapshot(self) -> bool:
        """Whether a complete snapshot of these very programs and this format exists."""

    def restore(self) -> None:
        """The data become the snapshot again; ServerError if there is none or a server runs."""
        self._must_be_stopped("restored")
        self._must_have_snapshot("restore")
        self._bring_back()
        self._server, self._untouched = None, True

    def close(self) -> None:
        """End the server if it runs and remove the working data; a snapshot stays.

        It is killed, not stopped: pages that nobody will read need not be written first.
        """
        try:
            if self._server is not None and self._server.alive():
                self._server.kill()
        finally:
            self._clear()

    @abstractmethod
    def _copy_aside(self) -> None:
        """Make the snapshot."""

    @abstractmethod
    def _bring_back(self) -> None:
        """Make the data what the snapshot is."""

    @abstractmethod
    def _clear(self) -> None:
        """Remove what a server works on."""

    def _must_be_stopped(self, what: str) -> None:
        if self._server is not None and self._server.alive():
            raise ServerError(
                f"{self.spec.label}: a running server cannot be {what}",
                found=f"pid {self._server.pid}",
                hint="stop it first",
            )

    def _must_have_snapshot(self, wanted_for: str) -> None:
        if not self.has_snapshot():
            raise ServerError(f"{self.spec.label}: there is no snapshot to {wanted_for}")


class ProductSettings(Protocol):
    """What the settings module of a product has."""

    def effective(self, entry: CatalogEntry, asked: Mapping[str, SettingValue]) -> dict[str, str]:
        """Every setting the server is given; UsageError if one cannot be."""

    def normalise(self, asked: Mapping[str, SettingValue]) -> dict[str, str]:
        """Keys as the server names them, values as text; UsageError if one cannot be."""

    def data_format(self, entry: CatalogEntry, asked: Mapping[str, str]) -> object:
        """What of the settings decides the bytes of a data directory."""

    def fixed(self, entry: CatalogEntry, asked: Mapping[str, str]) -> str:
        """What of the settings cannot change once a data directory exists; for messages."""


def asked_with(
    spec: ServerSpec,
    rules: ProductSettings,
    entry: CatalogEntry,
    more: Mapping[str, SettingValue],
) -> dict[str, str]:
    """Every setting of a start: the instance's own, with `more` laid over them.

    Raises:
        UsageError: one cannot be, or data that were made with the instance's own cannot take it.
    """
    whole = rules.effective(entry, {**rules.normalise(spec.settings), **rules.normalise(more)})
    old = rules.fixed(entry, rules.effective(entry, spec.settings))
    new = rules.fixed(entry, whole)
    if old != new:
        raise UsageError(
            f"{spec.label}: a data directory that exists cannot take other settings",
            wanted=new or None,
            found=old or None,
            hint="make a system of its own for them",
        )
    return whole


class StartedInstance(OwnInstance[Started]):
    """An instance of a server that runs as a process of this machine, its files in a folder.

    Made by `open.instance`; not shared between labs.

    Args:
        copy: where the snapshot lies; another instance's for a replica, which begins with the
            primary's data.
    """

    rules: ClassVar[ProductSettings]
    beside: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        spec: ServerSpec,
        entry: CatalogEntry,
        home: Path,
        folder: Path,
        report: Callable[[str], None],
        copy: Path | None = None,
    ) -> None:
        user = process.server_user()
        asked = self.rules.effective(entry, spec.settings)
        identity = {
            "reference": entry.reference,
            "programs": entry.identity,
            "format": self.rules.data_format(entry, asked),
        }
        own = places.instance_folder(folder, user)
        super().__init__(spec, own, report)
        self._files = InstanceFiles(spec.label, own, user, identity, self.beside, copy)
        self._site = Site(spec.label, entry, home, self._files.work, user, asked)
        self._clear()  # a lab that died may have left its own
        with self._files.os_errors("laid out"):
            if not self.has_snapshot():
                self._lay_pristine()

    def start(
        self, settings: Mapping[str, SettingValue] | None = None, address: str | None = None
    ) -> Started:
        """Start it, with `settings` of this start alone laid over the instance's.

        It begins with the snapshot, or with fresh data if there is none.

        Args:
            address: on which it listens; unless given, its own.

        Raises:
            UsageError: a setting cannot be given to a data directory that exists, or is the lab's.
            ServerError: it runs already, did not start, or its settings are not in force then.
        """
        self._must_be_stopped("started")
        asked = asked_with(self.spec, self.rules, self._site.entry, settings or {})
        site = replace(self._site, asked=asked, address=address or self.spec.address)
        with self._files.os_errors("started on"):
            if not self._files.data.is_dir():
                self.restore() if self.has_snapshot() else self._lay_pristine()
            self._server, self._untouched = None, False
            self._server = on_a_port(site, partial(self._start_on, site))
        return self._server

    def has_snapshot(self) -> bool:
        """Whether a complete snapshot of this very server and format exists."""
        return self._files.has_snapshot()

    @abstractmethod
    def data_bytes(self) -> int:
        """Bytes on disk of the loaded tables and their indexes; ServerError without a snapshot."""

    @abstractmethod
    def _making(self) -> Making:
        """How a fresh data directory is made for its settings."""

    @abstractmethod
    def _start_on(self, site: Site, port: int) -> Started:
        """Start the product's server; PortTakenError if the port is taken."""

    def _before_removal(self) -> None:
        """What must be given back before the data directory goes; nothing for most products."""

    def _copy_aside(self) -> None:
        self._files.snapshot()

    def _bring_back(self) -> None:
        self._before_removal()
        self._files.restore()

    def _lay_pristine(self) -> None:
        source = pristine.kept(self._site.entry, self._making(), self._site.user, self._report)
        self._before_removal()
        self._files.lay(source)
        self._server, self._untouched = None, True

    def _clear(self) -> None:
        self._before_removal()
        self._files.clear()
        self._server, self._untouched = None, True


# Tails of server logs for error messages.


def printed_log(work: Path) -> Path:
    """Where what a server prints goes: beside its own folder, since the lab itself opens it."""
    return work.parent / "printed.log"


def last_lines(work: Path, count: int = LINES_SHOWN) -> str:
    """The last lines of the logs in a server's working folder; empty if there are none."""
    return "\n".join(_lines(work)[-count:])


def error_lines(work: Path) -> str:
    """The last lines marked as errors, or simply the last lines if none is."""
    lines = _lines(work)
    errors = [line for line in lines if "[ERROR]" in line or "error while loading" in line]
    return "\n".join((errors or lines)[-LINES_SHOWN:]) or "it left no log"


def _lines(work: Path) -> list[str]:
    found: list[str] = []
    printed = printed_log(work)
    for folder, name in ((printed.parent, printed.name), (work, "err.log")):
        try:
            found += read_file(folder, name).decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            continue
        except OSError as error:  # such as a link, which the server's user may have put there
            found.append(f"[ERROR] {name} is not shown: {error.strerror}")
    return [line for line in found if line.strip()]
