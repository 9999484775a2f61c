"""The local page: runs, reports and a run in progress, in a browser.

    workspace ─runs─▶ judged runs ─report─▶ page        feed ─live─▶ events ─▶ page

It reads a workspace and changes nothing in it. It listens on loopback, behind `guard`. Whoever
reaches the port can open connections, so these have limits of their own.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dbdyno.errors import UsageError
from dbdyno.language.catalogues import Language
from dbdyno.serve.guard import is_loopback
from dbdyno.serve.pages import application
from dbdyno.serve.runs import Runs

HEAD_S: Final = 5
"""How long a connection may take for the whole head of its next request."""
CONNECTIONS_MAX: Final = 64
"""Open connections; a browser has up to six."""
ENDING_S: Final = 1.0
"""How long a thread may go on reading or drawing after the server was asked to stop."""


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
    server = PageServer(workspace, language)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    begun()
    try:
        server.run(sockets=[listening])
    finally:
        server.ending.cancel()


class PageServer(uvicorn.Server):
    """A server of a workspace's pages; asked to stop, it ends at once, whatever it is doing.

    Attributes:
        ending: ends the process, as a thread that reads or draws cannot be stopped.
    """

    def __init__(self, workspace: Path, language: Language) -> None:
        super().__init__(
            uvicorn.Config(
                application(Runs(workspace), language),
                http=Connection,
                ws="none",
                lifespan="off",
                log_level="error",
                access_log=False,
                server_header=False,
                timeout_keep_alive=HEAD_S,
                backlog=CONNECTIONS_MAX,
            )
        )
        self.ending = Timer(ENDING_S, os._exit, (0,))
        self.ending.daemon = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.ending.start()
        for connection in self.server_state.connections:
            connection.transport.abort()
        self.server_state.connections.clear()
        await super().shutdown(sockets)


class Connection(H11Protocol):
    """A connection with a time limit for each head; the idlest gives way when there are many."""

    def connection_made(  # type: ignore[override]
        self, transport: asyncio.Transport
    ) -> None:
        super().connection_made(transport)
        self.opened_s = self.loop.time()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )
        if len(self.connections) > CONNECTIONS_MAX:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request; only a whole head ends the time limit, in `handle_events`."""
        self.conn.receive_data(data)
        self.handle_events()

    @property
    def is_idle(self) -> bool:
        """Test for a browser that has yet to send a head, or to read what is written."""
        return self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        """Close the oldest idle connection, or this one if all others are being answered."""
        others = (c for c in self.connections if isinstance(c, Connection) and c is not self)
        oldest = min((c for c in others if c.is_idle), key=lambda c: c.opened_s, default=self)
        self.connections.discard(oldest)
        oldest.transport.abort()
