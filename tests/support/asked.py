"""Asks an ASGI application as a browser would, without a socket."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import anyio

LOCAL = "127.0.0.1:8732"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str


def ask(app: Any, path: str, **how: Any) -> Answer:
    """One request and the whole answer to it; `how` as `answered` has it."""
    return anyio.run(partial(answered, app, path, **how))


async def answered(
    app: Any,
    path: str,
    *,
    method: str = "GET",
    host: str = LOCAL,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """The answer to one request among others."""
    plain, _, query = path.partition("?")
    sent: list[dict[str, Any]] = []
    given = {"host": host, **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": plain,
        "raw_path": plain.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), text.encode()) for name, text in given.items()],
        "server": ("127.0.0.1", 8732),
        "client": ("127.0.0.1", 50000),
    }
    parts = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if parts:
            return parts.pop()
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in sent[1:]).decode()
    head = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], head, text)
