"""A disk that fills up while the dataset is loaded: a real small file system, a real server."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.live
SMALL = ["--set", "innodb_log_file_size=8M", "--set", "innodb_buffer_pool_size=64M"]


@pytest.fixture
def small_disk() -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system to fill up")
    with tempfile.TemporaryDirectory(prefix="dbdyno-disk-") as name:
        folder = Path(name)
        mount = ["mount", "-t", "tmpfs", "-o", "size=420M,mode=755", "tmpfs", name]
        mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            pytest.skip(f"this sandbox does not let root mount: {mounted.stderr.strip()}")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


def test_a_full_disk_while_preparing_is_said_and_orphans_nothing(small_disk: Path) -> None:
    workspace = small_disk / "runs"
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "dbdyno", "compare", "a=mysql:5.7.22", "b=mysql:5.7.22"),
            *("--tables", "4", "--table-size", "400000", "--workspace", str(workspace), *SMALL),
        ],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "could not load the dataset" in ended.stderr
    assert "free space where the workspace is" in ended.stderr
    assert ended.stdout == ""
    left = [
        p
        for p in psutil.process_iter(["cmdline"])
        if str(small_disk) in " ".join(p.info["cmdline"] or [])
    ]
    assert left == []
    assert (workspace / "dbdyno.sqlite").is_file()
