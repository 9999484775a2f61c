"""A run that nobody looks after: killed at each of its steps, it leaves nothing and is resumed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import lab_process
from support.lab_process import GONE_S, finished, processes_of, started, stored, until

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]
PLAN = """
systems:
  - {label: a, reference: "mysql:5.7.22"}
  - {label: b, reference: "mysql:5.7.22"}
workloads: [oltp_point_select, oltp_read_write]
dataset: {tables: 1, rows: 1000}
load: {threads: [2]}
trial: {warmup: 0, window: 1s}
design: {blocks: 2}
"""
TRIALS = 8
STEPS = (
    "a: loading table",
    "a: building the index",
    "a: taking a digest",
    "a: copying the dataset aside",
    "a: keeping a copy",
    "b: starting the server",
    "b: keeping a copy",
    "how fast the load is without a server",
    "restoring the dataset",
    "starting the server",
    "TPS",
    "stopping the server",
    "TPS",
    "trial ",
)
"""Words of the progress at which the lab is killed, each time in a run that goes on from there."""


@pytest.fixture
def workspace() -> Iterator[Path]:
    with lab_process.workspace() as folder:
        yield folder


def test_kills_at_every_step_leave_nothing_and_lose_nothing(workspace: Path) -> None:
    plan = workspace.parent / "plan.yaml"
    plan.write_text(PLAN)
    kept: list[str] = []
    for step in STEPS:
        resumed = ["--resume"] if kept else []
        with started(workspace, "run", str(plan), *resumed) as lab:
            assert lab.stderr is not None
            told = []
            while told[-1:] == [] or step not in told[-1]:
                told.append(lab.stderr.readline())
                assert told[-1], (step, told)
            os.kill(lab.pid, signal.SIGKILL)
        until(lambda: processes_of(workspace) == [], f"all gone after a kill at {step}", GONE_S)
        keys = [row["trial_key"] for row in stored(workspace) if row["failure"] is None]
        assert keys[: len(kept)] == kept, "a stored trial was lost"
        kept = keys
    assert 0 < len(kept) < TRIALS
    ended = finished(workspace, "run", str(plan), "--resume")
    assert ended.returncode == 0, ended.stderr
    done = [row for row in stored(workspace) if row["failure"] is None]
    last = done[-1]["run_id"]
    assert len({row["trial_key"] for row in done if row["run_id"] == last}) == TRIALS
    assert processes_of(workspace) == []
