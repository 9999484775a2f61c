"""The planted slowdown on a real server with more connections than cores: nothing fills the gap."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno import _engine
from dbdyno.servers.base import Server
from support.real_server import login, started

pytestmark = [pytest.mark.live, pytest.mark.alone]
INTERVAL_S = 0.05
TABLES = {"tables": 1, "table_size": 500}
TRIES = 8
"""On a busy machine the server itself may be held up for as long as the load waits on purpose, or
answer in a pause what was sent before it."""


def prepare(server: Server) -> None:
    spec = {**login(server), **TABLES, "seed": 1}
    _engine.prepare(spec, None, _engine.Stop())


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
    record: dict[str, Any] = _engine.run(spec, None, _engine.Stop())
    assert record["failure"] is None
    return [i for i in record["intervals"] if i["phase"] == "measured"]


def pause(told: list[dict[str, Any]], planned_s: float) -> list[dict[str, Any]]:
    """Of a planned pause the intervals after the one in which the last statement was answered that
    had been sent before."""
    planned = [i for i in told if planned_s <= i["start_s"] < planned_s + 0.44]
    answered = [number for number, i in enumerate(planned) if i["in_flight"] == 0]
    return planned[answered[0] + 1 :] if answered else []


def test_a_busy_server_has_nothing_to_do_while_the_load_stands_still() -> None:
    with started("controls", "mysql:5.7.22") as server:
        prepare(server)
        for _ in range(TRIES):
            told = intervals(server)
            pauses = [pause(told, planned_s) for planned_s in (0.5, 1.5)]
            for planned_s, still in zip((0.5, 1.5), pauses, strict=True):
                assert [(i["events"], i["in_flight"]) for i in still] == [(0, 0)] * len(still)
                before = [i for i in told if planned_s - 0.5 <= i["start_s"] < planned_s - 0.06]
                assert sum(i["events"] for i in before) > 0
            # Waiting on purpose is no silence of the server.
            silence_s = max(i["silence_ns_max"] for i in told) / 1e9
            if silence_s < 0.4 and min(map(len, pauses)) >= 7:  # of 9, of 0.05 s each
                return
    raise AssertionError(f"{TRIES} times the server was silent for 0.4 s or answered 0.1 s late")
