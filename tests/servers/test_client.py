"""dbdyno's own connection to a server, whatever the product."""

from __future__ import annotations

import _thread
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dbdyno._engine import SessionError
from dbdyno.errors import ServerError
from dbdyno.servers import client as module
from dbdyno.servers.base import MYSQL, PGSQL, PLAIN, Credentials, Encryption, Endpoint
from dbdyno.servers.client import Client, transport
from dbdyno.servers.reference import EndpointReference

SECRET = "secret-4711"
WHO = Credentials("dbdyno", SECRET)
NEAR = Endpoint("127.0.0.1", 5999, Path("/nowhere/my.sock"))
GONE = SessionError("no connection", "starting the server", "absent")
REFUSED = SessionError("error 1064 (42000): near x", None, "refused")
LATE = SessionError("no answer within the time limit", None, "late")
ODD = SessionError("the server does not speak MySQL", None, "odd")


class Session:
    """Answers a login and each question with the next of its outcomes."""

    def __init__(self, *outcomes):
        self.outcomes, self.asked, self.is_closed = list(outcomes), [], False

    def log_in(self):
        self._next("")

    def ask(self, sql, limit_s):
        self.asked.append(sql)
        return self._next([["1", "two", None]])

    def close(self):
        self.is_closed = True

    def _next(self, usual):
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is not None:
            raise outcome
        return usual


@pytest.fixture
def client(monkeypatch):
    """A client whose logins give these sessions, one after the other."""

    def make(*sessions, endpoint=NEAR, **rest):
        left, specs = list(sessions), []

        def opened(spec):
            specs.append(spec)
            return left.pop(0)

        monkeypatch.setattr(module, "Session", opened)
        made = Client("fast", PGSQL, endpoint, WHO, **rest)
        made.specs = specs
        return made

    return make


def test_every_value_is_text_and_closing_logs_out(client):
    session = Session()
    made = client(session)
    assert made.ask("SELECT 1") == [("1", "two", "")]
    made.close()
    assert session.is_closed


def test_it_logs_in_through_the_socket_when_there_is_one(client):
    for endpoint, place in [
        (NEAR, {"socket": "/nowhere/my.sock"}),
        (Endpoint("127.0.0.1", 5999, None), {"host": "127.0.0.1", "port": 5999}),
    ]:
        made = client(Session(), endpoint=endpoint)
        made.ask("SELECT 1")
        assert (made.specs[0]["endpoint"], made.specs[0]["driver"]) == (place, PGSQL)


def test_only_a_server_of_somebody_else_has_to_show_who_it_is():
    plain = {"tls": {"mode": "disabled", "ca": None}, "server_key": None}
    assert transport(NEAR) == {**plain, "takes_any_key": True}
    for chosen, changed in [
        (PLAIN, {}),
        (
            Encryption("verify_ca", Path("/ca.pem")),
            {"tls": {"mode": "verify_ca", "ca": "/ca.pem"}},
        ),
        (Encryption(key=Path("/key.pem")), {"server_key": "/key.pem"}),
        (Encryption(takes_any_key=True), {"takes_any_key": True}),
    ]:
        theirs = EndpointReference("u", (("db1", 3306), ("db2", 3306)), "d", chosen).endpoint
        for endpoint in (theirs, *theirs.others):
            assert transport(endpoint) == {**plain, "takes_any_key": False, **changed}


def test_orders_follow_each_login(client):
    first, second = Session(None, None, GONE), Session()
    made = client(first, second, orders=("SET a",))
    made.ask("SELECT 1")
    assert (first.asked, second.asked) == (["SET a", "SELECT 1"], ["SET a", "SELECT 1"])
    assert first.is_closed


def test_a_database_is_entered_at_each_login_once_it_is_there(client):
    absent, there = Session(None, None, REFUSED, None, GONE), Session()
    made = client(absent, there, orders=("SET a",), entry="USE b")
    assert made.ask("SELECT 1") == [("1", "two", "")]  # there is no b yet
    made.ask("SELECT 2")
    assert absent.asked == ["SET a", "USE b", "SELECT 1", "SELECT 2"]
    assert there.asked == ["SET a", "USE b", "SELECT 2"]
    lost = Session(None, GONE)
    with pytest.raises(ServerError, match="did not answer"):
        client(lost, Session(None, GONE), entry="USE b").ask("SELECT 1")
    assert lost.is_closed


@pytest.mark.parametrize(
    ("sessions", "is_answered"),
    [
        ((Session(),), True),
        ((Session(None, REFUSED),), True),
        ((Session(REFUSED),), True),  # too many connections, say
        ((Session(None, GONE), Session()), True),
        ((Session(None, GONE), Session(GONE)), False),
        ((Session(None, LATE),), False),
    ],
)
def test_a_server_that_answers_with_an_error_answers(client, sessions, is_answered):
    assert client(*sessions).is_answered() is is_answered


def test_a_session_whose_order_is_refused_is_not_kept(client):
    refused = Session(None, REFUSED)
    with pytest.raises(ServerError, match="refused the login"):
        client(refused, orders=("SET a",)).try_login()
    assert refused.is_closed


@pytest.mark.parametrize("trouble", [GONE, ODD])
def test_a_lost_connection_is_made_anew_once(client, trouble):
    lost = Session(None, trouble)
    assert client(lost, Session()).ask("SELECT 1") == [("1", "two", "")]
    assert lost.is_closed
    with pytest.raises(ServerError, match="did not answer 'SELECT 1'") as caught:
        client(Session(trouble), Session(None, trouble)).ask("SELECT 1")
    reason, advice, _ = trouble.args
    assert caught.value.found == reason
    assert caught.value.hint == (f"try {advice}" if advice else None)
    assert SECRET not in str(caught.value)


def test_what_the_server_refuses_or_does_not_answer_in_time_is_not_asked_twice(client):
    session = Session(None, REFUSED)
    made = client(session)
    with pytest.raises(ServerError, match="did not answer 'SELECT x'") as caught:
        made.ask("SELECT x")
    assert caught.value.found == "error 1064 (42000): near x"
    assert made.ask("SELECT 1") == [("1", "two", "")]  # on the same session
    assert session.asked == ["SELECT x", "SELECT 1"]
    late = Session(None, LATE)
    with pytest.raises(ServerError, match="did not answer"):
        client(late).ask("VACUUM")
    assert late.is_closed


def test_a_statement_with_a_secret_is_shown_by_another_name(client):
    with pytest.raises(ServerError, match="did not answer the order") as caught:
        client(Session(None, REFUSED)).ask(f"ALTER ROLE x PASSWORD '{SECRET}'", "the order")
    assert SECRET not in str(caught.value)


def test_the_answer_to_a_question_that_was_interrupted_is_not_taken_for_the_nexts(client):
    first = Session(None, KeyboardInterrupt())
    made = client(first, Session())
    with pytest.raises(KeyboardInterrupt):
        made.ask("SELECT 1")
    assert first.is_closed
    assert made.ask("SELECT 1") == [("1", "two", "")]


def test_a_login_is_tried_until_the_server_is_up_but_a_refusal_is_final(client):
    made = client(Session(GONE), Session(LATE), Session(REFUSED), Session(ODD), Session())
    assert [made.try_login() for _ in range(2)] == [False, False]
    for _ in range(2):
        with pytest.raises(ServerError, match="refused the login"):
            made.try_login()
    assert made.try_login()


@pytest.mark.parametrize("driver", [MYSQL, PGSQL])
def test_nobody_listening_is_not_ready(driver, tmp_path):
    made = Client("fast", driver, Endpoint("127.0.0.1", 1, tmp_path / "my.sock"), WHO)
    assert made.try_login() is False
    with pytest.raises(ServerError, match="fast: the server opened no session") as caught:
        made.login()
    assert (caught.value.found or "").startswith("no connection: No such file")
    assert "starting the server" in (caught.value.hint or "")


def test_a_file_of_authorities_that_is_not_there_is_named(tmp_path):
    endpoint = Endpoint(
        "127.0.0.1", 1, None, encryption=Encryption("verify_ca", tmp_path / "ca.pem")
    )
    with pytest.raises(ServerError, match="refused the login") as caught:
        Client("fast", MYSQL, endpoint, WHO).try_login()
    assert "ca.pem" in str(caught.value)


@pytest.fixture
def silent():
    """Takes connections and says nothing: its endpoint, and a way to wait for a caller."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Endpoint("127.0.0.1", listening.getsockname()[1], None), listening.accept


@pytest.mark.parametrize("driver", [MYSQL, PGSQL])
def test_closing_does_not_wait_for_a_server_that_is_silent(driver, silent):
    endpoint, called = silent
    made = Client("fast", driver, endpoint, WHO)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(made.ask, "SELECT 1")
        with called()[0]:
            began = time.monotonic()
            made.close()
            with pytest.raises(ServerError, match="did not answer"):
                asking.result(30)
            assert time.monotonic() - began < module.CONNECT_S_MAX / 2


@pytest.mark.parametrize("driver", [MYSQL, PGSQL])
def test_ctrl_c_is_heard_while_a_server_is_silent(driver, silent):
    endpoint, called = silent
    made = Client("fast", driver, endpoint, WHO)

    def press():
        line, _ = called()
        with line:
            _thread.interrupt_main()
            line.recv(1)
            line.recv(4096)  # until the session is left

    with ThreadPoolExecutor(1) as pool:
        pool.submit(press)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            made.try_login()
        assert time.monotonic() - began < module.CONNECT_S_MAX / 2


def test_a_handshake_of_tls_that_stands_still_has_the_time_of_the_login(silent, monkeypatch):
    monkeypatch.setattr(module, "CONNECT_S_MAX", 0.5)
    endpoint, called = silent
    encrypted = Endpoint(endpoint.host, endpoint.port, None, encryption=Encryption("required"))

    def offer():
        line, _ = called()
        with line:
            line.recv(4096)
            line.sendall(b"S")
            line.recv(4096)
            line.recv(4096)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(offer)
        began = time.monotonic()
        assert Client("fast", PGSQL, encrypted, WHO).try_login() is False
        assert time.monotonic() - began < 5
