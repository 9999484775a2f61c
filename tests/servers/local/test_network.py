"""The network between servers: real relays before listeners of the test."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, closing

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers import process
from dbdyno.servers.base import Endpoint
from dbdyno.servers.local.network import BEHIND, Network


def listeners(stack: ExitStack, count: int) -> list[socket.socket]:
    made = [stack.enter_context(socket.socket()) for _ in range(count)]
    for one in made:
        one.bind((BEHIND, process.free_port()))
        one.listen()
        one.settimeout(20)
    return made


def test_each_server_is_reached_by_its_door_and_its_bytes_take_the_round_trip(tmp_path):
    with ExitStack() as stack:
        servers = listeners(stack, 2)
        endpoints = [Endpoint(BEHIND, one.getsockname()[1], tmp_path / "s") for one in servers]
        network = Network(endpoints, 50.0, tmp_path)
        stack.callback(network.close)
        for server, endpoint, door in zip(servers, endpoints, network.doors, strict=True):
            assert door == Endpoint("127.0.0.1", endpoint.port, None)
            near = stack.enter_context(socket.create_connection((door.host, door.port), 20))
            far = stack.enter_context(server.accept()[0])
            began = time.monotonic()
            near.sendall(b"question")
            assert far.recv(99) == b"question"
            far.sendall(b"answer")
            assert near.recv(99) == b"answer"
            assert 0.0495 <= time.monotonic() - began < 5
        assert network.alive()
        network.close()
        assert not network.alive()
        assert far.recv(99) == b""  # whoever was connected hears that it is over
        again = Network(endpoints, 50.0, tmp_path)  # the doors are free at once
        again.close()


def test_a_door_whose_port_is_taken_is_refused_with_who_has_it(tmp_path):
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        server = Endpoint(BEHIND, other.getsockname()[1], None)
        with pytest.raises(ServerError, match="cannot be made: Address already in use") as error:
            Network([server], 1.0, tmp_path)
        assert error.value.wanted == f"port {server.port} of 127.0.0.1"
        assert error.value.found
