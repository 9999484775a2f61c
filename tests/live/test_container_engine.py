"""Containers of MySQL and PostgreSQL run by podman: compared, restored, and gone with a killed lab.

The machine needs podman and must let it run containers: `make nightly` installs it, if it is root.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dbdyno.servers import open
from support.container_images import configured, reference_of
from support.lab_process import GONE_S, finished, started, stored, under_load, until

pytestmark = [pytest.mark.live, pytest.mark.nightly]
SHORT: Final = (
    *("--tables=1", "--table-size=1000", "--threads=2", "--blocks=2", "--warmup=0"),
    *("--disturbance-max=100%", "--lang=en"),
)


@pytest.fixture(autouse=True)
def own_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Podman with a store of its own, and no docker that answers before it."""
    for name, value in configured(folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/no-docker")
    yield
    podman("rm", "--all", "--force", "--volumes")
    podman("volume", "rm", "--all", "--force")
    podman("rmi", "--all", "--force")


def podman(*words: str) -> list[str]:
    """Output of a command of podman, by lines."""
    command = ["podman", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def containers() -> list[str]:
    return podman("ps", "--all", "--quiet")


@pytest.mark.parametrize(
    ("version", "program", "volume", "asked"),
    [
        ("mysql:8.0.15", "bin/mysqld", "/var/lib/mysql", "innodb_log_file_size=50331648"),
        ("postgres:18.6", "bin/postgres", "/var/lib/postgresql", "synchronous_commit=off"),
    ],
)
def test_a_container_is_compared_restored_for_each_block_and_gone_with_a_killed_lab(
    workspace: Path, version: str, program: str, volume: str, asked: str
) -> None:
    home = open.get(version, lambda text: None)
    reference = reference_of(version.partition(":")[0], volume, home / program, home)
    systems = (f"boxed={reference}", f"local={version}", f"--set={asked}")
    ended = finished(workspace, "compare", *systems, *SHORT, "--window=2s")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("boxed: restoring the dataset") == 2
    trials = stored(workspace)
    assert sorted((row["system"], row["block"]) for row in trials) == [
        (system, block) for system in ("boxed", "local") for block in (0, 1)
    ]
    name, _, value = asked.partition("=")
    for row in trials:
        measured = json.loads(row["measurement"])
        assert row["failure"] is None
        assert not measured["rows_short"]
        assert measured["server"]["settings"][name] == value
        assert measured["server"]["cpu_s"] > 0, f"{row['system']}: its process was not seen"
    assert containers() == []
    assert [line.rpartition("-")[2] for line in podman("volume", "ls", "--quiet")] == ["copy"]

    with started(workspace, "compare", *systems, *SHORT, "--window=60s") as lab:
        until(under_load(workspace), "the load")
        assert len(containers()) == 1
        os.kill(lab.pid, signal.SIGKILL)
        until(lambda: containers() == [], "no container after the lab was killed", GONE_S)
