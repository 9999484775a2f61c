"""Programs out of a vendor's tar archive, named in a plan by address and digest.

``tarball:https://example.com/server.tar.xz#sha256=…``: the digest is the user's to give. An address
alone would name other bytes tomorrow, and a stored result could not say what it measured.
"""

from __future__ import annotations

import re
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO, Final

from dbdyno.errors import ProvisionError, UnknownSystemError
from dbdyno.servers.programs import identify
from dbdyno.servers.programs.sources import Tool, fetched_file
from dbdyno.servers.programs.unpack import Layout, unpack

SCHEME: Final = "tarball:"
FORM: Final = "tarball:https://example.com/server.tar.xz#sha256=<64 hexadecimal digits>"
SILENCE_S_MAX: Final = 60.0
DOWNLOAD_BYTES_MAX: Final = 4 * 1024**3
TOLD_EVERY_BYTES: Final = 100_000_000
TREE: Final = Layout(  # what nobody benchmarks is often the larger part
    left_out=("*bin/mysqld-debug", "*lib/plugin/debug/*", "*/mysql-test/*", "*/mariadb-test/*")
)


@dataclass(frozen=True)
class TarballSource:
    """One archive.

    Attributes:
        name: its address.
        identity: SHA-256 of the archive.
    """

    name: str
    identity: str

    @property
    def download_bytes(self) -> int:
        """Not known before the server says so."""
        return 0

    @property
    def tools(self) -> tuple[Tool, ...]:
        """None: Python fetches it."""
        return ()

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        """Download the archive; ProvisionError if that fails or the digest is another."""
        archive = work / "archive"
        try:
            with (
                urllib.request.urlopen(self.name, timeout=SILENCE_S_MAX) as answer,  # noqa: S310 - read() asks
                archive.open("wb") as written,
            ):
                _copy(answer, written, report)
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
        """Lay the archive's tree into `target`, without the folder that vendors put around it."""
        del home
        unpack(fetched, TREE, target)
        inner = list(target.iterdir())
        if len(inner) == 1 and inner[0].is_dir() and identify.program_in(target) is None:
            around = inner[0].rename(target.with_name("around"))
            for path in around.iterdir():
                shutil.move(path, target / path.name)
            around.rmdir()


def read(reference: str) -> TarballSource:
    """The source that a reference names.

    Raises:
        UnknownSystemError: the address or the digest is missing or cannot be.
    """
    address, hash_sign, fragment = reference.removeprefix(SCHEME).partition("#")
    digest = re.fullmatch(r"sha256=([0-9a-fA-F]{64})", fragment)
    parts = urllib.parse.urlsplit(address)
    if parts.username or parts.password:
        raise UnknownSystemError(
            "an address with a user or a password would be stored and shown",
            wanted=FORM,
            hint="download the archive by hand and name it as tarball:file:///path#sha256=…",
        )
    if parts.scheme not in ("https", "http", "file") or not parts.path:
        raise UnknownSystemError(f"{reference!r} has no address", wanted=FORM)
    if digest is None:
        raise UnknownSystemError(
            f"{reference!r} has no digest" if not hash_sign else f"{fragment!r} is no digest",
            wanted=FORM,
            hint="the vendor publishes it beside the archive; else: sha256sum server.tar.xz",
        )
    return TarballSource(address, digest[1].lower())


def _copy(answer: IO[bytes], written: IO[bytes], report: Callable[[str], None]) -> None:
    taken, told = 0, TOLD_EVERY_BYTES
    while chunk := answer.read(1 << 20):
        taken += len(chunk)
        if taken > DOWNLOAD_BYTES_MAX:
            raise ProvisionError(f"the download is larger than {DOWNLOAD_BYTES_MAX} bytes")
        written.write(chunk)
        if taken >= told:
            report(f"{taken / 1e6:.0f} MB fetched")
            told += TOLD_EVERY_BYTES
