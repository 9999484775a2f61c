"""A PostgreSQL version's freshly made data directory, made by initdb once and copied from then on.

Its administrator gets a random password that is forgotten at once: he logs in through the socket as
the system's user that the lab is. Texts are compared by their bytes (locale C), so that no two
machines order them differently by the C library they happen to have.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from dbdyno.errors import ServerError
from dbdyno.servers import process
from dbdyno.servers.local.pristine import Making, kept, trouble
from dbdyno.servers.local.words import last_lines, printed_log
from dbdyno.servers.local.work_files import write_private
from dbdyno.servers.postgres import postgres_settings
from dbdyno.servers.postgres.server import ADMIN
from dbdyno.servers.process import ServerUser
from dbdyno.servers.programs.catalog_entry import CatalogEntry


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
    making = Making(identity, lambda work: _initialise(entry, home, options, user, work))
    return kept(entry, making, user, report)


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
    ending = trouble(running)
    if ending is not None:
        raise ServerError(
            f"{entry.reference}: initdb could not make a data directory ({ending})",
            wanted=" ".join(options) or None,
            found=last_lines(work) or "it printed nothing",
        )
