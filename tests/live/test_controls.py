"""The planted slowdown on a real server with more connections than cores: nothing fills the gap."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import pytest

from dbdyno import _engine
from dbdyno.servers.base import Server
from support.real_server import login, started

pytestmark = [pytest.mark.live, pytest.mark.alone]
INTERVAL_S = 0.05


def intervals(server: Server) -> list[dict[str, Any]]:
    """Two seconds of load that stands still for half a second in the middle of each."""
    tables = {"tables": 1, "table_size": 500}
    _engine.prepare(json.dumps({**login(server), **tables, "seed": 1}), None, _engine.Stop())
    spec = {
        **login(server),
        "connections": 32,
        "threads": 2,
        "window_s": 2,
        "interval_s": INTERVAL_S,
        "seed": 1,
        "standstill": {"share": 0.5, "period_s": 1},
        "workload": {"name": "oltp_point_select", "options": tables},
    }
    record: dict[str, Any] = json.loads(_engine.run(json.dumps(spec), None, _engine.Stop()))
    assert record["failure"] is None
    return [i for i in record["intervals"] if i["phase"] == "measured"]


def test_a_busy_server_has_nothing_to_do_while_the_load_stands_still() -> None:
    with started("controls", "mysql:5.7.22") as server:
        told = intervals(server)
    still = []
    for is_silent, group in groupby(told, key=lambda i: i["events"] == 0):
        stretch = list(group)
        if is_silent and len(stretch) * INTERVAL_S >= 0.4:
            still.append((stretch[0]["start_s"], len(stretch) * INTERVAL_S))
            assert all(i["in_flight"] == 0 for i in stretch)
    assert len(still) == 2, still
    for (begins_s, seconds), planned_s in zip(still, (0.5, 1.5), strict=True):
        assert planned_s <= begins_s + INTERVAL_S
        assert seconds >= 0.4  # whole intervals of 0.5 s
    # Waiting on purpose is no silence of the server.
    assert max(i["silence_ns_max"] for i in told) < 0.4e9
