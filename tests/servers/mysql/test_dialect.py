"""Names by version, and transactions counted in what servers write of them."""

from __future__ import annotations

import uuid
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.systems import TopologyPlan
from dbdyno.servers.mysql.dialect import behind, count_of_set, dialect_of


def words(product, version, kind="semisync"):
    plan = TopologyPlan.model_validate({"replicas": 1, "replication": kind})
    return dialect_of(f"{product}:x", product, version, plan)


@pytest.mark.parametrize(
    ("found", "statement"),
    [
        (
            words("mysql", (5, 7, 22)),
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=3307, MASTER_USER='copy',"
            " MASTER_PASSWORD='pw', MASTER_CONNECT_RETRY=1, MASTER_AUTO_POSITION=1",
        ),
        (
            words("mariadb", (10, 11, 5)),
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=3307, MASTER_USER='copy',"
            " MASTER_PASSWORD='pw', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos",
        ),
        (
            words("mariadb", (11, 4, 5)),
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=3307, MASTER_USER='copy',"
            " MASTER_PASSWORD='pw', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos,"
            " MASTER_SSL=0",
        ),
    ],
    ids=["5.7.22", "mariadb 10.11", "mariadb 11.4"],
)
def test_a_replica_follows_by_its_versions_statement(found, statement):
    assert found.follow("127.0.0.1", 3307, "copy", "pw") == statement


def test_names_follow_the_version():
    new, old, maria = (
        words("mysql", (9, 7, 4)),
        words("mysql", (8, 0, 15)),
        words("mariadb", (11, 8, 6)),
    )
    assert new.variable("source", "timeout") == "rpl_semi_sync_source_timeout"
    assert old.variable("replica", "enabled") == "rpl_semi_sync_slave_enabled"
    assert maria.counter("no_tx") == "Rpl_semi_sync_master_no_tx"
    assert (new.order("START"), old.order("STOP")) == ("START REPLICA", "STOP SLAVE")
    assert maria.order("SHOW") == "SHOW SLAVE STATUS"
    assert new.semisync_plugins == ("semisync_source.so", "semisync_replica.so")
    assert maria.semisync_plugins == ()


@pytest.mark.parametrize(
    ("product", "version", "replication", "reason"),
    [
        ("mysql", (5, 6, 24), "async", "need MySQL 5.7"),
        ("mysql", (8, 0, 15), "group", "since 8.0.26"),
        ("mariadb", (11, 4, 5), "group", "MariaDB has no group replication"),
        ("mariadb", (10, 2, 11), "semisync", "built in from MariaDB 10.3"),
        ("postgres", (17,), "async", "MySQL and MariaDB only, not behind postgres"),
    ],
)
def test_what_a_version_cannot_have_is_refused_with_the_reason(
    product, version, replication, reason
):
    with pytest.raises(UsageError, match=reason) as caught:
        words(product, version, replication)
    assert caught.value.wanted == f"replication: {replication}"
    assert (caught.value.hint or "").startswith("use ")


ONE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TWO = "3e11fa47-71ca-11e1-9e33-c80aa9429563"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (f"{ONE}:23", 1),
        (f"{ONE}:1-5", 5),
        (f"{ONE}:1-5:7:10-12", 9),
        (f"{ONE}:1-3,\n{TWO}:11-20", 13),
        (f"{ONE}:1-3:loads:1-4", 7),
    ],
)
def test_a_set_is_counted_as_the_manual_has_it(text, count):
    assert count_of_set(text) == count


RANGES = st.lists(st.tuples(st.integers(1, 10**15), st.integers(0, 10**6)), min_size=1, max_size=5)


@given(st.dictionaries(st.uuids(), RANGES, max_size=4))
def test_a_sets_count_is_the_sum_of_its_ranges(sources: dict[uuid.UUID, list[tuple[int, int]]]):
    text = ",\n".join(
        ":".join([str(source), *(f"{first}-{first + more}" for first, more in ranges)])
        for source, ranges in sources.items()
    )
    assert count_of_set(text) == sum(m + 1 for ranges in sources.values() for _, m in ranges)


@given(st.text(max_size=80))
def test_foreign_text_is_counted_or_refused_never_anything_else(text):
    for read in (count_of_set, lambda given: behind(given, "")):
        counted = -1
        with suppress(ServerError):
            counted = read(text)
        assert counted >= -1
        assert isinstance(counted, int)


@pytest.mark.parametrize("text", ["what", f"{ONE}:5-1", f"{ONE}:", f"{ONE}:0-4"])
def test_what_is_no_set_is_refused(text):
    with pytest.raises(ServerError, match="cannot be read"):
        count_of_set(text)


@pytest.mark.parametrize(
    ("primary", "replica", "count"),
    [
        ("0-1-42", "0-1-42", 0),
        ("0-1-42", "", 42),
        ("0-1-42,3-7-10", "0-1-40", 12),
        ("0-1-42", "0-1-50", 0),
        ("", "0-1-5", 0),
    ],
)
def test_positions_are_compared_by_domain(primary, replica, count):
    assert behind(primary, replica) == count
