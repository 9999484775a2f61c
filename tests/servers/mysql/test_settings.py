from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import UsageError
from dbdyno.servers.mysql import settings
from dbdyno.servers.mysql.versions import QUERY_CACHE, family_of
from dbdyno.servers.reference import find

OLD, NEW, NEWER = find("mysql:5.7.22"), find("mysql:8.0.15"), find("mysql:8.0.31")
MARIADB = replace(OLD, product="mariadb", version="11.8.6")
WITH_SWITCH, WITHOUT_SWITCH = family_of("mysql", (8, 0, 15)), family_of("mysql", (9, 7, 4))


def test_the_versions_differ_only_where_a_name_or_feature_does():
    old, new = settings.effective(OLD, {}), settings.effective(NEW, {})
    assert {key: old[key] for key in old.keys() - new.keys()} == QUERY_CACHE
    assert all(old[key] == new[key] for key in new)


def test_the_redo_space_is_the_same_under_either_name_and_the_old_names_win():
    old, newer = settings.effective(OLD, {}), settings.effective(NEWER, {})
    assert (old["innodb_log_file_size"], old["innodb_log_files_in_group"]) == ("256M", "2")
    assert newer["innodb_redo_log_capacity"] == "512M"
    assert "innodb_log_file_size" not in newer
    asked = settings.effective(NEWER, {"innodb-log-file-size": "128M"})
    assert "innodb_redo_log_capacity" not in asked
    assert asked["innodb_log_file_size"] == "128M"


def test_mariadb_is_made_to_behave_as_mysql_where_they_differ_by_default():
    asked = settings.effective(MARIADB, {})
    assert asked["innodb_snapshot_isolation"] == "OFF"
    assert asked["query_cache_type"] == "OFF"
    assert asked["innodb_log_file_size"] == "512M"
    assert "innodb_log_files_in_group" not in asked
    assert "innodb_snapshot_isolation" not in settings.effective(
        replace(MARIADB, version="10.11.5"), {}
    )


@pytest.mark.parametrize("value", [True, "mine"])
def test_a_binary_log_holds_rows_in_every_version(value):
    asked = settings.effective(OLD, {"log_bin": value})
    assert (asked["binlog_format"], asked["binlog_checksum"]) == ("ROW", "CRC32")
    assert "binlog_format" not in settings.effective(OLD, {"skip_log_bin": True})


def test_the_places_are_those_around_the_program(tmp_path):
    (tmp_path / "share/charsets").mkdir(parents=True)
    (tmp_path / "share/charsets/Index.xml").touch()
    (tmp_path / "lib/plugin").mkdir(parents=True)
    places = settings.places_of(NEW, tmp_path, Path("/w"), Path("/w/my.sock"))
    assert places["basedir"] == str(tmp_path)
    assert places["character_sets_dir"] == f"{tmp_path}/share/charsets"
    assert places["plugin_dir"] == f"{tmp_path}/lib/plugin"
    assert places["mysqlx"] == "OFF"
    assert "mysqlx" not in settings.places_of(MARIADB, tmp_path, Path("/w"), Path("/w/my.sock"))


def test_the_users_settings_lie_over_the_common_ones():
    asked = settings.effective(NEW, {"innodb-buffer-pool-size": "1G", "skip_log_bin": False})
    assert asked["innodb_buffer_pool_size"] == "1G"
    assert asked["log_bin"] == "ON"
    # another character set brings its own collation
    assert "collation_server" not in settings.effective(NEW, {"character_set_server": "latin1"})


@pytest.mark.parametrize(
    ("key", "value", "name", "text"),
    [
        ("skip-log-bin", True, "log_bin", "OFF"),
        ("skip_log_bin", "", "log_bin", "OFF"),
        ("skip_ssl", False, "ssl", "ON"),
        ("skip_name_resolve", False, "skip_name_resolve", "OFF"),
        ("loose-innodb_x", 1, "innodb_x", "1"),
        ("disable-ssl", True, "ssl", "OFF"),
        ("Enable-General-Log", True, "general_log", "ON"),
        ("performance_schema", True, "performance_schema", "ON"),
    ],
)
def test_keys_and_values_become_variable_names_and_text(key, value, name, text):
    assert settings.normalise({key: value}) == {name: text}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"datadir": "/x"}, "datadir cannot be set"),
        ({"innodb_log_group_home_dir": "/fast"}, "innodb_log_group_home_dir cannot be set"),
        ({"networking": True, "bind-address": "0.0.0.0"}, "bind_address, networking"),
        ({"innodb_monitor_enable": ()}, "innodb_monitor_enable is given no value"),
        ({"skip_grant_tables": True}, "grant_tables cannot be set"),
        ({"a b": 1}, "not the name of a setting"),
        ({"[client]": 1}, "not the name of a setting"),
        ({"sort_buffer_size": "1\n[client]"}, "cannot stand in a configuration file"),
        ({"init_connect": 'a"b'}, "cannot stand in a configuration file"),
        ({"sync-binlog": 1, "sync_binlog": 0}, "given twice"),
        ({"log_bin": True, "skip_log_bin": True}, "log_bin is given twice"),
        ({"skip_log_bin": "maybe"}, "takes no value but ON or OFF"),
    ],
)
def test_what_cannot_be_is_refused(asked, message):
    with pytest.raises(UsageError, match=message):
        settings.effective(NEW, asked)


LIST = settings.normalise({"innodb_monitor_enable": ("module_log", "module_trx"), "n": 1})
MONITORS = [f"innodb_monitor_enable={name}" for name in ("module_log", "module_trx")]


@pytest.mark.parametrize(
    ("family", "asked", "lines"),
    [
        (WITH_SWITCH, {"log_bin": "OFF"}, ["skip_log_bin"]),
        (WITH_SWITCH, {"log_bin": "ON"}, ["log_bin=binlog"]),
        (WITH_SWITCH, {"log_bin": "mine", "n": "256M"}, ["log_bin=mine", "n=256M"]),
        (WITH_SWITCH, {"init_connect": "SET x='#'"}, ["init_connect=\"SET x='#'\""]),
        (WITH_SWITCH, {"tmp": "a\\b"}, ['tmp="a\\\\b"']),
        (WITH_SWITCH, {"ssl": "OFF"}, ["skip_ssl"]),
        (WITH_SWITCH, {"ssl": "ON"}, ["ssl"]),
        (WITHOUT_SWITCH, {"ssl": "OFF"}, ["tls_version="]),
        (WITHOUT_SWITCH, {"ssl": "ON"}, ["tls_version=TLSv1.2,TLSv1.3"]),
        (WITH_SWITCH, LIST, [*MONITORS, "n=1"]),  # a key once for each value
    ],
)
def test_switches_lists_and_strange_values_are_written_as_the_server_reads_them(
    family, asked, lines
):
    assert settings.render(asked, family).splitlines() == ["[mysqld]", *lines]


@pytest.mark.parametrize(("value", "local"), [(1, True), (True, True), ("OFF", False)])
def test_a_server_may_be_reached_through_its_socket_alone(value, local):
    assert settings.is_local(settings.normalise({"skip-networking": value})) is local
    assert not settings.is_local({})


def test_only_some_settings_decide_the_format():
    asked = settings.effective(OLD, {"innodb_page_size": "8K", "sync_binlog": 0})
    deciding = settings.data_format(OLD, asked)
    assert deciding["innodb_page_size"] == "8K"
    assert "sync_binlog" not in deciding
    assert settings.at_initialisation(asked) == {"innodb_page_size": "8K"}
