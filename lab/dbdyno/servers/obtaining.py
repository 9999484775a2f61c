"""From a reference to a server's programs: the catalog's, an archive's, or those in a folder.

The catalog knows what its rows are; the others are asked once their programs are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dbdyno.servers.programs import given, identify, provision, sources_folder
from dbdyno.servers.programs.catalog_entry import CatalogEntry
from dbdyno.servers.reference import find


def obtain(asked: str, report: Callable[[str], None]) -> tuple[CatalogEntry, Path]:
    """What a reference names, and the folder with its programs, fetched first if need be.

    Raises:
        UnknownSystemError: the catalog does not have it, or it is no path or address that can be.
        ProvisionError: something is missing here, the fetch failed, the digest is wrong, or what
            was named is no server.
    """
    if asked.startswith(sources_folder.SCHEME):
        source = sources_folder.look(sources_folder.read(asked))
        return _asked_itself(CatalogEntry("", "", source, (), "", "", named=asked), report)
    if asked.startswith(given.SCHEME):
        archive = given.read(asked)
        return _asked_itself(CatalogEntry("", "", archive, (), "", "", named=asked), report)
    entry = find(asked)
    return entry, provision.get(entry, report)


def entry_before(asked: str) -> CatalogEntry | None:
    """The catalog's row for a reference, None where only the programs themselves can say.

    Raises:
        UnknownSystemError: the catalog does not have it, or it is no path or address that can be.
    """
    if asked.startswith(sources_folder.SCHEME):
        sources_folder.read(asked)
        return None
    if asked.startswith(given.SCHEME):
        given.read(asked)
        return None
    return find(asked)


def _asked_itself(entry: CatalogEntry, report: Callable[[str], None]) -> tuple[CatalogEntry, Path]:
    home = provision.get(entry, report)
    program = provision.program_of(entry, home)
    said = identify.ask(home / program)
    whole = replace(
        entry,
        product=said.product,
        version=said.version,
        authentication=said.authentication,
        program=program,
    )
    return whole, home
