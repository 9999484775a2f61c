"""A lab whose calls to the file system go wrong as planned, one by one; a process of its own.

    LD_PRELOAD=faults.so PYTHONPATH=tests python -m support.faults FOLDER SHARE

It lives the same life again and again, each time in a process that is forked from this one: servers
are fetched from an archive, initialised, loaded and copied; two runs are measured, judged and
reported. Files, store and report are real, servers and engine those of `world`. In one
life each call that changes a file may go wrong (`faults.c`). After it a second life goes on as a
user would, without a fault, and what is there at its end is compared with a life without any.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from dbdyno.cli import flow
from dbdyno.cli.machines import Machines
from dbdyno.errors import DbdynoError
from dbdyno.experiment.data import dataset
from dbdyno.measurement.disturbance import current
from dbdyno.report.formats.stdout import Output
from dbdyno.servers import process
from dbdyno.servers.base import MYSQL
from dbdyno.servers.local.pristine import Making
from dbdyno.servers.local.server import ProductSettings, Site, StartedInstance
from dbdyno.servers.mysql import settings
from dbdyno.servers.programs import provision
from dbdyno.servers.programs.given import TarballSource
from dbdyno.servers.reference import find
from dbdyno.store import evidence
from dbdyno.store.store import Store
from support import blank_charts, making
from support.fakes import Progress
from support.world import FakeServer, World

KINDS: Final = ("kill", "torn", "stop", "eio", "full")
RUNS: Final = 2
DATA_BYTES: Final = 100 << 10
"""So that a forgotten copy of a data directory is seen."""
LEFT_BYTES_MAX: Final = 1 << 14
LIFE_S_MAX: Final = 60
CALLS_PER_CASE: Final = 20
TRACEBACK: Final = 70
REFUSED: Final = 1
PLAN: Final = making.plan(threads=(8,), blocks=1, window_s=3, warmup_s=1)
CHANGING: Final = (
    (re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}"), "RUN"),
    (re.compile(r"(?<=-temporary-)\w{8}"), "TEMPORARY"),
    (re.compile(r"(?<=\.dbdyno-)\w{8}\b"), "TEMPORARY"),
    (re.compile(r"(?<=charts/)(\.?)[\w-]+\.(png|svg)"), r"\1CHART"),
    (re.compile(r"report\.(html|json|md)"), "PAGE"),
    (re.compile(r"(?<=data/)(ibdata1|rows)|README|bin/mysqld"), "FILE"),
    (re.compile(r"\b[0-9a-f]{8,64}\b"), "DIGEST"),
    (re.compile(r"(?<=systems/)[^/]+"), "SYSTEM"),
    (re.compile(r"(?<=SYSTEM/)\d+"), "N"),
    (re.compile(r"mysql-[58]\.\d\.\d+(-linux)?"), "PROGRAMS"),
    (re.compile(r"(?<=locks/)PROGRAMS-DIGEST(-\d+)?"), "LOAD"),
)
"""Parts of a file's path that differ between lives, and what stands for them in a point's name."""


@dataclass(frozen=True)
class Case:
    """One fault: the number of the call that goes wrong, its name, and how."""

    number: int
    point: str
    kind: str


def shim(folder: Path) -> Path:
    """The library to preload, made in a folder."""
    made = folder / "faults.so"
    source = Path(__file__).with_suffix(".c")
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, "-o", made, source], check=True)
    return made


def main(folder: Path, share: str) -> int:
    """Walks the points; prints what was wrong of each case, then a line of JSON with the sum.

    Args:
        share: which cases: `third`, `points`, `kinds` or `all`, as `_cases`.
    """
    archive = _archive(folder)
    _live(folder / "warm", archive, "", -1)  # what is read once is read by now
    gc.freeze()  # what is forked shares it longer
    points = _points(folder, archive)
    clean = _listed(folder / "clean")
    shutil.rmtree(folder / "clean")
    cases = _cases(points, share)
    ends: dict[str, int] = {}
    wrong: list[str] = []
    for case in cases:
        root = folder / "struck"
        end, troubles = _case(case, root, archive, clean)
        shutil.rmtree(root)
        ends[end] = ends.get(end, 0) + 1
        wrong += [f"{case.kind} at {case.point} (call {case.number}): {one}" for one in troubles]
    names = len(set(points))
    summary = {"calls": len(points), "points": names, "cases": len(cases), "ends": ends}
    sys.stdout.write("\n".join([*wrong, json.dumps(summary)]) + "\n")
    return int(bool(wrong))


def _cases(points: list[str], share: str) -> list[Case]:
    """Each point (or each third) with one kind of fault, by turns, or with all; or every call.

    Which of the calls of one name it is, is drawn, always alike; of many, several.
    """
    if share == "all":
        return [Case(n, point, kind) for n, point in enumerate(points, 1) for kind in KINDS]
    drawn = random.Random(1)
    numbers: dict[str, list[int]] = {}
    for number, point in enumerate(points, 1):
        numbers.setdefault(point, []).append(number)
    drawn_calls = [
        (number, point)
        for point, places in numbers.items()
        for number in drawn.sample(places, 1 + len(places) // CALLS_PER_CASE)
    ]
    return [
        Case(number, point, kind)
        for at, (number, point) in enumerate(drawn_calls)
        if share != "third" or at % 3 == 0
        for kind in (KINDS if share == "kinds" else [KINDS[at % len(KINDS)]])
    ]


def _points(folder: Path, archive: TarballSource) -> list[str]:
    """The names of all calls of a life without a fault, in their order."""
    log = folder / "calls"
    with log.open("wb") as written:
        ended = _life(folder / "clean", archive, "", written.fileno())
    assert ended.status == 0, ended.said
    return _named(log)


def _named(log: Path) -> list[str]:
    return [_name(line) for line in log.read_text().splitlines()]


def _name(path: str) -> str:
    for changing, name in CHANGING:
        path = changing.sub(name, path)
    return path


def _case(
    case: Case, root: Path, archive: TarballSource, clean: Mapping[str, int]
) -> tuple[str, list[str]]:
    """How the life with the fault ended, and all that is wrong with it or with the next."""
    first = _life(root, archive, f":{case.number}:{case.kind}")
    stored = _stored(root)
    second = _life(root, archive, "")
    troubles = []
    if first.status == TRACEBACK:
        troubles.append(f"ends in a traceback: {first.said}")
    if first.status is None:
        troubles.append("does not end")
    if second.status != 0:
        return first.end, [*troubles, f"the next life ends with {second.status}: {second.said}"]
    now = _stored(root)
    for run_id, keys in stored.items():
        if now[run_id][: len(keys)] != keys:
            troubles.append(f"of run {run_id} something that was stored is lost")
    troubles += _incomplete(root)
    troubles += _left(clean, _listed(root))
    return first.end, troubles


def _stored(root: Path) -> dict[str, list[str]]:
    """What each run has stored, in its order; the chain of digests is checked on the way."""
    with Store.open(root / "ws") as store:
        return {
            run_id: [f"{one.trial.key} {one.started_at}" for one in store.measurements(run_id)]
            for run_id in store.run_ids()
        }


def _incomplete(root: Path) -> list[str]:
    """What the runs lack: trials that are missing or stored twice, a report."""
    lacking = []
    with Store.open(root / "ws") as store:
        runs = store.run_ids()
        if len(runs) != RUNS:
            lacking.append(f"{len(runs)} runs and not {RUNS}")
        for run_id in runs:
            every = store.measurements(run_id)
            sound = [one.trial.place for one in current(every) if one.failure is None]
            if len(set(sound)) != len(sound):
                lacking.append(f"run {run_id} has a trial twice")
            if not evidence.completion(store, run_id).complete:
                lacking.append(f"run {run_id} lacks a trial")
            with suppress(OSError, ValueError):
                if json.loads((root / "ws" / run_id / "report.json").read_text()):
                    continue
            lacking.append(f"run {run_id} has no report")
    return lacking


def _left(clean: Mapping[str, int], found: Mapping[str, int]) -> list[str]:
    """Files that a life without a fault does not have, if they are large together."""
    more = {
        name: size - clean.get(name, 0) for name, size in found.items() if size > clean.get(name, 0)
    }
    if sum(more.values()) <= LEFT_BYTES_MAX:
        return []
    largest = sorted(more, key=lambda name: -more[name])[:3]
    return [f"leaves {sum(more.values())} bytes: {', '.join(largest)}"]


def _listed(root: Path) -> dict[str, int]:
    """Bytes of all files, by their name in points."""
    sizes: dict[str, int] = {}
    for path in root.rglob("*"):
        if path.is_file():
            name = _name(str(path.relative_to(root)))
            sizes[name] = sizes.get(name, 0) + path.stat().st_size
    return sizes


@dataclass(frozen=True)
class Ended:
    """How a life ended: its exit status (None: not in time), or the signal that ended it."""

    status: int | None
    said: str

    @property
    def end(self) -> str:
        """In a word."""
        words = {0: "went on", REFUSED: "ended with an error", -signal.SIGKILL: "killed"}
        return words.get(self.status or 0, "did not end well")


def _life(root: Path, archive: TarballSource, fault: str, log: int = -1) -> Ended:
    """A lab's life in a process of its own; one that is halted goes on at once."""
    root.mkdir(exist_ok=True)
    said = root.with_name("said")
    child = os.fork()
    if child == 0:
        status = TRACEBACK
        try:
            handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            status = _live(root, archive, fault, log)
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            os._exit(status)
    ends = time.monotonic() + LIFE_S_MAX
    while time.monotonic() < ends:
        pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            os.kill(child, signal.SIGCONT)
        elif pid:
            return Ended(os.waitstatus_to_exitcode(status), said.read_text()[-1500:])
        with suppress(OSError):  # a child process that reads for the lab can be halted, too
            for own in Path(f"/proc/{child}/task/{child}/children").read_text().split():
                os.kill(int(own), signal.SIGCONT)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return Ended(None, said.read_text()[-1500:])


def _live(root: Path, archive: TarballSource, fault: str, log: int) -> int:
    """What a user does until two runs are complete, and what the program's exit status is."""
    with pytest.MonkeyPatch.context() as patch:
        (root / "tmp").mkdir(parents=True, exist_ok=True)
        patch.setattr(tempfile, "tempdir", str(root / "tmp"))
        patch.setenv("DBDYNO_CACHE", str(root / "cache"))
        world = World()
        with world.lab(), _small(world, archive, patch):
            ctypes.CDLL(None).dbdyno_fault(os.fsencode(root), fault.encode(), log)
            try:
                _two_runs(root / "ws")
            except DbdynoError as error:
                sys.stdout.write(f"{error}\n")
                return REFUSED
    return 0


def _two_runs(workspace: Path) -> None:
    """Goes on with what is there; what is complete is reported where it was not."""
    options = flow.ReportOptions(Output.PLAIN)
    with Store.open(workspace) as store:
        runs = [(run, store.run(run).finished_at is not None) for run in store.run_ids()[::-1]]
    for run_id, is_finished in runs:
        if is_finished and (workspace / run_id / "report.html").exists():
            continue
        if is_finished:
            flow.report(run_id, workspace, options)
        else:
            flow.resume(run_id, workspace, options)
    for _ in range(RUNS - len(runs)):
        with flow.machines_of(PLAN, "") as machines:
            flow.begin(PLAN, workspace, "dbdyno compare", options, machines)


@contextmanager
def _small(world: World, archive: TarballSource, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Real files for the world's servers; charts, console and machine are not looked at."""
    shim = ctypes.CDLL(None)

    @contextmanager
    def by_others() -> Iterator[None]:
        shim.dbdyno_fault_pause(1)
        try:
            yield
        finally:
            shim.dbdyno_fault_pause(0)

    def initialise(work: Path) -> None:
        with by_others():
            (work / "data").mkdir()
            (work / "data" / "ibdata1").write_bytes(b"i" * DATA_BYTES)

    def load(context: Any, server: FilesServer) -> None:
        with by_others():
            (server.data / "rows").write_bytes(b"r" * DATA_BYTES)

    class FilesInstance(StartedInstance[FilesServer]):
        driver = MYSQL
        rules: ClassVar[ProductSettings] = settings

        def data_bytes(self) -> int:
            return DATA_BYTES

        def _making(self) -> Making:
            return Making("made", initialise)

        def _start_on(self, site: Site, port: int) -> FilesServer:
            return FilesServer(world, site.label, site.work / "data")

    def opened(spec: Any, folder: Path, report: Callable[[str], None]) -> FilesInstance:
        entry = replace(find(spec.reference), source=archive)
        return FilesInstance(spec, entry, provision.get(entry, report), folder, report)

    @contextmanager
    def machines(*others: object) -> Iterator[Any]:
        makers = replace(world.makers, open_instance=opened, shares_loads=True)
        yield Machines(makers)

    @contextmanager
    def on_console(*others: object) -> Iterator[Progress]:
        yield Progress()

    patch.setattr(process, "server_user", lambda: None)
    patch.setattr(provision, "check", lambda entry, download: None)
    patch.setattr(provision, "check_program", lambda program, entry: None)
    patch.setattr(dataset, "_load", load)
    patch.setattr(flow, "machines_of", machines)
    patch.setattr("dbdyno.cli.progress.on_console", on_console)
    blank_charts.patch(patch)
    yield


class FilesServer(FakeServer):
    """A fake server whose data directory is real."""

    def __init__(self, world: World, label: str, data: Path) -> None:
        super().__init__(world, label)
        self.data, self.stopped_cleanly = data, False

    def stop(self, patience_s: float = 60.0) -> None:
        super().stop(patience_s)
        self.stopped_cleanly = True


def _archive(folder: Path) -> TarballSource:
    """A vendor's archive with a server's program of some bytes."""
    tree = folder / "mysql-8.0.15-linux"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "mysqld").write_bytes(b"program" * 1000)
    (tree / "README").write_text("read me\n")
    packed = folder / "mysql.tar.gz"
    subprocess.run(["tar", "-C", folder, "-czf", packed, tree.name], check=True)
    return TarballSource(packed.as_uri(), provision.digest_of(packed))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
