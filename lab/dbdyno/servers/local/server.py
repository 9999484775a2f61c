"""What every server is that the lab started itself: a child process that is watched and ended.

Products differ in how they are asked and by which signals they end; that a server counts as started
only when the one who answers is our own child, and as stopped only when it ended well, does not.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from dbdyno.errors import ServerError
from dbdyno.servers import process
from dbdyno.servers.base import STOP_S, Credentials, Endpoint
from dbdyno.servers.local.words import last_lines
from dbdyno.servers.mysql.accounts import DATABASE
from dbdyno.servers.process import HERE, Place, ServerUser
from dbdyno.servers.programs.catalog_entry import CatalogEntry

START_S_MAX: Final = 120.0
PORT_TAKEN: Final = "Address already in use"


@dataclass(frozen=True)
class Site:
    """What a start needs to know: whose server, its programs, its working folder, its settings.

    Attributes:
        home: the programs.
        work: the folder of the running server, its user's own; data lies in ``data`` below it.
        asked: settings by variable name; a ``port`` among them is kept to.
        place: the network it is on.
    """

    label: str
    entry: CatalogEntry
    home: Path
    work: Path
    user: ServerUser | None
    asked: Mapping[str, str]
    place: Place = HERE


class PortTakenError(ServerError):
    """Another program took the port between our look and the server's."""


@dataclass(frozen=True)
class Identity:
    """Who answers on a server's place: files and port it names, and the pid in its pid file."""

    answers: tuple[str, ...]
    pid: str


class StartedServer(ABC):
    """A child process that serves; what is the product's own is said by its class."""

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
        self._log_out()
        if self.alive():
            self._end_at_once()
        self._running.wait()
        self._remove_traces()

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

    @abstractmethod
    def _try_login(self) -> bool:
        """Whether the administrator can log in now; ServerError if refused for good."""

    @abstractmethod
    def _log_out(self) -> None:
        """Close the administrator's connections."""

    @abstractmethod
    def _identity(self) -> tuple[tuple[str, ...], Identity]:
        """What our own server would answer, and who really answers."""

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
        """The one who answers is the process we started, not another that holds the place."""
        wanted, found = self._identity()
        if found != Identity(wanted, str(self.pid)) or not self.alive():
            raise ServerError(
                f"{self.label}: another server answered in place of the one started",
                wanted=f"pid {self.pid}, {', '.join(wanted)}",
                found=f"pid {found.pid}, {', '.join(found.answers)}",
                hint="end the other server, or use another workspace",
            )

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
            shutil.rmtree(socket.parent, ignore_errors=True)
