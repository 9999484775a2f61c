"""Checks of every request before the pages: who asks, by which name, and the answer's headers.

The page listens on loopback, which keeps other machines out. A page in the user's own browser can
still reach it: by a name for loopback (DNS rebinding), recognised by the Host header, or as another
site, recognised by the headers that browsers add and pages cannot change. Both are refused before
anything is read or drawn.
"""

from __future__ import annotations

import ipaddress
import re
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NAME: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:/@\s]+)(?::\d{1,5})?")
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer that does not say otherwise."""


def allows_host(header: str) -> bool:
    """Test for a Host header of loopback."""
    named = NAME.fullmatch(header)
    return named is not None and is_loopback(named["host"].rstrip("."))


def allows_site(headers: Headers) -> bool:
    """Test for a request of the pages themselves, of the user's typing, or of no browser."""
    origin = headers.get("origin")
    is_own = origin is None or origin == f"http://{headers.get('host')}"
    return is_own and headers.get("sec-fetch-site", "none") in ("same-origin", "none")


def is_loopback(host: str) -> bool:
    """Test for a name or address of this machine alone."""
    name = host.strip("[]").lower()
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Guard:
    """Lets a request through to the pages, or answers it itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A connection, as ASGI hands it over; HTTP only."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        answer = self._app
        headers = Request(scope).headers
        if not allows_host(headers.get("host", "")):
            answer = PlainTextResponse(
                "This page answers to 127.0.0.1 and localhost: open it under one of them.\n",
                HTTPStatus.MISDIRECTED_REQUEST,
            )
        elif not allows_site(headers):
            answer = PlainTextResponse(
                "Another site asked for this page: type or paste its address to open it.\n",
                HTTPStatus.FORBIDDEN,
            )
        await answer(scope, receive, _with_headers(send))


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded
