import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, Endpoint
from dbdyno.servers.foreign import endpoint as module
from dbdyno.servers.foreign.endpoint import EndpointServer, added

TWO = Endpoint("a", 1, None, (Endpoint("b", 2, None),))


class Client:
    """Answers from a table; one place may be silent."""

    silent = ""
    versions = ("8.0.33", "8.0.33")
    closed = 0

    def __init__(self, label, place, who):
        self.label, self.place, self.number = label, place, "ab".index(place.host)

    def try_login(self):
        return self.place.host != Client.silent

    def rows(self, sql):
        if not self.try_login():
            raise ServerError(f"{self.label}: the server did not answer")
        return {
            "SELECT 1": [("1",)],
            "SELECT VERSION()": [(Client.versions[self.number],)],
            "SHOW GLOBAL VARIABLES": [("Autocommit", "ON")],
            "SHOW GLOBAL STATUS": [("Questions", str(5 + self.number)), ("Cipher", "x")],
        }[sql]

    def close(self):
        Client.closed += 1


@pytest.fixture
def server(monkeypatch):
    for name, value in (("silent", ""), ("versions", ("8.0.33", "8.0.33")), ("closed", 0)):
        monkeypatch.setattr(Client, name, value)
    monkeypatch.setattr(module, "Client", Client)
    return EndpointServer("tidb", TWO, Credentials("u", "secret"), "d")


def test_two_servers_are_asked_as_one(server):
    server.login()
    assert server.version() == "8.0.33"
    assert server.settings() == {"autocommit": "ON"}
    assert server.status() == {"Questions": 11.0}
    assert server.alive()
    assert (server.pid, server.last_words()) == (0, "")


def test_one_that_is_silent_is_named(server, monkeypatch):
    monkeypatch.setattr(Client, "silent", "b")
    with pytest.raises(ServerError, match="tidb: nobody answers at b:2"):
        server.login()
    assert not server.alive()


def test_different_versions_are_no_system(server, monkeypatch):
    monkeypatch.setattr(Client, "versions", ("8.0.33", "8.0.15"))
    with pytest.raises(ServerError, match="different versions") as caught:
        server.login()
    assert caught.value.found == "8.0.33, 8.0.15"


def test_stopping_logs_out_of_all(server):
    server.stop()
    assert Client.closed == 2


def test_counters_are_added_but_the_shortest_uptime_counts():
    first = [("Questions", "3"), ("Uptime", "100"), ("Only_here", "1")]
    assert added([first, [("Questions", "4"), ("Uptime", "7")]]) == {"Questions": 7, "Uptime": 7}
