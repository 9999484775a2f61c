"""A version's freshly initialised data directory, made once and copied to every instance.

Initialising takes seconds and writes the same bytes each time; it is kept in the cache under the
version and those settings that cannot be changed later. It holds a root without password, so it is
closed to everybody but the lab, and a server never runs on it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.servers import process
from dbdyno.servers.local.pristine import Making, kept, trouble
from dbdyno.servers.local.words import error_lines, printed_log
from dbdyno.servers.mysql import settings
from dbdyno.servers.mysql.bootstrap import system_tables_sql
from dbdyno.servers.mysql.versions import Family, family_of
from dbdyno.servers.process import ServerUser
from dbdyno.servers.programs.catalog_entry import CatalogEntry
from dbdyno.servers.programs.server_files import ServerFiles, files_of

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
