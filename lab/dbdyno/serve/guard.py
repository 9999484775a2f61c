"""Checks of every request before the pages: its Host header, its token, the headers of its answer.

The check stands before the pages, so that no page can forget it. A visitor with the token gets a
session of random bits; the token itself is in no address, no cookie and no log.

A local page has two kinds of stranger. Another machine is kept out by listening on loopback;
who wants it otherwise gives a host and a token. A page in the user's own browser can reach
loopback by letting its name point there (DNS rebinding); the name in the request's Host header
gives it away.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import stat
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

import anyio
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dbdyno.errors import UsageError

LOOPBACK: Final = "127.0.0.1"
TOKEN_LENGTH_MIN: Final = 16
NAME: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:/@\s]+)(?::\d{1,5})?")
COOKIE: Final = "dbdyno-session"
ENTER: Final = "/enter"
STATIC: Final = "/static/"
"""What the login page needs; it holds nothing of a run."""
FORM_BYTES_MAX: Final = 4096
WRONG_TOKEN_DELAY_S: Final = 0.5
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


@dataclass(frozen=True)
class Access:
    """Where to listen, and what a visitor must bring.

    Attributes:
        host: address or name to listen on.
        token: what a visitor has to type; None where loopback is the protection.
    """

    host: str = LOOPBACK
    token: str | None = field(default=None, repr=False)

    def allows_host(self, header: str) -> bool:
        """Whether a request under this Host header was meant for us.

        Loopback answers to loopback's names only. Elsewhere any address will do, since a name is
        what rebinding needs, and of names the one that was given.
        """
        named = NAME.fullmatch(header)
        if named is None:
            return False
        name = named["host"].strip("[]").rstrip(".").lower()
        if is_loopback(name):
            return True
        return not is_loopback(self.host) and (_is_address(name) or name == self.host.lower())

    def is_token(self, text: str) -> bool:
        """Whether the text is the token, in a time that does not depend on where they differ."""
        return self.token is not None and hmac.compare_digest(text.encode(), self.token.encode())


def decide(host: str | None, token_file: Path | None) -> Access:
    """Access as it was asked for on the command line.

    Raises:
        UsageError: other machines were to be let in without a token, or the token is no secret.
    """
    token = None if token_file is None else read_token(token_file)
    if host is not None and not is_loopback(host) and token is None:
        raise UsageError(
            "other machines are let in with a token only",
            wanted=f"--host {host} with --token-file FILE",
            found="no --token-file",
            hint="leave --host out, or write a token: "
            "(umask 077; openssl rand -hex 24 > dbdyno-token)",
        )
    return Access(host or LOOPBACK, token)


def read_token(path: Path) -> str:
    """The token in a file: one line that nobody else can read.

    Raises:
        UsageError: the file cannot be read, others can read it, or what it holds is too short.
    """
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageError(
                "the token's file can be read by others",
                wanted=f"{path.name} for its owner alone",
                found=stat.filemode(path.stat().st_mode),
                hint=f"chmod 600 {path.name}",
            )
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "the token's file cannot be read",
            wanted=f"{path.name}, text of one line",
            found=error.strerror if isinstance(error, OSError) else "bytes that are no text",
            hint="(umask 077; openssl rand -hex 24 > dbdyno-token)",
        ) from error
    if len(token) < TOKEN_LENGTH_MIN or not re.fullmatch(r"[!-~]+", token):
        raise UsageError(
            "this token is no secret",
            wanted=f"one line of {TOKEN_LENGTH_MIN} or more letters, digits and signs",
            found=f"{len(token)} characters",
            hint="(umask 077; openssl rand -hex 24 > dbdyno-token)",
        )
    return token


def is_loopback(host: str) -> bool:
    """Whether the name or address never leaves this machine."""
    name = host.strip("[]").lower()
    return name == "localhost" or (_is_address(name) and ipaddress.ip_address(name).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


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
                "This page answers to 127.0.0.1, to localhost and, with --host, to that name:"
                " open it under one of them.\n",
                HTTPStatus.MISDIRECTED_REQUEST,
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
            await anyio.sleep(WRONG_TOKEN_DELAY_S)
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
