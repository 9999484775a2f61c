"""The local page: runs, reports, a run that goes on, two systems compared, in a browser.

    workspace ─runs─▶ judged runs ─report─▶ page        feed ─live─▶ events ─▶ page
                           └─compared─▶ page            all behind `guard`

It reads a workspace and changes nothing in it. Listening is on loopback unless a host and a token
were given.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import uvicorn

from dbdyno.errors import UsageError
from dbdyno.language.catalogues import Language
from dbdyno.serve.guard import Access
from dbdyno.serve.pages import application
from dbdyno.serve.runs import Runs

GRACE_S: Final = 1
"""How long streams may go on after the server was asked to stop."""


def listen(access: Access, port: int) -> socket.socket:
    """A socket that listens where it was asked to; port 0 takes any that is free.

    Raises:
        UsageError: the port is taken or forbidden, or the host is none of this machine's.
    """
    try:
        found = socket.getaddrinfo(access.host, port, type=socket.SOCK_STREAM)
        return socket.create_server(found[0][4][:2], family=found[0][0])
    except (OSError, OverflowError, UnicodeError) as error:
        raise UsageError(
            "the page cannot be served there",
            wanted=f"{access.host}, port {port}",
            found=getattr(error, "strerror", None) or str(error),
            hint="choose another --port, or 0 for any that is free",
        ) from error


def address(listening: socket.socket) -> str:
    """The page's address for a browser on this machine."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def serve(
    workspace: Path,
    access: Access,
    listening: socket.socket,
    begun: Callable[[], None] = lambda: None,
    language: Language = Language.EN,
) -> None:
    """Serves the pages of a workspace until the process is interrupted.

    Args:
        begun: called once, before the first request is answered.
    """
    config = uvicorn.Config(
        application(Runs(workspace), access, language),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        lifespan="off",
    )
    begun()
    uvicorn.Server(config).run(sockets=[listening])
