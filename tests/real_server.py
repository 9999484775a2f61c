"""A real server for a test, in a folder of its own that goes with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from dbdyno import servers
from dbdyno.errors import ServerError
from dbdyno.plan import OptionValue
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
        instance = servers.instance(spec, Path(name) / "server", lambda text: None)
        try:
            yield instance.start()
        finally:
            with suppress(ServerError):  # a killed one did not stop cleanly
                instance.close()
