"""A system of several servers: what is started when, from which files, and what is left."""

from pathlib import Path

import pytest

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.plan import NetworkPlan
from dbdyno.plan.systems import TopologyPlan
from dbdyno.servers import open
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.local import topology
from dbdyno.servers.mysql import replication
from dbdyno.servers.mysql import topology as of_mysql
from dbdyno.servers.process import HERE, Place
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

    def place(self):
        return HERE

    def start(self, settings=None, place=HERE):
        World.calls.append(("start", self.spec.label))
        World.starts.append((dict(settings or {}), place))
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
    """Places without namespaces behind them."""

    closed = 0

    def __init__(self, plan, members, folder):
        self.client = Place("10.213.0.1", Path("/proc/1/ns/net"))
        self.members = tuple(
            Place(f"10.213.0.{n + 2}", Path(f"/proc/{n + 2}/ns/net")) for n in range(members)
        )

    def close(self):
        FakeNetwork.closed += 1


@pytest.fixture
def world(monkeypatch, tmp_path):
    World.calls, World.starts, World.broken, World.joined = [], [], set(), []
    FakeNetwork.closed = 0
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
    keys, place = World.starts[0]
    assert keys["log_bin"] is False
    assert keys["innodb_buffer_pool_size"] == "1G"
    assert place is HERE
    assert isinstance(server, FakeMember)


def test_with_a_snapshot_all_begin_as_copies_of_it(world):
    instance = made(world)
    instance.snapshot()
    server = instance.start({"sync_binlog": 0})
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
    assert server.endpoint.namespace is None
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


def test_a_network_is_made_once_and_ended_with_the_instance(world):
    network = NetworkPlan(client_ms=0.8)
    instance = made(world, "group", network=network)
    instance.snapshot()
    server = instance.start()
    assert [place.address for _, place in World.starts] == [f"10.213.0.{n}" for n in (2, 3, 4)]
    assert server.endpoint.namespace == Path("/proc/1/ns/net")
    keys = World.starts[1][0]
    assert keys["group_replication_local_address"] == "10.213.0.3:33061"
    server.stop()
    instance.start()
    instance.close()
    assert FakeNetwork.closed == 1
    assert (
        World.starts[0][0]["group_replication_group_name"]
        == (World.starts[3][0]["group_replication_group_name"])
    )


def test_a_single_server_may_have_a_network_too(world):
    instance = made(world, "async", 0, network=NetworkPlan(client_ms=1))
    instance.start({"log_bin": False})
    instance.snapshot()
    server = instance.start({"log_bin": False})
    assert World.starts[1] == ({"log_bin": False}, Place("10.213.0.2", Path("/proc/2/ns/net")))
    assert World.joined == []
    assert server.replication() == {}
    assert server.catch_up(1) < 1


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
