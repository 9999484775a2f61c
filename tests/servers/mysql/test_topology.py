"""A system of several servers: what is started when, from which files, and what is left."""

from __future__ import annotations

import os
from typing import ClassVar

import pytest

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.systems import TopologyPlan
from dbdyno.servers import open
from dbdyno.servers.base import Endpoint, ServerSpec
from dbdyno.servers.local import topology
from dbdyno.servers.mysql import replication
from dbdyno.servers.mysql import topology as of_mysql
from dbdyno.servers.programs.identify import ServerFiles
from dbdyno.servers.reference import find
from support.fake_members import FakeMember


class FakeInstance:
    """Files that are folders only; what was asked stands in `calls` of the world."""

    driver = "mysql"

    def __init__(self, spec, entry, home, folder, report, copy=None):
        self.spec, self.folder, self.copy = spec, folder, copy
        folder.mkdir(parents=True, exist_ok=True)
        self.server = None
        World.calls.append(("make", spec.label))

    def start(self, settings=None, address=None):
        World.calls.append(("start", self.spec.label))
        World.starts.append((dict(settings or {}), address))
        if self.spec.label in World.broken:
            raise ServerError(f"{self.spec.label}: it does not start")
        self.server = FakeMember(self.spec.label)
        return self.server

    def snapshot(self):
        (self.folder / "snapshot").mkdir()

    def has_snapshot(self):
        return (self.folder / "snapshot").exists()

    def restore(self):
        World.calls.append(("restore", self.spec.label))

    def data_bytes(self):
        return 4711

    def close(self):
        World.calls.append(("close", self.spec.label))
        if self.server is not None and self.server.alive():
            self.server.kill()


class World:
    calls: list
    starts: list
    broken: set
    joined: list


class FakeNetwork:
    """Doors without relays behind them."""

    made: ClassVar[list[FakeNetwork]] = []

    def __init__(self, servers, round_trip_ms, folder):
        self.servers, self.asked = list(servers), (round_trip_ms, folder)
        self.doors = [Endpoint("127.0.0.1", 5000 + n, None) for n, _ in enumerate(servers)]
        self.lives, self.closed, self.pid = True, 0, os.getpid()
        FakeNetwork.made.append(self)

    def alive(self):
        return self.lives

    def close(self):
        self.closed += 1


@pytest.fixture
def world(monkeypatch, tmp_path):
    World.calls, World.starts, World.broken, World.joined = [], [], set(), []
    FakeNetwork.made.clear()
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    for name in ("semisync_source.so", "semisync_replica.so", "group_replication.so"):
        (plugins / name).touch()
    files = ServerFiles(tmp_path, tmp_path, tmp_path, plugins, None)
    monkeypatch.setattr(of_mysql, "MysqlInstance", FakeInstance)
    monkeypatch.setattr(topology, "Network", FakeNetwork)
    monkeypatch.setattr(of_mysql, "files_of", lambda program: files)
    monkeypatch.setattr(
        replication.Links, "join", lambda self, *servers: World.joined.append(servers)
    )
    return tmp_path / "system"


def made(folder, kind="semisync", replicas=2, reference="mysql:8.0.33", **more):
    plan = TopologyPlan.model_validate({"replicas": replicas, "replication": kind})
    spec = ServerSpec("both", reference, more.pop("settings", {}), plan, **more)
    entry = find(reference)
    ways = of_mysql.MysqlReplication(spec, entry, folder.parent, lambda text: None)
    return topology.TopologyInstance(spec, ways, folder, lambda text: None)


def test_a_system_that_is_closed_ends_all_its_servers(world):
    instance = made(world)
    instance.snapshot()
    instance.start()
    instance.close()
    assert {label for what, label in World.calls if what == "close"} == {
        "both",
        "both replica 1",
        "both replica 2",
    }


def test_without_a_snapshot_the_primary_is_loaded_alone_and_logs_nothing(world):
    instance = made(world)
    server = instance.start({"innodb_buffer_pool_size": "1G"})
    assert World.calls == [("make", "both"), ("start", "both")]
    keys, address = World.starts[0]
    assert keys["log_bin"] is False
    assert keys["innodb_buffer_pool_size"] == "1G"
    assert address is None
    assert isinstance(server, FakeMember)


def test_with_a_snapshot_all_begin_as_copies_of_it(world):
    instance = made(world)
    instance.snapshot()
    instance.start({"sync_binlog": 0})
    assert [call for call in World.calls if call[0] == "start"] == [
        ("start", "both"),
        ("start", "both replica 1"),
        ("start", "both replica 2"),
    ]
    assert [keys["server_id"] for keys, _ in World.starts] == [1, 2, 3]
    assert {keys["sync_binlog"] for keys, _ in World.starts} == {0}
    assert [replica.copy for replica in instance._replicas] == [world / "snapshot"] * 2
    assert len(World.joined) == 1
    assert [member.label for member in World.joined[0][1]] == ["both replica 1", "both replica 2"]
    assert {address for _, address in World.starts} == {None}
    assert FakeNetwork.made == []
    instance.restore()
    assert [label for what, label in World.calls if what == "restore"] == [
        "both",
        "both replica 1",
        "both replica 2",
    ]
    assert instance.data_bytes() == 4711


def test_a_member_that_does_not_start_leaves_none_running(world):
    instance = made(world)
    instance.snapshot()
    World.broken.add("both replica 2")
    with pytest.raises(ServerError, match="replica 2: it does not start"):
        instance.start()
    members = [instance._primary, *instance._replicas]
    ended = [(m.server.kills, m.server.stops) for m in members if m.server is not None]
    assert ended == [(1, 0), (1, 0)]  # a clean end would keep Ctrl-C waiting for a minute each


def test_closing_ends_all_and_leaves_the_snapshot_alone(world):
    instance = made(world)
    instance.snapshot()
    server = instance.start()
    instance.close()
    assert not server.alive()
    assert [member.kills for member in server._all()] == [1, 1, 1]
    assert [path.name for path in world.iterdir()] == ["snapshot"]
    assert World.calls[-3:] == [
        ("close", "both replica 2"),
        ("close", "both replica 1"),
        ("close", "both"),
    ]


def test_what_a_dead_lab_left_of_replicas_is_removed(world):
    left = world / "replica-7" / "server" / "data"
    left.mkdir(parents=True)
    made(world)
    assert not left.exists()


def test_a_network_lives_as_long_as_the_servers_behind_it(world):
    instance = made(world, "group", replica_ms=0.8)
    instance.snapshot()
    server = instance.start()
    assert [address for _, address in World.starts] == ["127.0.0.2"] * 3
    (network,) = FakeNetwork.made
    assert network.asked == (0.8, world)
    assert network.servers == [member.endpoint for member in server._all()]
    assert World.joined[0][2] == network.doors
    assert server.endpoint == server._primary.endpoint
    assert server.alive()
    network.lives = False
    assert not server.alive()
    server.stop()
    assert network.closed == 1
    instance.start()
    instance.close()
    assert FakeNetwork.made[1].closed
    names = [keys["group_replication_group_name"] for keys, _ in World.starts]
    assert len(set(names)) == 1


def test_a_network_ends_with_a_start_that_fails(world, monkeypatch):
    def refuse(links, *asked):
        raise ServerError("it does not follow")

    monkeypatch.setattr(replication.Links, "join", refuse)
    instance = made(world, replica_ms=5)
    instance.snapshot()
    with pytest.raises(ServerError, match="does not follow"):
        instance.start()
    assert FakeNetwork.made[0].closed == 1


def test_a_start_without_a_log_is_refused_for_its_cell_alone(world):
    instance = made(world)
    instance.snapshot()
    with pytest.raises(UsageError, match="cannot be without a binary log"):
        instance.start({"skip-log-bin": True})
    assert not [call for call in World.calls if call[0] == "start"]


def test_programs_without_the_plugin_are_refused(world, monkeypatch):
    (world.parent / "plugins" / "semisync_replica.so").unlink()
    with pytest.raises(UsageError, match="its plugins are not in it") as caught:
        made(world)
    assert caught.value.wanted == "semisync_replica.so"
    none = ServerFiles(world, world, world, None, None)
    monkeypatch.setattr(of_mysql, "files_of", lambda program: none)
    with pytest.raises(UsageError, match="its plugins are not in it") as caught:
        made(world)
    assert caught.value.found == "no folder of plugins"


@pytest.mark.parametrize(
    ("asked", "settings", "says"),
    [
        ({"replication": "group"}, {}, "no group replication"),
        ({"replication": "semisync", "wait_point": "after_commit"}, {}, "before others can read"),
        ({}, {"wal_level": "minimal"}, "need what these settings take away"),
        ({}, {"synchronous-standby-names": "*"}, "follows from the system's topology"),
    ],
)
def test_what_postgresql_cannot_have_is_refused_before_anything_is_fetched(
    asked, settings, says, tmp_path
):
    plan = TopologyPlan.model_validate({"replicas": 1, **asked})
    spec = ServerSpec("pg", "postgres:17.11", settings, plan)
    with pytest.raises(UsageError, match=says):
        open.instance(spec, tmp_path / "system", print)
    assert list(tmp_path.iterdir()) == []
