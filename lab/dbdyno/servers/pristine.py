"""A version's freshly initialised data directory, made once and copied to every instance.

Initialising takes seconds and writes the same bytes each time; it is kept in the cache under the
version and those settings that cannot be changed later. It holds a root without password, so it is
closed to everybody but the lab, and a server never runs on it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError, ServerError
from dbdyno.servers import copying, places, process, provision, settings
from dbdyno.servers.bootstrap import system_tables_sql
from dbdyno.servers.catalog import CatalogEntry
from dbdyno.servers.families import Family, family_of
from dbdyno.servers.process import ServerUser
from dbdyno.servers.server_files import ServerFiles, files_of
from dbdyno.servers.words import error_lines, printed_log

INITIALISE_S_MAX: Final = 300
MARKER: Final = "identity.json"
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
    root = places.make_cache_folder("pristine")
    if not places.reachable(root, user):
        raise ProvisionError(
            f"the servers' user {user.name if user else ''} cannot reach the cache {root}",
            hint="name a folder that others may enter with DBDYNO_CACHE",
        )
    place = root / f"{entry.folder_name}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    try:
        with provision.locked(root / f"{place.name}.lock", report):
            if not (place / MARKER).is_file():
                report(f"{entry.reference}: initialising a data directory")
                shutil.rmtree(place, ignore_errors=True)
                _make(entry, home, deciding, user, place, identity)
    except OSError as error:
        raise ProvisionError(
            f"a data directory of {entry.reference} cannot be kept in the cache {root}",
            found=str(error),
            hint="check the folder's free space, or name another one with DBDYNO_CACHE",
        ) from error
    return place / "data"


def _make(
    entry: CatalogEntry,
    home: Path,
    deciding: Mapping[str, str],
    user: ServerUser | None,
    place: Path,
    identity: str,
) -> None:
    with provision.fresh_folder(place) as outer:
        outer.chmod(0o711)
        work = outer / "server"
        folders = [work, work / "tmp", *_data_folders(entry, work)]
        for folder in folders:
            folder.mkdir()
        for folder in reversed(folders):  # nothing is changed below what is given away
            process.give_to(folder, user, 0o700)
        _initialise(entry, home, deciding, user, work)
        fresh = outer / "fresh"
        fresh.mkdir(mode=0o700)
        copying.copy_tree(work / "data", fresh / "data", owner=None)  # flushed, and the lab's own
        (fresh / "data" / "auto.cnf").unlink(missing_ok=True)  # its copies get ids of their own
        (fresh / MARKER).write_text(identity)
        fresh.rename(place)


def _data_folders(entry: CatalogEntry, work: Path) -> list[Path]:
    """What must be there before: a bootstrapping server finds its folders, others make them."""
    if _family(entry).initialised_by == "initialize":
        return []
    return [work / "data", work / "data" / "mysql"]


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
    try:
        code: int | None = running.wait(INITIALISE_S_MAX)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        running.kill()
        running.wait()
    if code != 0:
        ending = "took too long" if code is None else f"exit code {code}"
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
