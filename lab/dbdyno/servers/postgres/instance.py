"""Files of a PostgreSQL: making of a data directory, size of the load's tables, shared memory.

`local.server` decides when files may be used; the folders themselves are in `local.files`.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import secrets
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from dbdyno.files import open_file, opened_folder, private
from dbdyno.servers import process
from dbdyno.servers.base import PGSQL
from dbdyno.servers.local.files import read_file
from dbdyno.servers.local.pristine import Making, finish
from dbdyno.servers.local.server import (
    ProductSettings,
    Site,
    StartedInstance,
    last_lines,
    printed_log,
)
from dbdyno.servers.postgres import server, settings
from dbdyno.servers.postgres.server import ADMIN, PostgresServer, PostgresStandby

OWN_DATABASES: Final = frozenset({"1", "4", "5"})
"""Folders of template1, template0 and postgres; their numbers are fixed from 15 on."""


class PostgresInstance(StartedInstance[PostgresServer]):
    """Files and server of a PostgreSQL."""

    driver = PGSQL
    rules: ClassVar[ProductSettings] = settings

    def data_bytes(self) -> int:
        """Bytes of the snapshot's tables and indexes, its catalogs (8 MB) with them."""
        self._must_have_snapshot("measure")
        databases = (self._files.kept / "base").iterdir()
        names = [d.name for d in databases if d.name not in OWN_DATABASES]
        return sum(self._files.laid_bytes(f"base/{name}") for name in names)

    def _making(self) -> Making:
        return making(self._site)

    def _start_on(self, site: Site, port: int) -> PostgresServer:
        return server.start(site, port, PostgresServer)

    def _copy_aside(self) -> None:
        control = b""
        with suppress(OSError):
            control = read_file(self._files.work, CONTROL_FILE)
        last = last_segment(control, settings.segment_bytes(self._site.requested))
        if not (self._files.data / last).is_file():  # such as a control file of another layout
            last = ""
        self._files.snapshot(lambda path: is_behind(path, last))

    def _before_removal(self) -> None:
        free(self._files.data)


class StandbyInstance(PostgresInstance):
    """Files and server of a replica."""

    def _start_on(self, site: Site, port: int) -> PostgresServer:
        private(self._files.data / "standby.signal", "", site.user)
        return server.start(site, port, PostgresStandby)


# A fresh data directory. Its administrator gets a random password that is forgotten at once: he
# logs in through the socket as the system's user that the lab is. Texts are compared by their bytes
# (locale C), so that no two machines order them differently by the C library they happen to have.


def making(site: Site) -> Making:
    """Recipe of a version's data directory, by initdb with its own settings."""
    options = settings.initdb_options(site.entry, site.requested)
    identity = json.dumps({"programs": site.entry.identity, "initdb": options})
    return Making(identity, lambda work: _initialise(site, options, work))


def _initialise(site: Site, options: list[str], work: Path) -> None:
    forgotten = private(work / "password", secrets.token_hex(24) + "\n", site.user)
    command = [
        *(str((site.home / site.entry.program).with_name("initdb")), "-D", str(work / "data")),
        *("-U", ADMIN.user, f"--pwfile={forgotten}", *settings.INITDB, "--no-sync", *options),
    ]
    running = process.spawn(command, work, site.user, printed_log(work))
    failure = f"{site.entry.reference}: initdb could not make a data directory"
    finish(running, failure, " ".join(options), lambda: last_lines(work) or "it printed nothing")


# Segments behind the end of the write-ahead log are older ones under new names. A server writes
# over them without a look at their content, so a snapshot has zeros in their place.


CONTROL_FILE: Final = "data/global/pg_control"
LOG_SEGMENT: Final = re.compile(r"pg_wal/[0-9A-F]{24}")
LAST_CHECKPOINT: Final = struct.Struct("=16xI12xQ8xI")  # server's state, position, timeline
SHUT_DOWN: Final = 1
RECORD_BYTES_MAX: Final = 8192  # of a checkpoint; it may go on in the next segment


def last_segment(control: bytes, segment_bytes: int) -> str:
    """Path of the last needed segment of the write-ahead log; empty unless it was shut down.

    Args:
        control: content of ``pg_control``; these fields have been the same since version 11.
    """
    if len(control) < LAST_CHECKPOINT.size:
        return ""
    state, position, timeline = LAST_CHECKPOINT.unpack_from(control)
    if state != SHUT_DOWN:
        return ""
    number = (position + RECORD_BYTES_MAX) // segment_bytes
    log, segment = divmod(number, (1 << 32) // segment_bytes)
    return f"pg_wal/{timeline:08X}{log:08X}{segment:08X}"


def is_behind(path: str, last: str) -> bool:
    """Test for a segment of the log later than `last`, by its path in the data directory."""
    return bool(last) and LOG_SEGMENT.fullmatch(path) is not None and path > last


# Shared memory that a killed PostgreSQL left: a System V segment of 56 bytes and a megabyte or two
# under /dev/shm. It would free them when it starts on the same data again, but the lab removes the
# data. So the lab frees them as the server does: its pid file names the segment, the segment names
# the control file, and the control file lists the other files. Objects of another user or in use
# by a process are left alone.


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
    """Free the shared memory left by the dead server of this data directory, if any.

    Its children may outlive it for a moment, and are waited for.
    """
    try:
        owner = data.lstat().st_uid
        lines = read_file(data, "postmaster.pid").decode().splitlines()
        creator, number = int(lines[0]), int(lines[6].split()[1])
    except (OSError, ValueError, IndexError):
        return
    if not _unused(Segment(number, creator, 0, owner)):
        return
    handle = _control_handle(number, creator)
    if handle is not None:
        control = f"PostgreSQL.{handle}"
        for name in [*_listed(control, owner), control]:
            _remove(SHARED_FILES / name, owner)
    ctypes.CDLL(None).shmctl(number, IPC_RMID, None)


def _unused(wanted: Segment) -> bool:
    """True if this very segment exists and is, at least soon, unused."""
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
    """Parse /proc/sysvipc/shm."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return [Segment(int(r[1]), int(r[4]), int(r[6]), int(r[7])) for r in rows if len(r) > 7]


def _control_handle(number: int, creator: int) -> int | None:
    """Number of the control file; None unless the segment is a PostgreSQL's."""
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


def _listed(control: str, owner: int) -> Iterator[str]:
    """Names of the files that a control file of this owner lists."""
    try:
        with (
            opened_folder(SHARED_FILES) as folder,
            os.fdopen(open_file(folder, control, owner), "rb") as file,
        ):
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


def _remove(path: Path, owner: int) -> None:
    """Remove a shared file of this owner."""
    try:
        if re.fullmatch(r"PostgreSQL\.\d+", path.name) and path.lstat().st_uid == owner:
            path.unlink()
    except OSError:
        return
