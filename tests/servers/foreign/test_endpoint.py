"""Servers that somebody else runs: logins, added counters, and our mark in their database."""

from __future__ import annotations

import re

import pytest

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.systems import TopologyPlan
from dbdyno.servers import open
from dbdyno.servers.base import Credentials, Endpoint, ServerSpec
from dbdyno.servers.foreign import endpoint as module
from dbdyno.servers.foreign.endpoint import MARK, EndpointDataset, EndpointServer, added
from dbdyno.servers.foreign.postgres_endpoint import PostgresDataset
from support.scripted_server import FakeClient

TWO = Endpoint("a", 1, None, (Endpoint("b", 2, None),))


@pytest.fixture
def clients(monkeypatch):
    """The connections to both places, by host."""
    made = {
        host: FakeClient(
            {
                "SELECT 1": [("1",)],
                "SELECT VERSION()": [("8.0.33",)],
                "SHOW GLOBAL VARIABLES": [("Autocommit", "ON")],
                "SHOW GLOBAL STATUS": [("Questions", str(number)), ("Cipher", "x")],
            }
        )
        for number, host in enumerate("ab", 5)
    }
    monkeypatch.setattr(module, "MysqlClient", lambda label, place, *_: made[place.host])
    return made


@pytest.fixture
def server(clients):
    return EndpointServer("tidb", TWO, Credentials("u", "secret"), "d")


def test_two_servers_are_asked_as_one(server):
    server.login()
    assert server.version() == "8.0.33"
    assert server.settings() == {"autocommit": "ON"}
    assert server.status() == {"Questions": 11.0}
    assert server.alive()
    assert (server.pid, server.last_words()) == (0, "")


def test_one_that_is_silent_is_named(server, clients):
    clients["b"].ready, clients["b"].label = False, "tidb (b:2)"
    with pytest.raises(ServerError, match=r"tidb \(b:2\): the server opened no session"):
        server.login()
    assert not server.alive()


def test_different_versions_are_no_system(server, clients):
    clients["b"].answers["SELECT VERSION()"] = [("8.0.15",)]
    with pytest.raises(ServerError, match="different versions") as caught:
        server.login()
    assert caught.value.found == "8.0.33, 8.0.15"


def test_stopping_logs_out_of_all(server, clients):
    server.stop()
    assert [client.closed for client in clients.values()] == [True, True]


def test_counters_are_added_but_the_shortest_uptime_counts():
    first = {"Questions": 3.0, "Uptime": 100.0, "Only_here": 1.0}
    assert added([first, {"Questions": 4.0, "Uptime": 7.0}]) == {"Questions": 7, "Uptime": 7}


def test_a_session_enters_the_database_of_the_endpoint(monkeypatch):
    made = []
    monkeypatch.setattr(module, "MysqlClient", lambda *args: made.append(args))
    EndpointServer("tidb", TWO, Credentials("u", "secret"), "d")
    assert [args[-1] for args in made] == ["d", "d"]


REFERENCE = "mysql://bench@db1:4000,db2:4000/sbtest"


class Dataset:
    """Remembers what was asked of it."""

    def __init__(self, server, database, dataset, *, has_scripts=False):
        self.about, self.calls, self.wrong = (server.label, database, dataset), [], "not loaded"

    def begin(self):
        self.calls.append("begin")

    def analyses(self):
        return ["ANALYZE TABLE `sbtest1`", "ANALYZE TABLE `sbtest2`"]

    def finish(self):
        self.calls.append("finish")
        self.wrong = None

    def data_bytes(self):
        return 4096

    def trouble(self):
        return self.wrong


@pytest.fixture
def instance(monkeypatch, tmp_path):
    monkeypatch.setenv("DB", "secret-4711")
    monkeypatch.setattr(module.EndpointInstance, "dataset_type", Dataset)
    monkeypatch.setattr(module.EndpointServer, "login", lambda self: None)
    monkeypatch.setattr(module, "MysqlClient", lambda label, place, *_: FakeClient())
    spec = ServerSpec("tidb", REFERENCE, password_env="DB", dataset="abc")
    return open.instance(spec, tmp_path / "x", str)


def test_rows_are_loaded_once_and_looked_at_afterwards(instance, tmp_path):
    assert instance._dataset.about == ("tidb", "sbtest", "abc")
    assert not instance.has_snapshot()
    with pytest.raises(ServerError, match="no loaded dataset to measure"):
        instance.data_bytes()
    server = instance.start()
    assert (server.endpoint.host, server.endpoint.others[0].host) == ("db1", "db2")
    assert (server.credentials.user, server.credentials.password) == ("bench", "secret-4711")
    assert server.database == "sbtest"
    instance.snapshot()
    assert instance.has_snapshot()
    assert instance.data_bytes() == 4096
    instance.restore()
    assert instance.start() is server
    instance.close()
    assert instance._dataset.calls == ["begin", "finish"]
    assert list(tmp_path.iterdir()) == []  # an endpoint leaves no files here


def test_statistics_of_the_rows_are_there_before_the_first_trial(instance):
    instance.start()
    instance.snapshot()
    (first, *_) = instance._server._clients
    assert [sql for _, sql in first.asked] == instance._dataset.analyses()


def test_a_server_that_collects_no_statistics_is_loaded_all_the_same(instance, monkeypatch):
    def refuse(self, sql):
        raise ServerError("did not answer", found="no such statement")

    monkeypatch.setattr(module.EndpointServer, "ask_long", refuse)
    instance.start()
    instance.snapshot()
    assert instance.has_snapshot()


def test_a_dataset_that_changed_cannot_be_restored(instance):
    instance._dataset.wrong = "sbtest1 ends at id 9"
    with pytest.raises(ServerError, match="cannot restore them") as caught:
        instance.restore()
    assert caught.value.found == "sbtest1 ends at id 9"


def test_rows_that_grew_are_not_loaded_again_in_the_same_run(instance):
    instance.start()
    instance.snapshot()
    instance._dataset.wrong = "sbtest1 ends at id 9"
    assert instance.has_snapshot()  # the next block's question, which would load them otherwise
    instance.start()
    assert instance._dataset.calls == ["begin", "finish"]
    with pytest.raises(ServerError, match="cannot restore them"):
        instance.restore()


def test_a_refused_login_says_where_the_password_comes_from(instance, monkeypatch):
    def refused(self):
        raise ServerError(
            "refused", found="the server refuses the session with error 1045 (28000): Access denied"
        )

    monkeypatch.setattr(module.EndpointServer, "login", refused)
    with pytest.raises(ServerError) as caught:
        instance.start()
    hint = caught.value.hint or ""
    assert hint.startswith("check the user's rights and the password in DB")
    assert hint.endswith("?ssl-mode=REQUIRED")
    assert "secret-4711" not in str(caught.value)


def test_settings_are_the_owners(instance, tmp_path):
    with pytest.raises(UsageError, match="only reads them"):
        instance.start({"sync_binlog": 1})
    with pytest.raises(UsageError, match="only reads them") as caught:
        open.instance(ServerSpec("tidb", REFERENCE, {"sync_binlog": 1}), tmp_path, str)
    assert caught.value.found == "sync_binlog"


def test_replicas_are_the_owners_too(tmp_path):
    spec = ServerSpec("tidb", REFERENCE, topology=TopologyPlan(replicas=1))
    with pytest.raises(UsageError, match="replicas of an endpoint"):
        open.instance(spec, tmp_path, str)


class Database:
    """Understands the handful of statements that are sent; tables map to their largest id."""

    label = "shop"
    refused = ("none",)

    def __init__(self, **tables):
        self.exists, self.tables, self.mark = bool(tables), dict(tables), None
        self.is_entered = self.exists  # at the login

    def ask(self, sql):
        if sql.startswith("SELECT 1 FROM information_schema.schemata"):
            return [("1",)] if self.exists else []
        if sql in {"CREATE DATABASE `d`", "USE `d`"}:
            self.exists, self.is_entered = True, sql.startswith("USE")
        elif sql.startswith("SELECT table_name"):
            return [(name,) for name in [*self.tables, *([MARK] if self.mark is not None else [])]]
        elif match := re.fullmatch(r"SELECT MAX\(id\) FROM `d`\.`(\w+)`", sql):
            return [(str(self.tables[match[1]] or ""),)]
        elif sql.startswith("SELECT SUM(data_length + index_length)"):
            return [("32768.0" if self.tables else "",)]
        elif sql.startswith("CREATE TABLE IF NOT EXISTS"):
            self.mark = self.mark or {}
        elif sql == "BEGIN":
            self.before = self.mark
        elif sql == "ROLLBACK":
            self.mark = self.before
        elif sql.startswith(self.refused):
            raise ServerError(f"did not answer {sql!r}")
        elif sql.startswith("DELETE FROM"):
            self.mark = {}
        elif sql.startswith("INSERT INTO"):
            self.mark |= dict(re.findall(r"\('([\w ]+)', '(\w+)'\)", sql))
        elif sql != "COMMIT":
            assert sql == f"SELECT name, value FROM `d`.`{MARK}`"
            return list(self.mark.items())
        return []


def of(database, dataset="abc", has_scripts=False):
    return EndpointDataset(database, "d", dataset, has_scripts=has_scripts)


def loaded(has_scripts=False, **tables):
    database = Database()
    of(database, has_scripts=has_scripts).begin()
    database.tables |= tables
    of(database, has_scripts=has_scripts).finish()
    return database


NOT_LOADED = "this dataset was not loaded there"


def test_rows_are_ours_once_they_are_loaded():
    database = Database()
    assert of(database).trouble() == NOT_LOADED
    of(database).begin()
    assert database.exists
    assert database.is_entered
    database.tables |= {"sbtest1": 500, "sbtest2": 500, "notes": 3}
    assert of(database).trouble() == NOT_LOADED  # a lab that was killed while loading
    of(database).finish()
    assert of(database).trouble() is None
    ends = {"sbtest1": "500", "sbtest2": "500"}
    assert database.mark == {"dataset": "abc", "state": "loaded", **ends}


def test_the_tables_that_were_loaded_are_those_to_analyse():
    database = loaded(sbtest1=500, sbtest2=500)
    assert of(database).analyses() == [
        "ANALYZE TABLE `d`.`sbtest1`",
        "ANALYZE TABLE `d`.`sbtest2`",
    ]
    assert PostgresDataset.analyze == "ANALYZE"


def test_the_server_says_how_large_the_rows_are():
    assert of(loaded(sbtest1=500)).data_bytes() == 32768
    assert of(Database()).data_bytes() == 0


def test_another_dataset_is_loaded_anew():
    database = loaded(sbtest1=500)
    other = of(database, "xyz")
    assert other.trouble() == NOT_LOADED
    other.begin()
    assert database.mark == {"dataset": "xyz", "state": "loading"}


def test_tables_of_somebody_else_are_never_dropped():
    database = Database(sbtest1=9, sbtest2=9, orders=1)
    with pytest.raises(ServerError, match="has tables that dbdyno did not load") as caught:
        of(database).begin()
    assert caught.value.found == "sbtest1, sbtest2"
    assert database.mark is None


def test_a_script_drops_no_table_of_somebody_else():
    database = Database(orders=1)
    with pytest.raises(ServerError, match="has tables that dbdyno did not load") as caught:
        of(database, has_scripts=True).begin()
    assert caught.value.found == "orders"
    database = loaded(sbtest1=500)  # by dbdyno, before somebody put a table beside it
    database.tables["orders"] = 1
    with pytest.raises(ServerError, match="has tables that dbdyno did not load"):
        of(database, "xyz", has_scripts=True).begin()


def test_what_a_script_made_may_be_made_anew():
    database = loaded(has_scripts=True, jobs=7)
    assert of(database, has_scripts=True).trouble() is None
    of(database, "xyz", has_scripts=True).begin()  # a lab that is killed now
    of(database, "xyz", has_scripts=True).begin()
    database = loaded(has_scripts=True, jobs=7)
    del database.tables["jobs"]
    assert of(database, has_scripts=True).trouble() == "the table jobs is gone"


def test_a_script_may_call_its_tables_as_the_mark_calls_what_it_says():
    database = loaded(has_scripts=True, state=7, dataset=7)
    assert of(database, has_scripts=True).trouble() is None
    of(database, "xyz", has_scripts=True).begin()
    assert (database.mark["dataset"], database.mark["state"]) == ("xyz", "loading")


def test_a_name_with_signs_of_sql_is_quoted():
    sent = []

    class Listening(Database):
        def ask(self, sql):
            sent.append(sql)
            return super().ask(sql)

    odd = "a`b\"c'd\\e"
    for kind, name, text in (
        (EndpointDataset, "`a``b\"c'd\\e`", "'table a`b\"c''d\\\\e'"),
        (PostgresDataset, '"a`b""c\'d\\e"', "'table a`b\"c''d\\e'"),
    ):
        dataset = kind(Listening(), "d", "abc")
        assert dataset._placed(odd).endswith(f".{name}")
        dataset._write("loaded", [odd])
        assert any(text in sql for sql in sent if sql.startswith("INSERT INTO")), sent


@pytest.mark.parametrize("refused", ["INSERT INTO", "DELETE FROM"])
def test_a_mark_is_written_whole_or_not_at_all(refused):
    database = loaded(has_scripts=True, jobs=7)
    before, database.refused = dict(database.mark), (refused,)
    with pytest.raises(ServerError, match="did not answer"):
        of(database, "xyz", has_scripts=True).begin()
    assert database.mark == before
    database.refused = ("none",)
    of(database, "xyz", has_scripts=True).begin()
    assert database.mark["dataset"] == "xyz"


def test_tables_of_other_names_are_no_trouble():
    database = Database(orders=1)
    of(database).begin()
    assert database.mark == {"dataset": "abc", "state": "loading"}


@pytest.mark.parametrize(
    ("tables", "trouble"),
    [
        ({"sbtest1": 540}, None),
        ({"sbtest1": 600}, "sbtest1 ends at id 600, and at 500 when it was loaded"),
        ({"sbtest1": None}, "sbtest1 ends at id 0, and at 500 when it was loaded"),
        ({}, "sbtest1 ends at id 0, and at 500 when it was loaded"),
    ],
)
def test_tables_that_changed_are_reported(tables, trouble):
    database = loaded(sbtest1=500)
    database.tables = tables
    assert of(database).trouble() == trouble
