"""Real servers: which there are, getting them, and running one with proven settings.

`check` and `known` do no more than look into the catalog; `get` fetches; `instance` makes a place
where a server can be started, stopped, copied and brought back. The protocols are in `base`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import UsageError
from dbdyno.servers.base import PGSQL, Instance, ServerSpec
from dbdyno.servers.foreign import container
from dbdyno.servers.foreign.container_instance import ContainerInstance
from dbdyno.servers.foreign.endpoint import EndpointInstance
from dbdyno.servers.foreign.postgres_container import PostgresContainerInstance
from dbdyno.servers.foreign.postgres_endpoint import PostgresEndpointInstance
from dbdyno.servers.local.server import ProductSettings
from dbdyno.servers.local.topology import Replication, TopologyInstance
from dbdyno.servers.mysql import settings as mysql_settings
from dbdyno.servers.mysql import topology
from dbdyno.servers.mysql.instance import MysqlInstance
from dbdyno.servers.mysql.topology import MysqlReplication
from dbdyno.servers.postgres import replication as postgres_replication
from dbdyno.servers.postgres import settings as postgres_settings
from dbdyno.servers.postgres.instance import PostgresInstance
from dbdyno.servers.postgres.replication import PostgresReplication
from dbdyno.servers.programs import given, identify, provision
from dbdyno.servers.programs.catalog import CATALOG, CatalogEntry
from dbdyno.servers.programs.given import GivenPrograms
from dbdyno.servers.reference import (
    EndpointReference,
    FolderReference,
    ImageReference,
    Programs,
    VersionReference,
    parse,
)

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
    parse(reference)


def product_before(reference: str) -> tuple[str, str] | None:
    """Product and version that a reference names by itself; None where its programs must be asked.

    Raises:
        UnknownSystemError: as `check`; no I/O either.
    """
    match parse(reference):
        case VersionReference(entry):
            return entry.product, entry.version
        case _:
            return None


def product_of(reference: str) -> tuple[str, str]:
    """Product and version of a reference; its programs are asked where only they can say.

    Raises:
        UnknownSystemError, UsageError, ProvisionError: as `get`.
    """
    match parse(reference):
        case EndpointReference():
            raise UsageError(
                f"{reference}: the settings of an endpoint are its owner's: dbdyno only reads them",
                hint="set them at the server; the report shows what is in force",
            )
        case VersionReference(entry):
            pass
        case ImageReference() as image:
            entry = container.look(container.find(), image, _silent).entry
        case asked:
            entry, _ = obtain(asked, _silent)
    return entry.product, entry.version


def rules_of(product: str) -> ProductSettings:
    """How the settings of a product are written and read."""
    if product == POSTGRES:
        return postgres_settings
    return mysql_settings


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
        report: receives a line about each step.

    Raises:
        UnknownSystemError: the catalog does not have it, or it is no path or address that can be.
        UsageError: there is nothing to fetch.
        ProvisionError: something is missing here, the fetch failed, the digest is wrong, or what
            was named is no server.
    """
    match parse(reference):
        case EndpointReference():
            raise UsageError("an endpoint runs already: there is nothing to fetch or start")
        case ImageReference():
            raise UsageError("an image is pulled by docker or podman, when it is first run")
        case asked:
            return obtain(asked, report)[1]


def programs(reference: str) -> Path | None:
    """The folder with the programs of a server that was got; None for one without any here."""
    match parse(reference):
        case EndpointReference() | ImageReference():
            return None
        case asked:
            return obtain(asked, _silent)[1]


def digest_here(reference: str) -> str:
    """SHA-256 of a program in a folder that a reference names; empty where the reference says it.

    Raises:
        UnknownSystemError: as `check`; ProvisionError: there is no server's program in the folder.
    """
    asked = parse(reference)
    return given.look(asked.folder).identity if isinstance(asked, FolderReference) else ""


def instance(spec: ServerSpec, folder: Path, report: Callable[[str], None]) -> Instance:
    """A place for the server of `spec`, its data directory laid out, ready to be started.

    If the servers' user cannot enter `folder` (root's home, say), the instance works in the cache
    instead; its `folder` says where. Start it from the main thread (see `process`).

    Raises:
        UnknownSystemError, UsageError: the reference or a setting cannot be.
        ProvisionError: the programs could not be got.
        ServerError: the data directory could not be made.
    """
    match parse(spec.reference):
        case EndpointReference() as asked:
            at_endpoint = PostgresEndpointInstance if asked.driver == PGSQL else EndpointInstance
            return at_endpoint(spec, asked, folder, report)
        case ImageReference() as asked:
            return _contained(spec, asked, folder, report)
        case VersionReference(entry) as asked:
            _check(spec, entry)  # report a mistake before anything is fetched
            entry, home = obtain(asked, report)
        case asked:
            entry, home = obtain(asked, report)
            _check(spec, entry)
    if _is_linked(spec):
        replication = _replication(spec, entry, home, report)
        return TopologyInstance(spec, replication, folder, report)
    kind = PostgresInstance if entry.product == POSTGRES else MysqlInstance
    return kind(spec, entry, home, folder, report)


def _contained(
    spec: ServerSpec, asked: ImageReference, folder: Path, report: Callable[[str], None]
) -> ContainerInstance:
    if spec.topology.replicas:
        raise UsageError(
            f"{spec.label}: replicas of containers cannot be made yet",
            wanted="no topology for this system",
            hint="name a version that dbdyno starts itself: dbdyno servers list",
        )
    program = container.find()
    image = container.look(program, asked, report)
    is_postgres = image.entry.product == POSTGRES
    in_container = PostgresContainerInstance if is_postgres else ContainerInstance
    return in_container(spec, program, image, folder, report)


def obtain(asked: Programs, report: Callable[[str], None]) -> tuple[CatalogEntry, Path]:
    """What programs are, and the folder they are in, fetched first if need be.

    Raises:
        ProvisionError: something is missing here, the fetch failed, the digest is wrong, or what
            was named is no server.
        UsageError: the server is older than those that dbdyno runs.
    """
    if isinstance(asked, VersionReference):
        return asked.entry, provision.get(asked.entry, report)
    source = given.look(asked.folder) if isinstance(asked, FolderReference) else asked.source
    named = GivenPrograms(asked.text, source)
    home = provision.get(named, report)
    program = provision.program_of(named, home)
    said = identify.ask(home / program)
    identify.refuse_too_old(asked.text, said)
    entry = CatalogEntry(
        *(said.product, said.version, source, (), said.authentication, program), named=asked.text
    )
    return entry, home


def _check(spec: ServerSpec, entry: CatalogEntry) -> None:
    """Settings and topology can be had of this product and version; UsageError if not."""
    rules_of(entry.product).effective(entry, spec.settings)
    if not _is_linked(spec):
        return
    if entry.product == POSTGRES:
        postgres_replication.check(spec)
    else:
        topology.check(spec, entry)


def _replication(
    spec: ServerSpec, entry: CatalogEntry, home: Path, report: Callable[[str], None]
) -> Replication:
    way = PostgresReplication if entry.product == POSTGRES else MysqlReplication
    return way(spec, entry, home, report)


def _is_linked(spec: ServerSpec) -> bool:
    return spec.topology.replicas > 0


def _silent(_: str) -> None:
    """A report for callers that want none."""
