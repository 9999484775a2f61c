"""The engine against real servers: logins, all workloads, both protocols, both reactors.

The server's own counters are the judge: what the engine says it did must be what was done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dbdyno import _engine
from dbdyno.servers.base import Server
from support.counters import settled
from support.real_server import login
from support.shared_servers import SharedServers

pytestmark = pytest.mark.live
COUNTERS = ("Com_select", "Com_update", "Com_delete", "Com_insert", "Com_begin")
STATEMENTS = {  # by what sysbench 1.0.20 does in one event: select, update, delete, insert, begin
    "oltp_point_select": (1, 0, 0, 0, 0),
    "oltp_read_only": (14, 0, 0, 0, 1),
    "oltp_read_write": (14, 2, 1, 1, 1),
    "oltp_write_only": (0, 2, 1, 1, 1),
}


@pytest.fixture(scope="module", params=["mysql:5.7.22", "mysql:8.0.15"])
def server(request: pytest.FixtureRequest, shared_servers: SharedServers) -> Iterator[Server]:
    with shared_servers.lent(request.param) as running:
        prepare(running)
        yield running


def prepare(server: Server, tables: int = 3, rows: int = 2000) -> None:
    spec = {**login(server), "tables": tables, "table_size": rows, "seed": 3, "threads": 4}
    report = _engine.prepare(spec, None, _engine.Stop())
    assert report["rows"] == tables * rows


def run(server: Server, workload: str = "oltp_read_write", **changes: Any) -> dict[str, Any]:
    tell, stop = changes.pop("tell", None), changes.pop("stop", _engine.Stop())
    socket = changes.pop("socket", False)
    tables = changes.pop("tables", 3)
    spec = {
        **login(server, socket=socket),
        "connections": 4,
        "warmup_s": 0,
        "window_s": 0.5,
        "interval_s": 0.25,
        "seed": 5,
        "workload": {"name": workload, "options": {"tables": tables, "table_size": 2000}},
        **changes,
    }
    return _engine.run(spec, tell, stop)


def total(record: dict[str, Any], name: str) -> int:
    return sum(interval[name] for interval in record["intervals"])


@pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "text"])
@pytest.mark.parametrize("workload", STATEMENTS)
def test_the_server_counts_the_same_statements(
    server: Server, workload: str, prepared: bool
) -> None:
    before = settled(server)
    record = run(server, workload, prepared=prepared)
    after = settled(server)
    counted = [after[name] - before[name] for name in COUNTERS]
    assert record["failure"] is None
    events = total(record, "events")
    assert events > 0
    # A refused attempt adds at most one event's statements. It is retried, unless the window has
    # ended meanwhile: so each is an error, but not each is a restart.
    refused = sum(sum(interval["errors"].values()) for interval in record["intervals"])
    assert total(record, "restarts") <= refused
    for count, each in zip(counted, STATEMENTS[workload], strict=True):
        assert each * events <= count <= each * (events + refused)
    assert counted[-1] == STATEMENTS[workload][-1] * (events + refused), "each attempt begins"
    queries = sum(total(record, kind) for kind in ("reads", "writes", "others"))
    per_event = sum(STATEMENTS[workload]) + STATEMENTS[workload][4]
    assert per_event * events <= queries <= per_event * (events + refused)
    assert record["distribution"]["name"] == "special"


@pytest.mark.parametrize("reactor", ["io_uring", "epoll"])
@pytest.mark.parametrize("socket", [True, False], ids=["socket", "tcp"])
def test_each_reactor_on_each_kind_of_socket(server: Server, reactor: str, socket: bool) -> None:
    if reactor == "io_uring":
        allowed = Path("/proc/sys/kernel/io_uring_disabled")
        if not allowed.exists() or allowed.read_text().strip() == "2":
            pytest.skip("this kernel does not allow io_uring")
    record = run(
        server, "oltp_read_only", reactor=reactor, socket=socket, connections=70, window_s=1
    )
    assert record["reactor"] == reactor
    assert record["failure"] is None
    assert total(record, "events") > 70
    assert total(record, "restarts") == 0


def test_one_connection_is_not_one_thread(server: Server) -> None:
    record = run(server, "oltp_point_select", connections=100, threads=1)
    assert (record["threads"], record["connections"]) == (1, 100)
    assert record["fairness"]["events_mean"] * 100 == pytest.approx(total(record, "events"))


def test_a_wrong_password_is_named(server: Server) -> None:
    with pytest.raises(RuntimeError) as caught:
        run(server, password="not the password")
    failure = caught.value.args[0]
    assert (failure["stage"], failure["code"], failure["sqlstate"]) == ("connect", 1045, "28000")
    assert "not the password" not in str(caught.value)


def test_missing_tables_are_an_error_before_the_run(server: Server) -> None:
    with pytest.raises(RuntimeError) as caught:
        run(server, "oltp_point_select", tables=9)
    failure = caught.value.args[0]
    assert (failure["stage"], failure["code"]) == ("prepare", 1146)


def test_prepare_refuses_existing_tables_and_cleanup_drops_them(server: Server) -> None:
    spec = {**login(server), "tables": 1, "table_size": 10, "seed": 1, "threads": 1}
    with pytest.raises(RuntimeError) as caught:
        _engine.prepare(spec, None, _engine.Stop())
    assert caught.value.args[0]["code"] == 1050
    _engine.cleanup({**login(server), "tables": 3}, _engine.Stop())
    prepare(server)


def test_the_warm_up_is_not_measured(server: Server) -> None:
    record = run(server, "oltp_point_select", warmup_s=0.5, window_s=1)
    phases = [interval["phase"] for interval in record["intervals"]]
    assert phases[:2] == ["warmup"] * 2
    assert phases[2:6] == ["measured"] * 4
    assert set(phases[6:]) <= {"drain"}
    assert 0 < record["measured"]["cpu_s"] < 3
    assert 0 < record["measured"]["cpu_share_max"] <= 1


def test_a_budget_of_events_is_kept_exactly(server: Server) -> None:
    record = run(server, "oltp_point_select", window_s=0, events=777)
    assert total(record, "events") == 777
    assert record["stopped_by"] == "events"


def test_a_callback_that_raises_ends_the_run_with_its_exception(server: Server) -> None:
    told: list[dict[str, Any]] = []

    def tell(interval: dict[str, Any]) -> None:
        told.append(interval)
        raise LookupError("no more, please")

    stop, began = _engine.Stop(), time.monotonic()
    with pytest.raises(LookupError, match="no more, please"):
        run(server, "oltp_point_select", window_s=30, tell=tell, stop=stop)
    assert time.monotonic() - began < 15
    assert stop.is_set()
    assert len(told) == 1
    assert told[0]["phase"] == "measured"


def test_other_threads_work_while_the_engine_does(server: Server) -> None:
    stop = _engine.Stop()
    threading.Timer(0.5, stop.set).start()  # needs the GIL
    began = time.monotonic()
    record = run(server, "oltp_point_select", window_s=30, stop=stop)
    assert time.monotonic() - began < 15
    assert record["stopped_by"] == "stop"
    assert total(record, "events") > 0


def test_a_spec_that_is_nonsense_is_a_value_error(server: Server) -> None:
    for changes, words in (
        ({"conections": 3}, "conections"),
        ({"window_s": float("nan")}, "window_s: a number that is not finite"),
        ({"window_s": 1e300, "threads": 5000}, "window_s.*\nthreads|threads.*\nwindow_s"),
        ({"endpoint": {"socket": "/x", "port": 3}}, "endpoint must be"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            run(server, **changes)
        assert server.credentials.password not in str(caught.value)
