"""A PostgreSQL system's files and the one server that may run on them.

What a start may change, and what of the data is the load's, is said here; when files may be used is
`started_instance`'s business, the folders themselves are `instance_files`'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from dbdyno.errors import UsageError
from dbdyno.plan.settings import OptionValue
from dbdyno.servers import process
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.local.files import occupied_bytes
from dbdyno.servers.local.instance_files import InstanceFiles
from dbdyno.servers.local.server import Site
from dbdyno.servers.local.started_instance import StartedInstance
from dbdyno.servers.postgres import instance, postgres_settings, postgres_starting
from dbdyno.servers.postgres.postgres_pristine import pristine
from dbdyno.servers.postgres.server import PostgresServer
from dbdyno.servers.programs import places
from dbdyno.servers.programs.catalog_entry import CatalogEntry

OWN_DATABASES: Final = frozenset({"1", "4", "5"})
"""Folders of template1, template0 and postgres; their numbers are fixed from 15 on."""


class PostgresInstance(StartedInstance[PostgresServer]):
    """Made by `servers.instance`; not shared between labs."""

    def __init__(
        self,
        spec: ServerSpec,
        entry: CatalogEntry,
        home: Path,
        folder: Path,
        report: Callable[[str], None],
    ) -> None:
        user = process.server_user()
        asked = postgres_settings.effective(entry, spec.settings)
        own = places.instance_folder(folder, user)
        files = InstanceFiles(spec.label, own, user, _identity(entry, asked))
        site = Site(spec.label, entry, home, files.work, user, asked)
        super().__init__(spec, site, files, report)

    def start(self, settings: Mapping[str, OptionValue] | None = None) -> PostgresServer:
        """Start it, with `settings` of this start alone laid over the instance's.

        Raises:
            UsageError: a setting is initdb's, or belongs to the lab.
            ServerError: it runs already, did not start, or its settings are not in force then.
        """
        self._must_be_stopped("started")
        site = replace(self._site, asked=self._asked_with(settings or {}))
        return self._start(site, postgres_starting.start)

    def data_bytes(self) -> int:
        """Bytes on disk of the snapshot's tables and indexes, its catalogs (8 MB) with them.

        Raises:
            ServerError: there is no snapshot.
        """
        self._files.must_have_snapshot("measure")
        databases = (self._files.kept / "base").iterdir()
        return sum(occupied_bytes(d) for d in databases if d.name not in OWN_DATABASES)

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

    def _pristine(self) -> Path:
        site = self._site
        return pristine(site.entry, site.home, site.asked, site.user, self._report)

    def _before_removal(self) -> None:
        instance.free(self._files.data)


def _identity(entry: CatalogEntry, asked: Mapping[str, str]) -> dict[str, object]:
    return {
        "reference": entry.reference,
        "programs": entry.identity,
        "format": postgres_settings.initdb_options(entry, asked),
    }
