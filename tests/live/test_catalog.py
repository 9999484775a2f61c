"""Every MySQL and MariaDB of the catalog, for real: got, made, proven, loaded, kept and stopped.

One pass through a server's life for each row. What is compared with known values is what decides a
fair comparison: whatever the version has by itself, these are alike in all of them. The last start
has every axis of settings that a plan can vary, all at once, and no network. A start proves its
settings by itself (`readback`): it fails when a server rounds a size, ignores a key or has none of
that name.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from dbdyno import _engine
from dbdyno.errors import UsageError
from dbdyno.servers import axes, open
from dbdyno.servers.base import Server, ServerSpec
from dbdyno.servers.programs.catalog import CATALOG, CatalogEntry
from support.counters import settled
from support.real_server import REDO_BYTES, login, small_redo

pytestmark = pytest.mark.live
ROWS = [entry for entry in CATALOG if entry.product in {"mysql", "mariadb"}]
MIB = 1024**2
DATASET = 741 * MIB + 12_345
"""A quarter of it is no multiple of anything that a server counts in."""
LEAN = {
    "durability": "0/2",
    "buffer_pool": "25%",
    "redo_log": "64M",
    "thread_pool": "on",
    "binlog": "on",
}
SMALL = {"innodb_buffer_pool_size": "128M", "max_connections": 200}
TABLE = {"tables": 1, "table_size": 2000}
FILLED = {**TABLE, "seed": 3, "threads": 2}
ALIKE = {  # as any of them shows it: first the name, then all that means the same
    "innodb_flush_log_at_trx_commit": {"1"},
    "innodb_flush_method": {"O_DIRECT"},
    "log_bin": {"OFF"},
    "performance_schema": {"OFF"},
    "character_set_server": {"utf8mb4"},
    "query_cache_type": {"OFF", None},
    "innodb_snapshot_isolation": {"OFF", None},
    "gtid_mode": {"OFF", None},
    "have_ssl": {"DISABLED", None},
}

BINLOGGED = {
    "log_bin": "ON",
    "sync_binlog": "1",
    "binlog_format": "ROW",
    "binlog_checksum": "CRC32",
}


@pytest.mark.parametrize("entry", ROWS, ids=lambda entry: entry.reference)
def test_a_row_runs_and_its_data_comes_back_under_other_settings(
    entry: CatalogEntry, folder: Path
) -> None:
    spec = ServerSpec("row", entry.reference, {**SMALL, **small_redo(entry.reference)})
    instance = open.instance(spec, folder / "row", lambda text: None)
    try:
        larger_log = instance.loading_keys()
        server = instance.start(larger_log)
        assert server.version().startswith(entry.version)
        proves_what_is_alike(server)
        before = loads_and_runs(server)
        server.stop()
        if larger_log:
            instance.start().stop()
        instance.snapshot()
        logs = [*(instance.folder / "snapshot" / "data").glob("ib_logfile*")]
        if larger_log:  # the snapshot has no record of the load
            assert 0 < sum(log.stat().st_blocks * 512 for log in logs) < MIB
        instance.restore()
        again = instance.start({"log_bin": True})
        assert again.ask("SELECT COUNT(*), MIN(id) FROM sbtest.sbtest1") == before
        shown = again.settings()
        assert {name: shown[name] for name in BINLOGGED} == BINLOGGED
        assert int(shown.get("innodb_redo_log_capacity", REDO_BYTES)) == REDO_BYTES
        again.stop()
        varied = instance.start({**keys(entry, with_pool(entry, LEAN)), "skip_networking": True})
        assert varied.ask("SELECT COUNT(*), MIN(id) FROM sbtest.sbtest1") == before
        proves_the_axes(varied)
        os.kill(varied.pid, signal.SIGKILL)  # its data goes anyway
        os.waitid(os.P_PID, varied.pid, os.WEXITED | os.WNOWAIT)
    finally:
        instance.close()


def proves_the_axes(server: Server) -> None:
    """The values of `LEAN` are in force."""
    shown = server.settings()
    assert shown["innodb_buffer_pool_size"] == str(185 * MIB)
    assert (shown["innodb_flush_log_at_trx_commit"], shown["sync_binlog"]) == ("2", "0")
    assert (shown["log_bin"], shown["binlog_format"]) == ("ON", "ROW")
    assert redo_bytes(shown) == 64 * MIB
    assert (server.endpoint.port, shown["skip_networking"]) == (0, "ON")


def redo_bytes(shown: Mapping[str, str]) -> int:
    """The redo space under the name that this server has for it."""
    if "innodb_redo_log_capacity" in shown:
        return int(shown["innodb_redo_log_capacity"])
    return int(shown["innodb_log_file_size"]) * int(shown.get("innodb_log_files_in_group", 1))


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


def proves_what_is_alike(server: Server) -> None:
    shown = server.settings()
    assert {name: shown.get(name) for name in ALIKE if shown.get(name) not in ALIKE[name]} == {}
    assert shown.get("transaction_isolation", shown.get("tx_isolation")) == "REPEATABLE-READ"
    accounts = set(server.ask("SELECT User, Host FROM mysql.user"))
    strangers = {name for name in accounts if not name[0].startswith(("mysql.", "mariadb."))}
    assert strangers == {("root", "localhost"), ("dbdyno", "%")}
    with pytest.raises(RuntimeError) as caught:
        _engine.prepare({**login(server), **FILLED, "password": ""}, None, stop())
    assert caught.value.args[0]["code"] == 1045


def loads_and_runs(server: Server) -> list[tuple[str, ...]]:
    """A second of load: what the engine says it did is what the server counted; rows afterwards."""
    filled = _engine.prepare({**login(server), **FILLED}, None, stop())
    assert filled["rows"] == 2000
    spec = {
        **login(server),
        "connections": 4,
        "warmup_s": 0,
        "window_s": 1,
        "interval_s": 0.5,
        "seed": 5,
        "workload": {"name": "oltp_read_write", "options": TABLE},
    }
    before = settled(server)
    record = _engine.run(spec, None, stop())
    assert record["failure"] is None
    events = sum(interval["events"] for interval in record["intervals"])
    deleted = settled(server)["Com_delete"] - before["Com_delete"]
    # A refused attempt may have got as far as its DELETE.
    refused = sum(sum(interval["errors"].values()) for interval in record["intervals"])
    assert events > 0
    assert events <= deleted <= events + refused
    return server.ask("SELECT COUNT(*), MIN(id) FROM sbtest.sbtest1")


def stop() -> _engine.Stop:
    return _engine.Stop()
