"""What a primary and its replicas are told, and what they say of replication."""

from __future__ import annotations

import re

import pytest

from dbdyno.errors import ServerError, UsageError
from dbdyno.servers import process
from dbdyno.servers.base import Endpoint
from dbdyno.servers.local import topology
from support.fake_members import FOLLOWS, STOPPED, FakeMember
from support.replicating import ways

GTID = {"log_bin": True, "gtid_mode": "ON", "enforce_gtid_consistency": "ON"}


def test_a_semisynchronous_mysql_waits_as_the_plan_says():
    keys = ways(replicas=2, timeout_s=1.5, wait_point="after_commit").member_keys({})
    assert keys[0] == {
        **{"server_id": 1, **GTID},
        "rpl_semi_sync_source_timeout": 1500,
        "rpl_semi_sync_source_wait_point": "AFTER_COMMIT",
        "plugin_load_add": "semisync_source.so",
    }
    assert keys[2] == {
        **{"server_id": 3, **GTID, "read_only": True},
        "rpl_semi_sync_replica_enabled": "ON",
        "plugin_load_add": "semisync_replica.so",
    }


def test_a_semisynchronous_mariadb_needs_no_plugin_and_a_start_is_laid_over_the_system():
    maria = ways(reference="mariadb:11.4.5", settings={"binlog-format": "STATEMENT"})
    keys = maria.member_keys({"binlog_format": "MIXED"})
    assert keys[0] == {
        **{"server_id": 1, "log_bin": True, "binlog_format": "MIXED"},
        "rpl_semi_sync_master_timeout": 10_000,
        "rpl_semi_sync_master_wait_point": "AFTER_SYNC",
    }
    assert keys[1]["rpl_semi_sync_slave_enabled"] == "ON"


def test_an_asynchronous_primary_only_keeps_a_log():
    keys = ways("async", "mariadb:11.4.5").member_keys({})[0]
    assert keys == {"server_id": 1, "log_bin": True, "binlog_format": "ROW"}


def test_what_the_plan_loads_itself_is_loaded_too_and_a_named_log_keeps_its_name():
    keys = ways().member_keys({"plugin_load_add": "thread_pool.so", "log_bin": "journal"})[0]
    assert keys["plugin_load_add"] == "thread_pool.so;semisync_source.so"
    assert "log_bin" not in keys
    keys = ways().member_keys({"plugin_load_add": ("thread_pool.so", "mysql_clone.so")})[1]
    assert keys["plugin_load_add"] == "thread_pool.so;mysql_clone.so;semisync_replica.so"


def test_rows_are_loaded_without_a_log():
    loading = {"log_bin": False, "plugin_load_add": "semisync_source.so"}
    assert ways().loading_keys({}) == loading
    assert ways("async").loading_keys({}) == {"log_bin": False}


def test_members_of_a_group_know_each_other():
    first, second = ways("group").member_keys({})
    assert first["group_replication_group_name"] == second["group_replication_group_name"]
    assert first["group_replication_ip_allowlist"] == first["report_host"] == "127.0.0.1"
    assert first["group_replication_ssl_mode"] == "DISABLED"
    assert first["plugin_load_add"] == second["plugin_load_add"] == "group_replication.so"
    assert "group_replication_communication_stack" not in first
    delayed = ways("group", replica_ms=5).member_keys({})[0]
    assert delayed["group_replication_communication_stack"] == "MYSQL"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"skip-log-bin": True}, "log_bin OFF"),
        ({"log_bin": False}, "log_bin OFF"),
        ({"skip_networking": True}, "skip_networking"),
    ],
)
def test_a_system_with_replicas_cannot_be_without_a_log_or_a_network(asked, found):
    for refused in (lambda: ways(settings=asked), lambda: ways().member_keys(asked)):
        with pytest.raises(UsageError, match=r"cannot be without a binary log|need a network") as e:
            refused()
        assert e.value.found == found


CLIENTS = {"SHOW GLOBAL STATUS": [("Rpl_semi_sync_source_clients", "1")]}
ONLINE = {"replication_group_members": [("2",)]}


def join(ways, *members):
    """Joins them; they reach each other where they listen."""
    ways.join(members[0], members[1:], [member.endpoint for member in members])


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
    join(ways(), first, second)
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
    join(ways(), primary(), kept)
    assert [sql.split(" TO ")[0] for sql in kept.asked[:4]] == [
        "SHOW REPLICA STATUS",
        "STOP REPLICA",
        "CHANGE REPLICATION SOURCE",
        "START REPLICA",
    ]


def test_a_fresh_mariadb_replica_gets_the_position_of_its_copy():
    fresh = follows_once_started(FakeMember("r", {}, port=3308))
    first = FakeMember("both", {"gtid_binlog_pos": [("0-1-9",)]})
    join(ways("async", "mariadb:11.4.5"), first, fresh)
    assert fresh.asked[1:3] == ["RESET MASTER", "SET GLOBAL gtid_slave_pos = '0-1-9'"]
    assert plain(first.asked)[1] == (
        "GRANT REPLICATION SLAVE ON *.* TO 'dbdyno_replica'@'%' IDENTIFIED BY 'PASSWORD'"
    )
    assert not [sql for sql in first.asked if "semi_sync" in sql]


def test_a_replica_is_told_the_door_of_its_primary():
    follower = follows_once_started(replica())
    doors = [Endpoint("127.0.0.9", 4711, None), follower.endpoint]
    ways().join(primary(), [follower], doors)
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
    join(ways("group"), first, second)
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
    assert ways("group").running(first, [second]) == 1


def test_members_of_a_delayed_group_let_each_other_in_through_their_doors():
    first, second = primary(**ONLINE), replica()
    doors = [Endpoint("127.0.0.1", port, None) for port in (5001, 5002)]
    ways("group", replica_ms=5).join(first, [second], doors)
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
        join(ways(), primary(), replica(STOPPED))
    assert caught.value.found == (
        "cannot reach the primary; its last words: [ERROR] of both replica 1"
    )


def test_a_replica_that_follows_without_acknowledging_is_reported(monkeypatch):
    monkeypatch.setattr(topology, "JOIN_S_MAX", 0.1)
    silent = primary(**{"SHOW GLOBAL STATUS": [("Rpl_semi_sync_source_clients", "0")]})
    with pytest.raises(ServerError, match="did not join") as caught:
        join(ways(), silent, replica())
    assert "fewer replicas acknowledge than follow" in (caught.value.found or "")


def test_no_error_holds_the_password():
    def refuse(sql):
        raise ServerError(f"it did not answer {sql!r}", found=f"near {sql}")

    with pytest.raises(ServerError) as caught:
        join(ways(), primary(**{"ALTER USER": refuse}), replica())
    message = str(caught.value)
    assert "BY '…'" in message
    assert not re.search(r"[0-9a-f]{32}", message)
    assert caught.value.__suppress_context__
