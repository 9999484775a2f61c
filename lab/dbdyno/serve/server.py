"""The local page: runs, reports and a run in progress, in a browser.

    workspace ─runs─▶ judged runs ─report─▶ page        feed ─live─▶ events ─▶ page

It reads a workspace and changes nothing in it. It listens on loopback, behind `guard`.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import uvicorn

from dbdyno.errors import UsageError
from dbdyno.language.catalogues import Language
from dbdyno.serve.guard import is_loopback
from dbdyno.serve.pages import application
from dbdyno.serve.runs import Runs

GRACE_S: Final = 1
"""How long streams may go on after the server was asked to stop."""


def listen(host: str, port: int) -> socket.socket:
    """Listening socket on loopback, port 0 for any; UsageError for another host or a taken port."""
    if not is_loopback(host):
        raise UsageError(
            "pages are served on this machine only",
            wanted="127.0.0.1, ::1 or localhost",
            found=f"--host {host}",
            hint="from another machine: ssh -L 8732:127.0.0.1:8732 THIS_MACHINE",
        )
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return socket.create_server(addresses[0][4][:2], family=addresses[0][0])
    except (OSError, OverflowError, UnicodeError) as error:
        raise UsageError(
            "the page cannot be served there",
            wanted=f"{host}, port {port}",
            found=getattr(error, "strerror", None) or str(error),
            hint="choose another --port, or 0 for any that is free",
        ) from error


def address(listening: socket.socket) -> str:
    """The page's address for a browser on this machine."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def serve(
    workspace: Path,
    listening: socket.socket,
    begun: Callable[[], None] = lambda: None,
    language: Language = Language.EN,
) -> None:
    """Serve a workspace's pages until interrupted; `begun` is called before the first answer."""
    config = uvicorn.Config(
        application(Runs(workspace), language),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        lifespan="off",
    )
    begun()
    uvicorn.Server(config).run(sockets=[listening])
