"""A system of several servers: what is started when, from which files, and what is left."""

from __future__ import annotations

import os
from itertools import repeat
from typing import ClassVar

import pytest

from dbdyno.errors import ServerError, UsageError
from dbdyno.measurement import replication
from dbdyno.plan.systems import TopologyPlan
from dbdyno.servers import open
from dbdyno.servers.base import Endpoint, Replicated, ServerSpec
from dbdyno.servers.local import topology
from dbdyno.servers.local.topology import TopologyServer
from dbdyno.servers.mysql import replication as of_mysql
from dbdyno.servers.programs.identify import ServerFiles
from dbdyno.servers.reference import find
from support.fake_members import FOLLOWS, STOPPED, FakeMember
from support.replicating import ways


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


MEMBERS = ["both", "both replica 1", "both replica 2"]


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
    monkeypatch.setattr(of_mysql, "MysqlInstance", FakeInstance)
    monkeypatch.setattr(topology, "Network", FakeNetwork)
    monkeypatch.setattr(
        of_mysql.MysqlReplication, "join", lambda self, *servers: World.joined.append(servers)
    )
    return tmp_path / "system"


def made(folder, kind="semisync", **more):
    of_system = ways(kind, replicas=2, **more)
    return topology.TopologyInstance(of_system._spec, of_system, folder, lambda text: None)


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
    assert [label for what, label in World.calls if what == "start"] == MEMBERS
    assert [keys["server_id"] for keys, _ in World.starts] == [1, 2, 3]
    assert {keys["sync_binlog"] for keys, _ in World.starts} == {0}
    assert [replica.copy for replica in instance._replicas] == [world / "snapshot"] * 2
    assert len(World.joined) == 1
    assert [member.label for member in World.joined[0][1]] == MEMBERS[1:]
    assert {address for _, address in World.starts} == {None}
    assert FakeNetwork.made == []
    instance.restore()
    assert [label for what, label in World.calls if what == "restore"] == MEMBERS
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
    assert World.calls[-3:] == [("close", label) for label in reversed(MEMBERS)]


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

    monkeypatch.setattr(of_mysql.MysqlReplication, "join", refuse)
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


@pytest.mark.parametrize("has_folder", [True, False])
def test_programs_without_the_plugin_are_refused(tmp_path, monkeypatch, has_folder):
    (tmp_path / "semisync_source.so").touch()
    files = ServerFiles(tmp_path, tmp_path, tmp_path, tmp_path if has_folder else None, None)
    monkeypatch.setattr(of_mysql, "files_of", lambda program: files)
    plan = TopologyPlan(replicas=1, replication="semisync")
    spec, entry = ServerSpec("both", "mysql:8.0.33", topology=plan), find("mysql:8.0.33")
    with pytest.raises(UsageError, match="its plugins are not in it") as caught:
        of_mysql.MysqlReplication(spec, entry, tmp_path, print)
    wanted = "semisync_replica.so" + ("" if has_folder else ", semisync_source.so")
    found = f"not among those in {tmp_path}" if has_folder else "no folder of plugins"
    assert (caught.value.wanted, caught.value.found) == (wanted, found)


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


UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
COUNTERS = [
    ("Rpl_semi_sync_source_status", "ON"),
    ("Rpl_semi_sync_source_clients", "1"),
    ("Rpl_semi_sync_source_yes_tx", "120"),
    ("Rpl_semi_sync_source_no_tx", "3"),
    ("Rpl_semi_sync_source_no_times", "1"),
]
VARIABLES = [
    ("rpl_semi_sync_source_wait_point", "AFTER_COMMIT"),
    ("rpl_semi_sync_source_timeout", "1500"),
]


def running(kind="semisync", replicas=1, status=FOLLOWS, waits=("0",), **more):
    """A primary with replicas that answers as one server."""
    answers = {
        "GTID_SUBTRACT": [(f"{UUID}:8-10",)],
        "gtid_executed": [(f"{UUID}:1-10",)],
        "SHOW GLOBAL STATUS": COUNTERS,
        "SHOW GLOBAL VARIABLES": VARIABLES,
        **more,
    }
    left = iter(waits)
    of_replica = {
        "WAIT_FOR": lambda sql: [(next(left),)],
        "gtid_executed": [(f"{UUID}:1-7",)],
        "STATUS": [tuple(status)],
    }
    members = [FakeMember(f"replica {n}", of_replica, 3308 + n) for n in range(replicas)]
    primary = FakeMember("both", answers)
    return TopologyServer(primary, members, ways(kind, replicas=replicas), None)


def test_the_load_meets_the_primary():
    server = running()
    primary = server._primary
    assert isinstance(server, Replicated)
    assert server.endpoint == primary.endpoint
    assert (server.label, server.pid, server.version()) == ("both", primary.pid, "8.0.33")
    assert server.pids == (primary.pid, server.replicas[0].pid)
    assert server.settings() == {"server_id": "1"}
    assert server.status()["Rpl_semi_sync_source_yes_tx"] == 120
    assert server.ask("SHOW GLOBAL VARIABLES") == VARIABLES
    assert server.observer().read() == primary.status()


def test_the_state_of_replication_is_reported():
    assert running().replication() == {
        replication.TRANSACTIONS_BEHIND: 3,
        replication.REPLICAS_RUNNING: 1,
        replication.SEMISYNC_ON: 1,
        replication.SEMISYNC_REPLICAS: 1,
        replication.COMMITS_ACKNOWLEDGED: 120,
        replication.COMMITS_NOT_ACKNOWLEDGED: 3,
        replication.TIMES_OFF: 1,
        replication.AFTER_SYNC: 0,
        replication.TIMEOUT_S: 1.5,
    }
    assert running("async", status=STOPPED).replication()[replication.REPLICAS_RUNNING] == 0


@pytest.mark.parametrize(
    "odd",
    [
        {"gtid_executed": []},
        {"GTID_SUBTRACT": [()]},
        {"SHOW GLOBAL STATUS": [("Rpl_semi_sync_source_status",)]},
        {"SHOW GLOBAL STATUS": []},
        {"SHOW GLOBAL VARIABLES": [("rpl_semi_sync_source_timeout", "soon")]},
    ],
)
def test_an_odd_answer_is_an_error_in_words(odd):
    with pytest.raises(ServerError, match=r"both: the server answered .* with something else"):
        running(**odd).replication()


def test_every_name_of_the_state_has_a_way_over_the_window():
    assert set(running().replication()) == set(replication.EDGES)


def test_catching_up_asks_again_until_all_is_applied():
    server = running(waits=("1", "1", "0"))
    assert 0 <= server.catch_up(60) < 5
    asked = server.replicas[0].asked
    assert len(asked) == 3
    assert asked[0].startswith(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{UUID}:1-10', 10.0")


def test_catching_up_has_an_end():
    server = running(waits=repeat("1"))
    assert 0.05 <= server.catch_up(0.05) < 1


def test_nothing_was_committed_nothing_is_waited_for():
    server = running(gtid_executed=[("",)])
    server.catch_up(60)
    assert server.replicas[0].asked == []


def test_a_dead_replica_makes_the_whole_dead_and_has_the_last_word():
    server = running(replicas=2)
    assert server.alive()
    assert server.last_words() == "[ERROR] of both"
    server.replicas[1].living = False
    assert not server.alive()
    assert server.last_words() == "[ERROR] of replica 1"


def test_stopping_ends_replicas_first_and_then_what_the_primary_would_wait_for():
    processes = [("5", "root", "", "", "Query"), ("9", "r", "", "", "Binlog Dump GTID")]
    server = running(PROCESSLIST=processes)
    server.stop()
    primary = server._primary
    assert primary.asked == [
        "SET GLOBAL rpl_semi_sync_source_enabled = OFF",
        "SHOW PROCESSLIST",
        "KILL 9",
    ]
    assert not primary.living
    assert not server.replicas[0].living


def test_all_are_killed_at_once():
    server = running(replicas=2)
    server.kill()
    members = (server._primary, *server.replicas)
    assert [(member.kills, member.stops) for member in members] == [(1, 0)] * 3
    assert not server.alive()


def test_all_are_stopped_though_one_had_died():
    server = running(replicas=2)
    server.replicas[0].living = False
    with pytest.raises(ServerError, match="replica 0: had died"):
        server.stop()
    assert [member.stops for member in (server._primary, *server.replicas)] == [1, 1, 1]
