"""Real servers: which there are, getting them, and running one with proven settings.

`check` and `known` do no more than look into the catalog; `get` fetches; `instance` makes a place
where a server can be started, stopped, copied and brought back. What a server owes is in `base`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import UsageError
from dbdyno.servers import endpoint_reference, provision, settings
from dbdyno.servers.base import Credentials, Endpoint, Instance, Server, ServerSpec
from dbdyno.servers.catalog import CATALOG
from dbdyno.servers.endpoint_instance import EndpointInstance
from dbdyno.servers.endpoint_reference import is_endpoint
from dbdyno.servers.mysql_instance import MysqlInstance
from dbdyno.servers.reference import find

__all__ = [
    "Credentials",
    "Endpoint",
    "Instance",
    "KnownServer",
    "Server",
    "ServerSpec",
    "check",
    "get",
    "instance",
    "is_endpoint",
    "known",
    "programs",
]


@dataclass(frozen=True)
class KnownServer:
    """A row of ``dbdyno servers list``.

    Attributes:
        reference: what a plan calls it.
        source: the Maven artifact it comes from.
        download_bytes: size of the download.
        cached: whether it can be run without fetching.
    """

    reference: str
    source: str
    download_bytes: int
    cached: bool


def check(reference: str) -> None:
    """UnknownSystemError unless the reference is one that can be run; no I/O."""
    if is_endpoint(reference):
        endpoint_reference.read(reference)
    else:
        find(reference)


def known() -> list[KnownServer]:
    """Every server of the catalog, in its order."""
    return [
        KnownServer(
            entry.reference, entry.artifact, entry.download_bytes, provision.is_cached(entry)
        )
        for entry in CATALOG
    ]


def get(reference: str, report: Callable[[str], None]) -> Path:
    """The folder with a server's programs, fetched first if need be.

    Args:
        report: is told in one line each what is being done.

    Raises:
        UsageError: it is an endpoint, of which there is nothing to fetch.
        UnknownSystemError: the catalog does not have it.
        ProvisionError: something is missing here, the fetch failed, or the digest is wrong.
    """
    if is_endpoint(reference):
        raise UsageError("an endpoint runs already: there is nothing to fetch or start")
    return provision.get(find(reference), report)


def programs(reference: str) -> Path | None:
    """The folder with a server's programs if it is here already; None if it has none here."""
    if is_endpoint(reference):
        return None
    entry = find(reference)
    return provision.get(entry, lambda text: None) if provision.is_cached(entry) else None


def instance(spec: ServerSpec, folder: Path, report: Callable[[str], None]) -> Instance:
    """A place for the server of `spec`, its data directory laid out, ready to be started.

    If the servers' user cannot enter `folder` (root's home, say), the instance works in the cache
    instead; its `folder` says where. Start it from the main thread (see `process`).

    Raises:
        UnknownSystemError, UsageError: the reference or a setting cannot be.
        ProvisionError: the programs could not be got.
        ServerError: the data directory could not be made.
    """
    if is_endpoint(spec.reference):
        return EndpointInstance(spec, folder, report)
    entry = find(spec.reference)
    settings.effective(entry, spec.settings)  # a mistake is told before anything is fetched
    return MysqlInstance(spec, entry, get(spec.reference, report), folder, report)
