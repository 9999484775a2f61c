"""The cache: folders of fetched servers and their pristine data, and who may enter and remove them.

Root's home is closed to everyone else, and as root the servers run as another user: then the cache
is under /var/cache, and an instance meant for a closed folder works in the cache instead.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError, StoreError, UsageError
from dbdyno.files import (
    locked,
    occupied_bytes,
    refuse_shared,
    remove_left,
    remove_tree,
    remove_unheld,
)
from dbdyno.servers.process import ServerUser

CACHE_FOR_ROOT: Final = Path("/var/cache/dbdyno")
STANDS_FOR: Final = "stands-for"
INSTEAD: Final = "name another folder with DBDYNO_CACHE"
LIMIT: Final = "DBDYNO_CACHE_GB_MAX"
SERVERS: Final = "servers"
PRISTINE: Final = "pristine"
MAVEN: Final = "maven"
INSTANCES: Final = "instances"
FLEET: Final = "fleet"


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
    """A folder inside the cache, made if need be, writable by nobody else.

    Raises:
        ProvisionError: the folder cannot be made, or belongs to or is open to somebody else: its
            content is run as programs.
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


def bytes_max() -> int | None:
    """Largest size of the cache, ``$DBDYNO_CACHE_GB_MAX``; None without a limit.

    Raises:
        UsageError: the variable is no number above 0.
    """
    text = os.environ.get(LIMIT)
    if not text:
        return None
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) and float(text) > 0:
        return round(float(text) * 1e9)
    raise UsageError(f"{LIMIT} is no size in GB", wanted="a number, such as 20", found=repr(text))


def excess_bytes() -> float:
    """Bytes of the cache beyond its limit; below 0 within it, without a limit without end."""
    most = bytes_max()
    return -math.inf if most is None else occupied_bytes(cache_folder()) - most


def tell_excess(report: Callable[[str], None]) -> None:
    """Report a cache larger than its limit, with the commands that free it."""
    if (excess := excess_bytes()) > 0:
        report(
            f"the cache {cache_folder()} takes {excess / 1e6:.0f} MB more than {LIMIT} allows; to "
            "free it: dbdyno runs clean, dbdyno servers clean"
        )


def lock_of(place: Path) -> Path:
    """Lock file of whoever makes or removes a folder in the cache."""
    return place.with_name(f"{place.name}.lock")


def programs() -> list[Path]:
    """Folders with programs, pristine data and Maven's downloads."""
    kinds = (cache_folder() / kind for kind in (SERVERS, PRISTINE))
    folders = [place for kind in kinds for place in sorted(kind.glob("[!.]*")) if place.is_dir()]
    return [*folders, *(place for place in [cache_folder() / MAVEN] if place.is_dir())]


def remove(place: Path) -> bool:
    """Remove a folder of `programs` unless a process uses it (`files.hold`); True if it is gone."""
    try:
        with locked(lock_of(place), place.name):
            return remove_unheld(place)
    except StoreError:  # it is being made
        return False


def make_room(report: Callable[[str], None]) -> None:
    """Remove folders of `programs` from a cache beyond its limit, the longest unused first."""
    excess = excess_bytes()
    for place in sorted(programs(), key=_used_at):
        size = occupied_bytes(place)
        if excess > 0 and remove(place):
            excess -= size
            name = place.relative_to(cache_folder())
            report(f"removed {name}, {size / 1e6:.0f} MB, as the cache exceeds {LIMIT}")


def _used_at(place: Path) -> float:
    """Time of the last use, at which its lock was taken."""
    for path in (lock_of(place), place):
        with suppress(OSError):  # another dbdyno may remove it meanwhile
            return path.stat().st_mtime
    return 0.0


def clear() -> None:
    """Remove the remains of killed processes from the cache and the system's temporary folder."""
    cache = cache_folder()
    kinds = (cache, cache / SERVERS, cache / PRISTINE)
    with suppress(OSError, StoreError):
        remove_left(Path(tempfile.gettempdir()))
        refuse_shared(cache, "the cache folder")
        for parent in (*kinds, *cache.glob(f"{FLEET}/*")):
            remove_left(parent)
        for note in cache.glob(f"{INSTANCES}/*/{STANDS_FOR}"):
            if not _is_needed(note):
                remove_tree(note.parent)


def make_open(folder: Path) -> None:
    """Make a folder and its parents, for others to enter but not change, whatever the umask.

    Existing folders stay as they are.
    """
    if folder.is_dir():
        return
    make_open(folder.parent)
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)


def reachable(folder: Path, user: ServerUser | None) -> bool:
    """True if the server's user may walk down to a folder; always if servers run as ourselves."""
    if user is None:
        return True
    for facts in (place.stat() for place in (folder, *folder.parents) if place.exists()):
        is_owner, is_of_group = facts.st_uid == user.uid, facts.st_gid == user.gid
        enters = stat.S_IXUSR if is_owner else stat.S_IXGRP if is_of_group else stat.S_IXOTH
        if not facts.st_mode & enters:
            return False
    return True


def instance_folder(folder: Path, user: ServerUser | None) -> Path:
    """Make an instance's working folder: `folder`, or one in the cache if it is closed.

    Raises:
        ProvisionError: the folder cannot be made, or the user cannot reach the cache either.
    """
    original = folder.absolute()
    try:
        original.mkdir(parents=True, exist_ok=True)
        if user is not None:
            original.chmod(original.stat().st_mode | 0o011)
    except OSError as error:
        raise ProvisionError(f"{original} cannot be made: {error.strerror}") from error
    if user is None or reachable(original, user):
        return original.resolve()
    return _instead_of(original, user)


def _instead_of(original: Path, user: ServerUser) -> Path:
    """A folder in the cache for a closed one."""
    root = make_cache_folder(INSTANCES)
    instead = root / hashlib.sha256(str(original).encode()).hexdigest()[:16]
    make_open(instead)
    (instead / STANDS_FOR).write_text(str(original))
    if not reachable(instead, user):
        raise ProvisionError(
            f"the servers' user {user.name} can reach neither {original} nor {instead}",
            hint="name a folder that others may enter with DBDYNO_CACHE",
        )
    return instead.resolve()


def _is_needed(note: Path) -> bool:
    """True if the original folder still exists, or another lab is removing the note."""
    try:
        return Path(note.read_text()).exists()
    except FileNotFoundError:
        return True
