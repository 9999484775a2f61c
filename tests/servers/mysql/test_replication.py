"""Replicas are joined in the order that lets no commit slip by, and no error tells a password."""

import re

import pytest

from dbdyno.errors import ServerError
from dbdyno.plan.plan import TopologyPlan
from dbdyno.servers.mysql import replication
from dbdyno.servers.mysql.replication import Links, words_of
from support.fake_members import FOLLOWS, STOPPED, FakeMember

CLIENTS = {"SHOW GLOBAL STATUS": [("Rpl_semi_sync_source_clients", "1")]}
ONLINE = {"replication_group_members": [("2",)]}


def links(kind="semisync", product="mysql", version=(8, 0, 33)):
    plan = TopologyPlan.model_validate({"replicas": 1, "replication": kind})
    return Links(plan, words_of("x", product, version, plan), "caching_sha2_password")


def primary(**more):
    return FakeMember("both", {"gtid_": [("uuid:1-5",)], **CLIENTS, **more})


def replica(status=FOLLOWS, **more):
    return FakeMember("both replica 1", {"STATUS": [tuple(status)], **more}, port=3308)


def plain(asked):
    """What was asked, each random password as a word."""
    return [re.sub(r"'[0-9a-f]{32}'", "'PASSWORD'", sql) for sql in asked]


def test_waiting_is_switched_on_after_the_user_is_made_and_before_replicas_connect(monkeypatch):
    first, second = primary(), replica(status=[])
    order = []
    first_ask = first.ask
    monkeypatch.setattr(first, "ask", lambda sql: order.append(sql) or first_ask(sql))
    fresh = []

    def ask(sql):
        order.append(sql)
        if sql == "START REPLICA":
            fresh.append(True)
        return [tuple(FOLLOWS)] if fresh and "STATUS" in sql else []

    monkeypatch.setattr(second, "ask", ask)
    links().join(first, [second])
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


def test_a_replica_whose_data_was_kept_is_stopped_and_told_the_new_password():
    kept = replica()
    links().join(primary(), [kept])
    assert [sql.split(" TO ")[0] for sql in kept.asked[:4]] == [
        "SHOW REPLICA STATUS",
        "STOP REPLICA",
        "CHANGE REPLICATION SOURCE",
        "START REPLICA",
    ]


def test_a_fresh_mariadb_replica_is_told_what_its_copy_holds(monkeypatch):
    fresh = FakeMember("r", {}, port=3308)
    begun = []
    ask = fresh.ask

    def answer(sql):
        begun.extend([True] if sql.startswith("START") else [])
        ask(sql)
        return [tuple(FOLLOWS)] if begun else []

    monkeypatch.setattr(fresh, "ask", answer)
    first = FakeMember("both", {"gtid_binlog_pos": [("0-1-9",)]})
    links("async", "mariadb", (11, 4, 5)).join(first, [fresh])
    assert fresh.asked[1:3] == ["RESET MASTER", "SET GLOBAL gtid_slave_pos = '0-1-9'"]
    assert plain(first.asked)[1] == (
        "GRANT REPLICATION SLAVE ON *.* TO 'dbdyno_replica'@'%' IDENTIFIED BY 'PASSWORD'"
    )
    assert not [sql for sql in first.asked if "semi_sync" in sql]


def test_a_group_is_begun_by_the_primary_and_joined_by_the_others():
    first, second = primary(**ONLINE), replica()
    links("group").join(first, [second])
    assert plain(first.asked)[3:7] == [
        "GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM"
        " ON *.* TO 'dbdyno_replica'@'%'",
        "SET GLOBAL group_replication_bootstrap_group = ON",
        "START GROUP_REPLICATION USER='dbdyno_replica', PASSWORD='PASSWORD'",
        "SET GLOBAL group_replication_bootstrap_group = OFF",
    ]
    assert plain(second.asked) == [plain(first.asked)[5]]
    assert links("group").running(first, [second]) == 1


def test_a_replica_that_does_not_follow_is_told_with_its_own_reason(monkeypatch):
    monkeypatch.setattr(replication, "JOIN_S_MAX", 0.1)
    with pytest.raises(ServerError, match="replica 1: it did not join its primary") as caught:
        links().join(primary(), [replica(STOPPED)])
    assert caught.value.found == (
        "cannot reach the primary; its last words: [ERROR] of both replica 1"
    )


def test_a_replica_that_follows_without_acknowledging_is_told(monkeypatch):
    monkeypatch.setattr(replication, "JOIN_S_MAX", 0.1)
    silent = primary(**{"SHOW GLOBAL STATUS": [("Rpl_semi_sync_source_clients", "0")]})
    with pytest.raises(ServerError, match="did not join") as caught:
        links().join(silent, [replica()])
    assert "fewer replicas acknowledge than follow" in (caught.value.found or "")


def test_no_error_tells_the_password():
    def refuse(sql):
        raise ServerError(f"it did not answer {sql!r}", found=f"near {sql}")

    with pytest.raises(ServerError) as caught:
        links().join(primary(**{"ALTER USER": refuse}), [replica()])
    told = str(caught.value)
    assert "BY '…'" in told
    assert not re.search(r"[0-9a-f]{32}", told)
    assert caught.value.__suppress_context__
