"""A running MySQL: who answers, what it says, how it is started, and the SQL of its accounts."""

from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.local.server import Site
from dbdyno.servers.mysql import server as module
from dbdyno.servers.mysql.server import MysqlServer, accounts_sql
from dbdyno.servers.reference import find
from support.archives import program
from support.scripted_server import FakeClient, scripted

NEW = find("mysql:8.0.15")


@pytest.fixture
def made(monkeypatch, tmp_path):
    """Builds a server object around a shell script in place of mysqld."""
    work = tmp_path / "server"
    work.mkdir()
    with scripted() as start:

        def make(answers=(), asked=(), entry=NEW):
            client = FakeClient(dict(answers))
            monkeypatch.setattr(module, "MysqlClient", lambda label, endpoint, who: client)
            site = Site("fast", entry, Path("/home-of-mysql"), work, None, dict(asked))
            endpoint = Endpoint("127.0.0.1", 3999, work / "my.sock")
            return MysqlServer(site, start("exec sleep 60"), endpoint, ROOT, LOAD), work

        yield make


def test_the_redo_space_that_there_is_counts_not_the_one_shown(made):
    answers = {
        "SHOW GLOBAL VARIABLES": [("innodb_redo_log_capacity", "104857600"), ("Port", "1")],
        "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_capacity_resized'": [
            ("Innodb_redo_log_capacity_resized", "536870912")
        ],
    }
    server, _ = made(answers=answers)
    assert server.settings() == {"innodb_redo_log_capacity": "536870912", "port": "1"}


def test_a_redo_log_that_is_still_being_shrunk_is_waited_for(made, monkeypatch):
    resizing = "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_resize_status'"
    resized = "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_capacity_resized'"
    answers = {
        "SELECT VERSION()": [("8.0.15",)],
        "SHOW GLOBAL VARIABLES": [("innodb_redo_log_capacity", "50331648")],
        resizing: [("Innodb_redo_log_resize_status", "Resizing down")],
        resized: [("Innodb_redo_log_capacity_resized", "536870912")],
        "SELECT 1": [("1",)],
    }
    server, _ = made(answers=answers, asked={"innodb_redo_log_capacity": "48M"})

    def shrink(seconds):
        server._client.answers[resizing] = [("Innodb_redo_log_resize_status", "OK")]
        server._client.answers[resized] = [("Innodb_redo_log_capacity_resized", "50331648")]

    monkeypatch.setattr(module.time, "sleep", shrink)
    server.prove()
    monkeypatch.setattr(module, "REDO_RESIZED_S_MAX", -1)
    server._client.answers = answers
    with pytest.raises(ServerError, match="did not take innodb_redo_log_capacity as asked"):
        server.prove()


def test_our_own_process_is_recognised_and_no_other(made):
    server, work = made()
    ask = "SELECT @@pid_file, @@datadir, @@port"
    server._client.answers[ask] = [(f"{work}/pid", f"{work}/data/", "3999")]
    (work / "pid").write_text(f"{server.pid}\n")
    server.wait_ready()
    server._client.answers[ask] = [("/other/pid", "/other/data/", "3306")]
    with pytest.raises(ServerError, match="another server answered") as caught:
        server.wait_ready()
    assert "/other/data" in (caught.value.found or "")


def test_another_version_is_an_error(made):
    server, _ = made(answers={"SELECT VERSION()": [("8.0.16",)]})
    with pytest.raises(ServerError, match="another version") as caught:
        server.prove()
    assert (caught.value.wanted, caught.value.found) == ("8.0.15", "8.0.16")


def test_a_suffix_does_not_make_another_version(made):
    shown = {"SELECT VERSION()": [("8.0.15-log",)], "SHOW GLOBAL VARIABLES": [("Port", "3999")]}
    server, _ = made(answers={**shown, "SELECT 1": [("1",)]}, asked={"port": "3999"})
    assert server.prove() is None


def test_a_plugin_that_was_asked_for_is_proven(made):
    answers = {
        "SELECT VERSION()": [("8.0.15",)],
        "SHOW GLOBAL VARIABLES": [],
        "SHOW PLUGINS": [("binlog", "ACTIVE", "STORAGE ENGINE", "", "GPL")],
    }
    server, _ = made(answers=answers, asked={"plugin_load_add": "semisync_master.so"})
    with pytest.raises(ServerError, match="did not load semisync_master as asked"):
        server.prove()


OFF, ON = (f"ALTER INSTANCE {does} INNODB REDO_LOG" for does in ("DISABLE", "ENABLE"))


@pytest.mark.parametrize(("version", "asked"), [("8.0.15", []), ("8.0.31", [OFF, ON])])
def test_rows_are_loaded_without_a_redo_log_where_the_version_can(made, version, asked):
    server, _ = made(entry=replace(NEW, version=version))
    with server.loading():
        assert [sql for _, sql in server._client.asked] == asked[:1]
    assert [sql for _, sql in server._client.asked] == asked


def test_a_load_that_fails_leaves_the_redo_log_off(made):
    server, _ = made(entry=replace(NEW, version="8.0.31"))
    with pytest.raises(ServerError), server.loading():
        raise ServerError("the disk is full")
    assert [sql for _, sql in server._client.asked] == [OFF]


def test_a_program_that_ends_at_once_is_quoted_and_leaves_no_password(tmp_path):
    home, work = tmp_path / "home", tmp_path / "server"
    (home / "share" / "charsets").mkdir(parents=True)
    (home / "share" / "charsets" / "Index.xml").touch()
    work.mkdir()
    script = "#!/bin/sh\necho \"[ERROR] unknown variable 'x=1'\"\nexit 7\n"
    program(home / "bin" / "mysqld", script)
    with pytest.raises(ServerError, match=r"did not start \(exit code 7\)") as caught:
        module.start(Site("fast", NEW, home, work, None, {"x": "1"}), 4711)
    assert caught.value.found == "[ERROR] unknown variable 'x=1'"
    assert "x=1" in (work / "my.cnf").read_text()
    assert (work / "my.cnf").stat().st_mode & 0o777 == 0o600
    assert not (work / "passwords.sql").exists()


MIDDLE = find("mysql:5.7.22")
OLD = replace(MIDDLE, version="5.6.24")
MARIADB = replace(MIDDLE, product="mariadb", version="11.4.5")
ROOT, LOAD = Credentials("root", "aa"), Credentials("dbdyno", "bb")


@pytest.mark.parametrize(
    ("entry", "plugin"), [(MIDDLE, "mysql_native_password"), (NEW, "caching_sha2_password")]
)
def test_the_load_user_logs_in_as_the_version_does_by_itself(entry, plugin):
    sql = accounts_sql(entry, ROOT, LOAD)
    assert f"ALTER USER 'dbdyno'@'%' IDENTIFIED WITH {plugin} BY 'bb';" in sql
    assert "CREATE DATABASE IF NOT EXISTS sbtest;" in sql
    assert sql.splitlines()[0] == "SET SESSION sql_log_bin = 0;"


@pytest.mark.parametrize("entry", [OLD, MARIADB])
def test_where_no_user_can_be_altered_a_grant_sets_the_password(entry):
    assert accounts_sql(entry, ROOT, LOAD).splitlines() == [
        "SET SESSION sql_log_bin = 0;",
        "GRANT ALL ON *.* TO 'root'@'localhost' IDENTIFIED BY 'aa' WITH GRANT OPTION;",
        "GRANT ALL ON *.* TO 'dbdyno'@'%' IDENTIFIED BY 'bb';",
        "CREATE DATABASE IF NOT EXISTS sbtest;",
    ]
