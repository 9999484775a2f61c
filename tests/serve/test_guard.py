"""What stands before every page: names, the token, and what an answer may do in a browser."""

from __future__ import annotations

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from dbdyno.serve import guard
from dbdyno.serve.guard import Access, Guard
from support.asked import Answer, ask

TOKEN = "0123456789abcdef0123"


async def secret_page(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("the runs")(scope, receive, send)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "AFTER_A_WRONG_TOKEN_S", 0)


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
