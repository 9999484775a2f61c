"""The server's counters are read at the window's edges, as the engine's intervals place them."""

import time

import pytest

from dbdyno.experiment.watch.window import Bracket
from support.fakes import FakeServer


@pytest.fixture
def server():
    started = FakeServer("a")
    yield started
    started.process.kill()
    started.process.wait()


def test_nothing_is_read_before_the_first_interval(server):
    bracket = Bracket(server, warmup_s=5, window_s=10)
    bracket.look()
    assert bracket.seconds_to_edge() is None
    assert server.readings == 0


def test_the_edges_are_read_when_they_are_due(server):
    bracket = Bracket(server, warmup_s=5, window_s=10)
    bracket.hear(4.0)
    bracket.look()
    assert server.readings == 0
    assert bracket.seconds_to_edge() == pytest.approx(1.0, abs=0.1)
    bracket.hear(5.0)
    bracket.look()
    assert server.readings == 1
    bracket.hear(15.0)
    bracket.look()
    bracket.look()
    assert server.readings == 2
    assert bracket.status() == {"Questions": 2000.0, "Uptime": 1.0}
    assert bracket.seconds_to_edge() is None


def test_the_message_with_the_least_delay_places_the_origin(server):
    bracket = Bracket(server, warmup_s=5, window_s=10)
    bracket.hear(2.0)
    time.sleep(0.05)
    bracket.hear(2.0)
    assert bracket.origin_s == pytest.approx(time.monotonic() - 2.05, abs=0.04)


def test_without_warm_up_the_first_reading_comes_before_the_load(server):
    bracket = Bracket(server, warmup_s=0, window_s=10)
    assert server.readings == 1
    bracket.close()
    assert bracket.status()["Questions"] == 2000.0


def test_a_window_that_never_began_has_no_counters(server):
    bracket = Bracket(server, warmup_s=5, window_s=10)
    bracket.close()
    assert (bracket.status(), bracket.cpu_s()) == ({}, 0.0)


def test_a_dead_server_is_trouble_not_an_exception(server):
    bracket = Bracket(server, warmup_s=1, window_s=1)
    server.process.kill()
    server.process.wait()
    bracket.hear(1.0)
    bracket.look()
    bracket.close()
    assert "counters could not be read" in bracket.trouble
    assert bracket.seconds_to_edge() is None
    assert bracket.status() == {}


def test_replication_is_read_at_the_edges_of_a_server_that_has_replicas(server, monkeypatch):
    acknowledged = iter([100.0, 450.0])
    monkeypatch.setattr(FakeServer, "pids", (1, 2), raising=False)
    monkeypatch.setattr(FakeServer, "catch_up", lambda self, cap_s: 0.0, raising=False)
    reading = {"commits_acknowledged": 0.0, "semisync_on": 1.0}
    monkeypatch.setattr(
        FakeServer,
        "replication",
        lambda self: {**reading, "commits_acknowledged": next(acknowledged)},
        raising=False,
    )
    bracket = Bracket(server, warmup_s=0, window_s=10)
    assert bracket.replication() == {}
    bracket.hear(10.0)
    bracket.look()
    assert bracket.replication() == {"commits_acknowledged": 350.0, "semisync_on": 1.0}


def test_a_server_without_replicas_has_nothing_to_tell_of_them(server):
    bracket = Bracket(server, warmup_s=0, window_s=10)
    bracket.hear(10.0)
    bracket.look()
    assert bracket.replication() == {}
