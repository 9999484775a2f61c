"""The server's counters are read each second beside the load, and never instead of it."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from itertools import pairwise
from typing import Any

import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment.watch.status import StatusWatch, scheduled_s, waiting_statements
from dbdyno.servers.base import observe
from support.fake_members import FakeMember
from support.lab_process import until


class Observed:
    """A server and its observer, which counts its own readings."""

    pid, asked, closed, is_alive = 0, 0, False, True

    def observer(self) -> Observed:
        return self

    def read(self) -> dict[str, float]:
        if not self.is_alive:
            raise ServerError("a: no answer", found="connection refused")
        self.asked += 1
        return {"Questions": 10.0 * self.asked, "Threads_running": 2.0}

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def server() -> Any:
    return Observed()


def test_every_reading_is_a_place_in_every_column(server: Any) -> None:
    began_s = time.monotonic()
    with StatusWatch(server, period_s=0.02) as watch:
        origin_s = time.monotonic()
        until(lambda: len(watch.series(origin_s).at_s) >= 3, "three readings")
    series = watch.series(origin_s)
    count = len(series.at_s)
    assert count >= 3
    assert series.at_s[0] >= 0
    assert list(series.at_s) == sorted(series.at_s)
    assert len(series.took_ms) == count
    assert {name: len(column) for name, column in series.counters.items()} == {
        "Questions": count,
        "Threads_running": count,
    }
    questions = [value for value in series.counters["Questions"] if value is not None]
    assert questions == sorted(questions)
    assert series.trouble is None
    assert server.closed
    assert len(watch.series(began_s).at_s) >= count


def test_a_server_that_dies_ends_the_readings_and_nothing_else(server: Any) -> None:
    with StatusWatch(server, period_s=0.02) as watch:
        origin_s = time.monotonic()
        until(lambda: watch.series(origin_s).at_s, "a reading")
        server.is_alive = False
        until(lambda: watch.series(origin_s).trouble, "a reading in vain")
    series = watch.series(origin_s)
    assert series.trouble == "the server's counters could not be read: connection refused"
    assert len(series.at_s) >= 1


def test_an_answer_that_takes_long_skips_seconds_and_does_not_hold_the_trial(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbdyno.experiment.watch.status.LAST_ANSWER_S", 0.1)
    asked, released, answered = threading.Event(), threading.Event(), threading.Event()

    def answer_when_released() -> dict[str, float]:
        asked.set()
        released.wait(30)
        answered.set()
        return {"Questions": 1.0}

    with StatusWatch(server, period_s=0.02) as watch:
        origin_s = time.monotonic()
        monkeypatch.setattr(server, "read", answer_when_released)
        assert asked.wait(30)
        before = watch.series(origin_s)
        time.sleep(0.2)
        assert watch.series(origin_s) == before
    assert not answered.is_set()
    released.set()


def test_a_server_that_answers_slowly_is_not_asked_without_a_pause(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_s: list[float] = []

    def answer_slowly() -> dict[str, float]:
        asked_s.append(time.monotonic())
        time.sleep(0.15)
        return {"Questions": 1.0}

    ends = time.monotonic() + 60
    with StatusWatch(server, period_s=0.1):
        monkeypatch.setattr(server, "read", answer_slowly)
        while len(asked_s) < 4 and time.monotonic() < ends:
            time.sleep(0.01)
    assert min(after - before for before, after in pairwise(asked_s)) >= 0.24


def test_a_server_without_observers_is_asked_for_its_whole_status() -> None:
    class Plain:
        def __init__(self) -> None:
            self.pid = os.getpid()

        def status(self) -> dict[str, float]:
            return {"pg_stat_wal.wal_bytes": 8.0}

    observer = observe(Plain())  # type: ignore[arg-type]
    assert observer.read() == {"pg_stat_wal.wal_bytes": 8.0}
    with StatusWatch(Plain(), period_s=0.02) as watch:  # type: ignore[arg-type]
        origin_s = time.monotonic()
        until(lambda: watch.series(origin_s).at_s, "a reading")
    assert set(watch.series(origin_s).counters) == {"pg_stat_wal.wal_bytes"}


def session(number: str, user: str, command: str, state: str, sql: str) -> tuple[str, ...]:
    return (number, user, "somewhere", "sbtest", command, "5", state, sql)


SESSIONS = [
    session("7", "load", "Query", "starting", "SHOW PROCESSLIST"),
    session("8", "load", "Query", "updating", "UPDATE sbtest1 SET k = k + 1 WHERE id = 7"),
    session("9", "load", "Sleep", "", ""),
    session("10", "somebody", "Query", "updating", "UPDATE shop SET n = 1"),
]


def test_statements_that_wait_are_those_of_the_load_alone() -> None:
    server = FakeMember("tidb", {"SHOW PROCESSLIST": SESSIONS, "CONNECTION_ID()": [("7",)]})
    assert waiting_statements(server) == {"UPDATE: updating": 1}
    other = [session("7", "load", "Query", "", "SELECT 1"), *SESSIONS[1:]]
    server.answers["SHOW PROCESSLIST"] = other
    assert waiting_statements(server) == {"UPDATE: updating": 1}


def test_a_server_that_names_no_sessions_leaves_open_what_waits() -> None:
    refusing = FakeMember("a", {"SHOW PROCESSLIST": ServerError("no such command")})
    assert waiting_statements(refusing) is None


def test_time_on_a_cpu_is_finer_than_ticks() -> None:
    before_s = scheduled_s(os.getpid())
    until_s = time.thread_time() + 0.05
    while time.thread_time() < until_s:
        pass
    assert 0.04 < scheduled_s(os.getpid()) - before_s < 2.0
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert scheduled_s(gone.pid) == 0.0
