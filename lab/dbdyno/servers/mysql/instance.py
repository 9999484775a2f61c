"""A MySQL or MariaDB system's files and the one server that may run on them.

What a start may change, and what decides the bytes of a data directory, is said here; when files
may be used is `started_instance`'s business, the folders themselves are `instance_files`'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from dbdyno.errors import UsageError
from dbdyno.plan.settings import OptionValue
from dbdyno.servers import process
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.local.files import occupied_bytes
from dbdyno.servers.local.instance_files import InstanceFiles
from dbdyno.servers.local.server import Site
from dbdyno.servers.local.started_instance import StartedInstance
from dbdyno.servers.mysql import settings, starting
from dbdyno.servers.mysql.accounts import DATABASE
from dbdyno.servers.mysql.pristine import pristine
from dbdyno.servers.mysql.server import MysqlServer
from dbdyno.servers.process import HERE, Place
from dbdyno.servers.programs import places
from dbdyno.servers.programs.catalog_entry import CatalogEntry


class MysqlInstance(StartedInstance[MysqlServer]):
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
        user = process.server_user()
        asked = settings.effective(entry, spec.settings)
        identity = {
            "reference": spec.reference,
            "programs": entry.identity,
            "format": settings.format_deciding(asked),
        }
        own = places.instance_folder(folder, user)
        files = InstanceFiles(spec.label, own, user, identity, beside=("tmp",), copy=copy)
        site = Site(spec.label, entry, home, files.work, user, asked)
        super().__init__(spec, site, files, report)

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
        return self._start(site, starting.start)

    def restore(self) -> None:
        """The data directory becomes the snapshot again, by checksum; ServerError if it cannot."""
        super().restore()
        with self._files.told("restored"):  # each server has an id of its own
            (self._files.data / "auto.cnf").unlink(missing_ok=True)

    def data_bytes(self) -> int:
        """Bytes on disk of the loaded tables and their indexes; ServerError without a snapshot."""
        self._files.must_have_snapshot("measure")
        return occupied_bytes(self._files.kept / DATABASE)

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

    def _pristine(self) -> Path:
        site = self._site
        return pristine(site.entry, site.home, site.asked, site.user, self._report)
