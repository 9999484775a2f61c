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
    size = ["--seconds", "1", "--repeats", "1", "--target", "1000", "--json", str(samples)]
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
    assert sorted(sample["program"] for sample in measured) == ["dbdyno", "sysbench"]
    assert all(sample["queries"] > 100 and sample["cpu_s"] > 0 for sample in measured)


def test_prepare_compares_three_ways_to_load_on_one_server(tmp_path: Path) -> None:
    if shutil.which("sysbench") is None:
        pytest.skip("sysbench is not installed; `make test` as root installs it")
    samples = tmp_path / "samples.json"
    size = ["--shapes", "2x3000", "--threads", "2", "--repeats", "1", "--target", "0"]
    ended = subprocess.run(
        [sys.executable, "-m", "bench.prepare", *size, "--json", str(samples)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    content = json.loads(samples.read_text())
    programs = sorted(sample["program"] for sample in content["samples"])
    assert programs == ["infile", "insert", "sysbench"]
    assert all(sample["wall_s"] > 0 for sample in content["samples"])
    for stages in content["rows"][0]["stages_s"].values():
        assert all(stages[name] > 0 for name in ("create", "insert", "index"))
