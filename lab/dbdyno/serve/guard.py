"""What every request passes first: whose name it came under, who asks, what an answer may do.

The check stands before the pages, so that no page can forget it. A visitor with the token gets a
session of random bits; the token itself is in no address, no cookie and no log.
"""

from __future__ import annotations

import secrets
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

import anyio
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dbdyno.serve.access import Access

COOKIE: Final = "dbdyno-session"
ENTER: Final = "/enter"
STATIC: Final = "/static/"
"""What the door itself needs; nothing of a run is in it."""
FORM_BYTES_MAX: Final = 4096
AFTER_A_WRONG_TOKEN_S: Final = 0.5
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


class Guard:
    """Lets a request through to the pages, or answers it itself."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access
        self._sessions: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, as ASGI hands it over; only HTTP is spoken."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        answer = await self._refusal(request) or self._app
        await answer(scope, receive, _with_headers(send))

    async def _refusal(self, request: Request) -> Response | None:
        """What is answered instead of the page; None if the page may answer."""
        if not self._access.allows_host(request.headers.get("host", "")):
            return PlainTextResponse(
                "This page answers to its own name only.\n", HTTPStatus.MISDIRECTED_REQUEST
            )
        path = request.url.path
        if path == ENTER and request.method == "POST":
            return await self._enter(request)
        if self._access.token is None or self._is_known(request):
            return None
        if path == ENTER or path.startswith(STATIC):
            return None
        return RedirectResponse(ENTER, HTTPStatus.SEE_OTHER)

    def _is_known(self, request: Request) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._access.is_token(token.strip())
        return request.cookies.get(COOKIE, "") in self._sessions

    async def _enter(self, request: Request) -> Response:
        """Takes the token out of the form and gives a session for it."""
        if not self._access.is_token(await _typed_token(request)):
            await anyio.sleep(AFTER_A_WRONG_TOKEN_S)
            return RedirectResponse(f"{ENTER}?wrong=1", HTTPStatus.SEE_OTHER)
        session = secrets.token_urlsafe(32)
        self._sessions.add(session)
        answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        answer.set_cookie(COOKIE, session, httponly=True, samesite="strict", path="/")
        return answer


async def _typed_token(request: Request) -> str:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > FORM_BYTES_MAX:
            return ""
    fields = parse_qs(body.decode("utf-8", "replace"))
    return fields.get("token", [""])[0].strip()


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded
