"""Gets a server's programs: its source fetches, a digest decides, a rename publishes.

Whatever happens on the way (power cut, Ctrl-C, two labs at once), the cache holds either a complete
server whose bytes are those of the catalog, or none. A record beside the programs says what was
unpacked; each later use compares it with the files.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError
from dbdyno.servers.programs import identify, needs, places
from dbdyno.servers.programs.catalog_entry import CatalogEntry
from dbdyno.servers.programs.sources import Source, digest_of
from dbdyno.servers.programs.sources_folder import FolderSource

RECORD: Final = "dbdyno.json"


def is_cached(entry: CatalogEntry) -> bool:
    """Whether a complete, unchanged copy lies in the cache."""
    return _is_whole(entry, places.cache_folder() / "servers" / entry.folder_name)


def get(entry: CatalogEntry, report: Callable[[str], None]) -> Path:
    """The folder with the server's programs, fetched first if need be.

    Raises:
        ProvisionError: something is missing, the fetch failed, the digest is wrong, or there is
            no server in what was fetched.
    """
    if isinstance(entry.source, FolderSource):
        needs.check(entry, download=False)
        home = entry.source.folder
    else:
        needs.check(entry, download=not is_cached(entry))
        home = _cached(entry, entry.source, report)
    needs.check_program(home / program_of(entry, home), entry)
    return home


def program_of(entry: CatalogEntry, home: Path) -> str:
    """The server's program below `home`: the entry's, else what is found.

    Raises:
        ProvisionError: there is none.
    """
    program = entry.program or identify.program_in(home)
    if program is None:
        raise ProvisionError(
            f"{entry.reference} holds no server's program",
            wanted=" or ".join(identify.PROGRAMS),
            found=", ".join(sorted(path.name for path in home.iterdir())[:8]) or "nothing",
            hint="is it the archive of programs, and not of sources, debug symbols or tests?",
        )
    return program


def _cached(entry: CatalogEntry, source: Source, report: Callable[[str], None]) -> Path:
    servers = places.make_cache_folder("servers")
    home = servers / entry.folder_name
    try:
        with locked(servers / f"{entry.folder_name}.lock", report):
            if not _is_whole(entry, home):
                _fetch_and_unpack(entry, source, home, report)
    except OSError as error:
        raise ProvisionError(
            f"{entry.reference} cannot be put into the cache {servers}",
            found=str(error),
            hint="check the folder's free space, or name another one with DBDYNO_CACHE",
        ) from error
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


def _fetch_and_unpack(
    entry: CatalogEntry, source: Source, home: Path, report: Callable[[str], None]
) -> None:
    with fresh_folder(home) as work:
        report(f"{entry.reference}: fetching {source.name}{_megabytes(source)}")
        fetched = source.fetch(work, report)
        report(f"{entry.reference}: unpacking")
        fresh = work / "fresh"
        places.make_open(fresh)
        source.unpack(fetched, fresh, home)
        _write_record(entry, fresh)
        if home.exists():  # damaged since: the check before said so
            home.rename(work / "damaged")
        fresh.rename(home)


def _write_record(entry: CatalogEntry, home: Path) -> None:
    """Say what was unpacked; written last, so a folder without it is not complete."""
    program = digest_of(home / program_of(entry, home))
    record = {"identity": entry.identity, "program": program, **_sizes(home)}
    with (home / RECORD).open("w") as written:
        json.dump(record, written, indent=1)
        written.flush()
        os.fsync(written.fileno())


def _is_whole(entry: CatalogEntry, home: Path) -> bool:
    """Cheap check (under 0.1 s): the program's digest, every other file's size."""
    try:
        record = json.loads((home / RECORD).read_text())
        return bool(
            record.get("identity", record.get("jar_sha256")) == entry.identity
            and record["sizes"] == _sizes(home)["sizes"]
            and record["program"] == digest_of(home / program_of(entry, home))
        )
    except (OSError, ValueError, KeyError, TypeError, ProvisionError):
        return False


def _sizes(home: Path) -> dict[str, dict[str, int]]:
    files = (path for path in sorted(home.rglob("*")) if path.is_file() and path.name != RECORD)
    return {"sizes": {str(path.relative_to(home)): path.stat().st_size for path in files}}


def _megabytes(source: Source) -> str:
    size = source.download_bytes
    return f" ({size / 1e6:.0f} MB)" if size else ""
