"""What each version is told, and what it cannot be told."""

import pytest

from dbdyno.errors import UsageError
from dbdyno.plan.plan import TopologyPlan
from dbdyno.servers.mysql.replication import words_of


def words(product, *version, replication="semisync"):
    plan = TopologyPlan(replicas=1, replication=replication)
    return words_of(f"{product}:{'.'.join(map(str, version))}", product, version, plan)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (
            words("mysql", 8, 0, 33),
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=3307,"
            " SOURCE_USER='copy', SOURCE_PASSWORD='pw', SOURCE_CONNECT_RETRY=1,"
            " SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
        ),
        (
            words("mysql", 5, 7, 22),
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=3307, MASTER_USER='copy',"
            " MASTER_PASSWORD='pw', MASTER_CONNECT_RETRY=1, MASTER_AUTO_POSITION=1",
        ),
        (
            words("mariadb", 10, 11, 5),
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=3307, MASTER_USER='copy',"
            " MASTER_PASSWORD='pw', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos",
        ),
        (
            words("mariadb", 11, 4, 5),
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=3307, MASTER_USER='copy',"
            " MASTER_PASSWORD='pw', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos,"
            " MASTER_SSL=0",
        ),
    ],
    ids=["8.0.33", "5.7.22", "mariadb 10.11", "mariadb 11.4"],
)
def test_a_replica_is_told_whom_to_follow_in_its_versions_words(found, told):
    assert found.follow("127.0.0.1", 3307, "copy", "pw") == told


def test_names_follow_the_version():
    new, old, maria = words("mysql", 9, 7, 4), words("mysql", 8, 0, 15), words("mariadb", 11, 8, 6)
    assert new.variable("source", "timeout") == "rpl_semi_sync_source_timeout"
    assert old.variable("replica", "enabled") == "rpl_semi_sync_slave_enabled"
    assert maria.counter("no_tx") == "Rpl_semi_sync_master_no_tx"
    assert (new.order("START"), old.order("STOP")) == ("START REPLICA", "STOP SLAVE")
    assert maria.order("SHOW") == "SHOW SLAVE STATUS"
    assert new.semisync_plugins == ("semisync_source.so", "semisync_replica.so")
    assert maria.semisync_plugins == ()


def test_waiting_is_asked_in_the_products_own_way():
    assert words("mysql", 8, 0, 33).wait("a:1-5", 2) == (
        "SELECT WAIT_FOR_EXECUTED_GTID_SET('a:1-5', 2.000)"
    )
    assert (
        words("mariadb", 11, 4, 5).wait("0-1-7", 0.5) == "SELECT MASTER_GTID_WAIT('0-1-7', 0.500)"
    )
    assert "gtid_slave_pos" in words("mariadb", 11, 4, 5).applied
    assert words("mysql", 8, 0, 33).applied == "SELECT @@global.gtid_executed"


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
        words(product, *version, replication=replication)
    assert caught.value.wanted == f"replication: {replication}"
    assert (caught.value.hint or "").startswith("use ")
