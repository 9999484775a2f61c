"""A MySQL or MariaDB system's files and the one server that may run on them.

What a start may change, and what decides the bytes of a data directory, is said here; when files
may be used is said in `local.server`, the folders themselves are in `local.files`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError, ServerError, UsageError
from dbdyno.plan.settings import OptionValue
from dbdyno.servers import process
from dbdyno.servers.base import DATABASE, ServerSpec
from dbdyno.servers.local.files import InstanceFiles, occupied_bytes, remove_file
from dbdyno.servers.local.pristine import Making, kept, trouble
from dbdyno.servers.local.server import Site, StartedInstance, error_lines, printed_log
from dbdyno.servers.mysql import server, settings
from dbdyno.servers.mysql.server import MysqlServer
from dbdyno.servers.mysql.versions import Family, family_of
from dbdyno.servers.process import HERE, Place, ServerUser
from dbdyno.servers.programs import places
from dbdyno.servers.programs.catalog import CatalogEntry
from dbdyno.servers.programs.identify import ServerFiles, files_of


class MysqlInstance(StartedInstance[MysqlServer]):
    """Made by `open.instance`; not shared between labs."""

    def __init__(
        self,
        spec: ServerSpec,
        entry: CatalogEntry,
        home: Path,
        folder: Path,
        report: Callable[[str], None],
        copy: Path | None = None,
    ) -> None:
        """As `open.instance` says.

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
        return self._start(site, server.start)

    def restore(self) -> None:
        """The data directory becomes the snapshot again, by checksum; ServerError if it cannot."""
        super().restore()
        with self._files.told("restored"):  # each server has an id of its own
            remove_file(self._files.data / "auto.cnf")

    def data_bytes(self) -> int:
        """Bytes on disk of the loaded tables and their indexes; ServerError without a snapshot."""
        self._must_have_snapshot("measure")
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


# A version's freshly initialised data directory, made once and copied to every instance.
#
# Initialising takes seconds and writes the same bytes each time; it is kept in the cache under
# the version and those settings that cannot be changed later. It holds a root without password,
# so it is closed to everybody but the lab, and a server never runs on it.


QUIET: Final = {"log_bin": "OFF", "performance_schema": "OFF", "ssl": "OFF"}


def pristine(
    entry: CatalogEntry,
    home: Path,
    asked: Mapping[str, str],
    user: ServerUser | None,
    report: Callable[[str], None],
) -> Path:
    """The pristine data directory for these settings, made first if need be; only to be copied.

    Raises:
        ServerError: the server could not initialise it; quotes its log.
        ProvisionError: the cache cannot be used.
    """
    deciding = settings.at_initialisation(asked)
    identity = json.dumps({"programs": entry.identity, "settings": deciding}, sort_keys=True)
    making = Making(
        identity,
        lambda work: _initialise(entry, home, deciding, user, work),
        folders=("tmp", *_data_folders(entry)),
        left_out=("auto.cnf",),  # its copies get ids of their own
    )
    return kept(entry, making, user, report)


def _data_folders(entry: CatalogEntry) -> tuple[str, ...]:
    """What must be there before: a bootstrapping server finds its folders, others make them."""
    if _family(entry).initialised_by == "initialize":
        return ()
    return "data", "data/mysql"


def _initialise(
    entry: CatalogEntry,
    home: Path,
    deciding: Mapping[str, str],
    user: ServerUser | None,
    work: Path,
) -> None:
    where = settings.places_of(entry, home, work, work / "my.sock")
    config = work.parent / "my.cnf"  # holds no secret; the server only reads it
    config.write_text(settings.render({**QUIET, **deciding, **where}, _family(entry)))
    config.chmod(0o644)
    running = _spawn(entry, files_of(home / entry.program), config, user, work)
    ending = trouble(running)
    if ending is not None:
        raise ServerError(
            f"{entry.reference}: the server could not initialise a data directory ({ending})",
            wanted=", ".join(f"{name} = {text}" for name, text in deciding.items()) or None,
            found=error_lines(work),
        )


def _spawn(
    entry: CatalogEntry, found: ServerFiles, config: Path, user: ServerUser | None, work: Path
) -> subprocess.Popen[bytes]:
    fed, order = process.NOTHING, "--initialize-insecure"
    if _family(entry).initialised_by == "bootstrap":
        fed, order = work.parent / "system_tables.sql", "--bootstrap"
        fed.write_text(system_tables_sql(found.share))
    command = [str(found.program), f"--defaults-file={config}", order]
    log = printed_log(work)
    return process.spawn(command, work, user, log, fed=fed, libraries=found.libraries)


def _family(entry: CatalogEntry) -> Family:
    return family_of(entry.product, entry.version_numbers)


# The system tables of a server that cannot initialise itself: MySQL 5.6 and every MariaDB.
#
# Their makers ship a script that feeds SQL to the server's ``--bootstrap``. The script wants a
# shell, programs beside it and a name that resolves; the SQL wants nothing. So the SQL is fed
# directly, and the accounts that need no password, apart from root's own, are taken out at the
# end.


WANTED: Final = ("{maker}_system_tables.sql", "{maker}_system_tables_data.sql")
PARTS: Final = (  # in this order, each where the version has it; MariaDB renamed its own in 11.0
    "{maker}_system_tables.sql",
    "{maker}_performance_tables.sql",
    "{maker}_system_tables_data.sql",
    "fill_help_tables.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "{maker}_sys_schema.sql",
)
MAKERS: Final = ("mariadb", "mysql")
BEFORE: Final = ("USE mysql;", "SET @auth_root_socket=NULL;", "SET @skip_auth_anonymous=1;")
STRANGERS: Final = "Host <> 'localhost' OR User = ''"
ACCOUNTS_SINCE_10_4: Final = "global_priv"  # mysql.user is a view of it


def system_tables_sql(share: Path) -> str:
    """Everything to feed to ``--bootstrap``, from the SQL in a server's `share` folder.

    Raises:
        ProvisionError: the files are not there.
    """
    for maker in MAKERS:
        if all((share / name.format(maker=maker)).is_file() for name in WANTED):
            texts = [_read(share / name.format(maker=maker)) for name in PARTS]
            break
    else:
        raise ProvisionError(
            f"{share} lacks the SQL that makes a server's system tables",
            wanted=" and ".join(name.format(maker="mysql") for name in WANTED),
            found=", ".join(sorted(path.name for path in share.glob("*.sql"))) or "no SQL",
            hint="unpack the whole archive of the server, with its share folder",
        )
    table = ACCOUNTS_SINCE_10_4 if ACCOUNTS_SINCE_10_4 in texts[0] else "user"
    after = [f"DELETE FROM mysql.{table} WHERE {STRANGERS};"]
    after += [
        f"DELETE FROM mysql.proxies_priv WHERE {STRANGERS};",
        "DELETE FROM mysql.db WHERE User = '';",
    ]
    return "\n".join([*BEFORE, *texts, "USE mysql;", *after, ""])


def _read(path: Path) -> str:
    """A part's text; empty where this version has no such part."""
    return path.read_text("utf-8", "replace") if path.is_file() else ""
