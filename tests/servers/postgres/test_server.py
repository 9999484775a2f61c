"""A running PostgreSQL: who answers, what it says, how it is started, and who may log in."""

import os
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.local.server import Site
from dbdyno.servers.postgres import client, settings
from dbdyno.servers.postgres import server as module
from dbdyno.servers.postgres.server import PostgresServer
from dbdyno.servers.reference import find
from support.archives import program
from support.scripted_server import FakeClient, scripted

ENTRY = find("postgres:18.6")
IDENTITY = "SELECT current_setting('data_directory'), current_setting('port')"
PARAMETERS = [("work_mem", "8192", "kB", "integer")]
LOAD = Credentials("dbdyno", "secret-4711")


@pytest.fixture
def made(monkeypatch, tmp_path):
    """Builds a server object around a shell script in place of postgres."""
    work = tmp_path / "server"
    (work / "data").mkdir(parents=True)
    with scripted() as start:

        def make(script="exec sleep 60", answers=(), asked=()):
            known, asked_of_all = dict(answers), []

            def client(label, endpoint, who, database, answer_s_max=0):
                made = FakeClient(known, database=database)
                made.asked = asked_of_all
                return made

            monkeypatch.setattr(module, "PostgresClient", client)
            monkeypatch.setattr(module, "sealed", lambda password: "SCRAM-SHA-256$x")
            site = Site("pg", ENTRY, Path("/home-of-postgres"), work, None, dict(asked))
            endpoint = Endpoint("127.0.0.1", 3999, work / ".s.PGSQL.3999")
            started = start(script)
            (work / "data" / "postmaster.pid").write_text(f"{started.pid}\n{work / 'data'}\n")
            return PostgresServer(site, started, endpoint, LOAD), work

        yield make


def test_it_reports_version_settings_and_status(made):
    views = [("pg_stat_wal",)]
    asked_for = client.question(["pg_stat_wal"], "sbtest")
    answers = {
        "SHOW server_version": [("18.6",)],
        settings.SETTINGS: [("TimeZone", "UTC", "Sets the time zone."), ("fsync", "on", "")],
        client.WHICH_VIEWS: views,
        asked_for: [("wal", '{"wal_records": 5}')],
        "SELECT count(*) FROM sbtest1": [("100",)],
    }
    server, _ = made(answers=answers)
    assert server.version() == "18.6"
    assert server.settings() == {"timezone": "UTC", "fsync": "on"}
    assert server.status() == {"wal.wal_records": 5.0}
    assert server.ask("SELECT count(*) FROM sbtest1") == [("100",)]
    assert server._client.asked[-1][0] == "sbtest"  # where the tables are
    assert server._client.asked[0][0] == "postgres"  # counts nothing there


def test_ready_is_who_was_started_with_the_settings_asked_for(made):
    server, work = made(asked={"work_mem": "8MB"})
    data = str(work / "data")
    server._client.answers |= {
        IDENTITY: [(data, "3999")],
        "SHOW server_version": [("18.6 (Debian)",)],
        settings.QUESTION: PARAMETERS,
    }
    server.wait_ready()
    server.prove()
    assert server._client.asked[-1] == ("sbtest", "SELECT 1")


def test_another_server_on_the_place_is_not_taken_for_ours(made):
    server, work = made()
    server._client.answers |= {IDENTITY: [(str(work / "data"), "4000")]}
    with pytest.raises(ServerError, match="another server answered"):
        server.wait_ready()


def test_another_version_is_an_error(made):
    server, _ = made(answers={"SHOW server_version": [("17.11",)]})
    with pytest.raises(ServerError, match="another version") as caught:
        server.prove()
    assert (caught.value.wanted, caught.value.found) == ("18.6", "17.11")


def test_the_load_user_gets_a_sealed_password_and_a_database_of_his_own(made):
    server, _ = made()
    server.admit_load()
    orders = [sql for _, sql in server._client.asked if not sql.startswith("SELECT")]
    assert orders == [
        'CREATE ROLE "dbdyno"',
        "ALTER ROLE \"dbdyno\" LOGIN PASSWORD 'SCRAM-SHA-256$x'",
        'CREATE DATABASE "sbtest" OWNER "dbdyno"',
    ]
    assert LOAD.password not in str(server._client.asked)


def test_what_is_there_is_not_made_again(made):
    server, _ = made(
        answers={
            "SELECT FROM pg_roles WHERE rolname = 'dbdyno'": [()],
            "SELECT FROM pg_database WHERE datname = 'sbtest'": [()],
        }
    )
    server.admit_load()
    assert not [sql for _, sql in server._client.asked if sql.startswith("CREATE")]


def test_stopping_asks_by_sigint_and_waits(made):
    server, _ = made("trap 'exit 0' INT; echo ready; while :; do sleep 0.02; done")
    server.stop()
    assert server.stopped_cleanly


def test_one_that_does_not_stop_is_killed(made, monkeypatch):
    monkeypatch.setattr(module, "GIVE_UP_S", 0.05)
    server, _ = made("trap '' INT QUIT; echo ready; while :; do sleep 0.02; done")
    with pytest.raises(ServerError, match="did not stop within 0 s and was killed"):
        server.stop(0.05)
    assert not server.alive()


def test_one_that_is_not_wanted_any_more_may_end_its_children(made):
    server, _ = made("trap 'exit 2' QUIT; echo ready; while :; do sleep 0.02; done")
    server.kill()
    assert server._running.returncode == 2
    assert not server.stopped_cleanly


def test_only_the_lab_and_the_load_may_log_in_and_the_load_from_here_alone():
    rules = [line.split() for line in module.login_rules("dbdyno").splitlines()]
    assert rules == [
        ["local", "all", "dbdyno_admin", "peer", "map=lab"],
        ["local", "all", "dbdyno", "scram-sha-256"],
        ["host", "all", "dbdyno", "127.0.0.1/32", "scram-sha-256"],
        ["host", "replication", "dbdyno_replica", "127.0.0.1/32", "scram-sha-256"],
    ]


def test_a_program_that_ends_at_once_is_quoted_and_leaves_no_password(tmp_path):
    home, work = tmp_path / "home", tmp_path / "server"
    (work / "data").mkdir(parents=True)
    script = '#!/bin/sh\necho "FATAL:  no room for $1 $2"\nexit 7\n'
    program(home / "bin" / "postgres", script)
    with pytest.raises(ServerError, match=r"did not start \(exit code 7\)") as caught:
        module.start(Site("pg", ENTRY, home, work, None, {"work_mem": "8MB"}), 4711, PostgresServer)
    assert caught.value.found == f"FATAL:  no room for -D {work / 'data'}"
    written = work / "data" / "postgresql.auto.conf"
    assert "work_mem = '8MB'\n" in written.read_text()
    assert written.stat().st_mode & 0o777 == 0o600
    assert "password" not in written.read_text().replace("password_encryption", "")


def test_a_user_without_a_name_is_refused(monkeypatch):
    def nameless(uid):
        raise KeyError(uid)

    monkeypatch.setattr(module.pwd, "getpwuid", nameless)
    with pytest.raises(ServerError, match="users that have a name") as caught:
        module._own_name(Site("pg", ENTRY, Path("/h"), Path("/w"), None, {}))
    assert caught.value.found == f"user id {os.geteuid()}, which has none"
