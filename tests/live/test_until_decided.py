"""A run on real servers that ends when its question is answered, and stays ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab_process
from lab_process import finished, processes_of, stored

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]
TWINS = ["a=mysql:5.7.22", "b=mysql:5.7.22", "--workload", "oltp_point_select", "--threads", "2"]
TINY = ["--tables", "1", "--table-size", "1000", "--warmup", "0", "--window", "1"]
# Twins differ by less than this, whatever else the machine does meanwhile.
MARGIN = ["--margin", "0.9"]


@pytest.fixture
def workspace() -> Iterator[Path]:
    with lab_process.workspace() as folder:
        yield folder


def test_twins_are_told_alike_before_the_last_block_and_a_resumed_run_adds_none(
    workspace: Path,
) -> None:
    until_decided = ["--stop", "decided", "--blocks", "8", *MARGIN, "--output", "json"]
    ended = finished(workspace, "compare", *TWINS, *TINY, *until_decided)
    assert ended.returncode == 0, ended.stderr
    rows = stored(workspace)
    blocks = len(rows) // 2
    assert 3 <= blocks < 8
    assert f"decided after {blocks} of at most 8 blocks" in ended.stderr
    assert "16 trials at most" in ended.stderr
    told = json.loads(ended.stdout)
    (verdict,) = told["verdicts"]
    assert (verdict["word"], verdict["estimate"]["blocks"]) == ("equivalent", blocks)
    assert told["run"]["complete"] is True
    again = finished(workspace, "compare", "--resume", "latest")
    assert again.returncode == 0, again.stderr
    assert stored(workspace) == rows
    assert processes_of(workspace) == []
