"""Where fetched servers and their pristine data are kept, and whether a server's user can go there.

Root's home is closed to everyone else, and as root the servers run as another user: then the cache
is under /var/cache, and an instance asked for in a closed folder works in the cache instead.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError
from dbdyno.files import refuse_shared, remove_tree
from dbdyno.servers.process import ServerUser

CACHE_FOR_ROOT: Final = Path("/var/cache/dbdyno")
STANDS_FOR: Final = "stands-for"
INSTEAD: Final = "name another folder with DBDYNO_CACHE"


def cache_folder() -> Path:
    """The cache: ``$DBDYNO_CACHE``, else /var/cache/dbdyno for root, else the user's own cache."""
    chosen = os.environ.get("DBDYNO_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    if os.geteuid() == 0:
        return CACHE_FOR_ROOT
    own = os.environ.get("XDG_CACHE_HOME")
    return (Path(own) if own else Path.home() / ".cache") / "dbdyno"


def make_cache_folder(*parts: str) -> Path:
    """A folder inside the cache, made if need be, that nobody else can write to.

    Raises:
        ProvisionError: the folder cannot be made, or belongs to or is open to somebody else: what
            lies there is run as a program.
    """
    cache = cache_folder()
    folder = cache.joinpath(*parts)
    try:
        make_open(folder)
        refuse_shared(cache, "the cache folder, from which programs run,", INSTEAD, ProvisionError)
    except OSError as error:
        raise ProvisionError(
            f"the cache folder {folder} cannot be used: {error.strerror}",
            hint=INSTEAD,
        ) from error
    return folder


def make_open(folder: Path) -> None:
    """Make a folder, and those above it, that others may enter but not change, whatever the umask.

    Folders that are there already stay as they are.
    """
    if folder.is_dir():
        return
    make_open(folder.parent)
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)


def reachable(folder: Path, user: ServerUser | None) -> bool:
    """Whether the server's user may walk down to a folder; True when servers run as ourselves."""
    if user is None:
        return True
    present = [place for place in (folder, *folder.parents) if place.exists()]
    return all(_may_enter(place.stat(), user) for place in present)


def instance_folder(folder: Path, user: ServerUser | None) -> Path:
    """Make the folder an instance works in: the one asked for, or one in the cache if it is closed.

    Raises:
        ProvisionError: the folder cannot be made, or the user cannot reach the cache either.
    """
    asked = folder.absolute()
    try:
        asked.mkdir(parents=True, exist_ok=True)
        if user is not None:
            asked.chmod(asked.stat().st_mode | 0o011)
    except OSError as error:
        raise ProvisionError(f"{asked} cannot be made: {error.strerror}") from error
    if user is None or reachable(asked, user):
        return asked.resolve()
    return _instead_of(asked, user)


def _instead_of(asked: Path, user: ServerUser) -> Path:
    """A folder in the cache that stands for a closed one; those of vanished ones are removed."""
    root = make_cache_folder("instances")
    for note in root.glob(f"*/{STANDS_FOR}"):
        if not _is_needed(note):
            remove_tree(note.parent)
    instead = root / hashlib.sha256(str(asked).encode()).hexdigest()[:16]
    make_open(instead)
    (instead / STANDS_FOR).write_text(str(asked))
    if not reachable(instead, user):
        raise ProvisionError(
            f"the servers' user {user.name} can reach neither {asked} nor {instead}",
            hint="name a folder that others may enter with DBDYNO_CACHE",
        )
    return instead.resolve()


def _is_needed(note: Path) -> bool:
    """Whether the folder asked for still exists; yes if another lab just removes the note."""
    try:
        return Path(note.read_text()).exists()
    except FileNotFoundError:
        return True


def _may_enter(facts: os.stat_result, user: ServerUser) -> bool:
    if facts.st_uid == user.uid:
        return bool(facts.st_mode & stat.S_IXUSR)
    if facts.st_gid == user.gid:
        return bool(facts.st_mode & stat.S_IXGRP)
    return bool(facts.st_mode & stat.S_IXOTH)
