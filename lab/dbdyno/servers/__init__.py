"""Real servers: which there are, getting them, and running one with proven settings.

`check` and `known` do no more than look into the catalog; `get` fetches; `instance` makes a place
where a server can be started, stopped, copied and brought back. What a server owes is in `base`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dbdyno.servers import network, provision, settings, topology
from dbdyno.servers.base import Credentials, Endpoint, Instance, Server, ServerSpec
from dbdyno.servers.catalog import CATALOG
from dbdyno.servers.mysql_instance import MysqlInstance
from dbdyno.servers.reference import find
from dbdyno.servers.topology import TopologyInstance

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
    "known",
    "product_of",
]


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
    """UnknownSystemError, listing those known, unless the catalog has the reference; no I/O."""
    find(reference)


def product_of(reference: str) -> tuple[str, str]:
    """Product and version of a reference; UnknownSystemError if the catalog lacks it; no I/O."""
    entry = find(reference)
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
        UnknownSystemError: the catalog does not have it.
        ProvisionError: something is missing here, the fetch failed, or the digest is wrong.
    """
    return provision.get(find(reference), report)


def instance(spec: ServerSpec, folder: Path, report: Callable[[str], None]) -> Instance:
    """A place for the server of `spec`, its data directory laid out, ready to be started.

    If the servers' user cannot enter `folder` (root's home, say), the instance works in the cache
    instead; its `folder` says where. Start it from the main thread (see `process`).

    Raises:
        UnknownSystemError, UsageError: the reference or a setting cannot be.
        ProvisionError: the programs could not be got.
        ServerError: the data directory could not be made.
    """
    entry = find(spec.reference)
    settings.effective(entry, spec.settings)  # a mistake is told before anything is fetched
    if not spec.topology.replicas and not network.wanted(spec.network):
        return MysqlInstance(spec, entry, get(spec.reference, report), folder, report)
    topology.check(spec, entry)
    return TopologyInstance(spec, entry, get(spec.reference, report), folder, report)
