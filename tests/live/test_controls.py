"""The planted slowdown on a real server with more connections than cores: nothing fills the gap."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dbdyno import _engine
from dbdyno.servers.base import Server
from support.real_server import login, started

pytestmark = [pytest.mark.live, pytest.mark.alone]
INTERVAL_S = 0.05
TABLES = {"tables": 1, "table_size": 500}
TRIES = 3
"""On a busy machine the server itself may be held up for as long as the load waits on purpose."""


def prepare(server: Server) -> None:
    spec = {**login(server), **TABLES, "seed": 1}
    _engine.prepare(json.dumps(spec), None, _engine.Stop())


def intervals(server: Server) -> list[dict[str, Any]]:
    """Two seconds of load that stands still in the second half of each."""
    spec = {
        **login(server),
        "connections": 32,
        "threads": 2,
        "window_s": 2,
        "interval_s": INTERVAL_S,
        "seed": 1,
        "standstill": {"share": 0.5, "period_s": 1},
        "workload": {"name": "oltp_point_select", "options": TABLES},
    }
    record: dict[str, Any] = json.loads(_engine.run(json.dumps(spec), None, _engine.Stop()))
    assert record["failure"] is None
    return [i for i in record["intervals"] if i["phase"] == "measured"]


def test_a_busy_server_has_nothing_to_do_while_the_load_stands_still() -> None:
    with started("controls", "mysql:5.7.22") as server:
        prepare(server)
        for _ in range(TRIES):
            told = intervals(server)
            for planned_s in (0.5, 1.5):
                # What was sent before may still be answered within the first 0.1 s.
                still = [i for i in told if planned_s + 0.1 <= i["start_s"] < planned_s + 0.44]
                assert len(still) >= 6
                assert [(i["events"], i["in_flight"]) for i in still] == [(0, 0)] * len(still)
                before = [i for i in told if planned_s - 0.5 <= i["start_s"] < planned_s - 0.06]
                assert sum(i["events"] for i in before) > 0
            # Waiting on purpose is no silence of the server.
            if max(i["silence_ns_max"] for i in told) < 0.4e9:
                return
    raise AssertionError(f"{TRIES} times the server was silent for 0.4 s")
