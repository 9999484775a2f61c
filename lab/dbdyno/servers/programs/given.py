"""Programs that a plan names by their place: a folder of this machine, or a vendor's archive.

Product and version are unknown before the programs are here. A folder is the server's base folder;
it is used in place, never copied and never changed, so it may be as large as ``/usr``.
"""

from __future__ import annotations

import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO, ClassVar, Final

from dbdyno.errors import ProvisionError
from dbdyno.files import remove_tree
from dbdyno.servers import process
from dbdyno.servers.programs import identify, places
from dbdyno.servers.programs.sources import Tool, digest_of, fetched_file
from dbdyno.servers.programs.unpack import Layout, check_links, unpack

SILENCE_S_MAX: Final = 60.0
DOWNLOAD_S_MAX: Final = 3600.0
DOWNLOAD_BYTES_MAX: Final = 4 * 1024**3
REPORT_EVERY_BYTES: Final = 100_000_000
GONE: Final = (404, 410)
"""Statuses of HTTP for a file that is not there."""
TREE: Final = Layout(  # debug builds and tests, often the larger part
    left_out=("*bin/mysqld-debug", "*lib/plugin/debug/*", "*/mysql-test/*", "*/mariadb-test/*"),
    executable=("*bin/*",),  # a zip file may come without modes
)
PACKED: Final = (b"\x1f\x8b", b"\xfd7zXZ\0", b"BZh", b"PK\x03\x04")
"""First bytes of the archives that `unpack` reads, beside a tar file as it is."""
OTHER_KINDS: Final[Mapping[bytes, str]] = {
    b"<": "a web page",
    b"(\xb5/\xfd": "a file packed by zstd",
    b"!<arch>": "a Debian package",
    b"\xed\xab\xee\xdb": "an RPM package",
}
"""Kinds of files that vendors offer beside archives, by their first bytes in small letters."""


@dataclass(frozen=True)
class FolderSource:
    """A server's base folder, identified by the SHA-256 of its program; no fetching."""

    folder: Path
    identity: str
    download_bytes: ClassVar[int] = 0
    tools: ClassVar[tuple[Tool, ...]] = ()

    @property
    def name(self) -> str:
        return str(self.folder)


@dataclass(frozen=True)
class TarballSource:
    """A vendor's archive, by address and SHA-256; the latter is empty before it is known."""

    name: str
    identity: str
    download_bytes: ClassVar[int] = 0  # not known before its server says so
    tools: ClassVar[tuple[Tool, ...]] = ()  # Python fetches it

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        archive = work / "archive"
        opener = urllib.request.build_opener(_SecureRedirects)

        def download(late: threading.Event) -> None:
            with (
                opener.open(self.name, timeout=SILENCE_S_MAX) as answer,
                archive.open("wb") as written,
            ):
                _copy(answer, written, report, late)

        try:
            _in_time(download)
        except (OSError, HTTPException, ValueError) as error:  # URLError is an OSError
            raise _not_fetched(self.name, error) from error
        if not self.identity:
            return archive
        again = "check the digest that was given, and that the address names the archive itself"
        return fetched_file(archive, self.name, self.identity, again)

    def unpack(self, fetched: Path, target: Path, home: Path) -> None:
        """Lay the archive's tree into `target`, without the outer folder of vendors' archives.

        Of several outer folders, only the server's is kept.
        """
        del home
        _refuse_other_kinds(fetched, self.name)
        unpack(fetched, TREE, target)
        every = list(target.iterdir())
        outer = [path for path in every if _holds_server(path)] or every
        if len(outer) == 1 and outer[0].is_dir() and not _holds_server(target):
            around = target.rename(target.with_name("around"))
            (around / outer[0].name).rename(target)
            remove_tree(around)
            check_links(target)  # a link within the outer folder may lead out of this folder


def _holds_server(folder: Path) -> bool:
    return not folder.is_symlink() and identify.program_in(folder) is not None


def _refuse_other_kinds(archive: Path, name: str) -> None:
    """Raise ProvisionError for a file of a kind unknown to `unpack`, perhaps a web page."""
    with archive.open("rb") as opened:
        head = opened.read(512)
    if head.startswith(PACKED) or head[257:262] == b"ustar":
        return
    first = head.lstrip().lower()
    kinds = (kind for start, kind in OTHER_KINDS.items() if first.startswith(start))
    raise ProvisionError(
        f"{name} is no archive that dbdyno unpacks",
        wanted="a tar file, plain or packed by gzip, xz or bzip2, or a zip file",
        found=next(kinds, "a file of another kind" if head else "an empty file"),
        hint="give the address of the archive and not of its page; a package or another archive "
        "can be unpacked by hand and named as path:/folder",
    )


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects from https to https only: others can change an answer over http."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """The request to the new address; ProvisionError for an address over http."""
        new = urllib.parse.urlsplit(newurl)
        if (req.type, new.scheme) != ("https", "https"):
            fp.close()
            raise ProvisionError(
                "the download is redirected, and not from https to https",
                found=f"from {req.type} to {new.scheme}://{new.hostname}",
                hint="write the address, beginning with https://, at which the archive itself is",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _not_fetched(name: str, error: Exception) -> ProvisionError:
    reason = str(getattr(error, "reason", "") or error)
    hint = "check the address, the network and the proxy's settings, then try again"
    if isinstance(error, urllib.error.HTTPError):
        reason = f"HTTP {error.code} {reason}"
        if error.code in GONE:
            hint = "vendors move older versions elsewhere: look for it on their downloads pages"
        error.close()
    return ProvisionError(f"{name} could not be fetched", found=reason, hint=hint)


def look(folder: Path) -> FolderSource:
    """The server in a folder.

    Raises:
        ProvisionError: there is none, or the servers' user cannot get there.
    """
    program = identify.program_in(folder)
    if program is None:
        raise ProvisionError(
            f"there is no server's program in {folder}",
            wanted=" or ".join(identify.PROGRAMS),
            found="no such folder" if not folder.is_dir() else "none of them",
            hint="name the folder that holds the server's bin or sbin",
        )
    user = process.server_user()
    if not places.reachable(folder / program, user):
        raise ProvisionError(
            f"the servers' user {user.name if user else ''} may not run {folder / program}",
            hint="let others enter its folders, or copy it to a place where they may",
        )
    return FolderSource(folder, digest_of(folder / program))


def _in_time(download: Callable[[threading.Event], None]) -> None:
    """Run a download in a thread, as a server can answer slowly in each of its steps.

    Raises:
        TimeoutError: it took longer than `DOWNLOAD_S_MAX`; it is told so and not waited for.
    """
    late, errors = threading.Event(), list[Exception]()

    def body() -> None:
        try:
            download(late)
        except Exception as error:  # raised again below
            errors.append(error)

    thread = threading.Thread(target=body, name="download", daemon=True)
    thread.start()
    try:
        thread.join(DOWNLOAD_S_MAX)
    finally:
        late.set()
    if thread.is_alive():
        raise TimeoutError(f"it took longer than {DOWNLOAD_S_MAX:g} s")
    if errors:
        raise errors[0]


def _copy(
    answer: HTTPResponse,
    written: IO[bytes],
    report: Callable[[str], None],
    late: threading.Event,
) -> None:
    """Write the whole answer; ConnectionError for an answer shorter than its head says."""
    size = answer.headers.get("Content-Length") or ""
    taken, next_report = 0, REPORT_EVERY_BYTES
    while (chunk := answer.read1(1 << 20)) and not late.is_set():
        taken += len(chunk)
        if taken > DOWNLOAD_BYTES_MAX:
            raise ProvisionError(f"the download is larger than {DOWNLOAD_BYTES_MAX} bytes")
        written.write(chunk)
        if taken >= next_report:
            report(f"{taken / 1e6:.0f} MB fetched")
            next_report += REPORT_EVERY_BYTES
    if size.isdecimal() and taken != int(size) and not late.is_set():
        raise ConnectionError(f"the answer ended after {taken} of {size} bytes")
