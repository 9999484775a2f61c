"""What servers are told to replicate, and what they say of it."""

from __future__ import annotations

import re
import uuid
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.systems import TopologyPlan
from dbdyno.servers import process
from dbdyno.servers.base import Endpoint
from dbdyno.servers.local import topology
from dbdyno.servers.mysql.replication import (
    Links,
    behind,
    count_of_set,
    dialect_of,
    group_keys,
    loading_keys,
    member_keys,
    own_keys,
    plugins_of,
)
from support.fake_members import FOLLOWS, STOPPED, FakeMember

# What a primary, a replica and a group's member are told in their configuration.


def plan(kind="semisync", **more):
    return TopologyPlan.model_validate({"replicas": 1, "replication": kind, **more})


def words(product, version, kind="semisync"):
    return dialect_of(f"{product}:x", product, version, plan(kind))


MYSQL, MARIADB = words("mysql", (8, 0, 33)), words("mariadb", (11, 4, 5))


def test_a_semisynchronous_mysql_waits_as_the_plan_says():
    asked = plan(timeout_s=1.5, wait_point="after_commit")
    assert member_keys(asked, MYSQL, {}, 0) == {
        "server_id": 1,
        "log_bin": True,
        "gtid_mode": "ON",
        "enforce_gtid_consistency": "ON",
        "rpl_semi_sync_source_timeout": 1500,
        "rpl_semi_sync_source_wait_point": "AFTER_COMMIT",
        "plugin_load_add": "semisync_source.so",
    }
    assert member_keys(asked, MYSQL, {}, 2) == {
        "server_id": 3,
        "log_bin": True,
        "gtid_mode": "ON",
        "enforce_gtid_consistency": "ON",
        "read_only": True,
        "rpl_semi_sync_replica_enabled": "ON",
        "plugin_load_add": "semisync_replica.so",
    }


def test_a_semisynchronous_mariadb_needs_no_plugin():
    assert member_keys(plan(), MARIADB, {"binlog_format": "MIXED"}, 0) == {
        "server_id": 1,
        "log_bin": True,
        "binlog_format": "MIXED",
        "rpl_semi_sync_master_timeout": 10_000,
        "rpl_semi_sync_master_wait_point": "AFTER_SYNC",
    }
    assert member_keys(plan(), MARIADB, {}, 1)["rpl_semi_sync_slave_enabled"] == "ON"


def test_an_asynchronous_primary_only_keeps_a_log():
    keys = member_keys(plan("async"), MARIADB, {}, 0)
    assert keys == {"server_id": 1, "log_bin": True, "binlog_format": "ROW"}


def test_what_the_plan_loads_itself_is_loaded_too_and_a_named_log_keeps_its_name():
    own = {"plugin_load_add": "thread_pool.so", "log_bin": "journal"}
    keys = member_keys(plan(), MYSQL, own, 0)
    assert keys["plugin_load_add"] == "thread_pool.so;semisync_source.so"
    assert "log_bin" not in keys
    several = own_keys({"plugin_load_add": ("thread_pool.so", "mysql_clone.so")})
    keys = member_keys(plan(), MYSQL, several, 1)
    assert keys["plugin_load_add"] == "thread_pool.so;mysql_clone.so;semisync_replica.so"


def test_rows_are_loaded_without_a_log():
    assert loading_keys(plan(), MYSQL, {}) == {
        "log_bin": False,
        "plugin_load_add": "semisync_source.so",
    }
    assert loading_keys(plan("async"), MYSQL, {}) == {"log_bin": False}


def test_members_of_a_group_know_each_other():
    keys = group_keys("name-of-group", "127.0.0.1", is_delayed=False)
    assert keys["group_replication_ip_allowlist"] == keys["report_host"] == "127.0.0.1"
    assert keys["group_replication_ssl_mode"] == "DISABLED"
    assert "group_replication_communication_stack" not in keys
    delayed = group_keys("name-of-group", "127.0.0.1", is_delayed=True)
    assert delayed == {**keys, "group_replication_communication_stack": "MYSQL"}


def test_the_plugins_are_those_of_the_kind():
    assert plugins_of(plan("group"), MYSQL) == ("group_replication.so", "group_replication.so")
    assert plugins_of(plan("async"), MYSQL) == ()
    assert plugins_of(plan(), MARIADB) == ()


@pytest.mark.parametrize("asked", [{"skip-log-bin": True}, {"log_bin": False}, {"log-bin": "off"}])
def test_a_system_with_replicas_cannot_be_without_a_log(asked):
    with pytest.raises(UsageError, match="cannot be without a binary log") as caught:
        own_keys({"sync_binlog": 1}, asked)
    assert caught.value.found == "log_bin OFF"


def test_a_start_is_laid_over_the_system():
    assert own_keys({"sync-binlog": 1, "log_bin": True}, {"sync_binlog": 0}) == {
        "sync_binlog": "0",
        "log_bin": "ON",
    }


CLIENTS = {"SHOW GLOBAL STATUS": [("Rpl_semi_sync_source_clients", "1")]}
ONLINE = {"replication_group_members": [("2",)]}


def links(kind="semisync", product="mysql", version=(8, 0, 33), is_delayed=False):
    plan = TopologyPlan.model_validate({"replicas": 1, "replication": kind})
    words = dialect_of("x", product, version, plan)
    return Links(plan, words, "caching_sha2_password", is_delayed)


def join(links, *members):
    """Joins them; they reach each other where they listen."""
    links.join(members[0], members[1:], [member.endpoint for member in members])


def primary(**more):
    return FakeMember("both", {"gtid_": [("uuid:1-5",)], **CLIENTS, **more})


def replica(status=FOLLOWS, **more):
    return FakeMember("both replica 1", {"STATUS": [tuple(status)], **more}, port=3308)


def plain(asked):
    """What was asked, each random password as a word."""
    return [re.sub(r"'[0-9a-f]{32}'", "'PASSWORD'", sql) for sql in asked]


def follows_once_started(replica):
    """Its status is empty before START, as that of a fresh replica."""

    def status(_):
        return [tuple(FOLLOWS)] if any(sql.startswith("START") for sql in replica.asked) else []

    replica.answers = {"STATUS": status}
    return replica


def test_waiting_is_switched_on_after_the_user_is_made_and_before_replicas_connect():
    first, second = primary(), follows_once_started(replica())
    order = second.asked = first.asked
    join(links(), first, second)
    assert plain(order)[:8] == [
        "SELECT @@global.gtid_executed",
        "CREATE USER IF NOT EXISTS 'dbdyno_replica'@'%'",
        "ALTER USER 'dbdyno_replica'@'%' IDENTIFIED WITH caching_sha2_password BY 'PASSWORD'",
        "GRANT REPLICATION SLAVE ON *.* TO 'dbdyno_replica'@'%'",
        "SET GLOBAL rpl_semi_sync_source_enabled = ON",
        "SHOW REPLICA STATUS",
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=3307,"
        " SOURCE_USER='dbdyno_replica', SOURCE_PASSWORD='PASSWORD', SOURCE_CONNECT_RETRY=1,"
        " SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
        "START REPLICA",
    ]


def test_a_replica_whose_data_was_kept_is_stopped_and_gets_the_new_password():
    kept = replica()
    join(links(), primary(), kept)
    assert [sql.split(" TO ")[0] for sql in kept.asked[:4]] == [
        "SHOW REPLICA STATUS",
        "STOP REPLICA",
        "CHANGE REPLICATION SOURCE",
        "START REPLICA",
    ]


def test_a_fresh_mariadb_replica_gets_the_position_of_its_copy():
    fresh = follows_once_started(FakeMember("r", {}, port=3308))
    first = FakeMember("both", {"gtid_binlog_pos": [("0-1-9",)]})
    join(links("async", "mariadb", (11, 4, 5)), first, fresh)
    assert fresh.asked[1:3] == ["RESET MASTER", "SET GLOBAL gtid_slave_pos = '0-1-9'"]
    assert plain(first.asked)[1] == (
        "GRANT REPLICATION SLAVE ON *.* TO 'dbdyno_replica'@'%' IDENTIFIED BY 'PASSWORD'"
    )
    assert not [sql for sql in first.asked if "semi_sync" in sql]


def test_a_replica_is_told_the_door_of_its_primary():
    follower = follows_once_started(replica())
    doors = [Endpoint("127.0.0.9", 4711, None), follower.endpoint]
    links().join(primary(), [follower], doors)
    (change,) = [sql for sql in follower.asked if sql.startswith("CHANGE")]
    assert "SOURCE_HOST='127.0.0.9', SOURCE_PORT=4711," in change


USER_OF_GROUP = [
    "CREATE USER IF NOT EXISTS 'dbdyno_replica'@'%'",
    "ALTER USER 'dbdyno_replica'@'%' IDENTIFIED WITH caching_sha2_password BY 'PASSWORD'",
    "GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM"
    " ON *.* TO 'dbdyno_replica'@'%'",
]
BEGIN_GROUP = "START GROUP_REPLICATION USER='dbdyno_replica', PASSWORD='PASSWORD'"


def test_a_group_is_begun_by_the_primary_and_joined_by_the_others(monkeypatch):
    monkeypatch.setattr(process, "free_port", iter((4001, 4002)).__next__)
    first, second = primary(**ONLINE), replica()
    join(links("group"), first, second)
    seeds = "SET GLOBAL group_replication_group_seeds = '127.0.0.1:4001,127.0.0.1:4002'"
    assert plain(first.asked)[1:9] == [
        *USER_OF_GROUP,
        "SET GLOBAL group_replication_local_address = '127.0.0.1:4001'",
        seeds,
        "SET GLOBAL group_replication_bootstrap_group = ON",
        BEGIN_GROUP,
        "SET GLOBAL group_replication_bootstrap_group = OFF",
    ]
    assert plain(second.asked) == [
        "SET GLOBAL group_replication_local_address = '127.0.0.1:4002'",
        seeds,
        BEGIN_GROUP,
    ]
    assert links("group").running(first, [second]) == 1


def test_members_of_a_delayed_group_let_each_other_in_through_their_doors():
    first, second = primary(**ONLINE), replica()
    doors = [Endpoint("127.0.0.1", port, None) for port in (5001, 5002)]
    links("group", is_delayed=True).join(first, [second], doors)
    assert plain(second.asked) == [
        "SET SQL_LOG_BIN = 0",
        *USER_OF_GROUP,
        "SET SQL_LOG_BIN = 1",
        "SET GLOBAL group_replication_local_address = '127.0.0.1:5002'",
        "SET GLOBAL group_replication_group_seeds = '127.0.0.1:5001,127.0.0.1:5002'",
        BEGIN_GROUP,
    ]


def test_a_replica_that_does_not_follow_is_reported_with_its_own_reason(monkeypatch):
    monkeypatch.setattr(topology, "JOIN_S_MAX", 0.1)
    with pytest.raises(ServerError, match="replica 1: it did not join its primary") as caught:
        join(links(), primary(), replica(STOPPED))
    assert caught.value.found == (
        "cannot reach the primary; its last words: [ERROR] of both replica 1"
    )


def test_a_replica_that_follows_without_acknowledging_is_reported(monkeypatch):
    monkeypatch.setattr(topology, "JOIN_S_MAX", 0.1)
    silent = primary(**{"SHOW GLOBAL STATUS": [("Rpl_semi_sync_source_clients", "0")]})
    with pytest.raises(ServerError, match="did not join") as caught:
        join(links(), silent, replica())
    assert "fewer replicas acknowledge than follow" in (caught.value.found or "")


def test_no_error_holds_the_password():
    def refuse(sql):
        raise ServerError(f"it did not answer {sql!r}", found=f"near {sql}")

    with pytest.raises(ServerError) as caught:
        join(links(), primary(**{"ALTER USER": refuse}), replica())
    message = str(caught.value)
    assert "BY '…'" in message
    assert not re.search(r"[0-9a-f]{32}", message)
    assert caught.value.__suppress_context__


# Transactions are counted in what servers write of them.


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
