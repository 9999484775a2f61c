"""Cache of freshly initialised data directories: each is made once and copied from then on.

A data directory is named by the inputs of its bytes, and counts once its marker is written, last of
all, and while its files have the checksums of that time. The product's own program makes it as the
servers' user in a temporary folder; the cache keeps the lab's own copy, closed to everybody else,
and a server never runs on it.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError, ServerError
from dbdyno.files import hold, remove_tree, temporary_folder
from dbdyno.servers.local import files
from dbdyno.servers.local.files import make_folders
from dbdyno.servers.process import ServerUser
from dbdyno.servers.programs import places, provision
from dbdyno.servers.programs.catalog import CatalogEntry

INITIALISE_S_MAX: Final = 300
MARKER: Final = "identity.json"


@dataclass(frozen=True)
class Making:
    """Recipe of a product's data directory.

    Attributes:
        identity: inputs of its bytes, as text; another text is another directory.
        initialise: fills ``data`` in the given working folder; ServerError on failure.
        folders: needed in the working folder beforehand, parents first.
        left_out: files of ``data`` that its copies must not share.
    """

    identity: str
    initialise: Callable[[Path], None]
    folders: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def kept(
    entry: CatalogEntry, making: Making, user: ServerUser | None, report: Callable[[str], None]
) -> Path:
    """The pristine data directory, made first if need be; only to be copied.

    Raises:
        ServerError: it could not be initialised.
        ProvisionError: the cache cannot be used.
    """
    root = places.make_cache_folder(places.PRISTINE)
    if not places.reachable(root, user):
        raise ProvisionError(
            f"the servers' user {user.name if user else ''} cannot reach the cache {root}",
            hint="name a folder that others may enter with DBDYNO_CACHE",
        )
    digest = hashlib.sha256(making.identity.encode()).hexdigest()
    place = root / f"{entry.folder_name}-{digest[:12]}"
    with provision.making(place, f"a data directory of {entry.reference}", report):
        if not _is_whole(place):
            report(f"{entry.reference}: initialising a data directory")
            remove_tree(place)
            _make(making, user, place)
        hold(place)
    return place / "data"


def _is_whole(place: Path) -> bool:
    """Test that every file is as it was made. The copy that follows finds them in memory."""
    try:
        checksums = json.loads((place / files.CHECKSUMS).read_text())
        files.zeros_of(place)
        return (place / MARKER).is_file() and checksums == files.checksums_of(place / "data")
    except (OSError, ValueError):
        return False


def finish(
    running: subprocess.Popen[bytes], failure: str, wanted: str, log: Callable[[], str]
) -> None:
    """Wait for the initialising program; ServerError with its log unless it succeeds."""
    try:
        ending = f"exit code {running.wait(INITIALISE_S_MAX)}"
    except subprocess.TimeoutExpired:
        ending = "took too long"
    finally:
        running.kill()
        running.wait()
    if ending != "exit code 0":
        raise ServerError(f"{failure} ({ending})", wanted=wanted or None, found=log())


def _make(making: Making, user: ServerUser | None, place: Path) -> None:
    with temporary_folder(place.parent) as outer:
        outer.chmod(0o711)
        work = outer / "server"
        make_folders([work, *(work / name for name in making.folders)], user)
        making.initialise(work)
        for name in making.left_out:
            files.remove_file(work / "data" / name)
        fresh = outer / "fresh"
        fresh.mkdir(mode=0o700)
        files.keep(work / "data", fresh)  # flushed, and the lab's own
        (fresh / MARKER).write_text(making.identity)
        fresh.rename(place)
