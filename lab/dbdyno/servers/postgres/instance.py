"""Gives back the shared memory that a killed PostgreSQL left, as its own next start would.

A server that is stopped frees it. One that is killed, alone or with the lab, leaves a System V
segment of 56 bytes and a megabyte or two under /dev/shm; it would find them when it starts on the
same data again, but the lab removes that data. So the way the server goes is gone here: its pid
file names the segment, the segment names the control file, and that lists the other files. Nothing
is touched that another user owns or that a process still uses.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

SEGMENTS: Final = Path("/proc/sysvipc/shm")
SHARED_FILES: Final = Path("/dev/shm")  # noqa: S108 - PostgreSQL's choice
HEADER: Final = struct.Struct("=iiQQI")  # magic, creator, total size, free offset, control handle
HEADER_MAGIC: Final = 679834894
CONTROL: Final = struct.Struct("=III4x")  # magic, items, most items
CONTROL_MAGIC: Final = 0x9A503D32
ITEM: Final = struct.Struct("=II32x")  # handle, references, where it is
CONTROL_BYTES_MAX: Final = 1 << 24
CHILDREN_S_MAX: Final = 3.0
IPC_RMID: Final = 0
SHM_RDONLY: Final = 0o10000


class Segment(NamedTuple):
    """A row of the kernel's list of System V segments."""

    number: int
    creator: int
    users: int
    owner: int


def free(data: Path) -> None:
    """Frees what the dead server of this data directory left; does nothing if there is nothing.

    Its children may outlive it for a moment, and are waited for.
    """
    try:
        owner = data.stat().st_uid
        lines = (data / "postmaster.pid").read_text().splitlines()
        creator, number = int(lines[0]), int(lines[6].split()[1])
    except (OSError, ValueError, IndexError):
        return
    if not _unused(Segment(number, creator, 0, owner)):
        return
    handle = _control_handle(number, creator)
    if handle is not None:
        for name in [*_listed(SHARED_FILES / f"PostgreSQL.{handle}"), f"PostgreSQL.{handle}"]:
            _remove(SHARED_FILES / name, owner)
    ctypes.CDLL(None).shmctl(number, IPC_RMID, None)


def _unused(wanted: Segment) -> bool:
    """Whether this very segment is there and, soon at least, nobody uses it."""
    limit = time.monotonic() + CHILDREN_S_MAX
    while True:
        try:
            left = [s for s in segments(SEGMENTS.read_text()) if s.number == wanted.number]
        except (OSError, ValueError):
            return False
        if not left or left[0]._replace(users=0) != wanted:
            return False
        if left[0].users == 0:
            return True
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)


def segments(table: str) -> list[Segment]:
    """What /proc/sysvipc/shm lists."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return [Segment(int(r[1]), int(r[4]), int(r[6]), int(r[7])) for r in rows if len(r) > 7]


def _control_handle(number: int, creator: int) -> int | None:
    """What the control file is called by; None if this is no segment of a PostgreSQL's."""
    library = ctypes.CDLL(None)
    library.shmat.restype = ctypes.c_void_p
    library.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
    library.shmdt.argtypes = [ctypes.c_void_p]
    place = library.shmat(number, None, SHM_RDONLY)
    if place is None or place == ctypes.c_void_p(-1).value:
        return None
    try:
        magic, made_by, _, _, handle = HEADER.unpack(ctypes.string_at(place, HEADER.size))
    finally:
        library.shmdt(place)
    return handle if (magic, made_by) == (HEADER_MAGIC, creator) else None


def _listed(control: Path) -> Iterator[str]:
    """The names of the files that a control file lists."""
    try:
        with open(control, "rb", opener=_unlinked) as file:
            content = file.read(CONTROL_BYTES_MAX)
    except OSError:
        return
    if len(content) < CONTROL.size:
        return
    magic, count, _ = CONTROL.unpack_from(content)
    room = (len(content) - CONTROL.size) // ITEM.size
    if magic != CONTROL_MAGIC:
        return
    for at in range(min(count, room)):
        handle, references = ITEM.unpack_from(content, CONTROL.size + at * ITEM.size)
        if references:
            yield f"PostgreSQL.{handle}"


def _unlinked(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _remove(path: Path, owner: int) -> None:
    """Removes a shared file of this owner."""
    try:
        if re.fullmatch(r"PostgreSQL\.\d+", path.name) and path.lstat().st_uid == owner:
            path.unlink()
    except OSError:
        return
