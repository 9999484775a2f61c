"""The benchmarks run, tiny, so that they cannot rot; their figures mean nothing here."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.real_server import REDO_BYTES
from support.source import ROOT

pytestmark = [pytest.mark.live, pytest.mark.nightly]


@pytest.mark.parametrize("more", [[], ["--lua"]], ids=["built-in", "lua"])
def test_client_cpu_compares_both_programs_on_one_server(tmp_path: Path, more: list[str]) -> None:
    if shutil.which("sysbench") is None:
        pytest.skip("sysbench is not installed; `make test` as root installs it")
    samples = tmp_path / "samples.json"
    cell = ["--workloads", "oltp_point_select", "--connections", "2", "--table-size", "100"]
    size = ["--seconds", "1", "--repeats", "1", "--target", "1000", "--cell-most", "1000"]
    size += ["--json", str(samples), *more]
    ended = bench("client_cpu", "--system", "mysql:5.7.22", *cell, *size)
    assert "geometric mean" in ended.stdout
    measured = json.loads(samples.read_text())["samples"]
    assert sorted((sample["transport"], sample["program"]) for sample in measured) == [
        ("socket", "dbdyno"),
        ("socket", "sysbench"),
        ("tcp", "dbdyno"),
        ("tcp", "sysbench"),
    ]
    assert all(sample["queries"] > 100 and sample["cpu_s"] > 0 for sample in measured)


def bench(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return ran(f"benchmarks.{name}", *arguments)


def ran(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_connections_are_held_and_their_queries_weighed(tmp_path: Path) -> None:
    told = tmp_path / "connections.json"
    size = ["--connections", "300", "--active", "8,200", "--seconds", "0.5", "--repeats", "1"]
    ended = bench("connections", *size, "--rise", "1000", "--json", str(told))
    assert "300 connections over a Unix socket: opened in" in ended.stdout
    assert "memory: target 1074 MB, met" in ended.stdout
    measured = read(told)
    assert measured["opening"]["connections"] == 300
    assert 10e6 < measured["memory_bytes"] < 200e6
    assert [row["connections"] for row in measured["rows"]] == [8, 200]
    few, many = measured["rows"]
    engine, floor = many["engine_us"] / few["engine_us"], many["floor_us"] / few["floor_us"]
    assert measured["rise"] == pytest.approx(engine / floor)
    assert f"engine × {engine:.2f}, floor × {floor:.2f}; " in ended.stdout


@pytest.mark.parametrize("system", ["mysql:5.7.22", "postgres:18.6"])
def test_the_floor_is_measured_beside_the_engine(tmp_path: Path, system: str) -> None:
    told = tmp_path / "floor.json"
    ways = ["io_uring", "io_uring_single_receive", "io_uring_wait_50us", "epoll", "blocking"]
    place = ["--system", system, "--transports", "socket", "--connections", "4"]
    size = ["--table-size", "100", "--seconds", "1", "--repeats", "1"]
    ended = bench("floor", *place, *size, "--ways", ",".join(ways), "--json", str(told))
    assert "CPU per query, µs, medians" in ended.stdout
    samples = read(told)
    assert {*ways, "engine"} <= {sample["program"] for sample in samples}
    assert all(sample["cpu_us_per_query"] > 0 for sample in samples)
    assert all(sample["queries_per_s"] > 100 for sample in samples)


def test_prepare_compares_three_ways_to_load_on_one_server(tmp_path: Path) -> None:
    if shutil.which("sysbench") is None:
        pytest.skip("sysbench is not installed; `make test` as root installs it")
    samples = tmp_path / "samples.json"
    size = ["--shapes", "2x3000", "--threads", "2", "--repeats", "1", "--target", "0"]
    size += ["--redo-file", str(REDO_BYTES)]
    bench("prepare", *size, "--json", str(samples))
    content = read(samples)
    programs = sorted(sample["program"] for sample in content["samples"])
    assert programs == ["infile", "insert", "sysbench"]
    assert all(sample["wall_s"] > 0 for sample in content["samples"])
    for stages in content["rows"][0]["stages_s"].values():
        assert all(stages[name] > 0 for name in ("create", "insert", "index"))


def test_a_given_time_is_tried_on_equal_systems() -> None:
    size = ["--runs", "1", "--time", "10s", "--threads", "2", "--rows", "1000"]
    size += ["--system", "mysql:5.7.22", "--set", f"innodb_log_file_size={REDO_BYTES}"]
    ended = ran("validation.power", "ties", *size)
    assert "better or worse in " in ended.stdout
    assert re.search(r"^1: [a-z ]+; [3-9] blocks in \d+ s$", ended.stdout, re.MULTILINE)


def test_both_generators_are_held_against_a_known_server() -> None:
    if shutil.which("sysbench") is None:
        pytest.skip("sysbench is not installed; `make test` as root installs it")
    ended = ran("validation.truth", "--seconds", "1", "--repeats", "1")
    rows = [line.split("|") for line in ended.stdout.splitlines()[2:]]
    assert [row[2].strip() for row in rows] == ["sysbench", "dbdyno"] * 7
    errors = [cell.strip() for row in rows for cell in row[3:-1]]
    assert all(re.fullmatch(r"[+-][0-9.]+ %|\u2014", cell) for cell in errors), errors
