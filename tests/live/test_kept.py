"""A real server that stays between commands, as it is typed, and the client that logs in to it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

import dbdyno
from dbdyno.servers.kept import kept
from support.lab_process import GONE_S, lives
from support.real_server import CROWDED, SMALL_REDO, SMALL_REDO_TYPED

pytestmark = pytest.mark.live
LAB = str(Path(dbdyno.__file__).parents[1])
SMALL = ("--set", "innodb_redo_log_capacity=48M", "--set", "innodb_buffer_pool_size=128M")
TINY = (
    *("--workload", "oltp_point_select", "--threads", "1", "--tables", "1", "--table-size", "100"),
    *("--blocks", "1", "--warmup", "0", "--window", "1", *CROWDED),
)


@pytest.fixture
def workspace() -> Iterator[Path]:
    with TemporaryDirectory(prefix="dbdyno-kept-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
        for server in kept.all_of(Path(name) / "dbdyno-runs"):
            kept.stop(server, lambda text: None)


def dbdyno_in(workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dbdyno", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=workspace,
        env={**os.environ, "PYTHONPATH": LAB},
        timeout=120,
    )


def typed(workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return dbdyno_in(workspace, "servers", *words)


def facts(started: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What `servers start` has printed, by name."""
    assert started.returncode == 0, started.stderr
    return dict(line.split(": ", 1) for line in started.stdout.splitlines())


def wait_for_end(pid: int) -> None:
    ends = time.monotonic() + GONE_S
    while lives(pid):
        assert time.monotonic() < ends, "the server outlived its supervisor"
        time.sleep(0.02)


def test_a_server_is_started_asked_and_stopped_by_four_commands(workspace: Path) -> None:
    """With a version whose programs include the client: a machine need not have one."""
    started = facts(typed(workspace, "start", "mysql:8.0.33", "--name", "try", *SMALL))
    pid = int(started["pid"])
    told = typed(workspace, "status").stdout
    assert told.startswith(f"try  mysql:8.0.33  running  pid {pid}  127.0.0.1:")
    assert psutil.Process(pid).name() == "mysqld"
    question = "SELECT VERSION(), @@innodb_buffer_pool_size, DATABASE()"
    answered = typed(workspace, "shell", "-N", "-e", question)
    assert answered.stdout.split() == ["8.0.33", str(128 * 1024**2), "sbtest"], answered.stderr
    stopped = typed(workspace, "stop", "try")
    assert (stopped.returncode, stopped.stdout) == (0, "")
    wait_for_end(pid)
    assert kept.all_of(workspace / "dbdyno-runs") == []


def test_the_printed_commands_work_and_the_server_is_compared_with_another(workspace: Path) -> None:
    started = facts(typed(workspace, "start", "mysql:8.0.33", "--name", "try", *SMALL))
    for name, more in (("prepare", ()), ("run", ("--time=1",))):
        program, *words = shlex.split(started[name])
        ended = dbdyno_in(workspace, *words, *more)
        assert (program, ended.returncode) == ("dbdyno", 0), ended.stdout + ended.stderr
    assert "transactions:" in ended.stdout
    words[-1] = "cleanup"
    assert dbdyno_in(workspace, *words).returncode == 0
    setting = ("--set", "mysql:8.0.33:innodb_redo_log_capacity=48M")
    compared = dbdyno_in(workspace, "compare", "mysql:8.0.33", "--server", "try", *TINY, *setting)
    assert compared.returncode == 0, compared.stderr
    assert "try" in compared.stdout
    secret = Path(started["password file"]).read_text()
    runs = workspace / "dbdyno-runs"
    kept_files = [*runs.glob("dbdyno.sqlite*"), *runs.glob("*/report.*"), *runs.glob("*/log.txt")]
    assert len(kept_files) > 2
    assert [path for path in kept_files if secret.encode() in path.read_bytes()] == []


def test_the_server_ends_with_a_supervisor_that_is_killed(workspace: Path) -> None:
    folder = workspace / "dbdyno-runs"
    server = kept.start(folder, "try", "mysql:5.7.22", SMALL_REDO, lambda text: None)
    assert server.state is not None
    os.kill(json.loads((server.folder / "lock").read_text())["pid"], signal.SIGKILL)
    wait_for_end(server.state.pid)
    assert typed(workspace, "status").stdout.split()[2] == "ended"
    assert typed(workspace, "stop").returncode == 0


def test_a_setting_that_cannot_be_is_told_and_leaves_nothing(workspace: Path) -> None:
    started = typed(
        workspace, "start", "mysql:5.7.22", *SMALL_REDO_TYPED, "--set", "innodb_wonder=1"
    )
    assert (started.returncode, started.stdout) == (1, "")
    assert "unknown variable 'innodb_wonder=1'" in started.stderr
    assert kept.all_of(workspace / "dbdyno-runs") == []
