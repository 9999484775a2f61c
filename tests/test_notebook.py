"""The example notebook runs from first to last cell on a stored run, and shows something.

It runs in a process of its own, so that no socket or event loop of Jupyter's ends in another test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from support.source import LAB, ROOT
from support.stored_run import store_made

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
EXECUTE = "from nbclient.cli import main; main()"
"""What `jupyter execute` runs."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    store_made(tmp_path / "dbdyno-runs", (0.76, 0.77, 0.78))
    copy = Path(shutil.copy(path, tmp_path))
    folders = {"IPYTHONDIR": str(tmp_path / "ipython"), "JUPYTER_RUNTIME_DIR": str(tmp_path / "r")}
    ended = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(copy), "--inplace", "--timeout=120"],
        env={**os.environ, "PYTHONPATH": str(LAB.parent), **folders},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    cells = [c for c in nbformat.read(copy, as_version=4).cells if c.cell_type == "code"]
    shown = [output for cell in cells for output in cell.outputs]
    assert len(shown) >= len(cells)
    texts = str(shown)
    assert "image/svg+xml" in texts
    assert "| slower |" in texts
    assert "gate fails with a limit of 3 %" in texts
    assert "shape: (0, " not in texts


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_it_showed(path: Path) -> None:
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert [c for c in cells if c.outputs or c.execution_count] == []
