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
    ],
)
def test_a_value_becomes_the_keys_of_the_family_and_version(system, axis, value, wanted):
    assert keys(system, axis, value) == wanted


@pytest.mark.parametrize("system", ["mysql:8.0.15", "mysql:8.0.33", "postgres:16.4"])
def test_a_server_without_a_thread_pool_says_so(system):
    said = f"^{system.replace(':', ' ')} has no thread pool"
    with pytest.raises(UsageError, match=said) as caught:
        keys(system, "thread_pool", "on")
    assert "mysql:9.7.4" in str(caught.value)


def test_durability_is_both_logs_or_the_one_there_is():
    assert keys("mysql:5.7.22", "durability", "double-1") == {
        "innodb_flush_log_at_trx_commit": 1,
        "sync_binlog": 1,
    }
    assert keys("mariadb:11.4.5", "durability", "0/2") == {
        "innodb_flush_log_at_trx_commit": 2,
        "sync_binlog": 0,
    }
    assert keys("postgres:18.1", "durability", "0/2")["synchronous_commit"] == "off"
    assert keys("postgres:18.1", "durability", "0/2")["fsync"] == "on"


def test_a_product_without_a_binary_log_says_so():
    with pytest.raises(UsageError, match="has no binary log"):
        keys("postgres:18.1", "binlog", "on")


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


def test_a_family_that_dbdyno_cannot_configure_is_refused():
    with pytest.raises(UsageError, match="does not know how to set durability") as caught:
        keys_of("tidb", "8.5.0", {"durability": "double-1"}, {}, None)
    assert caught.value.hint is not None
    assert keys_of("tidb", "8.5.0", {"prepared_statements": "on"}, {}, None) == {}


def test_bytes_are_taken_as_they_are_typed():
    assert keys("mysql:8.0.15", "buffer_pool", "1500M")["innodb_buffer_pool_size"] == 1500 * MIB


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
