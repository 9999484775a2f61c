"""A real server's limits are explained when it refuses, and all is run that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dbdyno import _engine
from dbdyno.servers.base import Server
from support.counters import settled
from support.real_server import login
from support.shared_servers import SharedServers

pytestmark = pytest.mark.live
MAX_CONNECTIONS = 60
MAX_PREPARED = 100
TABLES = 3


@pytest.fixture(scope="module", params=["mysql:5.7.22", "mysql:8.0.15"])
def server(request: pytest.FixtureRequest, shared_servers: SharedServers) -> Iterator[Server]:
    limits = {"max_connections": MAX_CONNECTIONS, "max_prepared_stmt_count": MAX_PREPARED}
    with shared_servers.lent(request.param) as running:
        before = running.settings()
        load = {**login(running), "tables": TABLES, "table_size": 100, "seed": 3, "threads": 2}
        _engine.prepare(load, None, _engine.Stop())
        for name, limit in limits.items():
            running.ask(f"SET GLOBAL {name} = {limit}")
        yield running
        for name in limits:
            running.ask(f"SET GLOBAL {name} = {before[name]}")


def run(server: Server, connections: int, **changes: Any) -> dict[str, Any]:
    """The record of a short run that begins when no session but the lab's is open."""
    settled(server)
    spec = {
        **login(server),
        "connections": connections,
        "window_s": 0.2,
        "seed": 5,
        "workload": {
            "name": "oltp_point_select",
            "options": {"tables": TABLES, "table_size": 100},
        },
        **changes,
    }
    return _engine.run(spec, None, _engine.Stop())


def refused(server: Server, connections: int, **changes: Any) -> dict[str, Any]:
    with pytest.raises(RuntimeError) as error:
        run(server, connections, **changes)
    return error.value.args[0]


def test_prepared_statements_beyond_the_limit_are_told_with_numbers(server: Server) -> None:
    fitting = MAX_PREPARED // TABLES
    assert run(server, fitting)["failure"] is None
    failure = refused(server, fitting + 1)
    assert (failure["stage"], failure["code"]) == ("prepare", 1461)
    assert "of 34 connections were open: with 3 prepared statements each" in failure["message"]
    assert f"raise max_prepared_stmt_count from {MAX_PREPARED} to " in failure["message"]
    assert "--db-ps-mode=disable" in failure["message"]


def test_as_text_the_same_statements_fit(server: Server) -> None:
    assert run(server, MAX_PREPARED // TABLES + 1, prepared=False)["failure"] is None


def test_connections_beyond_the_limit_are_told_with_numbers(server: Server) -> None:
    # The lab's own session is open beside them. The load's user has all privileges, and so one more
    # connection than max_connections.
    fitting = MAX_CONNECTIONS
    assert run(server, fitting, prepared=False)["failure"] is None
    failure = refused(server, fitting + 5, prepared=False)
    assert (failure["stage"], failure["code"]) == ("connect", 1040)
    assert f"{fitting} of {fitting + 5} connections were open" in failure["message"]
    assert f"raise max_connections from {MAX_CONNECTIONS} to 65" in failure["message"]
