"""Lost connections on a real server that is killed and started again, and killed for good."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest

from dbdyno import _engine
from dbdyno.experiment.engine.record import intervals_of
from dbdyno.measurement.measurement import merge_histograms
from dbdyno.servers.base import Server
from dbdyno.servers.process import launcher, passed, server_user
from support.real_server import login, started

pytestmark = pytest.mark.live
AWAY = {"2003", "1053", "2013"}
"""Errors of attempts to connect while the server is away, ends or starts."""


class Victim:
    """A server with tables, and the process that is it now."""

    def __init__(self, server: Server) -> None:
        self.server, self.pid = server, server.pid
        self.again: subprocess.Popen[bytes] | None = None

    def kill_and_start(self) -> None:
        """As a supervisor: the same command under the same user, on the same data and port."""
        process = psutil.Process(self.pid)
        command, folder, environment = process.cmdline(), process.cwd(), process.environ()
        self.kill()
        # The file with the first start's passwords is gone; they are in the data since.
        self.again = subprocess.Popen(
            [*launcher(server_user()), *command, "--init-file="],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=passed(),
        )
        self.pid = self.again.pid

    def kill(self) -> None:
        """Ends the process and waits for its end."""
        os.kill(self.pid, signal.SIGKILL)
        if self.again is not None:
            self.again.wait()
        while self.server.alive():
            time.sleep(0.01)


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    with started("lost", "mysql:8.0.15") as running:
        tables = {**login(running), "tables": 2, "table_size": 1000, "seed": 3, "threads": 2}
        _engine.prepare(tables, None, _engine.Stop())
        made = Victim(running)
        yield made
        if made.again is not None:
            made.again.kill()
            made.again.wait()


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


def latency_s(record: Mapping[str, Any], quantile: float) -> float:
    blobs = [i.histograms["event"] for i in intervals_of(record) if "event" in i.histograms]
    return merge_histograms(blobs).quantile(quantile) / 1e9


@pytest.mark.parametrize("schedule", [{}, {"rate_per_s": 500}], ids=["closed", "rate"])
def test_a_server_that_is_killed_and_started_again_is_survived(
    victim: Victim, schedule: dict[str, Any]
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
    long = {"window_s": 120, "interval_s": 0.25}
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(run, victim.server, tell, stop, **long, **ignored, **schedule)
        assert under_load.wait(30)
        victim.kill_and_start()
        record = loading.result()
    assert (record["failure"], record["stopped_by"]) == (None, "stop")
    assert total(record, "reconnects") == 8
    # While it was away each attempt to connect failed, and nothing else did.
    assert {code for i in record["intervals"] for code in i["errors"]} <= AWAY
    assert sum(i["events"] for i in record["intervals"][-4:]) > 100, "it did not go on"
    assert latency_s(record, 1.0) > 0.3, "the time without a server is in the latency"


def test_a_server_that_is_killed_for_good_ends_nothing_before_its_time(victim: Victim) -> None:
    killing = threading.Timer(1.0, victim.kill)
    killing.start()
    began = time.monotonic()
    record = run(victim.server, window_s=3, ignore_errors="all")
    killing.join()
    assert time.monotonic() - began > 2.9
    assert (record["failure"], record["stopped_by"]) == (None, "time")
    assert record["unfinished"] == 8
    assert sum(i["errors"].get("2003", 0) for i in record["intervals"]) > 8
    assert total(record, "reconnects") == 0
