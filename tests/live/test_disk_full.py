"""A disk that is too small, and one that fills up while the dataset is loaded: both end in time.

The file system is real and small, and so is the server.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil
import pytest

from support.real_server import CROWDED

pytestmark = pytest.mark.live
LEFT_BYTES = 60_000_000
PIECE_BYTES = 4_000_000
SMALL = ["--set", "innodb_log_file_size=8M", "--set", "innodb_buffer_pool_size=64M", *CROWDED]


@pytest.fixture
def small_disk() -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system to fill up")
    with tempfile.TemporaryDirectory(prefix="dbdyno-disk-") as name:
        folder = Path(name)
        mount = ["mount", "-t", "tmpfs", "-o", "size=900M,mode=755", "tmpfs", name]
        mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            pytest.skip(f"this sandbox does not let root mount: {mounted.stderr.strip()}")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


def compare(workspace: Path, *typed: str) -> list[str]:
    return [
        *(sys.executable, "-m", "dbdyno", "compare", "a=mysql:5.7.22", "b=mysql:5.7.22"),
        # Controls would be a third data directory, for which the disk is too small.
        *("--tables", "4", *typed, "--workspace", str(workspace), *SMALL),
    ]


def processes_on(folder: Path) -> list[psutil.Process]:
    return [
        p
        for p in psutil.process_iter(["cmdline"])
        if str(folder) in " ".join(p.info["cmdline"] or [])
    ]


def test_a_plan_that_cannot_fit_is_refused_before_its_first_row(small_disk: Path) -> None:
    ended = subprocess.run(
        compare(small_disk / "runs", "--table-size", "2000000"),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "the disk is too small for this plan" in ended.stderr
    assert "loading rows" not in ended.stderr
    assert ended.stdout == ""
    assert processes_on(small_disk) == []


def test_a_disk_that_fills_up_while_loading_is_said_and_orphans_nothing(small_disk: Path) -> None:
    workspace = small_disk / "runs"
    with subprocess.Popen(
        compare(workspace, "--table-size", "40000"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stderr is not None
        assert run.stdout is not None
        told = _fill_when_loading(run.stderr, small_disk / "ballast")
        told += run.stderr.read()
        assert run.stdout.read() == ""
        assert run.wait(60) == 1, told
    assert "Traceback" not in told
    assert "the disk is nearly full" in told, told
    assert "free space where the workspace is" in told
    assert processes_on(small_disk) == []
    assert (workspace / "dbdyno.sqlite").is_file()


def _fill_when_loading(stderr: IO[str], ballast: Path) -> str:
    """Leaves little room once rows are being loaded; what was said until then."""
    told = ""
    for line in stderr:
        told += line
        if "loading rows" in line:
            with ballast.open("wb") as file, suppress(OSError):  # the server takes room as well
                while shutil.disk_usage(ballast.parent).free > LEFT_BYTES:
                    os.posix_fallocate(file.fileno(), ballast.stat().st_size, PIECE_BYTES)
            break
    return told
