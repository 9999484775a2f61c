"""The administrator's connection to a MySQL, and the counters that are read on it."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymysql
import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, Encryption, Endpoint
from dbdyno.servers.mysql import client as module
from dbdyno.servers.mysql.client import COUNTERS, Client, numbers
from support.certificates import Authority
from support.scripted_server import FakeClient

ENDPOINT = Endpoint("127.0.0.1", 1, Path("/nowhere/my.sock"))


@pytest.fixture(autouse=True)
def somebody_listens(monkeypatch):
    lines = []
    monkeypatch.setattr(
        module, "_line_to", lambda endpoint: lines.append(module.MysqlConnection()) or lines[-1]
    )
    yield
    for line in lines:
        line.close()


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
        self.line = line

    def close(self):
        self.line.close()
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
    assert client_with(monkeypatch, Connection()).ask("SELECT 1") == [("1", "two", "")]


def test_a_lost_connection_is_made_anew_once(monkeypatch):
    client = client_with(monkeypatch, Connection(broken=True), Connection())
    assert client.ask("SELECT 1") == [("1", "two", "")]


def test_a_server_that_is_gone_is_an_error_without_the_password(monkeypatch):
    gone = pymysql.err.OperationalError(2003, "Can't connect")
    with pytest.raises(ServerError, match="did not answer 'SELECT 1'") as caught:
        client_with(monkeypatch, gone, gone).ask("SELECT 1")
    assert "2003" in (caught.value.found or "")
    assert "secret" not in str(caught.value)


def test_the_answer_to_a_question_that_was_interrupted_is_not_taken_for_the_nexts(monkeypatch):
    def interrupted(self, sql):
        raise KeyboardInterrupt

    first = Connection()
    client = client_with(monkeypatch, first, Connection())
    with monkeypatch.context() as patch:
        patch.setattr(Cursor, "execute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.ask("SELECT 1")
    assert not first.open
    assert client.ask("SELECT 1") == [("1", "two", "")]


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
    client = client_with(monkeypatch, connection)
    client.ask("SELECT 1")
    client.close()
    assert connection.open is False


def test_nobody_listening_is_not_ready_and_leaves_no_socket_open(tmp_path, monkeypatch):
    monkeypatch.undo()
    endpoint = Endpoint("127.0.0.1", 1, tmp_path / "my.sock")
    assert Client("fast", endpoint, Credentials("root", "secret")).try_login() is False


def test_closing_does_not_wait_for_a_server_that_is_silent(monkeypatch):
    monkeypatch.undo()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = Endpoint("127.0.0.1", silent.getsockname()[1], None)
        client = Client("fast", endpoint, Credentials("root", "secret"))
        errors = []

        def ask():
            with pytest.raises(ServerError) as caught:
                client.ask("SELECT 1")
            errors.append(caught.value)

        asking = threading.Thread(target=ask)
        asking.start()
        line, _ = silent.accept()
        with line:
            began = time.monotonic()
            client.close()
            asking.join(30)
            assert time.monotonic() - began < module.CONNECT_S_MAX / 2
    assert "did not answer" in errors[0].message


def test_over_tls_too_a_login_has_a_time_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CONNECT_S_MAX", 1)
    asked = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    asked.load_cert_chain(*Authority(tmp_path, "theirs").issue("server", "127.0.0.1"))
    endpoint = Endpoint("127.0.0.1", 1, None, encryption=Encryption("required"))
    context = module._transport(endpoint)["ssl"]
    ours, theirs = socket.socketpair()
    with ThreadPoolExecutor(1) as pool:
        answering = pool.submit(asked.wrap_socket, theirs, server_side=True)
        line = context.wrap_socket(module.MysqlConnection(fileno=ours.detach()))
        with line, answering.result() as talking:
            talking.sendall(b"x")
            assert line.recv_into(bytearray(1)) == 1
            began = time.monotonic()
            with pytest.raises(TimeoutError):  # it goes on, a byte a minute
                line.recv_into(bytearray(1))
    assert time.monotonic() - began < 10


def test_an_observer_asks_for_the_counters_of_the_table_alone() -> None:
    client = FakeClient({module.COUNTERS_SQL: [("Questions", "12"), ("Threads_running", "3")]})
    observer = module.observer_of(client)  # type: ignore[arg-type]
    assert observer.read() == {"Questions": 12.0, "Threads_running": 3.0}


def test_words_among_the_numbers_are_left_out() -> None:
    rows = [("Uptime", "9"), ("Rpl_status", "ON"), ("Ssl_cipher", ""), ("Ratio", "0.5")]
    rows += [("Odd", "nan"), ("Endless", "1e999")]
    assert numbers(rows) == {"Uptime": 9.0, "Ratio": 0.5}


def test_no_counter_is_listed_twice() -> None:
    assert len(set(COUNTERS)) == len(COUNTERS)
