"""What a primary, a replica and a group's member are told in their configuration."""

import pytest

from dbdyno.errors import UsageError
from dbdyno.plan.plan import TopologyPlan
from dbdyno.servers.mysql.replication import (
    group_keys,
    loading_keys,
    member_keys,
    own_keys,
    plugins_of,
    words_of,
)


def plan(kind="semisync", **more):
    return TopologyPlan.model_validate({"replicas": 1, "replication": kind, **more})


def words(product, version, kind="semisync"):
    return words_of(f"{product}:x", product, version, plan(kind))


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


def test_rows_are_loaded_without_a_log():
    assert loading_keys(plan(), MYSQL, {}) == {
        "log_bin": False,
        "plugin_load_add": "semisync_source.so",
    }
    assert loading_keys(plan("async"), MYSQL, {}) == {"log_bin": False}


def test_members_of_a_group_know_each_other():
    keys = group_keys("name-of-group", ["10.213.0.2:33061", "10.213.0.3:33061"], 1)
    assert keys["group_replication_local_address"] == "10.213.0.3:33061"
    assert keys["group_replication_group_seeds"] == "10.213.0.2:33061,10.213.0.3:33061"
    assert keys["group_replication_ip_allowlist"] == "10.213.0.2,10.213.0.3"
    assert keys["report_host"] == "10.213.0.3"
    assert keys["group_replication_ssl_mode"] == "DISABLED"
    alone = group_keys("name", ["127.0.0.1:1", "127.0.0.1:2"], 0)
    assert alone["group_replication_ip_allowlist"] == "127.0.0.1"


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
