"""Copies a stopped server's data directory, so that every block begins with the same bytes on disk.

Every byte is copied, though some file systems could share blocks (reflink), as `copy_file_range`
does by itself: the first write to a shared block pays for finding space, and a trial would measure
that. What a file does not occupy stays unoccupied, and what it occupies stays so: a redo log full
of zeros must not become a hole. Everything is flushed before the copy counts, since writing it back
later would disturb the measurement. The file system is flushed once, at the end: PostgreSQL has a
thousand small files, which took 5 s when each was flushed by itself, and take 0.6 s so.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.servers.process import ServerUser

RESERVE_BYTES: Final = 64 * 1024**2  # left free beside the copy
CHUNK_BYTES: Final = 1 << 30


def copy_tree(source: Path, target: Path, owner: ServerUser | None) -> None:
    """Copy folder `source` to the new folder `target`, flushed to disk, as `owner`'s own.

    Raises:
        ServerError: the disk is too small, the source holds more than files and folders, or the
            copy failed; a half-made target is removed.
    """
    check_space(source, target.parent)
    try:
        with _flushed(target.parent):
            _copy_folder(source, target, owner)
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise ServerError(f"{source} cannot be copied to {target}: {error.strerror}") from error
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def check_space(source: Path, target: Path) -> None:
    """There is room for a copy of `source` below `target`; ServerError says needed and free."""
    needed = occupied_bytes(source) + RESERVE_BYTES
    free = shutil.disk_usage(target).free
    if free < needed:
        raise ServerError(
            f"the disk is too full for a copy of {source}",
            wanted=f"{needed} bytes free at {target}",
            found=f"{free} bytes free",
            hint="make room, use fewer rows, or a workspace on another disk",
        )


def occupied_bytes(folder: Path) -> int:
    """Disk space that the files of a folder take."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def _copy_folder(source: Path, target: Path, owner: ServerUser | None) -> None:
    target.mkdir(mode=0o700)
    for item in sorted(source.iterdir()):
        kind = item.lstat().st_mode
        if stat.S_ISDIR(kind):
            _copy_folder(item, target / item.name, owner)
        elif stat.S_ISREG(kind):
            copy_file(item, target / item.name, owner)
        elif not stat.S_ISSOCK(kind):
            raise ServerError(f"{item} is neither a file nor a folder, so it is not copied")
    if owner is not None:
        os.chown(target, owner.uid, owner.gid)


def copy_file(source: Path, target: Path, owner: ServerUser | None) -> None:
    """Copy one file with its holes and its allocated zeros."""
    with open(source, "rb", opener=_unlinked) as read, target.open("xb") as written:
        facts = os.fstat(read.fileno())
        size = facts.st_size
        os.truncate(written.fileno(), size)
        if 0 < size <= facts.st_blocks * 512:  # space reserved but unwritten reads as a hole
            os.posix_fallocate(written.fileno(), 0, size)
        for start, end in _occupied(read.fileno(), size):
            _copy_range(read.fileno(), written.fileno(), start, end)
        os.fchmod(written.fileno(), 0o640)
        if owner is not None:
            os.fchown(written.fileno(), owner.uid, owner.gid)


def _unlinked(path: str, flags: int) -> int:
    """Opens the file itself, never what a link of that name points to."""
    return os.open(path, flags | os.O_NOFOLLOW)


def _occupied(read: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts of a file that are not holes, as (start, end)."""
    at = 0
    while at < size:
        try:
            start = os.lseek(read, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole is left
                return
            raise
        at = os.lseek(read, start, os.SEEK_HOLE)
        yield start, at


def _copy_range(read: int, written: int, start: int, end: int) -> None:
    os.lseek(written, start, os.SEEK_SET)
    while start < end:
        count = os.sendfile(written, read, start, min(CHUNK_BYTES, end - start))
        if count == 0:
            raise OSError(errno.EIO, "the file became shorter while it was copied")
        start += count


@contextmanager
def _flushed(folder: Path) -> Iterator[None]:
    """Flushes the folder's file system at the end.

    The handle is opened first: the kernel tells it of every write that failed from then on.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield
        if ctypes.CDLL(None, use_errno=True).syncfs(handle) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(handle)
