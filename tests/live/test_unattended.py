"""A lab on real servers that is killed at each of its steps leaves no process, and is resumed.

Faults of the file system: `tests/experiment/test_faults.py` tries each of the lab's calls.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.lab_process import GONE_S, feed, finished, processes_of, started, stored, until
from support.real_server import SMALL_REDO

pytestmark = pytest.mark.live
PLAN = f"""
systems:
  - {{label: a, reference: "mysql:5.7.22", settings: {SMALL_REDO}}}
  - {{label: b, reference: "mysql:5.7.22", settings: {SMALL_REDO}}}
workloads: [oltp_read_write]
dataset: {{tables: 1, rows: 1000}}
load: {{threads: [2]}}
trial: {{warmup: 0, window: 2s}}
design: {{blocks: 2, disturbance_max: 100%}}
"""
TRIALS = 4
UNDER_LOAD = "the load itself"
STEPS = ("a: loading rows", "b: keeping a copy", UNDER_LOAD, "TPS", "stopping the server")
"""Words of its progress at which the lab is killed, each time in the run that was ended before."""


def test_kills_at_every_step_leave_nothing_lose_nothing_and_repeat_nothing(workspace: Path) -> None:
    plan = workspace.parent / "plan.yaml"
    plan.write_text(PLAN)
    kept: list[dict[str, Any]] = []
    for number, step in enumerate(STEPS):
        typed = ("resume", "latest") if number else ("run", str(plan))
        killed_at(step, workspace, typed, number)
        until(lambda: processes_of(workspace) == [], f"all gone after a kill at {step}", GONE_S)
        rows = stored(workspace)
        assert rows[: len(kept)] == kept, "a stored trial was lost"
        kept = rows
    assert 0 < len(kept) < TRIALS
    ended = finished(workspace, "resume", "latest")
    assert ended.returncode == 0, ended.stderr
    rows = stored(workspace)
    assert rows[: len(kept)] == kept
    assert [row["failure"] for row in rows] == [None] * TRIALS
    assert len({(row["run_id"], row["trial_key"]) for row in rows}) == TRIALS
    assert len({row["run_id"] for row in rows}) == 1
    assert processes_of(workspace) == []


def killed_at(step: str, workspace: Path, typed: tuple[str, ...], number: int) -> None:
    with started(workspace, *typed) as lab:
        if step == UNDER_LOAD:
            until(under_load_of_run(workspace, number + 1), "the load")
        else:
            read_until(lab, step)
        os.kill(lab.pid, signal.SIGKILL)


def under_load_of_run(workspace: Path, number: int) -> Callable[[], bool]:
    """Whether the lab that was started as the n-th has a load on.

    Not by the trials that ended: a kill may fall between a trial's line on stderr and its event in
    the feed.
    """

    def is_under_load() -> bool:
        kinds = [event["kind"] for event in feed(workspace)]
        return kinds.count("run") == number and kinds[-1] == "interval"

    return is_under_load


def read_until(lab: subprocess.Popen[str], step: str) -> None:
    assert lab.stderr is not None
    told = ""
    for line in lab.stderr:
        told += line
        if step in line:
            return
    raise AssertionError(f"it ended without a word of {step}: {told}")
