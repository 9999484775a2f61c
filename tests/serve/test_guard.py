"""Checks before every page: its name, and what an answer may do in a browser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from dbdyno.serve.guard import Guard, allows_host, is_loopback
from support.asked import LOCAL, ask


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("the runs")(scope, receive, send)


def test_a_page_answers_to_its_own_name_only() -> None:
    assert ask(Guard(page), "/").text == "the runs"
    refused = ask(Guard(page), "/", host="evil.example:8732")
    assert refused.status == 421
    assert "the runs" not in refused.text
    assert "open it under one of them" in refused.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "strange"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:1", "accept": "text/event-stream"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "none"}, 200),
        ({"sec-fetch-site": "same-origin", "origin": f"http://{LOCAL}"}, 200),
    ],
)
def test_pages_of_other_sites_reach_nothing(headers: dict[str, str], status: int) -> None:
    answer = ask(Guard(page), "/", headers=headers)
    assert (answer.status, answer.text == "the runs") == (status, status == 200)


@pytest.mark.parametrize("host", ["127.0.0.1", "evil.example"])
def test_every_answer_says_what_it_may_do(host: str) -> None:
    answer = ask(Guard(page), "/", host=host)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"


OWN = ("127.0.0.1:8732", "localhost:1", "[::1]:8732", "LOCALHOST")
OTHER = ("evil.example", "evil.example:8732", "127.0.0.1.evil.example", "192.0.2.1", "", "[::1")


@pytest.mark.parametrize("header", [*OWN, *OTHER, "a b"])
def test_a_name_that_was_made_to_point_here_is_refused(header: str) -> None:
    assert allows_host(header) == (header in OWN)


@given(st.text(max_size=60))
def test_no_header_is_too_strange_to_be_read(header: str) -> None:
    if allows_host(header):
        assert is_loopback(header.rpartition(":")[0] or header) or is_loopback(header.rstrip("."))
