"""A PostgreSQL system's files and the one server that may run on them.

What is started, when a snapshot may be taken and what may be changed at a start is decided here;
the folders themselves are `instance_files`' business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan_settings import OptionValue
from dbdyno.servers import (
    copying,
    places,
    postgres_memory,
    postgres_settings,
    postgres_starting,
    process,
)
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.catalog_entry import CatalogEntry
from dbdyno.servers.instance_files import InstanceFiles
from dbdyno.servers.mysql import Site
from dbdyno.servers.postgres import PostgresServer
from dbdyno.servers.postgres_pristine import pristine

OWN_DATABASES: Final = frozenset({"1", "4", "5"})
"""Folders of template1, template0 and postgres; their numbers are fixed from 15 on."""


class PostgresInstance:
    """Made by `servers.instance`; not shared between labs."""

    def __init__(
        self,
        spec: ServerSpec,
        entry: CatalogEntry,
        home: Path,
        folder: Path,
        report: Callable[[str], None],
    ) -> None:
        if spec.topology.replicas:
            raise UsageError(
                f"{spec.label}: dbdyno makes no replicas of PostgreSQL",
                wanted=f"{spec.topology.replicas} replicas of {spec.reference}",
                hint="leave the topology out, or compare MySQL or MariaDB",
            )
        user = process.server_user()
        asked = postgres_settings.effective(entry, spec.settings)
        self.spec = spec
        self.folder = places.instance_folder(folder, user)
        self._files = InstanceFiles(spec.label, self.folder, user, _identity(entry, asked))
        self._site = Site(spec.label, entry, home, self._files.work, user, asked)
        self._report = report
        self._server: PostgresServer | None = None
        self._untouched = True  # no server has run on the data since it was laid out
        self._clear()  # a lab that died may have left its own
        if not self.has_snapshot():
            self._lay_pristine()

    def start(self, settings: Mapping[str, OptionValue] | None = None) -> PostgresServer:
        """Start it, with `settings` of this start alone laid over the instance's.

        Raises:
            UsageError: a setting is initdb's, or belongs to the lab.
            ServerError: it runs already, did not start, or its settings are not in force then.
        """
        self._must_be_stopped("started")
        site = replace(self._site, asked=self._asked_with(settings or {}))
        if not self._files.data.is_dir():
            self.restore() if self.has_snapshot() else self._lay_pristine()
        with self._files.told("started on"):
            self._server, self._untouched = None, False
            self._server = postgres_starting.start(site)
        return self._server

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
        """The data directory becomes the snapshot again; ServerError if there is none."""
        self._must_be_stopped("restored")
        postgres_memory.free(self._files.data)
        self._files.restore()
        self._server, self._untouched = None, True

    def data_bytes(self) -> int:
        """Bytes on disk of the snapshot's tables and indexes, its catalogs (8 MB) with them.

        Raises:
            ServerError: there is no snapshot.
        """
        self._files.must_have_snapshot("measure")
        databases = (self._files.kept / "base").iterdir()
        return sum(copying.occupied_bytes(d) for d in databases if d.name not in OWN_DATABASES)

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

    def _asked_with(self, more: Mapping[str, OptionValue]) -> dict[str, str]:
        normalise = postgres_settings.normalise
        laid_over = {**normalise(self.spec.settings), **normalise(more)}
        whole = postgres_settings.effective(self._site.entry, laid_over)
        options = postgres_settings.initdb_options
        old, new = (options(self._site.entry, asked) for asked in (self._site.asked, whole))
        if old != new:
            raise UsageError(
                f"{self.spec.label}: a data directory that exists cannot take other settings",
                wanted=" ".join(new) or "initdb's own",
                found=" ".join(old) or "initdb's own",
                hint="make a system of its own for them",
            )
        return whole

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
        postgres_memory.free(self._files.data)
        self._files.lay(source)
        self._server, self._untouched = None, True

    def _clear(self) -> None:
        postgres_memory.free(self._files.data)
        self._files.clear()
        self._server, self._untouched = None, True


def _identity(entry: CatalogEntry, asked: Mapping[str, str]) -> dict[str, object]:
    return {
        "reference": entry.reference,
        "programs": entry.identity,
        "format": postgres_settings.initdb_options(entry, asked),
    }
