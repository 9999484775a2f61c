"""The benchmarks run, tiny, so that they cannot rot; their figures mean nothing here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from source import ROOT

pytestmark = pytest.mark.live


def test_client_cpu_compares_both_programs_on_one_server(tmp_path: Path) -> None:
    if shutil.which("sysbench") is None:
        pytest.skip("sysbench is not installed; `make test` as root installs it")
    samples = tmp_path / "samples.json"
    cell = ["--workloads", "oltp_point_select", "--connections", "2", "--table-size", "100"]
    size = ["--seconds", "1", "--repeats", "1", "--target", "1000", "--cell-most", "1000"]
    size += ["--json", str(samples)]
    ended = subprocess.run(
        [sys.executable, "-m", "bench.client_cpu", "--system", "mysql:5.7.22", *cell, *size],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "geometric mean" in ended.stdout
    measured = json.loads(samples.read_text())["samples"]
    assert sorted((sample["transport"], sample["program"]) for sample in measured) == [
        ("socket", "dbdyno"),
        ("socket", "sysbench"),
        ("tcp", "dbdyno"),
        ("tcp", "sysbench"),
    ]
    assert all(sample["queries"] > 100 and sample["cpu_s"] > 0 for sample in measured)
