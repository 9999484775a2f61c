import socket
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers import process
from dbdyno.servers.local import server
from dbdyno.servers.local.server import PortTakenError, Site
from dbdyno.servers.reference import find


def site(**asked: str) -> Site:
    return Site("pg", find("postgres:18.6"), Path("/home-of-it"), Path("/work"), None, asked)


def test_a_port_of_the_settings_is_kept_to(monkeypatch):
    monkeypatch.setattr(process, "port_is_free", lambda port: True)
    assert server.on_a_port(site(port="4711"), lambda port: port) == 4711


def test_one_that_is_taken_says_who_wanted_what():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        with pytest.raises(ServerError) as caught:
            server.on_a_port(site(port=str(port)), lambda port: port)
    assert caught.value.message == f"pg: its settings want port {port}, which is taken"
    assert "for pg (postgres:18.6)" in (caught.value.wanted or "")


@pytest.mark.parametrize("port", ["many", "0", "70000"])
def test_a_port_that_is_no_port_is_refused(port):
    with pytest.raises(ServerError, match="not a port number"):
        server.on_a_port(site(port=port), lambda port: port)


@pytest.mark.parametrize("lost", [2, server.PORT_ATTEMPTS])
def test_a_port_lost_in_a_race_is_chosen_again_but_not_for_ever(lost):
    tried: list[int] = []

    def start_on(port):
        tried.append(port)
        if len(tried) <= lost:
            raise PortTakenError("taken")
        return "server"

    if lost < server.PORT_ATTEMPTS:
        assert server.on_a_port(site(), start_on) == "server"
        assert len(tried) == lost + 1
    else:
        with pytest.raises(PortTakenError):
            server.on_a_port(site(), start_on)
        assert len(tried) == server.PORT_ATTEMPTS
