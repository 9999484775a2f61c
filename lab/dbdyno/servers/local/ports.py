"""Starts a server on a port that nobody else has: the one its settings name, or a free one.

A port that was free a moment ago may be taken when the server binds it, so a lost race is tried
again on another port; a port that the user named is kept to, and whoever holds it is named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from dbdyno.errors import ServerError
from dbdyno.servers import process
from dbdyno.servers.local.server import PortTakenError, Site
from dbdyno.servers.process import LOOPBACK

PORT_ATTEMPTS: Final = 5
Started = TypeVar("Started")


def on_a_port(site: Site, start_on: Callable[[int], Started]) -> Started:
    """What `start_on` gives for the first port that works.

    Args:
        start_on: starts the server on a port; raises PortTakenError if somebody else has it.

    Raises:
        ServerError: the port named in the settings is none or is taken, or every free one was lost.
    """
    fixed = site.asked.get("port")
    if fixed is not None:
        return start_on(_fixed(site, fixed))
    for _ in range(PORT_ATTEMPTS - 1):
        try:
            return start_on(process.free_port())
        except PortTakenError:
            continue
    return start_on(process.free_port())


def _fixed(site: Site, text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise ServerError(f"{site.label}: port {text!r} is not a port number")
    port = int(text)
    if not process.port_is_free(port):
        raise ServerError(
            f"{site.label}: its settings want port {port}, which is taken",
            wanted=f"port {port} of {LOOPBACK} for {site.label} ({site.entry.reference})",
            found=f"held by {process.holder(port)}",
            hint="leave port out: dbdyno finds a free one",
        )
    return port
