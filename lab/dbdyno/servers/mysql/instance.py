"""Files of a MySQL or MariaDB: making of a data directory, size of the load's tables.

`local.server` decides when files may be used; the folders themselves are in `local.files`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from dbdyno.errors import ProvisionError
from dbdyno.plan.settings import SettingValue, size_bytes
from dbdyno.servers import process
from dbdyno.servers.axes import MIB
from dbdyno.servers.base import DATABASE, MYSQL
from dbdyno.servers.local.files import remove_file
from dbdyno.servers.local.pristine import Making, finish
from dbdyno.servers.local.server import (
    ProductSettings,
    Site,
    StartedInstance,
    error_lines,
    printed_log,
)
from dbdyno.servers.mysql import server, settings
from dbdyno.servers.mysql.server import MysqlServer
from dbdyno.servers.mysql.versions import Family, family_of
from dbdyno.servers.programs.catalog import CatalogEntry
from dbdyno.servers.programs.identify import files_of

LOG_FILE_SIZE: Final = "innodb_log_file_size"


class MysqlInstance(StartedInstance[MysqlServer]):
    """Files and server of a MySQL or MariaDB; a replica's lie below its primary's."""

    driver = MYSQL
    rules: ClassVar[ProductSettings] = settings
    beside = ("tmp",)

    def restore(self) -> None:
        super().restore()
        with self._files.os_errors("restored"):  # each server has an id of its own
            remove_file(self._files.data / "auto.cnf")

    def data_bytes(self) -> int:
        """Bytes of the snapshot's tables; ServerError if they have no files of their own."""
        self._must_have_snapshot("measure")
        settings.check_tables_apart(self.spec.label, self._site.requested)
        return self._files.laid_bytes(DATABASE)

    def loading_keys(self) -> dict[str, SettingValue]:
        """A redo log of another size, so that the next start makes a new, empty redo log.

        A server replaces a redo log of another size than its own: MySQL 5.7 manual, "Redo Log".
        Versions with a switch write no redo log while rows are loaded.
        """
        bytes_asked = size_bytes(self._site.requested.get(LOG_FILE_SIZE, ""))
        if bytes_asked is None or _family(self._site.entry).redo_switch:
            return {}
        return {LOG_FILE_SIZE: bytes_asked + MIB}

    def _making(self) -> Making:
        return making(self._site)

    def _start_on(self, site: Site, port: int) -> MysqlServer:
        return server.start(site, port)


# A fresh data directory. It holds a root without password, so it is closed to everybody but the
# lab, and a server never runs on it.


QUIET: Final = {"log_bin": "OFF", "performance_schema": "OFF", "ssl": "OFF"}


def making(site: Site) -> Making:
    """Recipe of a version's data directory for the settings that cannot be changed later."""
    deciding = settings.at_initialisation(site.requested)
    identity = {"programs": site.entry.identity, "settings": deciding}
    bootstraps = _family(site.entry).from_sql
    return Making(
        json.dumps(identity, sort_keys=True),
        lambda work: _initialise(site, deciding, work),
        folders=("tmp", "data", "data/mysql") if bootstraps else ("tmp",),  # others make them
        left_out=("auto.cnf",),  # its copies get ids of their own
    )


def _initialise(site: Site, deciding: Mapping[str, str], work: Path) -> None:
    entry = site.entry
    where = settings.places_of(entry, site.home, work, work / "my.sock")
    config = work.parent / "my.cnf"  # holds no secret; the server only reads it
    config.write_text(settings.render({**QUIET, **deciding, **where}, _family(entry)))
    config.chmod(0o644)
    files = files_of(site.home / entry.program)
    fed, order = process.DEV_NULL, "--initialize-insecure"
    if _family(entry).from_sql:
        fed, order = work.parent / "system_tables.sql", "--bootstrap"
        fed.write_text(system_tables_sql(files.share))
    command = [str(files.program), f"--defaults-file={config}", order]
    log = printed_log(work)
    running = process.spawn(command, work, site.user, log, fed=fed, libraries=files.libraries)
    failure = f"{entry.reference}: the server could not initialise a data directory"
    wanted = ", ".join(f"{name} = {text}" for name, text in deciding.items())
    finish(running, failure, wanted, lambda: error_lines(work))


def _family(entry: CatalogEntry) -> Family:
    return family_of(entry.product, entry.version_numbers)


# The system tables of a server that cannot initialise itself: MySQL 5.6 and every MariaDB. Their
# own script, which needs a shell and a host name that resolves, feeds SQL to ``--bootstrap``: here
# the SQL is fed directly, and accounts without a password, apart from root's own, are removed.


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
    """SQL for ``--bootstrap``, from the files in a server's `share` folder.

    Raises:
        ProvisionError: the files are missing.
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
    """A part's text; empty if this version lacks the part."""
    return path.read_text("utf-8", "replace") if path.is_file() else ""
