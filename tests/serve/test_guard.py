"""What stands before every page: names, the token, and what an answer may do in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from dbdyno.errors import UsageError
from dbdyno.serve import guard
from dbdyno.serve.guard import Access, Guard, decide, is_loopback, read_token
from support.asked import Answer, ask

TOKEN = "0123456789abcdef0123"


async def secret_page(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("the runs")(scope, receive, send)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "WRONG_TOKEN_DELAY_S", 0)


def closed() -> Guard:
    return Guard(secret_page, Access("0.0.0.0", TOKEN))


def entered(app: Guard, typed: str) -> Answer:
    return ask(app, "/enter", method="POST", body=f"token={typed}".encode())


def test_loopback_needs_no_token_but_its_own_name() -> None:
    app = Guard(secret_page, Access())
    assert ask(app, "/").text == "the runs"
    refused = ask(app, "/", host="evil.example:8732")
    assert refused.status == 421
    assert "the runs" not in refused.text
    assert "open it under one of them" in refused.text


def test_every_answer_says_what_it_may_do() -> None:
    for answer in (ask(Guard(secret_page, Access()), "/"), ask(closed(), "/")):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe-eval" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"


def test_without_the_token_there_is_the_door_only() -> None:
    app = closed()
    for path in ("/", "/runs/x", "/compare?a=1", "/runs/x/events"):
        answer = ask(app, path)
        assert (answer.status, answer.headers["location"], answer.text) == (303, "/enter", "")
    assert ask(app, "/", headers={"cookie": "dbdyno-session="}).status == 303
    assert ask(app, "/enter").text == "the runs"


def test_the_token_gives_a_session_that_is_not_the_token() -> None:
    app = closed()
    answer = entered(app, TOKEN)
    cookie = answer.headers["set-cookie"]
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert TOKEN not in cookie
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    session = cookie.partition(";")[0]
    assert ask(app, "/", headers={"cookie": session}).text == "the runs"
    assert ask(closed(), "/", headers={"cookie": session}).status == 303


@pytest.mark.parametrize("typed", ["", "wrong", TOKEN + "0", "x" * 100_000, "%ff%00"])
def test_a_wrong_token_gives_nothing(typed: str) -> None:
    answer = entered(closed(), typed)
    assert answer.headers["location"] == "/enter?wrong=1"
    assert "set-cookie" not in answer.headers


def test_a_program_brings_the_token_in_a_header() -> None:
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert ask(closed(), "/", headers=bearer).text == "the runs"
    assert ask(closed(), "/", headers={"authorization": "Bearer no"}).status == 303


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    return file


@pytest.mark.parametrize("header", ["127.0.0.1:8732", "localhost:1", "[::1]:8732", "LOCALHOST"])
def test_this_machine_is_let_in_under_its_own_names(header: str) -> None:
    assert Access().allows_host(header)
    assert Access("192.0.2.1", TOKEN).allows_host(header)


@pytest.mark.parametrize(
    "header",
    ["evil.example", "evil.example:8732", "127.0.0.1.evil.example", "192.0.2.1", "", "[::1", "a b"],
)
def test_a_name_that_was_made_to_point_here_is_refused(header: str) -> None:
    assert not Access().allows_host(header)


def test_beyond_this_machine_addresses_and_the_given_name_are_let_in() -> None:
    access = Access("lab.example", TOKEN)
    assert access.allows_host("lab.example:8732")
    assert access.allows_host("192.0.2.7:8732")
    assert access.allows_host("[2001:db8::7]")
    assert not access.allows_host("rebound.example:8732")


@given(st.text(max_size=60))
def test_no_header_is_too_strange_to_be_read(header: str) -> None:
    if Access().allows_host(header):
        assert is_loopback(header.rpartition(":")[0] or header) or is_loopback(header.rstrip("."))


def test_the_token_opens_and_nothing_else_does() -> None:
    access = Access(token=TOKEN)
    assert access.is_token(TOKEN)
    for wrong in ("", TOKEN[:-1], TOKEN + "0", TOKEN.upper(), "é" * 20):
        assert not access.is_token(wrong)
    assert not Access().is_token("")
    assert TOKEN not in repr(access)


def test_other_machines_are_let_in_with_a_token_only(token_file: Path) -> None:
    with pytest.raises(UsageError, match="with a token only") as caught:
        decide("0.0.0.0", None)
    assert "--token-file" in str(caught.value)
    assert decide("0.0.0.0", token_file) == Access("0.0.0.0", TOKEN)
    assert decide(None, None) == Access("127.0.0.1", None)
    assert decide("::1", None) == Access("::1", None)


def test_a_token_that_others_can_read_is_refused(token_file: Path) -> None:
    token_file.chmod(0o640)
    with pytest.raises(UsageError, match="can be read by others") as caught:
        read_token(token_file)
    assert TOKEN not in str(caught.value)
    assert caught.value.hint == "chmod 600 token"


@pytest.mark.parametrize("content", [b"", b"short\n", b"0123456789abcdef two words", b"\xff" * 20])
def test_a_token_that_is_no_secret_is_refused(token_file: Path, content: bytes) -> None:
    token_file.write_bytes(content)
    with pytest.raises(UsageError):
        read_token(token_file)


def test_a_token_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_token(tmp_path / "none")
