"""An engine that answers at once with a made record; only what the persona asks it for."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbdyno import _engine
from dbdyno.sysbench.entry import main
from support.source import ROOT
from support.sysbench import ENTRY, Ended, Shell, interval, live_interval

Json = dict[str, Any]


class FakeEngine:
    """Keeps the specs it is given; `before_end` runs in the middle of a work, `raises` ends it."""

    def __init__(self) -> None:
        self.specs: list[dict[str, Any]] = []
        self.intervals = [
            interval(0.0, 1.0, [1, 2, 3, 4], "measured"),
            interval(1.0, 2.0, [2, 2, 2, 10], "measured"),
            interval(2.0, 2.0125, [3], "drain"),
        ]
        self.failure: dict[str, Any] | None = None
        self.more: dict[str, Any] = {}
        self.raises: Exception | None = None
        self.before_end: Callable[[threading.Event], None] = lambda stop: None

    def _take(self, spec: Json) -> Json:
        self.specs.append(spec)
        if self.raises:
            raise self.raises
        return spec

    def run(self, spec: Json, on_interval: Callable[[Json], None], stop: threading.Event) -> Json:
        asked = self._take(spec)
        for one in self.intervals:
            on_interval(live_interval(one, asked))
        self.before_end(stop)
        return {
            "engine_version": "0.1.0",
            "reactor": "io_uring",
            "threads": 1,
            "connections": asked["connections"],
            "server_version": "8.0.31",
            "measured": {"cpu_s": 0.5, "cpu_share_max": 0.25},
            "intervals": self.intervals,
            "fairness": {
                "events_mean": 4.5,
                "events_stddev": 0.5,
                "seconds_mean": 0.0145,
                "seconds_stddev": 0.0,
            },
            "stopped_by": "stop" if stop.is_set() else "time",
            "failure": self.failure,
            **self.more,
        }

    def prepare(
        self, spec: Json, on_progress: Callable[[Json], None], stop: threading.Event
    ) -> Json:
        self.before_end(stop)
        asked = self._take(spec)
        rows = asked["table_size"] * asked["tables"]
        stages = ["create", *(["insert", "insert"] if rows else []), "index"]
        for table in range(1, asked["tables"] + 1):
            for stage in stages:
                on_progress({"table": table, "rows_done": 0, "rows_total": rows, "stage": stage})
        return {"tables": asked["tables"], "rows": rows, "seconds": 1.0}

    def prewarm(
        self, spec: Json, on_progress: Callable[[Json], None], stop: threading.Event
    ) -> Json:
        self.before_end(stop)
        asked = self._take(spec)
        for table in range(1, asked["tables"] + 1):
            on_progress({"table": table, "stage": "prewarm"})
        return {}

    def cleanup(self, spec: Json, stop: threading.Event) -> Json:
        self.before_end(stop)
        self._take(spec)
        return {}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    fake = FakeEngine()
    workloads = ["oltp_read_write", "oltp_read_only", "oltp_write_only", "oltp_point_select"]
    workloads += ["oltp_insert", "select_random_points", "select_random_ranges", "bulk_insert"]
    monkeypatch.setattr(_engine, "workloads", lambda: workloads, raising=False)
    monkeypatch.setattr(_engine, "Stop", threading.Event, raising=False)
    for name in ("run", "prepare", "prewarm", "cleanup"):
        monkeypatch.setattr(_engine, name, getattr(fake, name), raising=False)
    monkeypatch.delenv("MYSQL_PWD", raising=False)
    monkeypatch.delenv("MYSQL_UNIX_PORT", raising=False)
    return fake


class Command:
    """Calls main and keeps what was printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.stdout = self.stderr = ""

    def __call__(self, line: str) -> int:
        status = main(line.split())
        self.stdout, self.stderr = self._capsys.readouterr()
        return status


@pytest.fixture
def sysbench(engine: FakeEngine, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Writes a script as `script.lua` and runs a line in its folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lab"), "HOME": str(tmp_path)}

    def run(line: str, script: str | None = None, *, stdin: str = "", timeout: float = 60) -> Ended:
        if script is not None:
            (tmp_path / "script.lua").write_text(script)
        return subprocess.run(
            [sys.executable, "-c", ENTRY, *line.split()],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env=environment,
            cwd=tmp_path,
            input=stdin,
        )

    return run
