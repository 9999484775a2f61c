"""Whatever stands at an endpoint: no password in the clear, an error in words, and an end."""

import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.foreign.endpoint import EndpointServer
from dbdyno.servers.foreign.postgres_endpoint import PostgresEndpointServer
from dbdyno.servers.mysql import client as mysql
from dbdyno.servers.postgres import client as postgres
from dbdyno.servers.postgres.client import PostgresClient
from support.rogue_server import MODES, PLENTY, rogue

SECRET = "correct horse battery staple"
PATIENCE_S = 1
ASKED_FOR = [mode for mode in MODES if "password" in mode or "dialog" in mode]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(mysql, "CONNECT_S_MAX", PATIENCE_S)
    monkeypatch.setattr(mysql, "ANSWER_S_MAX", PATIENCE_S)
    monkeypatch.setattr(mysql, "ANSWER_BYTES_MAX", 20_000_000)


@pytest.mark.parametrize("mode", MODES)
def test_a_rogue_server_gets_no_password_and_makes_an_error_in_words(mode):
    began = time.monotonic()
    with rogue(MODES[mode]) as (port, heard):
        place, who = Endpoint("127.0.0.1", port, None), Credentials("load", SECRET)
        server = EndpointServer("theirs", place, who, "sbtest")
        try:
            with pytest.raises(ServerError) as caught:
                server.login()
        finally:
            server.stop()
    assert SECRET.encode() not in heard
    assert SECRET not in str(caught.value)
    assert "theirs" in caught.value.message
    assert time.monotonic() - began < 30
    if mode in ASKED_FOR:
        assert "which dbdyno does not send" in str(caught.value)


def postgres_asks_for(kind, more=b""):
    def talk(caller):
        caller.heard += caller.line.recv(4096)
        payload = struct.pack(">I", kind) + more
        caller.raw(b"R" + struct.pack(">I", 4 + len(payload)) + payload)

    return talk


def postgres_message(kind, payload=b""):
    return kind + struct.pack(">I", 4 + len(payload)) + payload


def postgres_rows_without_end(caller):
    """Lets everybody in, and answers the first question for as long as anybody listens."""
    caller.line.recv(4096)
    caller.raw(postgres_message(b"R", bytes(4)) + postgres_message(b"Z", b"I"))
    caller.line.recv(4096)
    column = b"a\0" + struct.pack(">IHIhIH", 0, 0, 25, -1, 0, 0)
    caller.raw(postgres_message(b"T", struct.pack(">H", 1) + column))
    row = postgres_message(b"D", struct.pack(">HI", 1, 60_000) + b"x" * 60_000)
    for _ in range(PLENTY):
        caller.raw(row)


def test_an_answer_of_a_postgres_that_has_no_end_is_given_up():
    with rogue(postgres_rows_without_end) as (port, _):
        place, who = Endpoint("127.0.0.1", port, None), Credentials("load", "")
        client = PostgresClient("theirs", place, who, "sbtest")
        with closing(client), pytest.raises(ServerError, match="did not answer") as caught:
            client.ask("SELECT 1")
    assert "its answer is longer than" in str(caught.value)


POSTGRES_MODES = {
    "clear password": postgres_asks_for(3),
    "md5": postgres_asks_for(5, b"salt"),
    "nothing": postgres_asks_for(0),
    "garbage": lambda caller: caller.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9),
    "silence": lambda caller: None,
}


@pytest.mark.parametrize("mode", POSTGRES_MODES)
def test_a_rogue_postgres_gets_no_password_either(mode, monkeypatch):
    monkeypatch.setattr(postgres, "CONNECT_S_MAX", 2)  # libpq's least
    with rogue(POSTGRES_MODES[mode]) as (port, heard):
        place, who = Endpoint("127.0.0.1", port, None), Credentials("load", SECRET)
        client = PostgresClient("theirs", place, who, "sbtest")
        with closing(client), pytest.raises(ServerError) as caught:
            client.ask("SELECT 1")
    assert SECRET.encode() not in heard
    assert b"md5" not in heard
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("mode", POSTGRES_MODES)
def test_a_rogue_postgres_endpoint_gets_no_password_in_the_clear(mode, monkeypatch):
    monkeypatch.setattr(postgres, "CONNECT_S_MAX", 2)
    with rogue(POSTGRES_MODES[mode]) as (port, heard):
        place, who = Endpoint("127.0.0.1", port, None), Credentials("load", SECRET)
        server = PostgresEndpointServer("theirs", place, who, "sbtest")
        try:
            with pytest.raises(ServerError) as caught:
                server.login()
        finally:
            server.stop()
    assert SECRET.encode() not in heard
    assert SECRET not in str(caught.value)
    if mode == "clear password":
        assert "server requested a cleartext password" in str(caught.value)


def silent_once_logged_in(caller):
    caller.heard += caller.line.recv(4096)
    caller.raw(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")


def test_a_postgres_that_stops_answering_is_given_up(monkeypatch):
    monkeypatch.setattr(postgres, "BEYOND_S", 0.2)
    with rogue(silent_once_logged_in) as (port, _):
        place, who = Endpoint("127.0.0.1", port, None), Credentials("load", "")
        client = PostgresClient("theirs", place, who, "sbtest", answer_s_max=0.2)
        with closing(client), pytest.raises(ServerError, match="did not answer"):
            client.ask("SELECT 1")


def test_closing_does_not_wait_for_a_postgres_that_is_silent():
    with rogue(silent_once_logged_in) as (port, _), ThreadPoolExecutor(1) as pool:
        place, who = Endpoint("127.0.0.1", port, None), Credentials("load", "")
        client = PostgresClient("theirs", place, who, "sbtest")
        asking = pool.submit(client.ask, "SELECT 1")
        while client._connection is None and not asking.done():
            time.sleep(0.01)
        began = time.monotonic()
        client.close()
        with pytest.raises(ServerError, match="did not answer"):
            asking.result()
        assert time.monotonic() - began < 10
