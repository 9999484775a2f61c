"""A real server for a test, in a folder of its own that goes with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dbdyno.errors import ServerError
from dbdyno.plan.settings import OptionValue
from dbdyno.servers import open
from dbdyno.servers.base import Server, ServerSpec


@contextmanager
def started(
    label: str, reference: str, settings: Mapping[str, OptionValue] | None = None
) -> Iterator[Server]:
    """A running server; ended afterwards, even one that a test has killed."""
    spec = ServerSpec(label=label, reference=reference, settings=settings or {})
    # Not below pytest's own folder: another pytest closes that to the user the server runs as.
    with TemporaryDirectory(prefix=f"dbdyno-{label}-") as name:
        Path(name).chmod(0o755)
        instance = open.instance(spec, Path(name) / "server", lambda text: None)
        try:
            yield instance.start()
        finally:
            with suppress(ServerError):  # a killed one did not stop cleanly
                instance.close()


def login(server: Server, *, socket: bool = False) -> dict[str, Any]:
    """Where a server is and who logs in, as the engine's specs have it."""
    endpoint, credentials = server.endpoint, server.credentials
    tcp = {"host": endpoint.host, "port": endpoint.port}
    return {
        "endpoint": {"socket": str(endpoint.socket)} if socket else tcp,
        "user": credentials.user,
        "password": credentials.password,
        "database": server.database,
    }
