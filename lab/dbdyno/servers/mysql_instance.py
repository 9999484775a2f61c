"""A MySQL system's files: its data directory, a snapshot of it, and the one process that may run.

Below the instance's folder, ``server`` belongs to the user the server runs as; ``snapshot`` stays
the lab's own, so a server that goes wrong cannot spoil what later blocks begin with. A snapshot
counts once its marker is written, last of all; the marker names the programs and the settings that
decided the bytes, so a snapshot of another version or page size is never taken for ours.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan_settings import OptionValue
from dbdyno.servers import checksums, copying, places, process, settings, starting
from dbdyno.servers.accounts import DATABASE
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.catalog_entry import CatalogEntry
from dbdyno.servers.mysql import MysqlServer, Site
from dbdyno.servers.pristine import pristine
from dbdyno.servers.process import HERE, Place

MARKER: Final = "snapshot.json"


class MysqlInstance:
    """Made by `servers.instance`; not shared between labs."""

    def __init__(
        self,
        spec: ServerSpec,
        entry: CatalogEntry,
        home: Path,
        folder: Path,
        report: Callable[[str], None],
        copy: Path | None = None,
    ) -> None:
        """As `servers.instance` says.

        Args:
            copy: where the snapshot lies; another instance's for a replica, which begins with the
                primary's data.
        """
        self.spec = spec
        user = process.server_user()
        asked = settings.effective(entry, spec.settings)
        self.folder = places.instance_folder(folder, user)
        self._copy = copy or self.folder / "snapshot"
        self._site = Site(spec.label, entry, home, self.folder / "server", user, asked)
        self._report = report
        self._server: MysqlServer | None = None
        self._untouched = True  # no server has run on the data since it was laid out
        self._clear()  # a lab that died may have left its own
        with self._told("laid out"):
            if not self.has_snapshot():
                self._lay_pristine()

    def start(
        self, settings: Mapping[str, OptionValue] | None = None, place: Place = HERE
    ) -> MysqlServer:
        """Start it at `place`, with `settings` of this start alone laid over the instance's.

        Raises:
            UsageError: a setting decides the bytes of a data directory, or belongs to the lab.
            ServerError: it runs already, did not start, or its settings are not in force then.
        """
        self._must_be_stopped("started")
        site = replace(self._site, asked=self._asked_with(settings or {}), place=place)
        with self._told("started on"):
            if not self._data.is_dir():
                self.restore() if self.has_snapshot() else self._lay_pristine()
            self._server, self._untouched = None, False
            self._server = starting.start(site)
        return self._server

    def _asked_with(self, more: Mapping[str, OptionValue]) -> dict[str, str]:
        laid_over = {**settings.normalise(self.spec.settings), **settings.normalise(more)}
        whole = settings.effective(self._site.entry, laid_over)
        old, new = (settings.at_initialisation(asked) for asked in (self._site.asked, whole))
        if old != new:
            raise UsageError(
                f"{self.spec.label}: a data directory that exists cannot take other settings",
                wanted=", ".join(f"{name} = {text}" for name, text in sorted(new.items())),
                found=", ".join(f"{name} = {text}" for name, text in sorted(old.items())) or None,
                hint="make a system of its own for them",
            )
        return whole

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
        with self._told("copied aside"):
            (self._copy / MARKER).unlink(missing_ok=True)  # first: half of it must not count
            shutil.rmtree(self._copy, ignore_errors=True)
            self._copy.mkdir(mode=0o700)
            copying.copy_tree(self._data, self._copy / "data", owner=None)
            checksums.keep(self._copy / "data", self._copy / checksums.FILE)
            with (self._copy / MARKER).open("w") as marker:
                json.dump(self._identity(), marker)
                marker.flush()
                os.fsync(marker.fileno())

    def has_snapshot(self) -> bool:
        """Whether a complete snapshot of this very server and format exists."""
        try:
            told = json.loads((self._copy / MARKER).read_text())
            return bool(told == self._identity() and (self._copy / checksums.FILE).is_file())
        except (OSError, ValueError):
            return False

    def restore(self) -> None:
        """The data directory becomes the snapshot again, by checksum; ServerError if it cannot."""
        self._must_be_stopped("restored")
        if not self.has_snapshot():
            raise ServerError(f"{self.spec.label}: there is no snapshot to restore")
        self._clear()
        with self._told("restored"):
            self._make_work()
            copying.copy_tree(self._copy / "data", self._data, self._site.user)
            checksums.compare(self.spec.label, self._data, self._copy / checksums.FILE)
            (self._data / "auto.cnf").unlink(missing_ok=True)  # each server has an id of its own

    def data_bytes(self) -> int:
        """Bytes on disk of the loaded tables and their indexes; ServerError without a snapshot."""
        if not self.has_snapshot():
            raise ServerError(f"{self.spec.label}: there is no snapshot to measure")
        return copying.occupied_bytes(self._copy / "data" / DATABASE)

    def close(self) -> None:
        """Stop the server if it runs and remove the working data; a snapshot stays.

        Raises:
            ServerError: the server did not stop cleanly; its data is removed all the same.
        """
        try:
            if self._server is not None and self._server.alive():
                self._server.stop()
        finally:
            self._clear()

    @property
    def _data(self) -> Path:
        return self._site.work / "data"

    def _identity(self) -> dict[str, object]:
        return {
            "reference": self.spec.reference,
            "programs": self._site.entry.identity,
            "format": settings.format_deciding(self._site.asked),
        }

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Turns what the file system refuses into a ServerError."""
        try:
            yield
        except OSError as error:
            raise ServerError(
                f"{self.spec.label}: its files in {self.folder} could not be {what}",
                found=str(error),
                hint="check the folder's free space, inodes and owner",
            ) from error

    def _must_be_stopped(self, what: str) -> None:
        if self._server is not None and self._server.alive():
            raise ServerError(
                f"{self.spec.label}: a running server cannot be {what}",
                found=f"pid {self._server.pid}",
                hint="stop it first",
            )

    def _lay_pristine(self) -> None:
        site = self._site
        source = pristine(site.entry, site.home, site.asked, site.user, self._report)
        self._clear()
        self._make_work()
        copying.copy_tree(source, self._data, site.user)

    def _make_work(self) -> None:
        work = self._site.work
        for folder in (work, work / "tmp"):
            folder.mkdir()
        for folder in (work / "tmp", work):  # nothing is changed below what is given away
            process.give_to(folder, self._site.user, 0o700)

    def _clear(self) -> None:
        shutil.rmtree(self._site.work, ignore_errors=True)
        self._server, self._untouched = None, True
