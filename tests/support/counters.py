"""Reads a real server's counters when nothing is on the move."""

from __future__ import annotations

import time

from dbdyno.servers.base import Server


def settled(server: Server) -> dict[str, float]:
    """The status as it is when only the asking session is left.

    MySQL adds what a session counted to the global counters when it logs out, and for a moment goes
    on listing the session: who asks within that moment is told all of it twice. The number of
    sessions is read after the sums, so the answer that shows one session may still be such a one;
    the next cannot.
    """
    deadline = time.monotonic() + 60
    while server.status()["Threads_connected"] > 1:
        assert time.monotonic() < deadline, "sessions are still open"
        time.sleep(0.01)
    return server.status()
