"""A real server for a test, in a folder of its own that goes with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from dbdyno.errors import ServerError
from dbdyno.plan.settings import OptionValue
from dbdyno.plan.systems import SystemPlan
from dbdyno.servers import open
from dbdyno.servers.base import Server, ServerSpec
from dbdyno.servers.mysql.versions import family_of
from dbdyno.servers.programs.catalog import CATALOG

REDO_NAMES: Final = {"innodb_log_file_size", "innodb_redo_log_capacity"}
REDO_BYTES: Final = 16 * 1024**2
"""Of each file, or of all. Every start copies the redo log; 512 MB would be most of its time."""
SMALL_REDO: Final = {"innodb_log_file_size": str(REDO_BYTES)}
"""Under the name that MySQL up to 8.0.29 and MariaDB have for it."""
SMALL_REDO_TYPED: Final = ("--set", f"innodb_log_file_size={REDO_BYTES}")
CROWDED: Final = ("--disturbance-max", "100%")
"""Of runs beside which other tests run."""
SYSBENCH: Final = (
    sys.executable,
    "-c",
    "import sys; from dbdyno.sysbench.entry import main; sys.exit(main(sys.argv[1:]))",
)
"""dbdyno in sysbench's place, for a process with `sysbench_environment`."""


def small(*references: str) -> tuple[SystemPlan, ...]:
    """Systems under their references, with small redo logs."""
    return tuple(SystemPlan(label=r, reference=r, settings=small_redo(r)) for r in references)


def small_redo(reference: str) -> dict[str, str]:
    """A small redo log under the names of that version; nothing where there is none of InnoDB."""
    for entry in CATALOG:
        if entry.reference == reference and entry.product in {"mysql", "mariadb"}:
            redo = family_of(entry.product, entry.version_numbers).redo
            return {name: str(REDO_BYTES) for name in redo if name in REDO_NAMES}
    return {}


@contextmanager
def started(
    label: str, reference: str, settings: Mapping[str, OptionValue] | None = None
) -> Iterator[Server]:
    """A running server with a small redo log; ended afterwards, even one that a test has killed."""
    changed = {**small_redo(reference), **(settings or {})}
    spec = ServerSpec(label=label, reference=reference, settings=changed)
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


def sysbench_options(server: Server) -> list[str]:
    """Where a MySQL is and who logs in, as sysbench's options; the password is no part of them."""
    return [
        f"--mysql-host={server.endpoint.host}",
        f"--mysql-port={server.endpoint.port}",
        f"--mysql-user={server.credentials.user}",
        f"--mysql-db={server.database}",
    ]


def sysbench_environment(**more: str) -> dict[str, str]:
    """In which `SYSBENCH` finds the lab; `more` is where a password goes."""
    return {**os.environ, "PYTHONPATH": str(Path(open.__file__).parents[2]), **more}
