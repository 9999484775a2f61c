"""A primary with replicas answers as one server and tells how replication stands."""

from itertools import repeat
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.measurement import replication
from dbdyno.plan.systems import TopologyPlan
from dbdyno.servers.base import Replicated, ServerSpec
from dbdyno.servers.local.topology import TopologyServer
from dbdyno.servers.mysql import topology
from dbdyno.servers.reference import find
from support.fake_members import FOLLOWS, STOPPED, FakeMember

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


def made(kind="semisync", replicas=1, status=FOLLOWS, waits=("0",), **more):
    plan = TopologyPlan.model_validate({"replicas": replicas, "replication": kind})
    spec, entry = ServerSpec("both", "mysql:8.0.33", {}, plan), find("mysql:8.0.33")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topology, "_check_plugins", lambda *asked: None)
        ways = topology.MysqlReplication(spec, entry, Path(), print)
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
    return TopologyServer(FakeMember("both", answers), members, ways, None)


def test_the_load_meets_the_primary():
    server = made()
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
    assert made().replication() == {
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
    assert made("async", status=STOPPED).replication()[replication.REPLICAS_RUNNING] == 0


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
        made(**odd).replication()


def test_every_name_of_the_state_has_a_way_over_the_window():
    assert set(made().replication()) == set(replication.EDGES)


def test_catching_up_asks_again_until_all_is_applied():
    server = made(waits=("1", "1", "0"))
    assert 0 <= server.catch_up(60) < 5
    asked = server.replicas[0].asked
    assert len(asked) == 3
    assert asked[0].startswith(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{UUID}:1-10', 10.0")


def test_catching_up_has_an_end():
    server = made(waits=repeat("1"))
    assert 0.05 <= server.catch_up(0.05) < 1


def test_nothing_was_committed_nothing_is_waited_for():
    server = made(gtid_executed=[("",)])
    server.catch_up(60)
    assert server.replicas[0].asked == []


def test_a_dead_replica_makes_the_whole_dead_and_has_the_last_word():
    server = made(replicas=2)
    assert server.alive()
    assert server.last_words() == "[ERROR] of both"
    server.replicas[1].living = False
    assert not server.alive()
    assert server.last_words() == "[ERROR] of replica 1"


def test_stopping_ends_replicas_first_and_then_what_the_primary_would_wait_for():
    processes = [("5", "root", "", "", "Query"), ("9", "r", "", "", "Binlog Dump GTID")]
    server = made(PROCESSLIST=processes)
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
    server = made(replicas=2)
    server.kill()
    members = (server._primary, *server.replicas)
    assert [(member.kills, member.stops) for member in members] == [(1, 0)] * 3
    assert not server.alive()


def test_all_are_stopped_though_one_had_died():
    server = made(replicas=2)
    server.replicas[0].living = False
    with pytest.raises(ServerError, match="replica 0: had died"):
        server.stop()
    assert [member.stops for member in (server._primary, *server.replicas)] == [1, 1, 1]
