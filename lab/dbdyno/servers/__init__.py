"""Real servers: which there are, getting them, and running one with proven settings.

`check` and `known` do no more than look into the catalog; `get` fetches; `instance` makes a place
where a server can be started, stopped, copied and brought back. What a server owes is in `base`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.servers import postgres_settings, provision, settings
from dbdyno.servers.base import Credentials, Endpoint, Instance, Server, ServerSpec
from dbdyno.servers.catalog import CATALOG
from dbdyno.servers.mysql_instance import MysqlInstance
from dbdyno.servers.obtaining import entry_before, obtain
from dbdyno.servers.postgres_instance import PostgresInstance

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
    "product_before",
    "product_of",
]

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
        UnknownSystemError: the catalog does not have it; lists those known.
        UsageError: a path or an address that cannot be.
    """
    entry_before(reference)


def product_before(reference: str) -> tuple[str, str] | None:
    """Product and version that a reference names by itself; None where its programs must be asked.

    Raises:
        UnknownSystemError, UsageError: as `check`; no I/O either.
    """
    entry = entry_before(reference)
    return None if entry is None else (entry.product, entry.version)


def product_of(reference: str) -> tuple[str, str]:
    """Product and version of a reference; its programs are asked where only they can say.

    Raises:
        UnknownSystemError, UsageError, ProvisionError: as `get`.
    """
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
        UnknownSystemError: the catalog does not have it.
        UsageError: a path or an address that cannot be.
        ProvisionError: something is missing here, the fetch failed, the digest is wrong, or what
            was named is no server.
    """
    return obtain(reference, report)[1]


def instance(spec: ServerSpec, folder: Path, report: Callable[[str], None]) -> Instance:
    """A place for the server of `spec`, its data directory laid out, ready to be started.

    If the servers' user cannot enter `folder` (root's home, say), the instance works in the cache
    instead; its `folder` says where. Start it from the main thread (see `process`).

    Raises:
        UnknownSystemError, UsageError: the reference or a setting cannot be.
        ProvisionError: the programs could not be got.
        ServerError: the data directory could not be made.
    """
    known_before = entry_before(spec.reference)
    if known_before is not None:  # a mistake is told before anything is fetched
        check_settings = postgres_settings if known_before.product == POSTGRES else settings
        check_settings.effective(known_before, spec.settings)
    entry, home = obtain(spec.reference, report)
    made = PostgresInstance if entry.product == POSTGRES else MysqlInstance
    return made(spec, entry, home, folder, report)
