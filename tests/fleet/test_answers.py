"""Nodes that answer with nonsense: an error in words, and nobody waits for ever."""

from __future__ import annotations

import itertools
import json
import socket
import threading
from types import SimpleNamespace

import pytest

from dbdyno.errors import LoadError, LostError, UsageError
from dbdyno.fleet import cluster, hosts
from dbdyno.fleet.cluster import Node
from dbdyno.fleet.generators import FleetEngine, GeneratorNode, Remote
from dbdyno.fleet.hosts import Event, Host, HostFacts, Hosts
from dbdyno.measurement.certificate import CertificateFacts
from support import making

SPEC = {"endpoint": {}, "threads": 1, "percentiles": [95.0]}
MEASURED = making.measurement()
TRIAL = MEASURED.trial


class Rogue:
    """An actor's proxy whose calls are answered at once."""

    def __init__(self, **answers):
        installed = cluster.installed()
        usual = {"facts": GeneratorNode(installed, {}, 1, CertificateFacts()), "clock_ns": 7}
        self._answers = {"start": None, "end": None, "say": None, **usual, **answers}

    def __getattr__(self, name):
        def remote(*_):
            answer = self._answers[name]
            return next(answer) if isinstance(answer, itertools.chain) else answer

        return SimpleNamespace(remote=remote)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(cluster.ray, "get", lambda call, timeout=None: call)


INTERVAL = {"phase": "measured", "start_s": 0, "histograms": {"event": "AAAA"}, "errors": {}}
RECORD = {"failure": None, "intervals": [INTERVAL]}
LINES = {
    "no list": 7,
    "numbers": [7],
    "no JSON": ["{"],
    "JSON of another kind": ["[1]"],
    "brackets without end": ["[" * 100_000],
    "an unknown message": ['{"hello": 1}'],
    "an interval of nothing": ['{"interval": {"record": {}}}'],
    "a record of nothing": ['{"record": {}}'],
    "a record without counts": [json.dumps({"record": {"failure": None, "intervals": [{}]}})],
    "a histogram that is none": [json.dumps({"record": RECORD})],
}


def load_of(remote):
    return FleetEngine(SimpleNamespace(there=lambda: [remote]), "run", SPEC)


@pytest.mark.parametrize("lines", LINES)
def test_nonsense_of_a_generator_loses_the_trial(lines):
    said = itertools.chain([LINES[lines]], itertools.repeat([""]))
    remote = Remote(Rogue(lines=said), 0, 1)
    with (
        pytest.raises(LostError, match="machine of the fleet was lost"),
        load_of(remote) as engine,
    ):
        engine.answer(20)


@pytest.mark.parametrize("clock_ns", ["soon", None, 10**400])
def test_a_clock_that_tells_no_time_loses_the_trial(clock_ns):
    lines = itertools.chain([[json.dumps({"record": RECORD})]], itertools.repeat([""]))
    remote = Remote(Rogue(clock_ns=clock_ns, lines=lines), 0, 1)
    with pytest.raises(LostError), load_of(remote) as engine:
        engine.answer(20)


@pytest.mark.parametrize("facts", [None, (), "x" * 9, {"installed": 1}])
def test_a_node_of_another_version_is_refused_whatever_it_says_of_itself(facts):
    with pytest.raises(LoadError, match="has another installation"):
        Remote(Rogue(facts=facts), 0, 1)
    node = Node("id", "10.0.0.1\x1b[2J", "", 1.0)
    seen = cluster._seen(node, Rogue(facts=facts))
    assert seen.runs.startswith("nothing: ")


def hosts_with(monkeypatch, *facts):
    """Hosts on as many nodes as there are facts, which are their answers."""
    nodes = [Node(str(number), f"10.0.0.{number}", "", 1.0) for number in range(len(facts))]
    actors = iter([Rogue(facts=one) for one in facts])
    placed = SimpleNamespace(remote=lambda *_: next(actors))
    made = SimpleNamespace(options=lambda **_: placed)
    monkeypatch.setattr(cluster, "with_role", lambda role: nodes)
    monkeypatch.setattr(cluster, "on", lambda node: None)
    monkeypatch.setattr(hosts, "Queue", lambda **_: None)
    monkeypatch.setattr(hosts.ray, "remote", lambda kind: made)
    return Hosts("", host=Host)


def test_machines_with_copies_of_one_cache_are_not_taken_for_one_machine(monkeypatch):
    alike = HostFacts("ab12", {}, cluster.installed(), {})
    assert hosts_with(monkeypatch, alike, alike._replace(name="ab13")).count() == 2
    with pytest.raises(LoadError, match="has the name of another machine"):
        hosts_with(monkeypatch, alike, alike)
    with pytest.raises(LoadError, match="has another installation"):
        hosts_with(monkeypatch, "of old")


@pytest.mark.parametrize("left", ["", "../../etc", "\x1b[2J", "a" * 5000])
def test_a_hosts_name_that_was_half_written_or_changed_is_drawn_anew(tmp_path, left):
    (tmp_path / "name").write_text(left)
    name = hosts._name_in(tmp_path / "name")
    assert hosts.NAME.fullmatch(name)
    assert hosts._name_in(tmp_path / "name") == name


@pytest.mark.parametrize(
    "event",
    [
        Event("h", "stage", value=7),
        Event("h", "note", value=None),
        Event("h", "begin", trial="first"),
        Event("h", "interval", TRIAL, "fast"),
        Event("h", "end", TRIAL, {"events": 9}),
        Event("h", "end", None, MEASURED),
        Event("h", "end", TRIAL.model_copy(update={"block": 9}), MEASURED),
    ],
)
def test_a_message_without_what_its_kind_needs_is_not_taken(event):
    assert not event.is_whole()
    assert Event("h", "end", TRIAL, MEASURED).is_whole()


@pytest.mark.parametrize(
    "address", ["local", "ray://127.0.0.1:1", "127.0.0.1", "-x:1", "h:1\n", "h:1/../x", "\x1b[2J:1"]
)
def test_what_is_no_address_reaches_no_ray(monkeypatch, address):
    monkeypatch.setattr(cluster.ray, "init", lambda **_: pytest.fail("asked"))
    with pytest.raises(UsageError, match="no address of a cluster"), cluster.connected(address):
        pytest.fail("connected")


def test_a_cluster_that_takes_a_connection_and_says_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER_S", 0.1)
    monkeypatch.setattr(cluster.ray, "init", lambda **_: pytest.fail("asked"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for address in (f"127.0.0.1:{port}", "127.0.0.1:99999"):
            with (
                pytest.raises(LoadError, match=f"no cluster answers at {address}"),
                cluster.connected(address),
            ):
                pytest.fail("connected")


def test_a_cluster_that_answers_and_then_falls_silent_is_given_up(monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(cluster, "CONNECT_S", 0.1)
    monkeypatch.setattr(cluster.ray, "init", lambda **_: over.wait(20))
    try:
        with pytest.raises(LoadError, match="no cluster answers"), cluster.connected(cluster.AUTO):
            pytest.fail("connected")
        assert not over.is_set()
    finally:
        over.set()
