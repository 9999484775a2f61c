"""The administrator's connection to a PostgreSQL, and its statistics as numbers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.postgres import client as status
from dbdyno.servers.postgres import settings
from dbdyno.servers.postgres.client import PostgresClient
from support.scripted_server import FakeClient

ENDPOINT = Endpoint("127.0.0.1", 5999, Path("/nowhere/.s.PGSQL.5999"))
SECRET = "secret-4711"


class Answer:
    """Two rows as libpq gives them."""

    nfields, ntuples = 2, 2
    cells = ((b"1", None), (b"two", b"\xff"))

    def get_value(self, row, column):
        return self.cells[row][column]


class Cursor:
    def __init__(self, connection):
        self.connection, self.pgresult = connection, Answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def execute(self, sql):
        self.connection.asked.append(sql.decode())
        if self.connection.error:
            self.connection.broken = self.connection.breaks
            raise self.connection.error

    def nextset(self):
        return None


class Connection:
    def __init__(self, error=None, breaks=False, refusal=None):
        self.error, self.breaks, self.refusal = error, breaks, refusal
        self.broken = self.closed = False
        self.asked, self.orders = [], []
        self.pgconn = SimpleNamespace(
            encrypt_password=lambda password, user: b"SCRAM-SHA-256$4096:" + user
        )

    def execute(self, sql):
        self.orders.append(sql.decode())
        if self.refusal:
            raise self.refusal

    def cursor(self):
        return Cursor(self)

    def close(self):
        self.closed = True


@pytest.fixture
def client(monkeypatch):
    """A client whose logins give these connections or errors, one after the other."""

    def make(*outcomes, endpoint=ENDPOINT):
        left = list(outcomes)

        def connect(**arguments):
            made.logins.append(arguments)
            outcome = left.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(status._Session, "connect", connect)
        made = PostgresClient("pg", endpoint, Credentials("dbdyno", SECRET), "sbtest")
        made.logins = []
        return made

    return make


def test_every_value_is_text(client):
    assert client(Connection()).ask("SELECT 1") == [("1", ""), ("two", "\ufffd")]


def test_it_logs_in_through_the_socket_when_there_is_one(client):
    made = client(Connection())
    made.ask("SELECT 1")
    assert made.logins[0]["host"] == "/nowhere"
    over_tcp = client(Connection(), endpoint=Endpoint("127.0.0.1", 5999, None))
    over_tcp.ask("SELECT 1")
    assert over_tcp.logins[0]["host"] == "127.0.0.1"


def test_its_limit_is_the_sessions_and_no_default_that_settings_are_read_from(client):
    connection = Connection()
    made = client(connection)
    made.ask("SELECT 1")
    made.ask("SELECT 2")
    assert connection.orders == ["SET statement_timeout = 60000"]
    assert "options" not in made.logins[0]
    for sql in (settings.QUESTION, settings.SETTINGS):
        assert sql.startswith("SET LOCAL statement_timeout TO DEFAULT; S")


def test_a_session_that_takes_no_limit_is_not_kept(client):
    refused = Connection(refusal=psycopg.errors.SyntaxError('near "SET"'))
    with pytest.raises(ServerError, match="did not answer"):
        client(refused).ask("SELECT 1")
    assert refused.closed
    assert refused.asked == []
    with pytest.raises(ServerError, match="refused the session's limit"):
        client(Connection(refusal=psycopg.errors.SyntaxError('near "SET"'))).try_login()


def test_a_lost_connection_is_made_anew_once(client):
    lost = Connection(psycopg.OperationalError("server closed the connection"), breaks=True)
    assert client(lost, Connection()).ask("SELECT 1")[0] == ("1", "")
    assert lost.closed


def test_what_the_server_refuses_is_not_asked_twice(client):
    refused = Connection(psycopg.errors.UndefinedTable('relation "x" does not exist'))
    with pytest.raises(ServerError, match="did not answer 'SELECT FROM x'") as caught:
        client(refused).ask("SELECT FROM x")
    assert caught.value.found == 'relation "x" does not exist'
    late = Connection(psycopg.errors.QueryCanceled("canceling statement due to statement timeout"))
    with pytest.raises(ServerError, match="did not answer"):
        client(late).ask("VACUUM")
    assert late.asked == ["VACUUM"]


def test_a_statement_with_a_secret_is_shown_by_another_name(client):
    refused = Connection(psycopg.errors.InsufficientPrivilege("permission denied"))
    with pytest.raises(ServerError) as caught:
        client(refused).ask(f"ALTER ROLE x PASSWORD '{SECRET}'", shown_as="the order")
    assert "did not answer the order" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_server_that_is_gone_is_an_error_without_the_password(client):
    gone = psycopg.OperationalError("connection refused")
    with pytest.raises(ServerError, match="did not answer 'SELECT 1'") as caught:
        client(gone, gone).ask("SELECT 1")
    assert SECRET not in str(caught.value)


def test_a_server_that_is_coming_up_is_asked_again(client):
    coming = (
        psycopg.OperationalError("connection refused"),
        psycopg.OperationalError("FATAL:  the database system is starting up"),
    )
    made = client(*coming, Connection())
    assert [made.try_login() for _ in range(3)] == [False, False, True]


def test_a_refused_login_is_final(client):
    refused = psycopg.OperationalError("FATAL:  no pg_hba.conf entry for host")
    with pytest.raises(ServerError, match="refused the login"):
        client(refused).try_login()


def test_a_password_is_sealed_before_it_travels(client):
    sealed = client(Connection()).sealed(Credentials("dbdyno", SECRET))
    assert sealed == "SCRAM-SHA-256$4096:dbdyno"


def test_closing_logs_out(client):
    connection = Connection()
    made = client(connection)
    made.ask("SELECT 1")
    made.close()
    assert connection.closed


def test_nobody_listening_is_not_ready(tmp_path):
    endpoint = Endpoint("127.0.0.1", 1, tmp_path / ".s.PGSQL.1")
    who = Credentials("dbdyno", SECRET)
    assert PostgresClient("pg", endpoint, who, "sbtest").try_login() is False


def test_only_views_that_the_server_has_are_asked_for():
    sql = status.question(["pg_stat_wal", "pg_stat_database", "pg_stat_other"], "sbtest")
    assert "pg_catalog.pg_stat_wal v" in sql
    assert "pg_catalog.pg_stat_database v WHERE v.datname = 'sbtest'" in sql
    assert "pg_stat_io" not in sql
    assert "pg_stat_other" not in sql
    assert sql.count("UNION ALL") == 2


def test_every_number_is_kept_under_its_view_and_column():
    rows = [
        ("Uptime", '{"s": 12.5}'),
        ("database", json.dumps({"datid": 16384, "datname": "sbtest", "xact_commit": 7})),
        ("wal", json.dumps({"wal_bytes": 123456789012, "stats_reset": "2026-11-21T00:00:00"})),
        (
            "io",
            json.dumps(
                {
                    "backend_type": "client backend",
                    "object": "relation",
                    "context": "normal",
                    "reads": 3,
                    "fsyncs": None,
                    "odd": True,
                }
            ),
        ),
    ]
    assert status.flattened(rows) == {
        "Uptime": 12.5,
        "database.xact_commit": 7.0,
        "wal.wal_bytes": 123456789012.0,
        "io.client backend.relation.normal.reads": 3.0,
    }


@pytest.mark.parametrize(
    "rows",
    [
        [("Uptime",)],
        [("Uptime", "{}")],
        [("Uptime", "12", "s")],
        [("wal", "[" * 100_000)],
        [("wal", "7")],
        [("wal", '{"wal_bytes": ' + "9" * 400 + "}")],
        [("wal", "no JSON")],
    ],
)
def test_an_odd_answer_is_an_error_in_words(rows):
    with pytest.raises(ServerError, match="answered 'SELECT' with something else"):
        status.answered(FakeClient({"SELECT": rows}), "SELECT")


def test_numbers_beyond_all_others_are_left_out():
    rows = [("wal", '{"wal_bytes": 1e999, "wal_records": NaN, "wal_fpi": 3}')]
    assert status.flattened(rows) == {"wal.wal_fpi": 3.0}


def test_zeros_of_the_longest_view_are_left_out():
    numbers = {"database.deadlocks": 0.0, "io.walwriter.wal.normal.reads": 0.0, "io.a.b": 2.0}
    assert status.without_idle_io(numbers) == {"database.deadlocks": 0.0, "io.a.b": 2.0}
