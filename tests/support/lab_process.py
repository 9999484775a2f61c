"""Runs the lab as a user does, in a process of its own, and sees what it leaves behind."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from dbdyno.servers.programs import places

DBDYNO = Path(sysconfig.get_path("scripts")) / "dbdyno"
GONE_S = 40
"""The kernel ends a dead lab's processes at once; on a busy machine their memory goes later."""


@contextmanager
def workspace() -> Iterator[Path]:
    """A folder for runs; what still works in it at the end is killed."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-live-") as folder:
        Path(folder).chmod(0o755)  # servers run as another user
        yield Path(folder) / "runs"
        for process in processes_of(Path(folder)):
            process.kill()


def own_cache(workspace: Path) -> Path:
    """A cache with the programs of all and the loads of no other workspace.

    Its name begins with the workspace's, so that `processes_of` finds what works in it. Debian's
    packages must not be unpacked through it: they keep the name of their folder.
    """
    cache = workspace.with_name(f"{workspace.name}-cache")
    places.make_open(cache)
    for kind in ("servers", "pristine", "maven"):
        if not (cache / kind).exists():
            (cache / kind).symlink_to(places.make_cache_folder(kind))
    return cache


@contextmanager
def started(
    workspace: Path, *arguments: str, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """The lab at work, with more in its environment; killed at the end if it still is."""
    process = subprocess.Popen(
        [DBDYNO, *arguments, "--workspace", str(workspace)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "DBDYNO_CACHE": str(own_cache(workspace)), **(environment or {})},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def finished(workspace: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The lab's work to its end."""
    with started(workspace, *arguments) as process:
        output, errors = process.communicate(timeout=500)
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)


def stored(workspace: Path) -> list[dict[str, Any]]:
    """All measurements of the store, in their order, read as anybody with sqlite3 would."""
    file = workspace / "dbdyno.sqlite"
    if not file.exists():
        return []
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        if "measurements" not in tables:
            return []
        return [dict(row) for row in connection.execute("SELECT * FROM measurements")]


def until(condition: Callable[[], Any], what: str, seconds: float = 90) -> Any:
    """Waits for what is true in the end, and gives it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s")


def processes_of(workspace: Path) -> list[psutil.Process]:
    """Servers and children that work in this workspace."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        if str(workspace) in words and str(DBDYNO) not in words:
            found.append(process)
    return found


STAYS = ("watcher.py", "converter.py")


def children() -> list[psutil.Process]:
    """What this process started and is still there, but for what watches servers or draws."""
    started = psutil.Process().children(recursive=True)
    return [one for one in started if not any(word.endswith(STAYS) for word in words_of(one))]


def words_of(process: psutil.Process) -> list[str]:
    """The command line; empty once the process is gone."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def name_of(process: psutil.Process) -> str:
    """The program's name; empty once the process is gone, which may be since it was found."""
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def lives(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def servers_of(workspace: Path) -> list[psutil.Process]:
    """The database servers among them."""
    return [p for p in processes_of(workspace) if name_of(p) == "mysqld"]


def feed(workspace: Path) -> list[dict[str, Any]]:
    """What the newest run has told of its progress so far, as a page that watches it reads it."""
    files = sorted(workspace.glob("*/live.jsonl"))
    lines = files[-1].read_text().splitlines(keepends=True) if files else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def under_load(workspace: Path, trials: int = 0) -> Callable[[], bool]:
    """Whether that many trials have ended and the next one's load has told of its first moments."""

    def is_under_load() -> bool:
        kinds = [event["kind"] for event in feed(workspace)]
        return kinds.count("end") == trials and kinds[-1:] == ["interval"]

    return is_under_load


def engines() -> list[psutil.Process]:
    """The engine's children of the labs that this test started."""
    mine = os.getpid()
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "dbdyno.experiment.engine.child" in (process.info["cmdline"] or []):
            with suppress(psutil.NoSuchProcess):  # it has ended since
                ancestors = [parent.pid for parent in process.parents()]
                found += [process] if mine in ancestors else []
    return found
