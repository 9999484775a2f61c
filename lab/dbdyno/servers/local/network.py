"""Delayed network between a system's servers, a process that relays their traffic.

Each server listens on a loopback address (`BEHIND`), and others reach it by its door: the same
port of 127.0.0.1, where a relay passes each byte on after half of the round trip. The lab and the
load go to the server itself; the load's own network is made by the engine.

The relays are threads of a child process, which runs this module and ends with the lab.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from dbdyno import _engine, interpreter
from dbdyno.errors import ServerError
from dbdyno.servers import process
from dbdyno.servers.base import Endpoint
from dbdyno.servers.process import LOOPBACK

BEHIND: Final = "127.0.0.2"
"""Listening address of servers behind a door.

MySQL's group replication wants its own address to be a machine's interface, and its own port, so
the door takes 127.0.0.1.
"""
COMMAND: Final = interpreter.module("dbdyno.servers.local.network")


class Network:
    """The doors of running servers: addresses at which others reach each of them."""

    def __init__(self, servers: Sequence[Endpoint], round_trip_ms: float, folder: Path) -> None:
        """Open a door before each server; from the main thread, as servers are started.

        Args:
            folder: an existing folder for the process's output.

        Raises:
            ServerError: a door's port is taken, or the process cannot be started.
        """
        self.doors = tuple(replace(server, host=LOOPBACK, socket=None) for server in servers)
        with ExitStack() as listening:
            listeners = [listening.enter_context(_listener(door)) for door in self.doors]
            routes = [
                f"{listener.fileno()}={server.host}:{server.port}"
                for listener, server in zip(listeners, servers, strict=True)
            ]
            self._relays: subprocess.Popen[bytes] = process.spawn(
                [*COMMAND, str(round_trip_ms), *routes],
                folder,
                None,
                folder / "network.log",
                env=os.environ,
                fds=[listener.fileno() for listener in listeners],
            )
        self.pid = self._relays.pid

    def alive(self) -> bool:
        return self._relays.poll() is None

    def close(self) -> None:
        """End all connections through the doors."""
        self._relays.kill()
        self._relays.wait()


def _listener(door: Endpoint) -> socket.socket:
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((door.host, door.port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise ServerError(
            f"the network between the servers cannot be made: {error.strerror}",
            wanted=f"port {door.port} of {door.host}",
            found=process.holder(door.port),
            hint="begin again: another port will be taken",
        ) from error
    return listener


def relay(round_trip_ms: str, *routes: str) -> None:
    """Relay connections until killed; a route is a listener and its target, ``FD=HOST:PORT``."""
    parsed = []
    for route in routes:
        descriptor, _, target = route.partition("=")
        host, _, port = target.rpartition(":")
        parsed.append((int(descriptor), host, int(port)))
    _engine.relay(parsed, float(round_trip_ms))


if __name__ == "__main__":
    relay(*sys.argv[1:])
