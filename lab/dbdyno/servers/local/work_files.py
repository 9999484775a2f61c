"""Files and folders that the lab makes for a server inside folders that are the server's own.

As root the lab writes where an unprivileged user may put links, so nothing is ever written through
one; and what is for the server alone is closed to everybody else from the first byte on.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.servers import process
from dbdyno.servers.process import ServerUser

SOCKET_BYTES_MAX: Final = 107  # of a unix socket's path


def write_private(path: Path, text: str, user: ServerUser | None) -> Path:
    """A new file that only the server's user can read, in place of what was there."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w") as written:
        if user is not None:
            os.fchown(handle, user.uid, user.gid)
        written.write(text)
    return path


def make_folders(folders: Sequence[Path], user: ServerUser | None) -> None:
    """New folders for the server alone, each after the one that it lies in."""
    for folder in folders:
        folder.mkdir()
    for folder in reversed(folders):  # nothing is changed below what is given away
        process.give_to(folder, user, 0o700)


def socket_place(
    label: str, work: Path, name: str, user: ServerUser | None, *, commas: bool
) -> Path:
    """A socket of this name in the working folder, or in a short one if its path will not do.

    Args:
        commas: whether one may be in the path; libpq takes such a path for a list of hosts.

    Raises:
        ServerError: the folder for temporary files will not do either.
    """
    if _will_do(work / name, commas):
        return work / name
    short = Path(tempfile.mkdtemp(prefix="dbdyno-"))
    if not _will_do(short / name, commas):
        short.rmdir()
        unless, better = ("", "shorter") if commas else (", and no comma", "shorter and plainer")
        raise ServerError(
            f"{label}: a socket's path may have {SOCKET_BYTES_MAX} bytes at most{unless}",
            found=str(short / name),
            hint=f"set TMPDIR to a folder with a {better} name",
        )
    process.give_to(short, user, 0o700)
    return short / name


def _will_do(path: Path, commas: bool) -> bool:
    return len(os.fsencode(path)) <= SOCKET_BYTES_MAX and (commas or "," not in str(path))
