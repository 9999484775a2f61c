"""The hand-written stub of the engine says what the compiled module really has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.source import LAB


def test_the_stub_is_the_compiled_module(tmp_path: Path) -> None:
    package = tmp_path / "dbdyno"  # the module alone: nobody waits for types of the whole lab
    package.mkdir()
    (package / "__init__.py").touch()
    for name in ("_engine.pyi", "_engine.abi3.so"):
        (package / name).symlink_to(LAB / name)
    allowed = tmp_path / "allowed"
    allowed.write_text("dbdyno._engine.__all__\n")  # pyo3 makes it; a stub needs none
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--allowlist", str(allowed), "dbdyno._engine"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(tmp_path), "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
