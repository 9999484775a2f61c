"""What the sysbench persona tells, on a real server: its forms agree with each other and with the
server's own counters, and a server that stands still is seen.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from dbdyno.audit.imported import imported
from dbdyno.audit.page.columns import Mapping
from dbdyno.measurement.metric import BY_NAME, PRIMARY
from dbdyno.servers.base import Server
from support.counters import settled
from support.lab_process import until
from support.real_server import SYSBENCH, sysbench_environment, sysbench_options
from support.shared_servers import SharedServers

pytestmark = pytest.mark.live
Done = subprocess.CompletedProcess[str]
STALL_S = 1.3


@pytest.fixture(scope="module", params=["mysql:5.7.22"])
def server(request: pytest.FixtureRequest, shared_servers: SharedServers) -> Iterator[Server]:
    with shared_servers.lent(request.param) as running:
        yield running


@pytest.fixture(scope="module")
def dbdyno(server: Server) -> Callable[[str], Done]:
    options = [*sysbench_options(server), "--table-size=1000"]
    environment = sysbench_environment(MYSQL_PWD=server.credentials.password)

    def run(line: str) -> Done:
        command = [*SYSBENCH, *options, *line.split()]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=120, env=environment
        )

    prepared = run("oltp_read_write prepare")
    assert prepared.returncode == 0, prepared.stdout
    return run


@pytest.fixture
def stalling(server: Server) -> Iterator[Callable[[float], None]]:
    """Stops the server's process some seconds after the load's two sessions have come, for a
    little more than a second: how long a program takes to start depends on the machine."""
    threads: list[threading.Thread] = []

    def stall(after_s: float, for_s: float = STALL_S) -> None:
        sessions = settled(server)["Threads_connected"]

        def stand_still() -> None:
            until(
                lambda: server.status()["Threads_connected"] >= sessions + 2, "the load's sessions"
            )
            time.sleep(after_s)
            os.kill(server.pid, signal.SIGSTOP)
            time.sleep(for_s)
            os.kill(server.pid, signal.SIGCONT)

        threads.append(threading.Thread(target=stand_still))
        threads[-1].start()

    yield stall
    for thread in threads:
        thread.join()


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, text
    return float(found[1])


def test_json_counts_what_the_server_counts(server, dbdyno):
    before = settled(server)
    done = dbdyno("oltp_point_select --threads=4 --time=2 --output=json run")
    told = json.loads(done.stdout)
    selects = settled(server)["Com_select"] - before["Com_select"]
    totals = told["totals"]
    # The server counts the statements by which its counters are read too.
    assert 0 <= selects - totals["reads"] <= 3
    assert totals["events"] == sum(one["events"] for one in told["intervals"]) > 100
    assert told["statements"]["point_selects"]["count"] == totals["reads"]
    assert done.stderr == ""


def test_a_log_of_intervals_has_every_event_of_the_report(dbdyno, tmp_path):
    file = tmp_path / "run.hlog"
    line = f"oltp_read_only --threads=2 --time=2 --output=hlog --output-file={file} run"
    done = dbdyno(line)
    assert done.returncode == 0, done.stdout + done.stderr
    reader = HistogramLogReader(str(file), HdrHistogram(1, 3_600_000_000_000, 3))
    counts: dict[str | None, int] = {}
    while (one := reader.get_next_interval_histogram()) is not None:
        counts[one.get_tag()] = counts.get(one.get_tag(), 0) + one.get_total_count()
    reader.close()
    events = number(r"total number of events: +(\d+)", done.stdout)
    assert counts[None] == counts["event_service"] == events
    assert counts["commit"] == events


def test_rows_follow_the_rate(dbdyno):
    done = dbdyno(
        "oltp_point_select --threads=4 --time=3 --rate=200 --arrival=uniform --output=csv run"
    )
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["time_s"] for row in rows] == ["1", "2", "3"]
    assert all(abs(float(row["due_per_s"]) - 200) <= 1 for row in rows)
    assert all(0 < float(row["latency_ms_p95"]) <= float(row["latency_ms_max"]) for row in rows)


def test_a_rate_shows_a_stall_in_its_percentile(dbdyno, stalling):
    stalling(1.5)
    done = dbdyno("oltp_point_select --threads=2 --time=6 --rate=100 --percentile=90 run")
    # Of 600 events the 130 that were due in the stall waited for its end, so 1 in 10 waited long.
    assert number(r"90th percentile: +(\S+)", done.stdout) > 300
    assert re.search(r"note: stall: for [1-9]", done.stderr)
    assert done.returncode == 0


def test_a_closed_loop_shows_a_stall_in_its_maximum_and_a_note(dbdyno, stalling):
    stalling(1.5)
    done = dbdyno("oltp_point_select --threads=2 --time=4 run")
    assert number(r"max: +(\S+)", done.stdout) > 1000 * STALL_S * 0.9
    assert number(r"95th percentile: +(\S+)", done.stdout) < 1000
    assert re.search(r"note: stall: for [1-9]", done.stderr)


def test_a_server_that_never_answers_again_does_not_hold_the_run(dbdyno, stalling):
    stalling(1.0, 5.5)
    done = dbdyno("oltp_point_select --threads=2 --time=2 --forced-shutdown=1 run")
    assert done.returncode == 2
    assert "forced shutdown: 2\n" in done.stdout
    assert 2.9 < number(r"total time: +(\S+)s", done.stdout) < 5.5


def test_a_server_that_is_asked_too_much_is_told_of(dbdyno):
    done = dbdyno("oltp_read_write --threads=1 --time=2 --rate=50000 run")
    assert done.returncode == 0
    assert "The server did not keep up with the rate." in done.stdout
    due = number(r"fell due +(\d+)", done.stdout)
    done_and_not = [number(rf"were {what} +(\d+)", done.stdout) for what in ("done", "never begun")]
    assert sum(done_and_not) == pytest.approx(due, abs=2)


def test_what_is_printed_can_be_imported(dbdyno: Callable[[str], Done], tmp_path: Path) -> None:
    done = dbdyno("oltp_read_write --threads=2 --time=3 --report-interval=1 --histogram=on run")
    assert done.returncode == 0, done.stderr
    log = tmp_path / "oltp_read_write_2_57.log"
    log.write_text(done.stdout)
    mapping, pattern = Mapping(systems={"57": "MySQL-5.7.22"}), "{workload}_{threads}_{port}"
    run = imported([log], "imported", mapping, pattern)
    assert [system.label for system in run.plan.systems] == ["MySQL-5.7.22"]
    (made,) = run.measurements
    events = int(number(r"total number of events: +(\d+)", done.stdout))
    queries = int(number(r"total: +(\d+)", done.stdout))
    assert (made.failure, made.events, made.queries) == (None, events, queries)
    assert made.value(PRIMARY) == number(r"transactions: +\d+ +\(([\d.]+) per sec", done.stdout)
    assert len(made.intervals) in (3, 4)
    assert made.histogram().count() == events
    p95 = number(r"95th percentile: +([\d.]+)", done.stdout)
    assert made.value(BY_NAME["latency_ms_p95"]) == p95
    assert made.histogram().quantile(0.95) / 1e6 == pytest.approx(p95, rel=0.05)
