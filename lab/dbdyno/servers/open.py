"""Real servers: which there are, getting them, and running one with proven settings.

`check` and `known` do no more than look into the catalog; `get` fetches; `instance` makes a place
where a server can be started, stopped, copied and brought back. What a server owes is in `base`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dbdyno.errors import UsageError
from dbdyno.servers.base import Instance, ServerSpec
from dbdyno.servers.foreign import container
from dbdyno.servers.foreign.container import is_container
from dbdyno.servers.foreign.container_instance import ContainerInstance
from dbdyno.servers.foreign.endpoint import EndpointInstance
from dbdyno.servers.local import network
from dbdyno.servers.mysql import settings, topology
from dbdyno.servers.mysql.instance import MysqlInstance
from dbdyno.servers.mysql.topology import TopologyInstance
from dbdyno.servers.postgres import settings as settings_module
from dbdyno.servers.postgres.instance import PostgresInstance
from dbdyno.servers.programs import given, identify, provision
from dbdyno.servers.programs.catalog import CATALOG, CatalogEntry
from dbdyno.servers.reference import find, is_endpoint, read

POSTGRES: Final = "postgres"


@dataclass(frozen=True)
class KnownServer:
    """A row of ``dbdyno servers list``.

    Attributes:
        reference: what a plan calls it.
        source: where it comes from: coordinates, a package with its version, or a URL.
        download_bytes: size of the download; 0 when it is not known before.
        cached: whether it can be run without fetching.
    """

    reference: str
    source: str
    download_bytes: int
    cached: bool


def check(reference: str) -> None:
    """Whether a reference can be; no I/O.

    Raises:
        UnknownSystemError: the catalog does not have it (lists those known), or it is no path,
            address or endpoint that can be.
    """
    if is_endpoint(reference):
        read(reference)
    elif is_container(reference):
        container.image_of(reference)
    else:
        entry_before(reference)


def product_before(reference: str) -> tuple[str, str] | None:
    """Product and version that a reference names by itself; None where its programs must be asked.

    Raises:
        UnknownSystemError, UsageError: as `check`; no I/O either.
    """
    if is_endpoint(reference) or is_container(reference):
        return None
    entry = entry_before(reference)
    return None if entry is None else (entry.product, entry.version)


def product_of(reference: str) -> tuple[str, str]:
    """Product and version of a reference; its programs are asked where only they can say.

    Raises:
        UnknownSystemError, UsageError, ProvisionError: as `get`.
    """
    if is_endpoint(reference):
        raise UsageError(
            f"{reference}: the settings of an endpoint are its owner's: dbdyno only reads them",
            hint="set them at the server; the report shows what is in force",
        )
    if is_container(reference):
        entry = container.look(container.find(), reference, lambda text: None).entry
        return entry.product, entry.version
    known_before = product_before(reference)
    if known_before is not None:
        return known_before
    entry, _ = obtain(reference, lambda text: None)
    return entry.product, entry.version


def known() -> list[KnownServer]:
    """Every server of the catalog, in its order."""
    return [
        KnownServer(
            entry.reference,
            entry.source.name,
            entry.source.download_bytes,
            provision.is_cached(entry),
        )
        for entry in CATALOG
    ]


def get(reference: str, report: Callable[[str], None]) -> Path:
    """The folder with a server's programs, fetched first if need be.

    Args:
        report: is told in one line each what is being done.

    Raises:
        UnknownSystemError: the catalog does not have it, or it is no path or address that can be.
        UsageError: there is nothing to fetch.
        ProvisionError: something is missing here, the fetch failed, the digest is wrong, or what
            was named is no server.
    """
    if is_endpoint(reference):
        raise UsageError("an endpoint runs already: there is nothing to fetch or start")
    if is_container(reference):
        raise UsageError("an image is pulled by docker or podman, when it is first run")
    return obtain(reference, report)[1]


def programs(reference: str) -> Path | None:
    """The folder with the programs of a server that was got; None for one without any here."""
    if is_endpoint(reference) or is_container(reference):
        return None
    return obtain(reference, lambda text: None)[1]


def instance(spec: ServerSpec, folder: Path, report: Callable[[str], None]) -> Instance:
    """A place for the server of `spec`, its data directory laid out, ready to be started.

    If the servers' user cannot enter `folder` (root's home, say), the instance works in the cache
    instead; its `folder` says where. Start it from the main thread (see `process`).

    Raises:
        UnknownSystemError, UsageError: the reference or a setting cannot be.
        ProvisionError: the programs could not be got.
        ServerError: the data directory could not be made.
    """
    if network.wanted(spec.network):
        _refuse_a_network_of_others(spec)
    if is_endpoint(spec.reference):
        return EndpointInstance(spec, folder, report)
    if is_container(spec.reference):
        return ContainerInstance(spec, folder, report)
    row = entry_before(spec.reference)
    if row is not None:  # a mistake is told before anything is fetched
        reading = settings_module if row.product == POSTGRES else settings
        reading.effective(row, spec.settings)
    linked = bool(spec.topology.replicas) or network.wanted(spec.network)
    if linked and row is not None:
        topology.check(spec, row)
    entry, home = obtain(spec.reference, report)
    if linked:
        if row is None:
            topology.check(spec, entry)
        return TopologyInstance(spec, entry, home, folder, report)
    kind = PostgresInstance if entry.product == POSTGRES else MysqlInstance
    return kind(spec, entry, home, folder, report)


def _refuse_a_network_of_others(spec: ServerSpec) -> None:
    """UsageError where the lab does not make the server's network and so cannot delay it."""
    if is_endpoint(spec.reference) or is_container(spec.reference):
        raise UsageError(
            f"{spec.label}: dbdyno can delay the network of servers that it starts itself only",
            found=spec.reference,
            hint="leave network out of the plan, or delay the network yourself and say so in it",
        )


# From a reference to a server's programs: the catalog's, an archive's, or those in a folder.
#
# The catalog knows what its rows are; the others are asked once their programs are there.


def obtain(asked: str, report: Callable[[str], None]) -> tuple[CatalogEntry, Path]:
    """What a reference names, and the folder with its programs, fetched first if need be.

    Raises:
        UnknownSystemError: the catalog does not have it, or it is no path or address that can be.
        ProvisionError: something is missing here, the fetch failed, the digest is wrong, or what
            was named is no server.
    """
    if asked.startswith(given.FOLDER_SCHEME):
        source = given.look(given.read_folder(asked))
        return _asked_itself(CatalogEntry("", "", source, (), "", "", named=asked), report)
    if asked.startswith(given.TARBALL_SCHEME):
        archive = given.read_tarball(asked)
        return _asked_itself(CatalogEntry("", "", archive, (), "", "", named=asked), report)
    entry = find(asked)
    return entry, provision.get(entry, report)


def entry_before(asked: str) -> CatalogEntry | None:
    """The catalog's row for a reference, None where only the programs themselves can say.

    Raises:
        UnknownSystemError: the catalog does not have it, or it is no path or address that can be.
    """
    if asked.startswith(given.FOLDER_SCHEME):
        given.read_folder(asked)
        return None
    if asked.startswith(given.TARBALL_SCHEME):
        given.read_tarball(asked)
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
