"""Settings read as promises: the same words for every product, each published value once."""

import pytest

from dbdyno.judge.checks.settings import cache_bytes, durability

INNODB = {
    "innodb_flush_log_at_trx_commit": "1",
    "log_bin": "ON",
    "sync_binlog": "1",
    "innodb_doublewrite": "ON",
}
POSTGRES = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


def kept(settings):
    return {promise.what: promise.kept for promise in durability(settings)}


def test_everything_on_disk_at_each_commit():
    assert kept(INNODB) == {
        "a commit is on disk": "before it is answered",
        "the binary log": "is synced at each commit",
        "torn pages": "are mended",
    }


def test_postgres_promises_the_same_without_a_second_log():
    assert kept(POSTGRES) == kept({**INNODB, "log_bin": "OFF"})


@pytest.mark.parametrize(
    ("changed", "what", "words"),
    [
        ({"innodb_flush_log_at_trx_commit": "2"}, "a commit is on disk", "within a second"),
        (
            {"innodb_flush_log_at_trx_commit": "0"},
            "a commit is on disk",
            "within a second, and lost if the server dies",
        ),
        ({"sync_binlog": "0"}, "the binary log", "is synced when the system likes"),
        ({"sync_binlog": "100"}, "the binary log", "is synced at every 100 commits"),
        ({"log_bin": "OFF"}, "the binary log", "is not written"),
        ({"innodb_doublewrite": "OFF"}, "torn pages", "stay torn"),
        ({"innodb_doublewrite": "DETECT_ONLY"}, "torn pages", "stay torn"),
        ({"innodb_doublewrite": "fast"}, "torn pages", "are written twice in the way FAST"),
        ({"innodb_doublewrite": "DETECT_AND_RECOVER"}, "torn pages", "are mended"),
    ],
)
def test_each_value_of_innodb_s(changed, what, words):
    assert kept({**INNODB, **changed})[what] == words


@pytest.mark.parametrize(
    ("changed", "what", "words"),
    [
        ({"synchronous_commit": "off"}, "a commit is on disk", "within a second"),
        ({"synchronous_commit": "remote_apply"}, "a commit is on disk", "before it is answered"),
        ({"fsync": "off"}, "a commit is on disk", "when the system likes"),
        ({"full_page_writes": "off"}, "torn pages", "stay torn"),
    ],
)
def test_each_value_of_postgres_s(changed, what, words):
    assert kept({**POSTGRES, **changed})[what] == words


def test_an_unknown_product_promises_nothing_that_could_be_compared():
    assert durability({"tidb_txn_mode": "pessimistic"}) == ()
    assert cache_bytes({"tidb_mem_quota_query": "1073741824"}) is None


def test_the_cache_in_each_product_s_units():
    assert cache_bytes({"innodb_buffer_pool_size": "268435456"}) == 256 * 1024**2
    assert cache_bytes({"shared_buffers": "256MB"}) == 256 * 1024**2
    assert cache_bytes({"shared_buffers": "lots"}) is None
