"""What a place owes from which a server's programs come: name, identity, fetch, unpacked folder.

Programs come from repositories of Java, JavaScript, Python and Debian packages, from a vendor's
tarball, or lie on this disk already. The rest of the lab must not know which: it asks a `Source`.
Each source lets the registry's own client fetch, as that is set up on this machine (mirrors,
proxies, certificates), and then trusts nothing but a digest.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from dbdyno.errors import ProvisionError
from dbdyno.servers import process

FETCH_S_MAX: Final = 900
LINES_QUOTED: Final = 8


@dataclass(frozen=True)
class Tool:
    """A program that fetching or unpacking needs, and the Debian package that has it."""

    program: str
    package: str


class Source(Protocol):
    """Where a server's programs come from."""

    @property
    def name(self) -> str:
        """What it is called there: coordinates, a package with its version, or a URL; for lists."""

    @property
    def identity(self) -> str:
        """A digest of what the programs come from; goes into records and markers."""

    @property
    def download_bytes(self) -> int:
        """Size of what is fetched; 0 when nothing is, or when it is not known before."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Programs needed to fetch and unpack; not to run."""

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        """Put the download into the folder `work` and say where it is; its digest is checked.

        Raises:
            ProvisionError: the client failed or took too long, or the digest is another.
        """

    def unpack(self, fetched: Path, target: Path, home: Path) -> None:
        """Lay the programs into the empty folder `target`, which will be moved to `home`.

        Raises:
            ProvisionError: what was fetched is damaged, not safe, or holds no such server.
        """


def client(program: str) -> str:
    """Where a registry's client is: beside this Python (a dependency of ours) or on PATH."""
    beside = Path(sys.executable).parent / program
    return str(beside) if os.access(beside, os.X_OK) else shutil.which(program) or program


def run_client(
    command: Sequence[str],
    what: str,
    work: Path,
    settings: Mapping[str, str] | None = None,
    limit_s: float = FETCH_S_MAX,
) -> str:
    """Run a client in the folder `work`, so that it dies with the lab; what it printed.

    Args:
        command: the program's path first.
        what: what is done, for messages, such as ``Maven could not fetch g:a:v``.
        settings: environment variables besides our own.

    Raises:
        ProvisionError: it failed or took too long; quotes its last lines.
    """
    try:
        done = subprocess.run(
            [*process.launcher(None), *command],
            cwd=work,
            env={**os.environ, **(settings or {})},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ProvisionError(
            f"{what}: it took longer than {limit_s:g} s",
            hint="check the network and the client's settings, then try again",
        ) from error
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()[-LINES_QUOTED:]
        raise ProvisionError(
            f"{what} (exit {done.returncode})",
            found="\n    ".join(lines) or "no output",
            hint=f"check the network and the settings of {Path(command[0]).name}, then try again",
        )
    return done.stdout


def fetched_file(path: Path, name: str, sha256: str, again: str) -> Path:
    """The file a client was to leave, once it is there and is the very file the catalog names.

    Args:
        again: what to do when it is another file.

    Raises:
        ProvisionError: no such file, or another digest; names both.
    """
    if not path.is_file():
        raise ProvisionError(f"{name} was fetched, but there is no {path.name}", hint=again)
    found = digest_of(path)
    if found != sha256:
        raise ProvisionError(
            f"{name} is not the file dbdyno knows; it was not unpacked",
            wanted=f"sha256 {sha256}",
            found=f"sha256 {found}",
            hint=again,
        )
    return path


def digest_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
