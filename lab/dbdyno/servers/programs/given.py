"""Programs that a plan names by their place: a folder of this machine, or a vendor's tar archive.

Product and version are unknown before the programs are here. A folder is the server's base folder;
it is used in place, never copied and never changed, so it may be as large as ``/usr``.
"""

from __future__ import annotations

import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from io import BufferedReader
from pathlib import Path
from typing import IO, ClassVar, Final

from dbdyno.errors import ProvisionError
from dbdyno.servers import process
from dbdyno.servers.programs import identify, places
from dbdyno.servers.programs.sources import Tool, digest_of, fetched_file
from dbdyno.servers.programs.unpack import Layout, check_links, unpack

SILENCE_S_MAX: Final = 60.0
DOWNLOAD_S_MAX: Final = 3600.0
DOWNLOAD_BYTES_MAX: Final = 4 * 1024**3
REPORT_EVERY_BYTES: Final = 100_000_000
TREE: Final = Layout(  # debug builds and tests, often the larger part
    left_out=("*bin/mysqld-debug", "*lib/plugin/debug/*", "*/mysql-test/*", "*/mariadb-test/*")
)


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
    """A vendor's archive, by address and SHA-256."""

    name: str
    identity: str
    download_bytes: ClassVar[int] = 0  # not known before its server says so
    tools: ClassVar[tuple[Tool, ...]] = ()  # Python fetches it

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        archive = work / "archive"

        def download(late: threading.Event) -> None:
            with (
                urllib.request.urlopen(self.name, timeout=SILENCE_S_MAX) as answer,  # noqa: S310 - read() asks
                archive.open("wb") as written,
            ):
                _copy(answer, written, report, late)

        try:
            _in_time(download)
        except (OSError, HTTPException) as error:  # URLError is an OSError
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            raise ProvisionError(
                f"{self.name} could not be fetched",
                found=str(getattr(error, "reason", "") or error),
                hint="check the address, the network and the proxy's settings, then try again",
            ) from error
        again = "check the digest that was given, and that the address names the archive itself"
        return fetched_file(archive, self.name, self.identity, again)

    def unpack(self, fetched: Path, target: Path, home: Path) -> None:
        """Lay the archive's tree into `target`, without the outer folder of vendors' archives."""
        del home
        unpack(fetched, TREE, target)
        inner = list(target.iterdir())
        if len(inner) == 1 and inner[0].is_dir() and identify.program_in(target) is None:
            around = inner[0].rename(target.with_name("around"))
            for path in around.iterdir():
                shutil.move(path, target / path.name)
            around.rmdir()
            check_links(target)  # a link within the outer folder may lead out of this folder


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
    answer: BufferedReader,
    written: IO[bytes],
    report: Callable[[str], None],
    late: threading.Event,
) -> None:
    taken, next_report = 0, REPORT_EVERY_BYTES
    while (chunk := answer.read1(1 << 20)) and not late.is_set():
        taken += len(chunk)
        if taken > DOWNLOAD_BYTES_MAX:
            raise ProvisionError(f"the download is larger than {DOWNLOAD_BYTES_MAX} bytes")
        written.write(chunk)
        if taken >= next_report:
            report(f"{taken / 1e6:.0f} MB fetched")
            next_report += REPORT_EVERY_BYTES
