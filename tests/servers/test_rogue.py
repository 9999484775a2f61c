"""Whatever stands at an endpoint: no password in the clear, an error in words, and an end."""

import re
import ssl
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from dbdyno import _engine
from dbdyno.errors import ServerError
from dbdyno.experiment.engine import spec
from dbdyno.servers import client
from dbdyno.servers.base import PLAIN, Credentials, Encryption, Endpoint
from dbdyno.servers.client import Client
from dbdyno.servers.foreign.endpoint import EndpointServer
from dbdyno.servers.foreign.postgres_endpoint import PostgresEndpointServer
from dbdyno.servers.postgres import client as postgres_client
from dbdyno.servers.postgres.client import PostgresClient
from dbdyno.servers.reference import parse
from support.certificates import Authority
from support.rogue_server import (
    MODES,
    PLENTY,
    opened,
    pem_of,
    postgres_asks_for,
    postgres_in_tls,
    postgres_message,
    postgres_with_a_clear_password,
    postgres_with_rounds,
    rogue,
    switching_to_a_cold_cache,
    with_a_cold_cache,
    with_a_cold_cache_in_tls,
)

SECRET = "correct horse battery staple"
WHO = Credentials("load", SECRET)
PATIENCE_S = 1
ASKED_FOR = [
    mode for mode in MODES if mode.startswith("asks") and ("password" in mode or "dialog" in mode)
]


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(client, "CONNECT_S_MAX", PATIENCE_S)
    monkeypatch.setattr(Client, "answer_s_max", PATIENCE_S)


HERE, ELSEWHERE = "127.0.0.1", "0.0.0.0"
"""Loopback is trusted. The other address leads there too, and is met as a stranger's machine."""


def theirs_at(port, encryption=PLAIN, host=ELSEWHERE):
    return Endpoint(host, port, None, encryption=encryption, is_foreign=True)


def refused_by_the_lab(server):
    try:
        with pytest.raises(ServerError) as caught:
            server.login()
    finally:
        server.stop()
    assert SECRET not in str(caught.value)
    return caught.value


def refused_by_the_load(server):
    with pytest.raises(RuntimeError) as caught:
        _engine.cleanup({**spec._login(server), "tables": 1}, _engine.Stop())
    assert SECRET not in str(caught.value)
    return caught.value.args[0]["message"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("mode", MODES)
def test_a_rogue_server_gets_no_password_and_makes_an_error_in_words(mode):
    began = time.monotonic()
    with rogue(MODES[mode]) as (port, heard):
        error = refused_by_the_lab(EndpointServer("theirs", theirs_at(port), WHO, "sbtest"))
    assert SECRET.encode() not in heard
    assert "theirs" in error.message
    assert time.monotonic() - began < 30
    if mode in ASKED_FOR:
        assert "the account needs the authentication plugin" in str(error)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("theirs"), "theirs")


@pytest.fixture(scope="module")
def another(tmp_path_factory):
    """An authority that did not sign the rogue's certificate."""
    return Authority(tmp_path_factory.mktemp("another"), "another")


@pytest.fixture(scope="module")
def context(authority):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(*authority.issue("server", "127.0.0.1"))
    return made


def met(talk, encryption=PLAIN, server=EndpointServer, host=ELSEWHERE):
    """Errors of both planes, and what the server was told."""
    with rogue(talk) as (port, heard):
        theirs = server("theirs", theirs_at(port, encryption, host), WHO, "sbtest")
        errors = [str(refused_by_the_lab(theirs)), refused_by_the_load(theirs)]
    return errors, bytes(heard)


COLD = [with_a_cold_cache, switching_to_a_cold_cache]
KEY_REQUEST, SEALED = b"\1\0\0[\3\5]\2", b"\0\1\0[\3\5]"
"""A packet that asks for the server's key; the head of a password sealed with 2048 bits."""


@pytest.mark.parametrize("talk", COLD)
def test_no_key_of_a_server_that_is_not_verified_seals_the_password(talk):
    errors, heard = met(talk)
    assert SECRET.encode() not in heard
    assert not re.search(KEY_REQUEST, heard)
    for error in errors:
        assert "asks for the whole password without TLS" in error
        assert "server-public-key-path" in error


@pytest.mark.parametrize("talk", COLD)
def test_the_password_is_sealed_for_the_key_in_the_users_file_alone(talk, tmp_path):
    owner = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    file = tmp_path / "public_key.pem"
    file.write_bytes(pem_of(owner))
    errors, heard = met(talk, Encryption(key=file))
    assert SECRET.encode() not in heard
    assert not re.search(KEY_REQUEST, heard)
    sealed = [heard[head.end() :][:256] for head in re.finditer(SEALED, heard)]
    assert [opened(owner, text) for text in sealed] == [SECRET.encode() + b"\0"] * len(errors)
    file.write_bytes(b"no key")
    errors, heard = met(talk, Encryption(key=file))
    assert not heard
    for error in errors:
        assert "wanted the server's public key in" in error


def test_a_user_may_have_the_password_sealed_with_the_key_that_the_server_sends():
    _, heard = met(with_a_cold_cache, Encryption(takes_any_key=True))
    assert heard.count(SECRET.encode()) >= 2


def test_a_certificate_of_another_authority_gets_no_password(context, another):
    errors, heard = met(with_a_cold_cache_in_tls(context), Encryption("verify_ca", another.ca))
    assert SECRET.encode() not in heard
    for error in errors:
        assert "UnknownIssuer" in error


@pytest.mark.parametrize("talk", COLD)
def test_a_server_on_this_machine_gets_the_password_that_it_needs(talk):
    _, heard = met(talk, host=HERE)
    assert heard.count(SECRET.encode()) >= 2


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize("server", [EndpointServer, PostgresEndpointServer])
def test_inside_tls_a_server_gets_the_password_as_from_its_own_client(
    server, verified, context, authority
):
    talks = {
        EndpointServer: with_a_cold_cache_in_tls(context),
        PostgresEndpointServer: postgres_in_tls(context, postgres_with_a_clear_password),
    }
    encryption = Encryption("verify_ca", authority.ca) if verified else Encryption("required")
    _, heard = met(talks[server], encryption, server)
    assert heard.count(SECRET.encode() + b"\0") == 2


def postgres_at(port, **limit):
    place, who = Endpoint("127.0.0.1", port, None), Credentials("load", "")
    return PostgresClient("theirs", place, who, "sbtest", **limit)


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
    with (
        rogue(postgres_rows_without_end) as (port, _),
        closing(postgres_at(port)) as made,
        pytest.raises(ServerError, match="did not answer") as caught,
    ):
        made.ask("SELECT 1")
    assert "rows without an end" in str(caught.value)


def parameters_without_end(caller):
    caller.line.recv(4096)
    caller.raw(postgres_message(b"R", bytes(4)))
    for _ in range(PLENTY):
        caller.raw(postgres_message(b"S", b"name\0" + b"x" * 9_000 + b"\0"))


POSTGRES_MODES = {
    "clear password": postgres_asks_for(3),
    "nothing": postgres_asks_for(0),
    "garbage": lambda caller: caller.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9),
    "silence": lambda caller: None,
    "parameters without end": parameters_without_end,
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("mode", POSTGRES_MODES)
def test_a_rogue_postgres_gets_no_password_in_the_clear(mode):
    with rogue(POSTGRES_MODES[mode]) as (port, heard):
        server = PostgresEndpointServer("theirs", theirs_at(port), WHO, "sbtest")
        error = refused_by_the_lab(server)
    assert SECRET.encode() not in heard
    if mode == "clear password":
        assert "a server that asks for the password in the clear" in str(error)


def test_a_postgres_with_a_certificate_of_another_authority_gets_no_password(context, another):
    talk = postgres_in_tls(context, postgres_with_a_clear_password)
    errors, heard = met(talk, Encryption("verify_ca", another.ca), PostgresEndpointServer)
    assert SECRET.encode() not in heard
    for error in errors:
        assert "UnknownIssuer" in error


@pytest.mark.parametrize("mode", ["require", "verify-full"])
@pytest.mark.parametrize("is_named", [True, False])
def test_a_postgres_is_verified_with_the_authorities_of_its_own_client(
    mode, is_named, context, another, tmp_path, monkeypatch
):
    usual = tmp_path / ".postgresql" / "root.crt"
    usual.parent.mkdir()
    usual.write_bytes(another.ca.read_bytes())
    monkeypatch.setenv("HOME", str(another.ca.parent if is_named else tmp_path))
    monkeypatch.setenv("PGSSLROOTCERT", str(another.ca) if is_named else "")
    encryption = parse(f"postgresql://load@h/sbtest?sslmode={mode}").encryption
    talk = postgres_in_tls(context, postgres_with_a_clear_password)
    errors, heard = met(talk, encryption, PostgresEndpointServer)
    assert SECRET.encode() not in heard
    for error in errors:
        assert "UnknownIssuer" in error


def test_a_postgres_that_asks_for_endless_work_is_refused_at_once():
    began = time.monotonic()
    errors, heard = met(postgres_with_rounds(2**31 - 1), server=PostgresEndpointServer)
    assert time.monotonic() - began < client.CONNECT_S_MAX
    assert SECRET.encode() not in heard
    for error in errors:
        assert "number of rounds" in error


def silent_once_logged_in(caller):
    caller.heard += caller.line.recv(4096)
    caller.raw(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")


def pooled_by_transaction(caller):
    """Answers plain queries with a 7, and all else as a pooler that lost a prepared statement."""
    caller.line.recv(4096)
    ready = postgres_message(b"Z", b"I")
    caller.raw(postgres_message(b"R", bytes(4)) + ready)
    while True:
        kind, length = caller._exactly(1), caller._exactly(4)
        text = caller._exactly(int.from_bytes(length, "big") - len(length))
        if kind == b"Q" and b"pg_stat" not in text:
            caller.raw(postgres_message(b"D", b"\0\x01\0\0\0\x017") + ready)
        else:
            fields = b"SERROR\0C26000\0Mprepared statement does not exist\0\0"
            caller.raw(postgres_message(b"E", fields) + ready)


def test_a_session_prepares_nothing_and_a_server_that_answers_with_an_error_lives():
    with rogue(pooled_by_transaction) as (port, heard):
        server = PostgresEndpointServer("pooled", theirs_at(port), WHO, "sbtest")
        assert [server.ask("SELECT 7") for _ in range(12)] == [[("7",)]] * 12
        assert b"SET " not in heard  # which the session's next user would have
        with pytest.raises(ServerError):
            server.status()
        assert server.alive()
        server.stop()
        assert server.alive()  # by another login


def test_a_postgres_that_stops_answering_is_given_up(monkeypatch):
    monkeypatch.setattr(postgres_client, "BEYOND_S", 0.2)
    with (
        rogue(silent_once_logged_in) as (port, _),
        closing(postgres_at(port, answer_s_max=0.2)) as made,
        pytest.raises(ServerError, match="did not answer"),
    ):
        made.ask("SELECT 1")


def test_closing_does_not_wait_for_a_postgres_that_is_silent():
    with rogue(silent_once_logged_in) as (port, heard), ThreadPoolExecutor(1) as pool:
        made = postgres_at(port)
        asking = pool.submit(made.ask, "SELECT 1")
        while not heard and not asking.done():
            time.sleep(0.01)
        began = time.monotonic()
        made.close()
        with pytest.raises(ServerError, match="did not answer"):
            asking.result()
        assert time.monotonic() - began < 10
