"""Whatever call to the file system goes wrong, nothing stored is lost and nothing is left behind.

A lab's life of some 950 calls, each of which can be killed, torn, halted, or refused (EIO, no space
left): `support/faults.py`. Here one fault at each third kind of call and file, in `make nightly` at
each of them; DBDYNO_FAULTS=kinds tries all five for each, DBDYNO_FAULTS=all every call, which takes
the better part of an hour.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from support import faults

ASKED = os.environ.get("DBDYNO_FAULTS", "points")
TESTS = Path(__file__).parents[1]
MEMORY = Path("/dev/shm")
HOURS_S = 4 * 3600


@pytest.mark.timeout(1800 if ASKED == "points" else HOURS_S)
@pytest.mark.parametrize("share", ["third", pytest.param(ASKED, marks=pytest.mark.nightly)])
def test_no_fault_loses_or_leaves_anything(tmp_path: Path, share: str) -> None:
    shim = faults.shim(tmp_path)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        done = subprocess.run(
            [sys.executable, "-m", "support.faults", folder, share],
            env={**os.environ, "LD_PRELOAD": str(shim), "PYTHONPATH": str(TESTS)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
    summary = json.loads(done.stdout.splitlines()[-1])
    sys.stdout.write(f"{summary}; lost or doubled: 0\n")
    assert summary["points"] > 100
    assert set(summary["ends"]) == {"killed", "ended with an error", "went on"}
