"""The program as a user runs it, killed in the middle of a window and resumed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from dbdyno.store import Store

pytestmark = pytest.mark.live
DBDYNO = [sys.executable, "-m", "dbdyno"]
COMPARE = [
    *("compare", "a=mysql:5.7.22", "b=mysql:5.7.22", "--threads", "1,2", "--blocks", "1"),
    *("--tables", "1", "--table-size", "1000", "--warmup", "0", "--window", "3"),
]


@pytest.fixture
def workspace() -> Iterator[Path]:
    # Not below pytest's own folder: another pytest closes that to the user the server runs as.
    with TemporaryDirectory(prefix="dbdyno-") as name:
        Path(name).chmod(0o755)
        yield Path(name) / "runs"


def in_workspace(workspace: Path, *arguments: str) -> list[str]:
    return [*DBDYNO, *arguments, "--workspace", str(workspace)]


def test_a_killed_run_is_resumed_and_repeats_nothing(workspace: Path) -> None:
    log = workspace.parent / "progress"
    with log.open("w") as file:
        lab = subprocess.Popen(in_workspace(workspace, *COMPARE), stderr=file)
        _wait_for("trial 2/4", log, lab)
    time.sleep(1)
    family = psutil.Process(lab.pid).children(recursive=True)
    lab.kill()
    lab.wait()
    assert psutil.wait_procs(family, timeout=20)[1] == []
    before = _started(workspace)
    done = subprocess.run(
        in_workspace(workspace, "compare", "--resume", "latest"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    after = _started(workspace)
    assert len(before) == 1
    assert len(after) == 4
    assert before.items() <= after.items()
    assert "report: " in done.stdout
    assert "trial 1/4" not in done.stderr


def _wait_for(text: str, log: Path, lab: subprocess.Popen[bytes]) -> None:
    limit = time.monotonic() + 240
    while text not in log.read_text() and time.monotonic() < limit:
        assert lab.poll() is None, log.read_text()
        time.sleep(0.2)
    assert text in log.read_text()


def _started(workspace: Path) -> dict[str, str]:
    """When each trial of the newest run was measured; every trial once."""
    with Store.open(workspace) as store:
        (run,) = store.runs()
        measured = [m for m in store.measurements(run.run_id) if m.failure is None]
    assert len({m.trial.key for m in measured}) == len(measured)
    return {m.trial.key: m.started_at for m in measured}
