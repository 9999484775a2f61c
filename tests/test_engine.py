"""The engine as Python sees it: its hand-written stub, and the specs that it cannot take."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dbdyno import _engine
from support.source import LAB


def test_the_stub_is_the_compiled_module(tmp_path: Path) -> None:
    package = tmp_path / "dbdyno"  # the module alone: nobody waits for types of the whole lab
    package.mkdir()
    (package / "__init__.py").touch()
    for name in ("_engine.pyi", "_engine.abi3.so"):
        (package / name).symlink_to(LAB / name)
    allowed = tmp_path / "allowed"
    # pyo3 makes the former, and a stub needs none; the latter is a name for types alone.
    allowed.write_text("dbdyno._engine.__all__\ndbdyno._engine.Json\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--allowlist", str(allowed), "dbdyno._engine"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(tmp_path), "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


DEEP: Any = []
for _ in range(1000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "^tables: a number that is not finite$"),
        (2**64, "18446744073709551616 has more than 64 bits"),
        (-(2**63) - 1, "has more than 64 bits"),
        ({1}, "the engine takes no set"),
        ("\ud800", "^tables: text that is not UTF-8$"),
        (DEEP, "nested too deeply"),
        (True, "invalid type: boolean"),
        ([1], "invalid type: sequence"),
    ],
)
def test_a_spec_that_the_engine_cannot_take_is_refused(value: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        _engine.cleanup({"tables": value}, _engine.Stop())
