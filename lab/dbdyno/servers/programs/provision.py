"""Provision of a server's programs: fetch from their source, check the digest, move to the cache.

Whatever happens on the way (power cut, Ctrl-C, two labs at once), the cache holds either a complete
server with the catalog's bytes, or none. A record beside the programs lists the unpacked files;
each later use compares it with every byte of them.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError, StoreError
from dbdyno.files import hold, locked, remove_left, replaced, temporary_folder
from dbdyno.servers.programs import identify, places
from dbdyno.servers.programs.catalog import LIBRARIES, CatalogEntry, Library
from dbdyno.servers.programs.given import FolderSource, TarballSource
from dbdyno.servers.programs.sources import Source, Tool, client, digest_of

RECORD: Final = "dbdyno.json"


def is_cached(entry: CatalogEntry) -> bool:
    """True if the cache has a complete copy, judged by sizes; `get` compares each byte."""
    return _is_whole(entry, places.cache_folder() / places.SERVERS / entry.folder_name)


def get(entry: CatalogEntry, report: Callable[[str], None]) -> Path:
    """The folder with the server's programs, fetched first if need be; ProvisionError if not."""
    if isinstance(entry.source, FolderSource):
        check(entry, download=False)
        home = entry.source.folder
    else:
        check(entry, download=not is_cached(entry))
        home = _cached(entry, entry.source, report)
    check_program(home / program_of(entry, home), entry)
    return home


def program_of(entry: CatalogEntry, home: Path) -> str:
    """The server's program below `home`, the entry's or the first there; else ProvisionError."""
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
    home = places.make_cache_folder(places.SERVERS) / entry.folder_name
    with making(home, entry.reference, report):
        if not _is_unchanged(entry, home):
            check(entry, download=True)
            _fetch_and_unpack(entry, source, home, report)
            places.tell_excess(report)
        hold(home)
    return home


@contextmanager
def making(place: Path, reference: str, report: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a folder in the cache, where nothing of dead processes is left.

    Raises:
        ProvisionError: the cache cannot be used.
    """
    try:
        with locked(places.lock_of(place), reference, wait=report):
            remove_left(place.parent)
            yield
    except (OSError, StoreError) as error:
        raise ProvisionError(
            f"{reference} cannot be put into the cache {place.parent}",
            found=str(error),
            hint="check the folder's free space, or name another one with DBDYNO_CACHE",
        ) from error


def _fetch_and_unpack(
    entry: CatalogEntry, source: Source, home: Path, report: Callable[[str], None]
) -> None:
    with temporary_folder(home.parent) as work:
        work.chmod(0o711)  # clients of root's run as the servers' user
        size = f" ({source.download_bytes / 1e6:.0f} MB)" if source.download_bytes else ""
        report(f"{entry.reference}: fetching {source.name}{size}")
        _unpack(entry, source, source.fetch(work, report), work, home, report)


def _unpack(
    entry: CatalogEntry,
    source: Source,
    fetched: Path,
    work: Path,
    home: Path,
    report: Callable[[str], None],
) -> None:
    """Move a download's programs to `home`, by way of the temporary folder `work`."""
    report(f"{entry.reference}: unpacking")
    fresh = work / "fresh"
    places.make_open(fresh)
    source.unpack(fetched, fresh, home)
    _write_record(entry, fresh)
    if home.exists():  # damaged since, as the check before found
        home.rename(work / "damaged")
    fresh.rename(home)


def pinned(
    entry: CatalogEntry, source: TarballSource, report: Callable[[str], None]
) -> TarballSource:
    """Download an archive of unknown digest, and cache its server by its digest.

    Raises:
        ProvisionError: as `get`.
    """
    check(entry, download=True)
    servers = places.make_cache_folder(places.SERVERS)
    address = hashlib.sha256(source.name.encode()).hexdigest()[:16]
    with (
        making(servers / f"address-{address}", entry.reference, report),
        temporary_folder(servers) as work,
    ):
        report(f"{entry.reference}: fetching it for its digest")
        fetched = source.fetch(work, report)
        known = replace(source, identity=digest_of(fetched))
        known_entry = replace(entry, source=known)
        home = servers / known_entry.folder_name
        with making(home, entry.reference, report):
            if not _is_unchanged(known_entry, home):
                _unpack(known_entry, known, fetched, work, home, report)
                places.tell_excess(report)
            hold(home)
    return known


def _write_record(entry: CatalogEntry, home: Path) -> None:
    """Record the unpacked files; written last, so a folder without it is not complete."""
    program = digest_of(home / program_of(entry, home))
    about = {"identity": entry.identity, "program": program}
    record = {**about, "sizes": _sizes(home), "digests": _digests(home)}
    with replaced(home / RECORD) as new:
        new.write_text(json.dumps(record, indent=1))


def _is_unchanged(entry: CatalogEntry, home: Path) -> bool:
    """True if every file is as unpacked; reads them all."""
    if not _is_whole(entry, home):
        return False
    record = json.loads((home / RECORD).read_text())
    return bool(record.get("digests") == _digests(home))


def _is_whole(entry: CatalogEntry, home: Path) -> bool:
    """Cheap check (under 0.1 s): the program's digest, every other file's size."""
    try:
        record = json.loads((home / RECORD).read_text())
        return bool(
            record["identity"] == entry.identity
            and record["sizes"] == _sizes(home)
            and record["program"] == digest_of(home / program_of(entry, home))
        )
    except (OSError, ValueError, KeyError, TypeError, ProvisionError):
        return False


def _sizes(home: Path) -> dict[str, int]:
    files = (path for path in sorted(home.rglob("*")) if path.is_file() and path.name != RECORD)
    return {str(path.relative_to(home)): path.stat().st_size for path in files}


def _digests(home: Path) -> dict[str, str]:
    return {name: digest_of(home / name) for name in _sizes(home)}


# Missing tools and libraries are found before any download, and reported in one error with one
# command, so that a user installs once and not four times.


RENAMED: Final = {"libaio1": "libaio1t64"}  # Debian 13, Ubuntu 24.04


def check(entry: CatalogEntry, *, download: bool) -> None:
    """Check that all needs of `entry` for running, and for fetching if `download`, are here.

    Raises:
        ProvisionError: names everything missing and the command that installs it.
    """
    _check_machine(entry)
    wanted = entry.source.tools if download else ()
    tools, libraries = lacking(wanted, entry.libraries)
    if not tools and not libraries:
        return
    missing = [*(tool.program for tool in tools), *(library.soname for library in libraries)]
    raise ProvisionError(
        f"{entry.reference} cannot be {'fetched and run' if download else 'run'} here: "
        f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing",
        wanted=", ".join(
            [*(tool.program for tool in wanted), *(lib.soname for lib in entry.libraries)]
        ),
        found=f"without {', '.join(missing)}",
        hint=install_command(tools, libraries),
    )


def lacking(
    tools: Iterable[Tool], libraries: Iterable[Library]
) -> tuple[list[Tool], list[Library]]:
    """The tools and the libraries that are not on this machine."""
    return (
        [tool for tool in tools if shutil.which(client(tool.program)) is None],
        [library for library in libraries if not loadable(library.soname)],
    )


def loadable(soname: str) -> bool:
    """Test that the system's loader finds and opens a shared library."""
    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True


def check_program(program: Path, entry: CatalogEntry) -> None:
    """Check that the unpacked program finds all its libraries, its own private ones included.

    Raises:
        ProvisionError: the loader says "not found" for some, or does not end.
    """
    # As ldd does it, but by the program's own loader, which may be another than this machine's.
    done = identify.said_by(program, "LD_TRACE_LOADED_OBJECTS=1")
    said = (done.stdout + done.stderr).splitlines()
    lost = [line.split()[0] for line in said if "=> not found" in line]
    if lost:
        known = [library for library in LIBRARIES if library.soname in lost]
        by_hand = "install the packages that hold these libraries"
        raise ProvisionError(
            f"{entry.reference} is there but cannot be run: {', '.join(lost)} not found",
            hint=install_command([], known) if known else by_hand,
        )


def _check_machine(entry: CatalogEntry) -> None:
    system, machine = platform.system(), platform.machine()
    if (system, machine) != ("Linux", "x86_64"):
        raise ProvisionError(
            f"{entry.reference} is built for another machine",
            wanted="Linux x86_64",
            found=f"{system} {machine}",
            hint="name a server built for this machine: path:FOLDER, a vendor's archive, or the "
            "address of a running server",
        )


def install_command(tools: Iterable[Tool], libraries: Iterable[Library]) -> str:
    """Command that installs the packages, with their newer names in Debian."""
    packages = [tool.package for tool in tools] + [library.package for library in libraries]
    command = f"apt-get install -y {' '.join(packages)}"
    notes = [
        f"Debian 13 calls {old} {RENAMED[old]}; if its library is named {old_name}t64, make a link "
        f"{old_name} to it in a folder of LD_LIBRARY_PATH"
        for old, old_name in ((lib.package, lib.soname) for lib in libraries)
        if old in RENAMED
    ]
    return "; ".join([command, *notes])
