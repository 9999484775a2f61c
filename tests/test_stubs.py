"""The hand-written stub of the engine says what the compiled module really has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.source import ROOT


def test_the_stub_is_the_compiled_module(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.write_text("dbdyno._engine.__all__\n")  # pyo3 makes it; a stub needs none
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--allowlist", str(allowed), "dbdyno._engine"],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": "lab"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
