"""A PostgreSQL version's freshly made data directory, made by initdb once and copied from then on.

Its administrator gets a random password that is forgotten at once: he logs in through the socket as
the system's user that the lab is. Texts are compared by their bytes (locale C), so that no two
machines order them differently by the C library they happen to have.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError, ServerError
from dbdyno.servers import copying, places, postgres_settings, process, provision
from dbdyno.servers.catalog_entry import CatalogEntry
from dbdyno.servers.postgres import ADMIN
from dbdyno.servers.process import ServerUser
from dbdyno.servers.words import last_lines, printed_log
from dbdyno.servers.work_files import write_private

INITIALISE_S_MAX: Final = 300
MARKER: Final = "identity.json"


def pristine(
    entry: CatalogEntry,
    home: Path,
    asked: Mapping[str, str],
    user: ServerUser | None,
    report: Callable[[str], None],
) -> Path:
    """The pristine data directory for these settings, made first if need be; only to be copied.

    Raises:
        ServerError: initdb could not make it; quotes what it printed.
        ProvisionError: the cache cannot be used.
    """
    options = postgres_settings.initdb_options(entry, asked)
    identity = json.dumps({"programs": entry.identity, "initdb": options})
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
                _make(entry, home, options, user, place, identity)
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
    options: list[str],
    user: ServerUser | None,
    place: Path,
    identity: str,
) -> None:
    with provision.fresh_folder(place) as outer:
        outer.chmod(0o711)
        work = outer / "server"
        work.mkdir()
        process.give_to(work, user, 0o700)
        _initialise(entry, home, options, user, work)
        fresh = outer / "fresh"
        fresh.mkdir(mode=0o700)
        copying.copy_tree(work / "data", fresh / "data", owner=None)  # flushed, and the lab's own
        (fresh / MARKER).write_text(identity)
        fresh.rename(place)


def _initialise(
    entry: CatalogEntry, home: Path, options: list[str], user: ServerUser | None, work: Path
) -> None:
    forgotten = write_private(work / "password", secrets.token_hex(24) + "\n", user)
    command = [
        *(str((home / entry.program).with_name("initdb")), "-D", str(work / "data")),
        *("-U", ADMIN.user, f"--pwfile={forgotten}", "--auth=scram-sha-256"),
        *("--encoding=UTF8", "--locale=C", "--no-sync", *options),
    ]
    running = process.spawn(command, work, user, printed_log(work))
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
            f"{entry.reference}: initdb could not make a data directory ({ending})",
            wanted=" ".join(options) or None,
            found=last_lines(work) or "it printed nothing",
        )
