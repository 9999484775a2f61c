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
import json
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.servers import process
from dbdyno.servers.process import ServerUser

# The folders of one instance: the running server's, and the snapshot that blocks begin with.
#
# Below the instance's folder, ``server`` belongs to the user the server runs as; ``snapshot``
# stays the lab's own, so a server that goes wrong cannot spoil what later blocks begin with. A
# snapshot counts once its marker is written, last of all; the marker names the programs and the
# settings that decided the bytes, so a snapshot of another version or format is never taken for
# ours.


MARKER: Final = "snapshot.json"


@dataclass(frozen=True)
class InstanceFiles:
    """What is done with an instance's files while no server runs on them.

    Attributes:
        label: the system, for messages.
        folder: the instance's; the rest lies below it.
        user: whose the running server's files are; None for our own.
        identity: what a snapshot must be of to be ours.
        beside: folders that a running server wants beside its data directory.
        copy: where the snapshot lies; None for below `folder`, another instance's for a replica.
    """

    label: str
    folder: Path
    user: ServerUser | None
    identity: Mapping[str, object]
    beside: tuple[str, ...] = ()
    copy: Path | None = None

    @property
    def work(self) -> Path:
        """The running server's folder."""
        return self.folder / "server"

    @property
    def data(self) -> Path:
        """The data directory in it."""
        return self.work / "data"

    @property
    def kept(self) -> Path:
        """The snapshot's data directory."""
        return self._copy / "data"

    def lay(self, source: Path) -> None:
        """The data directory becomes a copy of `source`; all else in the server's folder goes.

        Raises:
            ServerError: the file system refuses, or the disk is short.
        """
        self.clear()
        with self.told("laid out"):
            self._lay(source)

    def snapshot(self) -> None:
        """Copy the data aside, flushed; an older snapshot is replaced.

        Raises:
            ServerError: the file system refuses, or the disk is short.
        """
        with self.told("copied aside"):
            (self._copy / MARKER).unlink(missing_ok=True)  # first: half of it must not count
            shutil.rmtree(self._copy, ignore_errors=True)
            self._copy.mkdir(mode=0o700)
            copy_tree(self.data, self.kept, owner=None)
            keep(self.kept, self._copy / FILE)
            with (self._copy / MARKER).open("w") as marker:
                json.dump(self.identity, marker)
                marker.flush()
                os.fsync(marker.fileno())

    def has_snapshot(self) -> bool:
        """Whether a complete snapshot of this very server and format exists."""
        try:
            told = json.loads((self._copy / MARKER).read_text())
            return bool(told == self.identity and (self._copy / FILE).is_file())
        except (OSError, ValueError):
            return False

    def must_have_snapshot(self, wanted_for: str) -> None:
        """ServerError unless there is one to restore, to measure…"""
        if not self.has_snapshot():
            raise ServerError(f"{self.label}: there is no snapshot to {wanted_for}")

    def restore(self) -> None:
        """The data directory becomes the snapshot again, by checksum; ServerError if it cannot."""
        self.must_have_snapshot("restore")
        self.clear()
        with self.told("restored"):
            self._lay(self.kept)
            compare(self.label, self.data, self._copy / FILE)

    def clear(self) -> None:
        """Remove the running server's folder; the snapshot stays."""
        shutil.rmtree(self.work, ignore_errors=True)

    @contextmanager
    def told(self, what: str) -> Iterator[None]:
        """Turns what the file system refuses into a ServerError."""
        try:
            yield
        except OSError as error:
            raise ServerError(
                f"{self.label}: its files in {self.folder} could not be {what}",
                found=str(error),
                hint="check the folder's free space, inodes and owner",
            ) from error

    @property
    def _copy(self) -> Path:
        return self.copy or self.folder / "snapshot"

    def _lay(self, source: Path) -> None:
        make_folders([self.work, *(self.work / name for name in self.beside)], self.user)
        copy_tree(source, self.data, self.user)


# Files and folders that the lab makes for a server inside folders that are the server's own.
#
# As root the lab writes where an unprivileged user may put links, so nothing is ever written
# through one; and what is for the server alone is closed to everybody else from the first byte
# on.


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


RESERVE_BYTES: Final = 64 * 1024**2  # left free beside the copy
COPY_CHUNK_BYTES: Final = 1 << 30


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
        count = os.sendfile(written, read, start, min(COPY_CHUNK_BYTES, end - start))
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


# Proves that restored files are the snapshot's, byte for byte: CRC-32 and length of each.
#
# Read right after the copy the bytes come from memory, and a core sums several gigabytes a
# second, so this is done at every restore. CRC-32 is against disks and accidents, not against an
# adversary.


FILE: Final = "files.json"
CHECKSUM_CHUNK_BYTES: Final = 1 << 22
NAMED_MAX: Final = 5
"""How many files an error names."""


def take(folder: Path) -> dict[str, list[int]]:
    """Length and CRC-32 of every file below a folder, by its path in it."""
    return {
        str(path.relative_to(folder)): _sum(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def keep(folder: Path, listed: Path) -> None:
    """Writes what `take` finds to a file, flushed."""
    with listed.open("w") as file:
        json.dump(take(folder), file)
        file.flush()
        os.fsync(file.fileno())


def compare(label: str, folder: Path, listed: Path) -> None:
    """The folder holds exactly the files that were listed; else a ServerError names the first."""
    wanted, found = json.loads(listed.read_text()), take(folder)
    unlike = [name for name in sorted({*wanted, *found}) if wanted.get(name) != found.get(name)]
    if unlike:
        raise ServerError(
            f"{label}: the restored files are not those of the snapshot",
            wanted=f"{len(wanted)} files with the checksums in {listed}",
            found=", ".join(unlike[:NAMED_MAX]) + (" …" if len(unlike) > NAMED_MAX else ""),
            hint=f"check the disk; remove {listed.parent} to have the rows loaded again",
        )


def _sum(path: Path) -> list[int]:
    length = check = 0
    with path.open("rb") as file:
        while chunk := file.read(CHECKSUM_CHUNK_BYTES):
            length, check = length + len(chunk), zlib.crc32(chunk, check)
    return [length, check]
