"""Servers behind addresses: each counted once, a balancer's not at all; what a TiDB tells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment.data.dataset import digest_and_short_tables
from dbdyno.experiment.evidence import explain_plans
from dbdyno.experiment.watch.status import waiting_statements
from dbdyno.plan.plan import DatasetPlan
from dbdyno.servers.base import Credentials, Endpoint, observe
from dbdyno.servers.foreign import behind
from dbdyno.servers.foreign.endpoint import EndpointServer
from support import making
from support.fake_tidb import INERT, go_mysql_server, mysql, serving, summary, tidb

WHO = Credentials("root", "")


@contextmanager
def logged_in(*places: Endpoint) -> Iterator[EndpointServer]:
    first, *others = (replace(place, is_foreign=True) for place in places)
    server = EndpointServer("cloud", replace(first, others=tuple(others)), WHO, "bench")
    try:
        server.login()
        yield server
    finally:
        server.stop()


def test_a_server_of_two_addresses_is_counted_once() -> None:
    one = mysql("a-1", questions=7)
    with serving(one) as near, serving(one) as far, logged_in(near, far) as server:
        assert server.status()["Questions"] == 7
        assert server.balanced == ()


def test_two_servers_are_added_up() -> None:
    with (
        serving(mysql("a-1", questions=7)) as first,
        serving(mysql("b-2", questions=5)) as second,
        logged_in(first, second) as server,
    ):
        assert server.status() == {"Uptime": 100, "Questions": 12, "Innodb_page_size": 32768}


def test_behind_a_balancer_nothing_but_the_uptime_is_known() -> None:
    pair = mysql("a-1", questions=7), mysql("b-2", questions=5)
    with serving(*pair) as place, logged_in(place) as server:
        assert server.balanced == (f"127.0.0.1:{place.port}",)
        assert server.status() == observe(server).read() == {"Uptime": 100}


def test_servers_without_a_uuid_are_told_apart_by_their_host_and_port() -> None:
    nodes = [tidb("tidb-0"), tidb("tidb-1", uptime_s=9)]
    with serving(nodes[0]) as a, serving(nodes[1]) as b, logged_in(a, b) as server:
        assert (server.balanced, server.status()["Uptime"]) == ((), 9)
    with serving(*nodes) as place, logged_in(place) as server:
        assert server.balanced


def test_servers_that_do_not_tell_who_they_are_are_taken_for_different_ones() -> None:
    silent = mysql("", questions=7)
    with serving(silent) as a, serving(silent) as b, logged_in(a, b) as server:
        assert server.status()["Questions"] == 14


def test_variables_without_an_effect_are_no_settings() -> None:
    with serving(tidb()) as place, logged_in(place) as server:
        told = server.settings()
        assert told["tidb_txn_mode"] == "pessimistic"
        assert not told.keys() & INERT.keys()
    with serving(mysql("a-1", questions=7)) as place, logged_in(place) as server:
        assert server.settings()["innodb_flush_log_at_trx_commit"] == "1"


def test_counters_and_plans_that_a_server_has_only_by_name_are_unknown() -> None:
    plan = making.plan(workloads=("select_random_points",))
    with serving(go_mysql_server()) as place, logged_in(place) as server:
        told = server.settings()
        assert (told["autocommit"], told.keys() & INERT.keys()) == ("1", set())
        assert server.status() == observe(server).read() == {"Questions": 40, "Com_select": 7}
        assert explain_plans(plan, server) == {}


def test_a_tidb_tells_its_version_its_nodes_and_their_configuration() -> None:
    with serving(tidb()) as place, logged_in(place) as server:
        told = server.settings()
    assert told["tidb_version.git_commit_hash"] == "7d16cc79"
    assert told["cluster.tikv"] == "3 × 7.5.1"
    configured = {name for name in told if name.startswith(("tidb.", "tikv."))}
    assert configured == {"tidb.log.level", "tidb.token-limit", "tikv.server.grpc-concurrency"}
    assert told["tidb.log.level"] == "error / info"


def test_what_a_user_may_not_read_is_left_out() -> None:
    node = tidb()
    for refused in ("SHOW CONFIG", "cluster_info", "cluster_statements_summary GROUP"):
        del node.answers[refused]
    with serving(node) as place, logged_in(place) as server:
        assert server.settings()["tidb_version.store"] == "tikv"
        assert server.status() == {"Uptime": 757, "ddl_schema_version": 58}


def test_what_waits_is_asked_at_each_server() -> None:
    nodes = tidb("tidb-0"), tidb("tidb-1")
    for number, node in enumerate(nodes):
        node.answers["SHOW PROCESSLIST"] = [
            ("5", "root", "h", "bench", "Query", "9", "in transaction", f"{verb} sbtest1")
            for verb in ("UPDATE", "DELETE")[: number + 1]
        ]
        node.answers["CONNECTION_ID()"] = [("7",)]
    with serving(nodes[0]) as a, serving(nodes[1]) as b, logged_in(a, b) as server:
        seen = waiting_statements(server)
    assert seen == {"UPDATE: in transaction": 2, "DELETE: in transaction": 1}


COMMITS, CHANGED = "statements_summary.Commit", "statements_summary.affected_rows"


def test_a_tidb_counts_statements_of_all_its_nodes_once() -> None:
    nodes = tidb("tidb-0"), tidb("tidb-1")
    with serving(nodes[0]) as a, serving(nodes[1]) as b, logged_in(a, b) as server:
        assert (server.status()[COMMITS], server.status()[CHANGED]) == (100, 400)
        assert COMMITS not in observe(server).read()


def test_counts_go_on_when_the_summary_begins_anew() -> None:
    node, now, history = tidb(), "cluster_statements_summary GROUP", "_history GROUP"
    first, later = "2026-11-27 10:00:00", "2026-11-27 10:30:00"
    with serving(node) as place, logged_in(place) as server:
        assert server.status()[COMMITS] == 100
        node.answers[now] = summary(commits=5, changed=20, begin=later)
        assert COMMITS not in server.status()  # what the half hour before ended with is not known
        earlier = summary(commits=999, changed=9, begin="2026-11-27 09:30:00")
        node.answers[history] = [*earlier, *summary(commits=140, changed=560, begin=first)]
        assert (server.status()[COMMITS], server.status()[CHANGED]) == (145, 580)
        node.answers[now] = summary(commits=6, changed=24, begin=later)
        assert server.status()[COMMITS] == 146


def test_the_rows_and_the_plans_of_a_tidb_are_read() -> None:
    plan = making.plan(
        workloads=("oltp_update_index", "select_random_points", "oltp_read_only"),
        dataset=DatasetPlan(tables=1, rows=1000),
    )
    with serving(tidb()) as place, logged_in(place) as server:
        plans = explain_plans(plan, server)
        assert plans["simple_ranges"] == "TableReader; TableRangeScan"
        assert plans["index_updates"] == "Update; Point_Get"
        assert plans["random_points"] == "IndexLookUp; IndexRangeScan(Build); TableRowIDScan(Probe)"
        assert digest_and_short_tables(plan, server)[0]


HERE = Endpoint("127.0.0.1", 3306, None, (Endpoint("localhost", 3306, None),))


@pytest.mark.parametrize(
    ("listening", "pid"),
    [
        ((4711, "mysqld"), 4711),
        ((4711, "mariadbd"), 4711),
        ((4711, "haproxy"), 0),  # the server's own work is not seen
        ((4711, "tidb-server"), 0),  # nor that of its stores
        (None, 0),
    ],
)
def test_the_process_of_a_local_server_is_seen(monkeypatch, listening, pid) -> None:
    monkeypatch.setattr(behind, "listener", lambda host, port: listening)
    assert behind.pid_of_all((HERE, *HERE.others)) == pid


def test_the_process_is_looked_for_at_each_login(monkeypatch) -> None:
    pids = iter((4711, 4712))
    monkeypatch.setattr(behind, "listener", lambda host, port: (next(pids), "mysqld"))
    with serving(mysql("a-1", questions=7)) as place, logged_in(place) as server:
        assert server.pid == 4711
        server.login()
        assert server.pid == 4712


def test_of_two_servers_no_process_is_the_server(monkeypatch) -> None:
    monkeypatch.setattr(behind, "listener", lambda host, port: (port, "mysqld"))
    assert behind.pid_of_all((HERE, replace(HERE, port=3307))) == 0


def test_a_pool_with_a_single_session_is_no_fault() -> None:
    asked = []

    def identity_of(session: object) -> behind.Identity:
        asked.append(session)
        if len(asked) > 1:
            raise ServerError("too many connections")
        return ("a-1",)

    class Session:
        label, answer_s_max = "cloud", 60.0

        def close(self) -> None:
            asked.clear()

    found = behind.look_behind([Session()], [HERE], lambda *_: Session(), identity_of)
    assert (len(found.sessions), found.balanced, asked) == (1, (), [])
