"""Whether the engine can drive a server; asked before anything is fetched, started or loaded.

dbdyno runs PostgreSQL (gets, starts, proves and snapshots it), but its engine speaks MySQL's
protocol only. A run that wants both would fail after minutes in words of a protocol, so it is
refused before it begins.
"""

from __future__ import annotations

from dbdyno.errors import UnknownSystemError
from dbdyno.servers import open
from dbdyno.servers.base import Instance
from dbdyno.servers.postgres.postgres_instance import PostgresInstance


def check(reference: str) -> None:
    """The reference can be had and measured; UnknownSystemError if not; no I/O."""
    open.check(reference)
    refuse_unspoken(reference)


def refuse_unspoken(reference: str) -> None:
    """UnknownSystemError if it names a product that the engine does not speak to."""
    if reference.strip().lower().partition(":")[0] == open.POSTGRES:
        raise _unspoken(reference)


def refuse_unspoken_instance(instance: Instance) -> None:
    """The same of one that was made: only then a folder or an archive has said what it holds."""
    if isinstance(instance, PostgresInstance):
        raise _unspoken(instance.spec.reference)


def _unspoken(reference: str) -> UnknownSystemError:
    return UnknownSystemError(
        f"{reference} cannot be measured yet: dbdyno's engine does not speak PostgreSQL",
        wanted="a server that speaks MySQL's protocol",
        hint="leave it out; dbdyno servers list shows the others",
    )
