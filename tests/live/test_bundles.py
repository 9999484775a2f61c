"""Settings of the plan on real servers: what is asked for is in force, or is refused.

A start proves its settings by itself (`readback`): it fails when a server rounds a size, ignores a
key or has none of that name. So it is enough to start each version with every axis at once; of
PostgreSQL the oldest and the newest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dbdyno.errors import UsageError
from dbdyno.servers import axes, open
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.programs.catalog import CATALOG, CatalogEntry

pytestmark = pytest.mark.live
MIB = 1024**2
ROWS = [entry for entry in CATALOG if entry.product in {"mysql", "mariadb"}]
POSTGRES = [entry for entry in CATALOG if entry.product == "postgres"]
DATASET = 741 * MIB + 12_345
"""A quarter of it is no multiple of anything that a server counts in."""
LEAN = {
    "durability": "0/2",
    "buffer_pool": "25%",
    "redo_log": "64M",
    "thread_pool": "on",
    "binlog": "on",
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the servers' user may enter (pytest's own are closed)."""
    with TemporaryDirectory(prefix="dbdyno-bundles-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("entry", ROWS, ids=lambda entry: entry.reference)
def test_every_axis_is_in_force_at_once(entry: CatalogEntry, folder: Path) -> None:
    instance = open.instance(ServerSpec("row", entry.reference), folder, lambda text: None)
    try:
        server = instance.start(keys(entry, with_pool(entry, LEAN)))
        shown = server.settings()
        server.stop()
    finally:
        instance.close()
    assert shown["innodb_buffer_pool_size"] == str(185 * MIB)
    assert (shown["innodb_flush_log_at_trx_commit"], shown["sync_binlog"]) == ("2", "0")
    assert (shown["log_bin"], shown["binlog_format"]) == ("ON", "ROW")
    assert redo_bytes(shown) == 64 * MIB


@pytest.mark.parametrize("entry", [POSTGRES[0], POSTGRES[-1]], ids=lambda entry: entry.reference)
def test_postgres_has_the_same_bytes_and_promises(entry: CatalogEntry, folder: Path) -> None:
    values = {**LEAN, "thread_pool": "off", "binlog": "off"}
    instance = open.instance(ServerSpec("row", entry.reference), folder, lambda text: None)
    try:
        server = instance.start(keys(entry, values))
        shown = server.settings()
        server.stop()
    finally:
        instance.close()
    wanted = {"shared_buffers": "185MB", "max_wal_size": "64MB", "synchronous_commit": "off"}
    assert {name: shown[name] for name in wanted} == wanted
    assert shown["fsync"] == "on"


def with_pool(entry: CatalogEntry, values: Mapping[str, str]) -> dict[str, str]:
    """The values with a thread pool where this server has one; that it has none is proven."""
    try:
        keys(entry, {"thread_pool": "on"})
    except UsageError:
        assert entry.product == "mysql"
        assert entry.version_numbers < (9, 7)
        return {**values, "thread_pool": "off"}
    return dict(values)


def keys(entry: CatalogEntry, values: Mapping[str, str]) -> axes.Keys:
    return axes.keys_of(entry.product, entry.version, values, {}, DATASET)


def redo_bytes(shown: Mapping[str, str]) -> int:
    """The redo space under the name that this server has for it."""
    if "innodb_redo_log_capacity" in shown:
        return int(shown["innodb_redo_log_capacity"])
    return int(shown["innodb_log_file_size"]) * int(shown.get("innodb_log_files_in_group", 1))
