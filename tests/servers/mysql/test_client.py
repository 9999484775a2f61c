from pathlib import Path

import pymysql
import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.mysql import client as module
from dbdyno.servers.mysql.client import Client

ENDPOINT = Endpoint("127.0.0.1", 1, Path("/nowhere/my.sock"))


@pytest.fixture(autouse=True)
def somebody_listens(monkeypatch):
    monkeypatch.setattr(module, "_line_to", lambda path: None)


class Cursor:
    def __init__(self, connection):
        self.connection = connection

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def execute(self, sql):
        if self.connection.broken:
            raise pymysql.err.OperationalError(2013, "Lost connection")

    def fetchall(self):
        return [(1, b"two", None)]


class Connection:
    def __init__(self, broken=False):
        self.broken, self.open = broken, True

    def cursor(self):
        return Cursor(self)

    def connect(self, line):
        assert line is None

    def close(self):
        self.open = False


def client_with(monkeypatch, *outcomes):
    """A client whose logins give these connections or errors, one after the other."""
    left = list(outcomes)

    def connect(**_):
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(module.pymysql, "connect", connect)
    return Client("fast", ENDPOINT, Credentials("root", "secret"))


def test_every_value_is_text(monkeypatch):
    assert client_with(monkeypatch, Connection()).rows("SELECT 1") == [("1", "two", "")]


def test_a_lost_connection_is_made_anew_once(monkeypatch):
    client = client_with(monkeypatch, Connection(broken=True), Connection())
    assert client.rows("SELECT 1") == [("1", "two", "")]


def test_a_server_that_is_gone_is_an_error_without_the_password(monkeypatch):
    gone = pymysql.err.OperationalError(2003, "Can't connect")
    with pytest.raises(ServerError, match="did not answer 'SELECT 1'") as caught:
        client_with(monkeypatch, gone, gone).rows("SELECT 1")
    assert "2003" in (caught.value.found or "")
    assert "secret" not in str(caught.value)


def test_a_server_that_is_coming_up_is_asked_again(monkeypatch):
    coming = pymysql.err.OperationalError(2003, "Can't connect")
    client = client_with(monkeypatch, coming, Connection())
    assert client.try_login() is False
    assert client.try_login() is True


def test_a_refused_login_is_final(monkeypatch):
    refused = pymysql.err.OperationalError(1045, "Access denied")
    with pytest.raises(ServerError, match="refused the login"):
        client_with(monkeypatch, refused).try_login()


def test_closing_logs_out(monkeypatch):
    connection = Connection()
    with client_with(monkeypatch, connection) as client:
        client.rows("SELECT 1")
    assert connection.open is False


def test_credentials_do_not_show_the_password():
    assert "secret" not in repr(Credentials("root", "secret"))


def test_nobody_listening_is_not_ready_and_leaves_no_socket_open(tmp_path, monkeypatch):
    monkeypatch.undo()
    endpoint = Endpoint("127.0.0.1", 1, tmp_path / "my.sock")
    assert Client("fast", endpoint, Credentials("root", "secret")).try_login() is False
