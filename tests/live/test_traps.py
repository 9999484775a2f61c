"""Traps on real machinery: swallowed syncs, a generator that is its own limit, a used-up quota.

What is set up is wrong on purpose, and the audit must say so from what was stored
(docs/how-it-works/method.md)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.live.test_watch import PLAN

from dbdyno.experiment import runner
from dbdyno.experiment.engine.ceiling import responding
from dbdyno.experiment.engine.process import EngineProcess
from dbdyno.experiment.watch import host
from dbdyno.experiment.watch.host import Watch
from dbdyno.judge.audit import audit
from dbdyno.judge.checks import generator, machine
from dbdyno.judge.finding import Level
from dbdyno.plan.systems import SystemPlan
from dbdyno.servers.process import LOOPBACK
from dbdyno.store.store import Store
from support import making
from support.fakes import Progress
from support.lab_process import until
from support.real_server import SMALL_REDO

pytestmark = pytest.mark.live
REFERENCE = "mysql:5.7.22"
SWALLOWED = {**SMALL_REDO, "innodb_flush_method": "nosync"}
QUOTA_US, PERIOD_US = 5_000, 50_000
CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
"""Control groups of version 1; the only kind of version 2 is one folder above."""
QUOTA = {
    CPU_GROUPS: {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(QUOTA_US)},
    CPU_GROUPS.parent: {"cpu.max": f"{QUOTA_US} {PERIOD_US}"},
}


def test_a_server_that_swallows_its_syncs_reaches_no_verdict() -> None:
    """An honest one passes the same check in `test_host`."""
    trap = SystemPlan(label="trap", reference=REFERENCE, settings=SWALLOWED)
    plan = PLAN.model_copy(update={"systems": (trap,)})
    with tempfile.TemporaryDirectory(prefix="dbdyno-trap-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with Store.open(folder) as store:
            run = store.create_run(plan, "dbdyno compare", {}, 1)
            runner.run(store, run, folder, Progress())
            measured = store.measurements(run.run_id)
    audited = audit(measured, plan)
    void = {(f.check, f.system) for f in audited.findings if f.level is Level.VOID}
    assert ("commits-unflushed", "trap") in void
    assert audited.sound == ()


@pytest.mark.alone
def test_a_generator_that_limits_the_load_itself_reaches_no_verdict() -> None:
    """Of some 39,000 rows that it makes the server gets one statement, and answers at once."""
    with responding() as port:
        spec = {
            "endpoint": {"host": LOOPBACK, "port": port},
            "user": "load",
            "database": "sbtest",
            "connections": 4,
            "threads": 1,  # the other core is for the server, and for whatever else runs
            "window_s": 1.0,
            "seed": 1,
            "workload": {"name": "bulk_insert"},
        }
        with EngineProcess("run", spec) as engine:
            share = engine.answer()["measured"]["cpu_share_max"]
    finding = generator.client_bound(making.measurement(cpu_share_max=share), making.plan())
    assert finding is not None, share
    assert (finding.check, finding.level) == ("client-bound", Level.VOID)


@contextmanager
def busy_under_quota() -> Iterator[tuple[int, bool]]:
    """A process that wants a whole core; whether a quota of a tenth could be set for it."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    groups = {above / f"dbdyno-trap-{os.getpid()}": files for above, files in QUOTA.items()}
    try:
        yield process.pid, any(_held(group, groups[group], process.pid) for group in groups)
    finally:
        process.kill()
        process.wait()
        for group in groups:
            if group.is_dir():
                group.rmdir()


def _held(group: Path, files: Mapping[str, str], pid: int) -> bool:
    try:
        group.mkdir()
        for name, content in files.items():
            # Not made if it is missing: the controller is elsewhere, or not for these groups.
            os.close(os.open(group / name, os.O_WRONLY))
            (group / name).write_text(content)
        (group / "cgroup.procs").write_text(str(pid))
    except OSError:  # other control groups, or no right to them
        return False
    return True


def test_a_quota_that_was_used_up_is_told_and_none_is_not() -> None:
    with busy_under_quota() as (pid, held), Watch(pid, os.getpid(), period_s=0.3) as watch:
        began_s, before = time.monotonic(), host.throttled((pid,))
        if held:
            until(lambda: (host.throttled((pid,)) or 0) > (before or 0) + 9, "periods used up", 30)
        until(lambda: len(watch.samples(began_s)) > 3, "samples", 30)
        after = host.throttled((pid,))
    samples = tuple(s.model_copy(update={"at_s": 2 + s.at_s}) for s in watch.samples(began_s))
    seen = making.changed(making.measurement(), watch=samples)
    found = list(machine.machine([seen], making.plan()))
    quotas = [row for one in found for row in one.values["rows"] if row["what"] == "quota"]
    if held:
        assert before is not None
        assert after is not None
        assert after - before > 3
        assert len(quotas) == 1
        assert found[0].level is Level.DOUBTFUL
    else:
        assert (after or 0) == (before or 0)
        assert quotas == []
