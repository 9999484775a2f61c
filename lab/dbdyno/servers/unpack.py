"""Takes a server's programs out of a jar without trusting the archive.

Archives come from strangers: a member may name a place outside the folder, link out of it, carry a
set-user-ID bit or grow without end. Only plain files, folders and links that stay inside are taken;
links are made last, so no file is ever written through one.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import tarfile
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError
from dbdyno.servers.places import make_open

UNPACKED_BYTES_MAX: Final = 4 * 1024**3
MODE_TAKEN: Final = 0o755  # drops set-user-ID, set-group-ID, sticky and foreign write bits


def unpack(jar: Path, member: str, target: Path, left_out: Collection[str] = ()) -> None:
    """Unpack the tar archive `member` of `jar`, but for `left_out`, into the empty folder `target`.

    Raises:
        ProvisionError: no such member, a damaged archive, or a member that is not safe.
    """
    try:
        with (
            zipfile.ZipFile(jar) as outer,
            outer.open(member) as inner,
            tarfile.open(fileobj=inner, mode="r|gz") as archive,
        ):
            _take_all(archive, target, left_out)
    except KeyError as error:
        raise ProvisionError(f"{jar.name} holds no {member}") from error
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
        raise ProvisionError(f"{jar.name} cannot be unpacked: {error}") from error


def _take_all(archive: tarfile.TarFile, target: Path, left_out: Collection[str]) -> None:
    links: list[tuple[Path, str]] = []
    taken_bytes = 0
    for item in archive:
        if item.name in left_out:
            continue
        place = target / _safe_name(item.name)
        taken_bytes += item.size
        if taken_bytes > UNPACKED_BYTES_MAX:
            raise _unsafe(item.name, f"the archive is larger than {UNPACKED_BYTES_MAX} bytes")
        if item.isdir():
            make_open(place)
        elif item.issym():
            links.append((place, _safe_link(item)))
        elif item.isfile():
            _take_file(archive, item, place)
        else:
            raise _unsafe(item.name, "it is neither a file, a folder nor a symbolic link")
    for place, destination in links:
        make_open(place.parent)
        place.symlink_to(destination)


def _take_file(archive: tarfile.TarFile, item: tarfile.TarInfo, place: Path) -> None:
    make_open(place.parent)
    source = archive.extractfile(item)
    if source is None:
        raise _unsafe(item.name, "it has no content")
    with source, place.open("xb") as written:
        shutil.copyfileobj(source, written, 1 << 20)
        written.flush()
        os.fsync(written.fileno())
    place.chmod((item.mode & MODE_TAKEN) | 0o644)


def _safe_name(name: str) -> str:
    """The member's path if it stays in the folder it is unpacked to."""
    if name.startswith("/") or "\0" in name or ".." in name.split("/"):
        raise _unsafe(name, "its path leads out of the folder")
    return posixpath.normpath(name)


def _safe_link(item: tarfile.TarInfo) -> str:
    """Where a symbolic link points, if that is inside the folder."""
    end = posixpath.normpath(posixpath.join(posixpath.dirname(item.name), item.linkname))
    if item.linkname.startswith("/") or end == ".." or end.startswith("../"):
        raise _unsafe(item.name, f"it is a link out of the folder, to {item.linkname}")
    return item.linkname


def _unsafe(name: str, reason: str) -> ProvisionError:
    return ProvisionError(
        f"the archive is not safe to unpack: {name!r}: {reason}",
        hint="do not use this download; nothing of it was kept",
    )
