"""Open loop and lost connections on a real server that is stopped, killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from dbdyno import _engine
from dbdyno.experiment.engine.record import intervals_of
from dbdyno.judge.beside.stability import dips_of, stalls_of
from dbdyno.judge.checks import course
from dbdyno.judge.checks.course import rates_of, whole_seconds
from dbdyno.measurement.measurement import merge_histograms
from dbdyno.servers.base import Server
from dbdyno.servers.process import launcher, passed, server_user
from support import making
from support.real_server import login, started

pytestmark = [pytest.mark.live, pytest.mark.alone]
STALL_S = 1.0
CLOSED_S = 7
AWAY = {"2003", "1053", "2013"}
"""Errors of attempts to connect while the server is away, ends or starts."""


@pytest.fixture
def server() -> Iterator[Server]:
    with started("schedule", "mysql:8.0.15") as running:
        tables = {**login(running), "tables": 2, "table_size": 1000, "seed": 3, "threads": 2}
        _engine.prepare(tables, None, _engine.Stop())
        yield running


def run(server: Server, tell: Any = None, stop: Any = None, **changes: Any) -> dict[str, Any]:
    options = {"tables": 2, "table_size": 1000}
    spec = {
        **login(server),
        "connections": 8,
        "window_s": 5,
        "seed": 5,
        "workload": {"name": "oltp_point_select", "options": options},
        **changes,
    }
    return _engine.run(spec, tell, stop or _engine.Stop())


def total(record: Mapping[str, Any], name: str) -> int:
    return sum(interval[name] for interval in record["intervals"])


def latency_s(record: Mapping[str, Any], quantile: float, name: str = "event") -> float:
    blobs = [i.histograms[name] for i in intervals_of(record) if name in i.histograms]
    return merge_histograms(blobs).quantile(quantile) / 1e9


@contextmanager
def stalling(server: Server, after_s: float) -> Iterator[list[float]]:
    """The server stands still for STALL_S, in the middle of two seconds of the run.

    Afterwards the list has the seconds that it really stood still: more on a busy machine.
    """
    held_s: list[float] = []

    def stall() -> None:
        time.sleep(after_s)
        os.kill(server.pid, signal.SIGSTOP)
        began = time.monotonic()
        time.sleep(STALL_S)
        held_s.append(time.monotonic() - began)
        os.kill(server.pid, signal.SIGCONT)

    stalls = threading.Thread(target=stall)
    stalls.start()
    try:
        yield held_s
    finally:
        stalls.join()


def test_a_stall_is_in_the_p99_at_a_rate_and_in_max_and_finding_in_a_closed_loop(
    server: Server,
) -> None:
    capacity = total(run(server, window_s=1), "events")
    with stalling(server, after_s=2.5):
        opened = run(server, rate_per_s=capacity / 2)
    assert opened["failure"] is None
    # The second that stood still was a fifth of the window: whoever came in it waited for its end.
    assert latency_s(opened, 0.99) > 0.8 * STALL_S
    assert total(opened, "arrivals") == pytest.approx(capacity / 2 * 5, rel=0.1)
    begun = total(opened, "events") + opened["unfinished"]
    assert begun + opened["unserved"] == total(opened, "arrivals")
    # The generator's own error: where a connection was free, how late the request was. The stall,
    # which held up every second request, is not in it.
    assert latency_s(opened, 0.5, "timer_lag") < 0.1 * STALL_S

    with stalling(server, after_s=2.5) as held_s:
        closed = run(server, window_s=CLOSED_S)
    assert latency_s(closed, 0.99) < 0.5 * STALL_S, "eight of thousands of events waited"
    assert max(i["latency_ns_max"] for i in closed["intervals"]) > 0.9e9
    assert max(i["silence_ns_max"] for i in closed["intervals"]) > 0.9e9
    made = making.measurement(workload="oltp_point_select", window_s=CLOSED_S, warmup_s=0)
    seen = made.model_copy(update={"intervals": intervals_of(closed)})
    found = course.stall(seen, making.plan())
    assert found is not None
    assert found.values["case"] == "silent"

    # The same as stability: one stall of its length, and a dip in the two seconds it touched.
    rates = rates_of(seen)
    longest = max(stalls_of(seen.measured, float(rates.mean())), key=lambda stall: stall.seconds)
    assert held_s[0] - 0.1 < longest.seconds < held_s[0] + STALL_S
    assert longest.until_s > 3
    stood_still = [dip for dip in dips_of(whole_seconds(seen), rates) if dip.end_s > 2]
    assert any(dip.start_s <= 4 and dip.least < 0.7 for dip in stood_still)


def killed_and_started(server: Server) -> subprocess.Popen[bytes]:
    """What a supervisor does: the same command under the same user, on the same data and port."""
    process = psutil.Process(server.pid)
    command, folder, environment = process.cmdline(), process.cwd(), process.environ()
    os.kill(server.pid, signal.SIGKILL)
    while server.alive():
        time.sleep(0.01)
    # The file with the first start's passwords is gone; they are in the data since.
    return subprocess.Popen(
        [*launcher(server_user()), *command, "--init-file="],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=passed(),
    )


@pytest.mark.parametrize("schedule", [{}, {"rate_per_s": 500}], ids=["closed", "rate"])
def test_a_server_that_is_killed_and_started_again_is_survived(
    server: Server, schedule: dict[str, Any]
) -> None:
    """The load goes on by itself; it is stopped a second after all sessions are there again."""
    told: list[dict[str, Any]] = []
    under_load, stop = threading.Event(), _engine.Stop()

    def tell(interval: dict[str, Any]) -> None:
        told.append(interval)
        under_load.set()
        back = [at for at, one in enumerate(told) if one["reconnects"]]
        if sum(told[at]["reconnects"] for at in back) == 8 and len(told) > back[-1] + 4:
            stop.set()

    ignored = {"ignore_errors": [2006, 2011, 2013, 2055]}
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(
            run, server, tell, stop, window_s=120, interval_s=0.25, **ignored, **schedule
        )
        assert under_load.wait(30)
        again = killed_and_started(server)
        try:
            record = loading.result()
        finally:
            again.kill()
            again.wait()
    assert (record["failure"], record["stopped_by"]) == (None, "stop")
    assert total(record, "reconnects") == 8
    # While it was away each attempt to connect failed, and nothing else did.
    assert {code for i in record["intervals"] for code in i["errors"]} <= AWAY
    assert sum(i["events"] for i in record["intervals"][-4:]) > 100, "it did not go on"
    assert latency_s(record, 1.0) > 0.3, "the time without a server is in the latency"


def test_a_server_that_is_killed_for_good_ends_nothing_before_its_time(server: Server) -> None:
    killing = threading.Timer(1.0, os.kill, (server.pid, signal.SIGKILL))
    killing.start()
    began = time.monotonic()
    record = run(server, window_s=3, ignore_errors="all")
    killing.join()
    assert time.monotonic() - began > 2.9
    assert (record["failure"], record["stopped_by"]) == (None, "time")
    assert record["unfinished"] == 8
    assert sum(i["errors"].get("2003", 0) for i in record["intervals"]) > 8
    assert total(record, "reconnects") == 0
