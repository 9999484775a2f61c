"""The keys of a setting: known answers for each family and version, and what cannot be had."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UsageError
from dbdyno.servers.axes import CHUNKS_MAX, GIB, MIB, POOL_PARTS, keys_of

DATASET = 400 * MIB


def keys(system, axis, value):
    family, _, version = system.partition(":")
    return keys_of(family, version, {axis: value}, {}, DATASET, processors=6)


PAIR = {"innodb_log_file_size": 512 * MIB, "innodb_log_files_in_group": 2}
CAPACITY = {"innodb_redo_log_capacity": GIB}
POOL = {"innodb_buffer_pool_size": 100 * MIB}
CHUNKS = {**POOL, "innodb_buffer_pool_chunk_size": MIB}
HANDLING_ON = {"thread_handling": "pool-of-threads", "thread_pool_size": 6}
PLUGIN = {"plugin_load_add": "thread_pool.so", "thread_pool_size": 6}
TWO_LOGS = {"innodb_flush_log_at_trx_commit": 1, "sync_binlog": 1}
ONE_LOG = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "off"}
LOGGED_ROWS = {"log_bin": "ON", "binlog_format": "ROW"}


@pytest.mark.parametrize(
    ("system", "axis", "value", "wanted"),
    [
        ("mysql:5.6.24", "redo_log", "1G", PAIR),
        ("mysql:8.0.15", "redo_log", "1G", PAIR),
        ("mysql:8.0.31", "redo_log", "1G", CAPACITY),
        ("mysql:9.7.4", "redo_log", "1G", CAPACITY),
        ("greatsql:8.0.32-26", "redo_log", "1G", CAPACITY),
        ("mariadb:10.2.11", "redo_log", "1G", PAIR),
        ("mariadb:11.8.6-MariaDB", "redo_log", "1G", {"innodb_log_file_size": GIB}),
        ("postgres:17.2", "redo_log", "1G", {"max_wal_size": "1024MB"}),
        ("mysql:5.6.24", "buffer_pool", "25%", POOL),
        ("mysql:5.7.22", "buffer_pool", "25%", CHUNKS),
        ("mysql:9.7.4", "buffer_pool", "25%", {**CHUNKS, "innodb_buffer_pool_instances": 1}),
        ("mariadb:10.1.23", "buffer_pool", "25%", POOL),
        ("mariadb:10.11.5", "buffer_pool", "25%", POOL),
        ("postgres:18.1", "buffer_pool", "25%", {"shared_buffers": "102400kB"}),
        ("mysql:9.7.4", "thread_pool", "on", PLUGIN),
        ("mariadb:10.1.23", "thread_pool", "on", HANDLING_ON),
        ("greatsql:8.0.32-26", "thread_pool", "on", HANDLING_ON),
        ("mysql:8.0.15", "thread_pool", "off", {}),
        ("mysql:9.7.4", "thread_pool", "off", {}),
        ("mariadb:11.4.5", "thread_pool", "off", {"thread_handling": "one-thread-per-connection"}),
        ("postgres:18.1", "thread_pool", "off", {}),
        ("mysql:8.0.15", "binlog", "on", {"log_bin": "ON"}),
        ("mysql:5.6.24", "binlog", "on", LOGGED_ROWS),
        ("mariadb:11.4.5", "binlog", "on", LOGGED_ROWS),
        ("mariadb:11.4.5", "binlog", "off", {"log_bin": "OFF"}),
        ("mysql:5.7.22", "durability", "double-1", TWO_LOGS),
        ("mariadb:11.4.5", "durability", "0/2", dict(zip(TWO_LOGS, (2, 0), strict=True))),
        ("postgres:18.1", "durability", "double-1", {**ONE_LOG, "synchronous_commit": "on"}),
        ("postgres:18.1", "durability", "0/2", ONE_LOG),
        ("mysql:5.6.24", "buffer_pool", "1500M", {"innodb_buffer_pool_size": 1500 * MIB}),
        ("tidb:8.5.0", "prepared_statements", "on", {}),
    ],
)
def test_a_value_becomes_the_keys_of_the_family_and_version(system, axis, value, wanted):
    assert keys(system, axis, value) == wanted


@pytest.mark.parametrize(
    ("system", "axis", "message", "hint"),
    [
        ("mysql:8.0.15", "thread_pool", "mysql 8.0.15 has no thread pool", "mysql:9.7.4"),
        ("postgres:16.4", "thread_pool", "postgres 16.4 has no thread pool", "mysql:9.7.4"),
        ("postgres:18.1", "binlog", "postgres 18.1 has no binary log", "leave binlog off"),
        ("tidb:8.5.0", "durability", "does not know how to set durability", "give the keys"),
    ],
)
def test_what_a_server_has_not_is_refused_with_what_else_to_do(system, axis, message, hint):
    with pytest.raises(UsageError, match=message) as caught:
        keys(system, axis, "on")
    assert hint in (caught.value.hint or "")


def test_all_axes_of_a_cell_with_those_of_the_plan_itself():
    values = {"binlog": "on", "prepared_statements": "off", "flushing": "lazy"}
    own = {"flushing": {"lazy": {"innodb-io-capacity": 200}, "eager": {"innodb_io_capacity": 9000}}}
    assert keys_of("mysql", "8.0.15", values, own, None) == {
        "log_bin": "ON",
        "innodb_io_capacity": 200,
    }
    assert keys_of("mysql", "8.0.15", {}, own, None) == {}


def test_one_key_from_two_axes_is_refused():
    own = {"size": {"small": {"innodb-buffer-pool-size": "1G"}}}
    with pytest.raises(UsageError, match="given by two axes") as caught:
        keys_of("mysql", "8.0.15", {"buffer_pool": "25%", "size": "small"}, own, DATASET)
    assert caught.value.found == "buffer_pool and size"


def test_a_share_of_what_nobody_knows_is_refused():
    with pytest.raises(UsageError, match="cannot be worked out"):
        keys_of("mysql", "8.0.15", {"buffer_pool": "25%"}, {}, None)


@given(st.integers(1, 4 * 1024 * GIB), st.sampled_from(["25%", "50%", "75%", "100%"]))
def test_a_share_is_a_size_that_the_server_takes_unrounded(dataset_bytes, share):
    """A server rounds its pool up to whole chunks in each instance: here there is nothing to."""
    for version in ("5.7.22", "8.0.15", "9.7.4"):
        pool = keys_of("mysql", version, {"buffer_pool": share}, {}, dataset_bytes)
        size, chunk = pool["innodb_buffer_pool_size"], pool["innodb_buffer_pool_chunk_size"]
        assert size % (chunk * (POOL_PARTS if size >= GIB else 1)) == 0
        assert chunk % MIB == 0
        assert size <= CHUNKS_MAX * chunk or chunk == 128 * MIB
        wanted = dataset_bytes * float(share[:-1]) / 100
        assert size == 8 * MIB or abs(size - wanted) <= max(MIB, wanted * 0.01)
