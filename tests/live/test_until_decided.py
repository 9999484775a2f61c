"""A run on real servers that ends when its question is answered, and stays ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.judge.judgement import enough
from dbdyno.store.store import Store
from support.lab_process import finished, processes_of, stored
from support.real_server import REDO_BYTES

pytestmark = pytest.mark.live
# Twins differ by less than the margin, unless the machine does much else meanwhile.
TWINS = f"""
title: Twins
systems:
  - {{label: a, reference: mysql:5.7.22, settings: {{innodb_log_file_size: {REDO_BYTES}}}}}
  - {{label: b, reference: mysql:5.7.22, settings: {{innodb_log_file_size: {REDO_BYTES}}}}}
workloads: [oltp_point_select]
load: {{threads: [2]}}
dataset: {{tables: 1, rows: 1000}}
trial: {{warmup: 0s, window: 1s}}
design: {{stop: decided, blocks: 4, margin: 90%, disturbance_max: 100%}}
"""


def test_a_run_ends_after_the_first_block_that_decides_and_a_resumed_one_adds_none(
    workspace: Path,
) -> None:
    plan = workspace.with_name("twins.yaml")
    plan.write_text(TWINS)
    ended = finished(workspace, "run", str(plan), "--output", "json")
    assert ended.returncode == 0, ended.stderr
    assert "8 trials at most" in ended.stderr
    rows = stored(workspace)
    with Store.open(workspace) as store:
        (run,) = store.runs()
        measured = store.measurements(run.run_id)
    blocks = len(measured) // 2
    first = [enough(measured[: 2 * upto], run.plan) for upto in range(1, blocks + 1)]
    assert 3 <= blocks <= 4
    assert not any(first[:-1])
    assert first[-1] or blocks == 4  # on a machine as noisy as that
    assert ("ended after 3 of at most 4 blocks" in ended.stderr) is (blocks == 3)
    told = json.loads(ended.stdout)
    assert (told["run"]["complete"], told["run"]["trials_planned"]) == (True, 2 * blocks)
    # Which word is no matter here: of twins, one interval in twenty misses the truth.
    assert (told["verdicts"][0]["word"] != "undecided") is first[-1]
    again = finished(workspace, "resume", "latest")
    assert again.returncode == 0, again.stderr
    assert stored(workspace) == rows
    assert processes_of(workspace) == []
