"""An instance's data directory and snapshot, copied so that all blocks begin alike on disk.

Every byte is copied, though some file systems could share blocks (reflink), as `copy_file_range`
does by itself: the first write to a shared block pays for finding space, and a trial would measure
the search. Holes stay holes and allocated space stays allocated: a redo log full of zeros must not
become a hole. Everything is flushed before the copy counts, since writing it back later would
disturb the measurement. The file system is flushed once, at the end: PostgreSQL has a thousand
small files; flushed each by itself they took 5 s, with a single flush 0.6 s.

Copies are kept without their zeros, three quarters of a small snapshot. A list beside the copy has
the parts left out, and a copy that is laid out for a server has them again.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import stat
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path, PurePath
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.files import (
    make_temporary,
    occupied_bytes,
    open_file,
    opened_folder,
    remove_temporary,
    remove_tree,
    replaced,
)
from dbdyno.servers import process
from dbdyno.servers.process import ServerUser

SNAPSHOT: Final = "snapshot"
DATA: Final = "data"
MARKER: Final = "snapshot.json"


@dataclass(frozen=True)
class InstanceFiles:
    """The folders of an instance, and the operations on them while no server runs.

    Each raises ServerError if the file system refuses or the disk is short.

    ``server`` belongs to the user the server runs as; ``snapshot`` stays the lab's own, so a faulty
    server cannot spoil it. A snapshot counts once its marker is written, last of all; the marker
    names the programs and the settings that decided the bytes.

    Attributes:
        label: the system, for messages.
        folder: the instance's; the rest lies below it.
        user: owner of the running server's files; None for our own.
        identity: marker expected in a valid snapshot.
        beside: further folders for a running server, beside its data directory.
        copy: the snapshot's folder; None for below `folder`, another instance's for a replica.
    """

    label: str
    folder: Path
    user: ServerUser | None
    identity: Mapping[str, object]
    beside: tuple[str, ...] = ()
    copy: Path | None = None

    @property
    def work(self) -> Path:
        return self.folder / "server"

    @property
    def data(self) -> Path:
        return self.work / DATA

    @property
    def kept(self) -> Path:
        """The snapshot's data directory."""
        return self._copy / DATA

    def lay(self, source: Path) -> None:
        """Copy `source`, made by `keep`, to the data directory; all else in the folder goes."""
        self.clear()
        with self.os_errors("laid out"):
            self._lay(source)

    def snapshot(self, is_unread: Callable[[str], bool] = lambda name: False) -> None:
        """Copy the data aside, flushed, replacing an older snapshot.

        Args:
            is_unread: as `keep` has it.
        """
        with self.os_errors("copied aside"):
            (self._copy / MARKER).unlink(missing_ok=True)  # first: half of it must not count
            remove_tree(self._copy)
            self._copy.mkdir(mode=0o700)
            keep(self.data, self._copy, is_unread)
            with replaced(self._copy / MARKER) as new:
                new.write_text(json.dumps(self.identity))

    def has_snapshot(self) -> bool:
        """Test for a complete snapshot of this very server and format."""
        try:
            marker = json.loads((self._copy / MARKER).read_text())
            zeros_of(self._copy)
            return bool(marker == self.identity and (self._copy / CHECKSUMS).is_file())
        except (OSError, ValueError):
            return False

    def laid_bytes(self, below: str) -> int:
        """Disk space that a folder of the snapshot's data takes once it is restored."""
        return occupied_bytes(self.kept / below) + left_out_bytes(self._copy, below)

    def restore(self) -> None:
        """Put the snapshot's data back, proven by checksum; ServerError if it cannot.

        A damaged snapshot is dropped, since every later restore would fail alike.
        """
        if not self.has_snapshot():
            raise ServerError(f"{self.label}: there is no snapshot to restore")
        self.clear()
        try:
            with self.os_errors("restored"):
                self._lay(self.kept)
                self._check_restored()
        except BaseException:
            self.clear()  # a start would take the remains for the snapshot
            raise

    def clear(self) -> None:
        """Remove the running server's folder; the snapshot stays. ServerError on failure."""
        with self.os_errors("removed"):
            remove_tree(self.work)  # as much of it as can be
            if self.work.exists():
                shutil.rmtree(self.work)

    @contextmanager
    def os_errors(self, action: str) -> Iterator[None]:
        """Turn an OSError into a ServerError: the files could not be `action`."""
        try:
            yield
        except OSError as error:
            raise ServerError(
                f"{self.label}: its files in {self.folder} could not be {action}",
                found=str(error),
                hint="check the folder's free space, inodes and owner",
            ) from error

    @property
    def _copy(self) -> Path:
        return self.copy or self.folder / SNAPSHOT

    def _check_restored(self) -> None:
        try:
            check_checksums(self.label, self.data, self._copy / CHECKSUMS)
        except ServerError:
            (self._copy / MARKER).unlink(missing_ok=True)
            raise

    def _lay(self, source: Path) -> None:
        make_folders([self.work, *(self.work / name for name in self.beside)], self.user)
        copy_tree(source, self.data, self.user, zeros_of(source.parent))


# As root the lab reads and writes in folders where an unprivileged user may put links. So
# everything there is opened by these functions: each step of a path by the open folder before it,
# never through a link, and only files of that user or of the lab alone.


SOCKET_BYTES_MAX: Final = 107  # of a unix socket's path
FILE_BYTES_MAX: Final = 64 * 1024
HOLES_BYTES_MAX: Final = 1 << 40
"""A larger file, free for its maker, would take the checksum minutes to read."""


def read_file(folder: Path, name: str, bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """Read the last bytes of a file in a server's folder, whose own parent is the lab's.

    Args:
        name: may lead through folders below it.

    Raises:
        OSError: as `open_file`, the owner being the folder's.
    """
    *between, last = Path(name).parts
    with ExitStack() as opened:
        handle = opened.enter_context(opened_folder(folder))
        owner = os.fstat(handle).st_uid
        for step in between:
            handle = opened.enter_context(opened_folder(step, handle))
        with os.fdopen(open_file(handle, last, owner), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - bytes_max))
            return file.read(bytes_max)


def remove_file(path: Path) -> None:
    """Remove a file or link, if present, from a folder that is not reached through a link."""
    with opened_folder(path.parent) as folder, suppress(FileNotFoundError):
        os.unlink(path.name, dir_fd=folder)


def make_folders(folders: Sequence[Path], user: ServerUser | None) -> None:
    """Make folders for the server alone, parents first."""
    for folder in folders:
        folder.mkdir()
    for folder in reversed(folders):  # nothing is changed below a folder given away
        process.give_to(folder, user)


def socket_place(
    label: str, work: Path, name: str, user: ServerUser | None, *, commas: bool
) -> Path:
    """Path of a socket in the working folder, or in a temporary folder if its path is impossible.

    Args:
        commas: allowed in the path; libpq takes a path with a comma for a list of hosts.

    Raises:
        ServerError: the path in the folder for temporary files is impossible too.
    """
    if _will_do(work / name, commas):
        return work / name
    temporary = make_temporary()
    temporary.chmod(0o711)
    short = temporary / "s"
    if not _will_do(short / name, commas):
        remove_temporary(temporary)
        unless = "" if commas else " and no comma"
        raise ServerError(
            f"{label}: a socket's path may have {SOCKET_BYTES_MAX} bytes at most{unless}",
            found=str(short / name),
            hint="set TMPDIR to a folder with a shorter and plainer name",
        )
    make_folders([short], user)
    return short / name


def remove_socket_place(socket: Path | None, work: Path) -> None:
    """Remove the temporary folder of a socket, if it has one beside the working folder `work`."""
    if socket is not None and socket.parent != work:
        remove_temporary(socket.parent.parent)


def _will_do(path: Path, commas: bool) -> bool:
    return len(os.fsencode(path)) <= SOCKET_BYTES_MAX and (commas or "," not in str(path))


RESERVE_BYTES: Final = 64 * 1024**2  # left free beside the copy
COPY_CHUNK_BYTES: Final = 16 << 20  # between two of them Ctrl-C is heard
ZERO_PIECE: Final = bytes(64 << 10)  # the least that a kept copy leaves out
ZEROS: Final = "zeros.json"

Zeros = dict[str, list[list[int]]]
"""Parts (start, end) of files with nothing but zeros, by the path in the data. Every file without
holes is listed, perhaps with no part."""
CopyContent = Callable[[str, int, int], None]
"""Copies a file's content, by its path in the folder, between two open files of one length."""


def copy_tree(
    source: Path, target: Path, owner: ServerUser | None, zeros: Zeros | None = None
) -> None:
    """Copy folder `source` to the new folder `target`, flushed to disk, as `owner`'s own.

    Args:
        zeros: parts that `keep` left out of the source; the target has them on disk.

    Raises:
        ServerError: the disk is too small, the source holds more than files and folders, or the
            copy failed; a half-made target is removed.
    """
    left_out = zeros or {}
    occupied = occupied_bytes(source) + _missing_bytes(source, left_out)
    _copy_folder(source, target, owner, occupied, partial(_with_zeros, left_out))


def keep(source: Path, folder: Path, is_unread: Callable[[str], bool] = lambda name: False) -> None:
    """Copy `source` to `data` in a folder, as the lab's own, without the zeros in its files.

    Lists of checksums and of the zeros left out are written beside the copy.

    Args:
        is_unread: True for the path of a file with content that no server reads again: all of it
            becomes zeros.

    Raises:
        OSError, ServerError: as `copy_tree`.
    """
    zeros: Zeros = {}
    content = partial(_without_zeros, zeros, is_unread)
    _copy_folder(source, folder / DATA, None, occupied_bytes(source), content)
    for name, listed in ((ZEROS, zeros), (CHECKSUMS, checksums_of(folder / DATA))):
        with replaced(folder / name) as new:
            new.write_text(json.dumps(listed))


def zeros_of(kept: Path) -> Zeros:
    """The list that `keep` wrote in a folder; OSError or ValueError without a readable list."""
    zeros: Zeros = json.loads((kept / ZEROS).read_text())
    return zeros


def left_out_bytes(kept: Path, below: str = "") -> int:
    """Disk space that a kept copy takes besides its own once it is laid out; 0 without a copy.

    Args:
        below: a folder of the data, whose files alone count.
    """
    try:
        names = [name for name in zeros_of(kept) if PurePath(name).is_relative_to(below)]
    except (OSError, ValueError):
        return 0
    return _missing_bytes(kept / DATA, names)


def _missing_bytes(data: Path, names: Iterable[str]) -> int:
    """Disk space that files lack for their whole length."""
    missing = 0
    for name in names:
        with suppress(OSError):  # the checksums tell of a lost file
            facts = (data / name).lstat()
            missing += max(0, facts.st_size - facts.st_blocks * 512)
    return missing


def _copy_folder(
    source: Path, target: Path, owner: ServerUser | None, occupied: int, content: CopyContent
) -> None:
    needed = occupied + RESERVE_BYTES
    free = shutil.disk_usage(target.parent).free
    if free < needed:
        raise ServerError(
            f"the disk is too full for a copy of {source}",
            wanted=f"{needed} bytes free at {target.parent}",
            found=f"{free} bytes free",
            hint="remove data of earlier runs (dbdyno runs clean), use fewer rows, or another disk",
        )
    try:
        with (
            _flushed(target.parent),
            opened_folder(source) as read,
            _new_folder(target) as written,
        ):
            copying = _Copying(source, os.fstat(read).st_uid, owner, content)
            copying.folder(read, written, PurePath())
    except (OSError, RecursionError) as error:
        remove_tree(target)
        endless = "folders in folders without end"
        why = endless if isinstance(error, RecursionError) else error.strerror or error
        raise ServerError(
            f"{source} cannot be copied to {target}: {why}",
            hint="make room, or look at the disk and at who owns the files",
        ) from error
    except BaseException:
        remove_tree(target)
        raise


@dataclass(frozen=True)
class _Copying:
    """Source of a copy, owners of source and target, and how a file's content is copied.

    A stopped server's user may still exchange files in its folder, so every step starts at an open
    folder, in the source and in the copy.
    """

    source: Path
    from_owner: int
    owner: ServerUser | None
    content: CopyContent

    def folder(self, source: int, target: int, path: PurePath) -> None:
        """Copy between two open folders; `path` leads to the first from the copy's source."""
        for name in sorted(os.listdir(source)):
            kind = os.stat(name, dir_fd=source, follow_symlinks=False).st_mode
            if stat.S_ISDIR(kind):
                with opened_folder(name, source) as read, _new_folder(name, target) as written:
                    self.folder(read, written, path / name)
            elif stat.S_ISREG(kind):
                self.file(source, target, path / name)
            elif not stat.S_ISSOCK(kind):
                raise ServerError(
                    f"{self.source / path / name} is neither a file nor a folder: it is not copied"
                )
        self._give(target)

    def file(self, source: int, target: int, path: PurePath) -> None:
        """Copy a file between two open folders."""
        create = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with (
            os.fdopen(open_file(source, path.name, self.from_owner), "rb") as read,
            os.fdopen(os.open(path.name, create, 0o600, dir_fd=target), "wb") as written,
        ):
            facts = os.fstat(read.fileno())
            if facts.st_size > facts.st_blocks * 512 + HOLES_BYTES_MAX:
                what = "a file of holes, larger than any of a server's"
                raise OSError(errno.EFBIG, what, path.name)
            os.truncate(written.fileno(), facts.st_size)
            self.content(str(path), read.fileno(), written.fileno())
            os.fchmod(written.fileno(), 0o640)
            self._give(written.fileno())

    def _give(self, handle: int) -> None:
        if self.owner is not None:
            os.fchown(handle, self.owner.uid, self.owner.gid)


def _with_zeros(zeros: Zeros, name: str, read: int, written: int) -> None:
    """Copy a file with its holes, its allocated zeros, and the zeros left out of it."""
    size, occupied = _sizes(read)
    if size > 0 and (name in zeros or size <= occupied):  # reserved space may read as a hole
        os.posix_fallocate(written, 0, size)
    for start, end in _occupied(read, size):
        _copy_range(read, written, start, end)
    for start, end in zeros.get(name, ()):
        _copy_range(read, written, start, min(end, size))


def _without_zeros(
    zeros: Zeros, is_unread: Callable[[str], bool], name: str, read: int, written: int
) -> None:
    """Copy a file without its zeros and list them; a file with holes of its own as it is."""
    size, occupied = _sizes(read)
    if not 0 < size <= occupied:
        _with_zeros({}, name, read, written)
        return
    if is_unread(name):
        zeros[name] = [[0, size]]
        return
    left_out: list[list[int]] = []
    for start, end in _occupied(read, size):
        for at in range(start, end, COPY_CHUNK_BYTES):
            for begin, stop, is_zero in _pieces(read, at, min(end, at + COPY_CHUNK_BYTES)):
                if is_zero:
                    left_out.append([begin, stop])
                else:
                    _copy_range(read, written, begin, stop)
    zeros[name] = left_out


def _sizes(handle: int) -> tuple[int, int]:
    """Length of an open file, and the bytes that it takes on disk."""
    facts = os.fstat(handle)
    return facts.st_size, facts.st_blocks * 512


def _pieces(read: int, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Pieces (start, end) of a part of a file, and whether each holds nothing but zeros."""
    content, size = os.pread(read, end - start, start), len(ZERO_PIECE)
    if len(content) < end - start:
        raise OSError(errno.EIO, "the file became shorter while it was copied")
    offsets = range(0, len(content), size)
    for is_zero, alike in groupby(offsets, lambda at: content[at : at + size] == ZERO_PIECE):
        run = list(alike)
        yield start + run[0], min(end, start + run[-1] + size), is_zero


@contextmanager
def _new_folder(path: str | Path, inside: int | None = None) -> Iterator[int]:
    """Make and open a folder; OSError if another was put in its place meanwhile."""
    os.mkdir(path, 0o700, dir_fd=inside)
    with opened_folder(path, inside) as handle:
        if os.fstat(handle).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "the new folder was exchanged", str(path))
        yield handle


def _occupied(read: int, size: int) -> Iterator[tuple[int, int]]:
    """Parts of a file outside its holes, as (start, end)."""
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
    """Flush the folder's file system at the end.

    The handle is opened first: it reports every write error from then on.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield
        _flush(os.dup(handle))
    finally:
        os.close(handle)


def _flush(handle: int) -> None:
    """Flush in a thread of its own: Ctrl-C is heard meanwhile, and does not wait for the disk."""
    errors: list[int] = []

    def flush() -> None:
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(handle) != 0:
                errors.append(ctypes.get_errno())
        finally:
            os.close(handle)

    flushing = threading.Thread(target=flush, name="flush", daemon=True)
    flushing.start()
    flushing.join()
    if errors:
        raise OSError(errors[0], os.strerror(errors[0]))


# Restored files are compared with the snapshot's by CRC-32 and length, at every restore: right
# after the copy the bytes come from memory. CRC-32 is against disks and accidents, not against an
# attacker.


CHECKSUMS: Final = "checksums.json"
CHECKSUM_CHUNK_BYTES: Final = 1 << 22
NAMED_MAX: Final = 5
"""Most files named in an error."""


def checksums_of(folder: Path) -> dict[str, list[int]]:
    """Length and CRC-32 of every file below a folder, by its path in it."""
    checksums: dict[str, list[int]] = {}
    owner = folder.lstat().st_uid
    for place, _, names, handle in os.fwalk(folder):  # by open folders, through no link
        for name in names:
            kind = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
            if stat.S_ISREG(kind):
                path = Path(place, name).relative_to(folder)
                checksums[str(path)] = _checksum(open_file(handle, name, owner))
    return {name: checksums[name] for name in sorted(checksums, key=Path)}


def check_checksums(label: str, folder: Path, listed: Path) -> None:
    """Raise ServerError, with the first differences, unless the folder holds the listed files."""
    wanted: dict[str, list[int]] = {}
    with suppress(ValueError):  # a list that is damaged itself lists nothing
        wanted = json.loads(listed.read_text())
    actual = checksums_of(folder)
    unlike = [name for name in sorted({*wanted, *actual}) if wanted.get(name) != actual.get(name)]
    if unlike:
        raise ServerError(
            f"{label}: the restored files are not those of the snapshot",
            wanted=f"{len(wanted)} files with the checksums in {listed}",
            found=", ".join(unlike[:NAMED_MAX]) + (" …" if len(unlike) > NAMED_MAX else ""),
            hint="check disk and memory; the copy counts no more, and the next run makes another",
        )


def _checksum(handle: int) -> list[int]:
    length = check = 0
    with os.fdopen(handle, "rb") as file:
        while chunk := file.read(CHECKSUM_CHUNK_BYTES):
            length, check = length + len(chunk), zlib.crc32(chunk, check)
    return [length, check]
