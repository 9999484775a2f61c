"""A run that nobody looks after: killed at any moment, it leaves nothing and is gone on with."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import lab_process
from support.lab_process import GONE_S, finished, processes_of, started, stored, until

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]
KILLS = 20
PLAN = """
systems:
  - {label: a, reference: "mysql:5.7.22"}
  - {label: b, reference: "mysql:5.7.22"}
workloads: [oltp_point_select, oltp_read_write]
dataset: {tables: 1, rows: 1000}
load: {threads: [2, 4]}
trial: {warmup: 0, window: 1s}
design: {blocks: 3}
"""


@pytest.fixture
def workspace() -> Iterator[Path]:
    with lab_process.workspace() as folder:
        yield folder


def test_twenty_kills_at_random_moments_leave_nothing_and_lose_nothing(workspace: Path) -> None:
    plan = workspace.parent / "plan.yaml"
    plan.write_text(PLAN)
    moments = random.Random(20)  # the same ones each time, wherever they fall
    kept: list[str] = []
    for kill in range(KILLS):
        resumed = ["--resume"] if kept else []
        with started(workspace, "run", str(plan), *resumed) as lab:
            time.sleep(moments.uniform(0, 4))
            os.kill(lab.pid, signal.SIGKILL)
        until(lambda: processes_of(workspace) == [], f"all gone after kill {kill}", GONE_S)
        keys = [row["trial_key"] for row in stored(workspace) if row["failure"] is None]
        assert keys[: len(kept)] == kept, "a stored trial was lost"
        kept = keys
        if len(kept) == 24:
            break
    run = ["--resume"] if kept and len(kept) < 24 else []
    ended = finished(workspace, "run", str(plan), *run)
    assert ended.returncode == 0, ended.stderr
    done = [row for row in stored(workspace) if row["failure"] is None]
    last = done[-1]["run_id"]
    assert len({row["trial_key"] for row in done if row["run_id"] == last}) == 24
    assert processes_of(workspace) == []
