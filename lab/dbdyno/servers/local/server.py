"""Servers started by the lab, of any product: child processes and their data.

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
from dbdyno.plan.settings import SettingValue
from dbdyno.servers import process
from dbdyno.servers.base import DATABASE, STOP_S, Credentials, Endpoint, ServerSpec
from dbdyno.servers.local import pristine
from dbdyno.servers.local.files import InstanceFiles, read_file, remove_socket_place
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
    """Inputs of a start: the system, its programs, working folder, settings and address.

    Attributes:
        home: the programs.
        work: the running server's folder, owned by its user; data lies in ``data`` below it.
        requested: settings by variable name; a ``port`` among them is binding.
        address: address to listen on.
    """

    label: str
    entry: CatalogEntry
    home: Path
    work: Path
    user: ServerUser | None
    requested: Mapping[str, str]
    address: str = LOOPBACK


class PortTakenError(ServerError):
    """Another program took the port after it was found free."""


class StartedServer(ABC):
    """A running server process; subclasses add the product's own."""

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
        self._ready_s: float | None = None
        self._site = site
        self._running = running

    def alive(self) -> bool:
        return self._running.poll() is None

    def last_words(self) -> str:
        return last_lines(self._site.work)

    def stop(self, patience_s: float = STOP_S) -> None:
        """Send the product's stop signal, wait for `patience_s`, then kill.

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
        self._log_out()  # only now: no question waits for its answer any more
        self._remove_traces()

    def wait_proven(self) -> None:
        """Wait until it is ready for the load and its settings are proven; kill it on failure."""
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
        self._ready_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        self._check_identity()

    def admit_load(self) -> None:  # noqa: B027 - most servers did so as they started
        """Let the load user log in, if the start did not."""

    @abstractmethod
    def prove(self) -> None:
        """Prove version, settings and the load user's login; else ServerError."""

    @abstractmethod
    def _try_login(self) -> bool:
        """True once the administrator can log in; ServerError if refused for good."""

    @abstractmethod
    def _log_out(self) -> None: ...

    @abstractmethod
    def _identity(self) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        """Files and port of our own server, those of the answering server, pid in its pid file."""

    @abstractmethod
    def _log_of_start(self) -> str:
        """Part of its log about a failed start."""

    def _end_at_once(self) -> None:
        self._running.kill()

    def _check_identity(self) -> None:
        """Prove that our own process answers, not another server on the same port."""
        wanted, answers, pid = self._identity()
        if (answers, pid) != (wanted, str(self.pid)) or not self.alive():
            raise ServerError(
                f"{self.label}: another server answered in place of the one started",
                wanted=f"pid {self.pid}, {', '.join(wanted)}",
                found=f"pid {pid}, {', '.join(answers)}",
                hint="end the other server, or use another workspace",
            )

    def _pid_in(self, name: str) -> str:
        """First line of a pid file in the server's folder; ServerError if it is not its own."""
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

    def _failure(self, failure: str) -> ServerError:
        return ServerError(f"{self.label}: the server {failure}", found=self.last_words() or None)

    def _ending(self) -> str:
        code = self._running.poll()
        if code is None:
            return "still running"
        return f"exit code {code}" if code >= 0 else signal.Signals(-code).name

    def _remove_traces(self) -> None:
        remove_socket_place(self.endpoint.socket, self._site.work)


def check_version(label: str, entry: CatalogEntry, version: str) -> None:
    """Compare a server's version with the expected one, up to the packager's addition."""
    if re.split("[- ]", version)[0] != entry.version:
        raise ServerError(
            f"{label}: the server is another version", wanted=entry.version, found=version
        )


def on_a_port(site: Site, start_on: Callable[[int], Bound]) -> Bound:
    """Call `start_on` with the port of the settings, else with a free port.

    A port that was free a moment ago may be taken when the server binds it, so a lost race is tried
    again on another port; a port that the user named is binding.

    Args:
        start_on: starts the server on a port; raises PortTakenError if it is taken.

    Raises:
        ServerError: the configured port is invalid or taken, or every free port was lost.
    """
    fixed = site.requested.get("port")
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
    """The part of a server that guards its data."""

    pid: int
    stopped_cleanly: bool

    def alive(self) -> bool: ...
    def kill(self) -> None: ...


Owned = TypeVar("Owned", bound=OwnServer)
Started = TypeVar("Started", bound=StartedServer)


class OwnInstance(ABC, Generic[Owned]):
    """A system's data, and the single server that the lab may start on them.

    Nothing is done to data while a server runs on them, and a server that did not stop cleanly
    gives no snapshot.

    Args:
        report: receives a line about each step that takes time.
    """

    driver: ClassVar[str]

    def __init__(self, spec: ServerSpec, folder: Path, report: Callable[[str], None]) -> None:
        self.spec = spec
        self.folder = folder
        self._report = report
        self._server: Owned | None = None
        self._untouched = False  # True: no server has run on the data since they were laid out

    def snapshot(self) -> None:
        """Copy the data aside; ServerError too if the server did not stop cleanly."""
        self._must_be_stopped("copied")
        if not self._untouched and not (self._server and self._server.stopped_cleanly):
            raise ServerError(
                f"{self.spec.label}: no snapshot of a server that did not stop cleanly",
                hint="restore the older snapshot, or load the rows again",
            )
        self._report(f"{self.spec.label}: keeping a copy of the loaded data")
        self._copy_aside()

    @abstractmethod
    def has_snapshot(self) -> bool: ...

    def restore(self) -> None:
        self._must_be_stopped("restored")
        self._must_have_snapshot("restore")
        self._bring_back()
        self._server, self._untouched = None, True

    def close(self) -> None:
        """End the server if it runs and remove the working data; a snapshot stays.

        It is killed, not stopped: flushing pages that are thrown away would be wasted.
        """
        try:
            if self._server is not None and self._server.alive():
                self._server.kill()
        finally:
            self._clear()

    @abstractmethod
    def _copy_aside(self) -> None: ...

    @abstractmethod
    def _bring_back(self) -> None: ...

    @abstractmethod
    def _clear(self) -> None: ...

    def _must_be_stopped(self, action: str) -> None:
        if self._server is not None and self._server.alive():
            raise ServerError(
                f"{self.spec.label}: a running server cannot be {action}",
                found=f"pid {self._server.pid}",
                hint="stop it first",
            )

    def _must_have_snapshot(self, wanted_for: str) -> None:
        if not self.has_snapshot():
            raise ServerError(f"{self.spec.label}: there is no snapshot to {wanted_for}")


class ProductSettings(Protocol):
    """Interface of a product's settings module."""

    def effective(
        self, entry: CatalogEntry, requested: Mapping[str, SettingValue]
    ) -> dict[str, str]:
        """All settings given to the server; UsageError for an impossible setting."""

    def normalise(self, requested: Mapping[str, SettingValue]) -> dict[str, str]:
        """Keys in the server's spelling, values as text.

        UsageError for a malformed or repeated key, or a value with control characters.
        """

    def data_format(self, entry: CatalogEntry, requested: Mapping[str, str]) -> object:
        """The settings that decide the bytes of a data directory."""

    def fixed(self, entry: CatalogEntry, requested: Mapping[str, str]) -> str:
        """The settings that are fixed once a data directory exists; for messages."""


def requested_settings(
    spec: ServerSpec,
    rules: ProductSettings,
    entry: CatalogEntry,
    more: Mapping[str, SettingValue],
) -> dict[str, str]:
    """All settings of a start: the instance's own, with `more` laid over them.

    Raises:
        UsageError: a setting is impossible, or does not fit data made with the instance's own.
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
    """An instance whose server runs as a process of this machine, its files in a folder.

    Made by `open.instance`; not shared between labs.

    Args:
        copy: the snapshot's folder; for a replica the primary's, whose data it begins with.
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
        requested = self.rules.effective(entry, spec.settings)
        identity = {
            "reference": entry.reference,
            "programs": entry.identity,
            "format": self.rules.data_format(entry, requested),
        }
        own = places.instance_folder(folder, user)
        super().__init__(spec, own, report)
        self._files = InstanceFiles(spec.label, own, user, identity, self.beside, copy)
        self._site = Site(spec.label, entry, home, self._files.work, user, requested)
        self._clear()  # remains of a lab that died
        with self._files.os_errors("laid out"):
            if not self.has_snapshot():
                self._lay_pristine()

    def start(
        self, settings: Mapping[str, SettingValue] | None = None, address: str | None = None
    ) -> Started:
        """Start it with the snapshot, or with fresh data without a snapshot.

        Args:
            address: address to listen on; by default the instance's.
        """
        self._must_be_stopped("started")
        requested = requested_settings(self.spec, self.rules, self._site.entry, settings or {})
        site = replace(self._site, requested=requested, address=address or self.spec.address)
        with self._files.os_errors("started on"):
            if not self._files.data.is_dir():
                self.restore() if self.has_snapshot() else self._lay_pristine()
            self._server, self._untouched = None, False
            self._server = on_a_port(site, partial(self._start_on, site))
        return self._server

    def has_snapshot(self) -> bool:
        return self._files.has_snapshot()

    def loading_keys(self) -> Mapping[str, SettingValue]:
        return {}

    @abstractmethod
    def data_bytes(self) -> int: ...

    @abstractmethod
    def _making(self) -> Making:
        """Recipe of a fresh data directory for its settings."""

    @abstractmethod
    def _start_on(self, site: Site, port: int) -> Started:
        """Start the product's server; PortTakenError if the port is taken."""

    def _before_removal(self) -> None:
        """Release resources before the data directory goes."""

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
    """File for a server's output: beside its own folder, since the lab itself opens it."""
    return work.parent / "printed.log"


def last_lines(work: Path, count: int = LINES_SHOWN) -> str:
    """Last lines of the logs in a server's working folder; empty without logs."""
    return "\n".join(_lines(work)[-count:])


def error_lines(work: Path) -> str:
    """Last lines marked as errors, else simply the last lines."""
    lines = _lines(work)
    errors = [line for line in lines if "[ERROR]" in line or "error while loading" in line]
    return "\n".join((errors or lines)[-LINES_SHOWN:]) or "it left no log"


def _lines(work: Path) -> list[str]:
    lines: list[str] = []
    printed = printed_log(work)
    for folder, name in ((printed.parent, printed.name), (work, "err.log")):
        try:
            lines += read_file(folder, name).decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            continue
        except OSError as error:  # such as a link, which the server's user may have put there
            lines.append(f"[ERROR] {name} is not shown: {error.strerror}")
    return [line for line in lines if line.strip()]
