"""A system whose server the lab starts itself: which of its files may be used when.

Nothing is done to the files while a server runs on them, and no snapshot is taken of a server that
did not stop cleanly. What a start is told, and how it is started, is its product's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from dbdyno.errors import ServerError
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.local.instance_files import InstanceFiles
from dbdyno.servers.local.server import Site, StartedServer

Started = TypeVar("Started", bound=StartedServer)


class StartedInstance(ABC, Generic[Started]):
    """One instance's files, and the one server that may run on them; not shared between labs.

    Args:
        report: told in words what takes time.
    """

    def __init__(
        self, spec: ServerSpec, site: Site, files: InstanceFiles, report: Callable[[str], None]
    ) -> None:
        self.spec = spec
        self.folder = files.folder
        self._files = files
        self._site = site
        self._report = report
        self._server: Started | None = None
        self._untouched = True  # no server has run on the data since it was laid out
        self._clear()  # a lab that died may have left its own
        with self._files.told("laid out"):
            if not self.has_snapshot():
                self._lay_pristine()

    def snapshot(self) -> None:
        """Copy the stopped server's data aside, flushed; an older snapshot is replaced.

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
        self._files.snapshot()

    def has_snapshot(self) -> bool:
        """Whether a complete snapshot of this very server and format exists."""
        return self._files.has_snapshot()

    def restore(self) -> None:
        """The data directory becomes the snapshot again, by checksum; ServerError if it cannot."""
        self._must_be_stopped("restored")
        self._before_removal()
        self._files.restore()
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
    def _pristine(self) -> Path:
        """A freshly made data directory to copy."""

    def _before_removal(self) -> None:
        """What must be given back before the data directory goes; nothing for most products."""

    def _start(self, site: Site, start: Callable[[Site], Started]) -> Started:
        """Start the stopped server, on the snapshot or on fresh data if it has none now."""
        with self._files.told("started on"):
            if not self._files.data.is_dir():
                self.restore() if self.has_snapshot() else self._lay_pristine()
            self._server, self._untouched = None, False
            self._server = start(site)
        return self._server

    def _must_be_stopped(self, what: str) -> None:
        if self._server is not None and self._server.alive():
            raise ServerError(
                f"{self.spec.label}: a running server cannot be {what}",
                found=f"pid {self._server.pid}",
                hint="stop it first",
            )

    def _lay_pristine(self) -> None:
        source = self._pristine()
        self._before_removal()
        self._files.lay(source)
        self._server, self._untouched = None, True

    def _clear(self) -> None:
        self._before_removal()
        self._files.clear()
        self._server, self._untouched = None, True
