"""Lookup, download and set-up of real servers with proven settings.

`check` and `known` only look into the catalog; `get` fetches; `instance` makes a place where a
server can be started, stopped, copied and restored. The protocols are in `base`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
from dbdyno.servers.local.topology import TopologyInstance
from dbdyno.servers.mysql import replication as mysql_replication
from dbdyno.servers.mysql import settings as mysql_settings
from dbdyno.servers.mysql.instance import MysqlInstance
from dbdyno.servers.mysql.replication import MysqlReplication
from dbdyno.servers.postgres import replication as postgres_replication
from dbdyno.servers.postgres import settings as postgres_settings
from dbdyno.servers.postgres.instance import PostgresInstance
from dbdyno.servers.postgres.replication import PostgresReplication
from dbdyno.servers.programs import given, identify, provision
from dbdyno.servers.programs.catalog import CatalogEntry
from dbdyno.servers.reference import (
    ArchiveReference,
    EndpointReference,
    FolderReference,
    ImageReference,
    Programs,
    VersionReference,
    parse,
)

POSTGRES: Final = "postgres"


def check(reference: str) -> None:
    """Validate a reference; no I/O.

    Raises:
        UnknownSystemError: not in the catalog (lists the known versions), or an impossible path,
            address or endpoint.
    """
    parse(reference)


def product_before(reference: str) -> tuple[str, str] | None:
    """Product and version in the reference itself; None if only its programs can tell.

    No I/O; UnknownSystemError as `check`.
    """
    match parse(reference):
        case VersionReference(entry):
            return entry.product, entry.version
        case _:
            return None


def product_of(reference: str) -> tuple[str, str]:
    """Product and version of a reference; runs its programs if only they can tell.

    The same errors as `get`.
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
        case parsed:
            entry, _ = obtain(parsed, _silent)
    return entry.product, entry.version


def rules_of(product: str) -> ProductSettings:
    """Reader and writer of a product's settings."""
    if product == POSTGRES:
        return postgres_settings
    return mysql_settings


def get(reference: str, report: Callable[[str], None]) -> Path:
    """The folder with a server's programs, fetched first if need be.

    Raises:
        UnknownSystemError: as `check`.
        UsageError: there is nothing to fetch.
        ProvisionError: as `obtain`.
    """
    match parse(reference):
        case EndpointReference():
            raise UsageError("an endpoint runs already: there is nothing to fetch or start")
        case ImageReference():
            raise UsageError("an image is pulled by docker or podman, when it is first run")
        case parsed:
            return obtain(parsed, report)[1]


def programs(reference: str) -> Path | None:
    """The folder with a fetched server's programs; None for images and endpoints."""
    match parse(reference):
        case EndpointReference() | ImageReference():
            return None
        case parsed:
            return obtain(parsed, _silent)[1]


def digest_here(reference: str) -> str:
    """SHA-256 of the program in a folder reference; empty for references that hold a digest.

    Raises:
        UnknownSystemError: as `check`.
        ProvisionError: there is no server's program in the folder.
    """
    parsed = parse(reference)
    return given.look(parsed.folder).identity if isinstance(parsed, FolderReference) else ""


def instance(spec: ServerSpec, folder: Path, report: Callable[[str], None]) -> Instance:
    """Lay out a data directory for the server of `spec`, ready to be started.

    If the servers' user cannot enter `folder` (root's home, say), the instance works in the cache
    instead; see its `folder`. Start it from the main thread (see `process`).

    Raises:
        UnknownSystemError, UsageError: the reference or a setting is invalid.
        ProvisionError: the programs could not be fetched.
        ServerError: the data directory could not be made.
    """
    match parse(spec.reference):
        case EndpointReference() as parsed:
            at_endpoint = PostgresEndpointInstance if parsed.driver == PGSQL else EndpointInstance
            return at_endpoint(spec, parsed, folder, report)
        case ImageReference() as parsed:
            return _contained(spec, parsed, folder, report)
        case VersionReference(entry) as parsed:
            _check(spec, entry)  # report a mistake before anything is fetched
            entry, home = obtain(parsed, report)
        case parsed:
            entry, home = obtain(parsed, report)
            _check(spec, entry)
    if _is_linked(spec):
        in_product = PostgresReplication if entry.product == POSTGRES else MysqlReplication
        replication = in_product(spec, entry, home, report)
        return TopologyInstance(spec, replication, folder, report)
    kind = PostgresInstance if entry.product == POSTGRES else MysqlInstance
    return kind(spec, entry, home, folder, report)


def _contained(
    spec: ServerSpec, parsed: ImageReference, folder: Path, report: Callable[[str], None]
) -> ContainerInstance:
    if spec.topology.replicas:
        raise UsageError(
            f"{spec.label}: replicas of containers cannot be made yet",
            wanted="no topology for this system",
            hint="name a version that dbdyno starts itself: dbdyno servers list",
        )
    program = container.find()
    image = container.look(program, parsed, report)
    is_postgres = image.entry.product == POSTGRES
    in_container = PostgresContainerInstance if is_postgres else ContainerInstance
    return in_container(spec, program, image, folder, report)


def obtain(parsed: Programs, report: Callable[[str], None]) -> tuple[CatalogEntry, Path]:
    """Fetch programs if need be and identify them: their catalog row and folder.

    Raises:
        ProvisionError: a tool is missing here, the fetch failed, the digest is wrong, or the
            programs are not a server's.
        UsageError: the server is older than dbdyno supports.
    """
    if isinstance(parsed, VersionReference):
        return parsed.entry, provision.get(parsed.entry, report)
    if isinstance(parsed, FolderReference):
        unknown = _unknown(parsed.text, given.look(parsed.folder))
    else:
        archive = parsed if parsed.source.identity else _pinned(parsed, report)
        unknown = _unknown(archive.text, archive.source)
    home = provision.get(unknown, report)
    program = provision.program_of(unknown, home)
    identity = identify.ask(home / program)
    identify.refuse_too_old(unknown.reference, identity)
    known = replace(unknown, program=program, **vars(identity))  # product, version, login plugin
    return known, home


def pinned(reference: str, report: Callable[[str], None]) -> str:
    """The reference, with the digest of its archive if it lacks a digest.

    The archive is then downloaded, and its server kept in the cache.

    Raises:
        UnknownSystemError: as `check`.
        ProvisionError: the fetch failed, or the archive holds no server's program.
    """
    parsed = parse(reference)
    if isinstance(parsed, ArchiveReference) and not parsed.source.identity:
        return _pinned(parsed, report).text
    return reference


def _pinned(parsed: ArchiveReference, report: Callable[[str], None]) -> ArchiveReference:
    source = provision.pinned(_unknown(parsed.text, parsed.source), parsed.source, report)
    digest = f"sha256={source.identity}"
    report(f"{parsed.text}: pinned as #{digest}")
    return ArchiveReference(f"{parsed.text}#{digest}", source)


def _unknown(text: str, source: given.FolderSource | given.TarballSource) -> CatalogEntry:
    """Row of given programs, before they are identified."""
    return CatalogEntry("", "", source, (), "", program="", named=text)


def _check(spec: ServerSpec, entry: CatalogEntry) -> None:
    """Raise UsageError if the product and version lack a setting or the topology."""
    rules_of(entry.product).effective(entry, spec.settings)
    if not _is_linked(spec):
        return
    if entry.product == POSTGRES:
        postgres_replication.check(spec)
    else:
        mysql_replication.check(spec, entry)


def _is_linked(spec: ServerSpec) -> bool:
    return spec.topology.replicas > 0


def _silent(_: str) -> None: ...
