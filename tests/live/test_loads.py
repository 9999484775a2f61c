"""A run on a real server whose blocks rest on two loads in turn: other files, the same rows."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from dbdyno.experiment import runner
from dbdyno.experiment.context import Makers, RunContext
from dbdyno.experiment.data import dataset, disk
from dbdyno.experiment.schedule.order import trials_of
from dbdyno.files import occupied_bytes
from dbdyno.measurement.measurement import Measurement, Trial, loads_of
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.servers.base import Server
from dbdyno.store.store import Store
from support import lab_process, making
from support.fakes import Progress
from support.real_server import SMALL_REDO, small_redo

pytestmark = pytest.mark.live
PLAN = Plan(
    systems=(SystemPlan(label="a", reference="mysql:8.0.15", settings=SMALL_REDO),),
    workloads=(WorkloadPlan(name="oltp_read_only"),),
    dataset=DatasetPlan(tables=4, rows=2000, loads=2),
    load=LoadPlan(threads=(2,)),
    trial=TrialPlan(warmup_s=0, window_s=1),
    design=DesignPlan(blocks=3, disturbance_max=1.0),  # other tests run beside it
)


def rested(
    workspace: Path,
    plan: Plan = PLAN,
    progress: Progress | None = None,
    makers: Makers | None = None,
) -> list[Measurement]:
    with Store.open(workspace) as store:
        run = store.create_run(plan, "dbdyno run", {}, len(trials_of(plan, "")))
        runner.run(store, run, workspace, progress or Progress(), makers)
        return store.measurements(run.run_id)


class Told(Progress):
    """Stages, and when the first trial began."""

    def __init__(self) -> None:
        super().__init__()
        self.first_s = 0.0

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        self.first_s = self.first_s or time.monotonic()


def test_blocks_rest_on_two_loads_in_turn_and_so_do_the_next_runs(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DBDYNO_CACHE", str(lab_process.own_cache(workspace)))
    makers, told = Makers(shares_loads=True), Told()
    first = rested(workspace, makers=makers)
    assert [one.failure for one in first] == [None] * 3
    one, two, again = (measured.load for measured in first)
    assert one == again != two
    assert loads_of(first) == 2
    assert len({measured.dataset for measured in first}) == 1
    assert first[0].dataset
    sums = [place.read_text() for place in workspace.parent.rglob("snapshot/checksums.json")]
    assert len(set(sums)) == 2
    short = making.with_parts(PLAN, design={"blocks": 2})
    assert [measured.load for measured in rested(workspace, short, makers=makers)] == [one, two]
    began_s = time.monotonic()
    elsewhere = rested(workspace.with_name("runs-other"), short, told, makers)
    sys.stdout.write(f"the first trial began after {told.first_s - began_s:.1f} s\n")
    assert told.first_s - began_s < 60
    assert "a: the dataset is there already" in told.stages
    assert "a: loading the dataset" not in told.stages
    assert [measured.load for measured in elsewhere] == [one, two]
    assert {measured.dataset for measured in elsewhere} == {first[0].dataset}


NEWEST = "mysql:9.7.4"


def test_a_server_that_can_is_loaded_without_its_redo_log(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    load, look = dataset._load, dataset.digest_and_short_tables

    def enabled(server: Server) -> str:
        return server.ask("SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'")[0][1]

    def loaded(context: RunContext, server: Server) -> None:
        load(context, server)
        seen.append(enabled(server))

    def looked(plan: Plan, server: Server) -> tuple[str, dict[str, int]]:
        seen.append(enabled(server))
        return look(plan, server)

    monkeypatch.setattr(dataset, "_load", loaded)
    monkeypatch.setattr(dataset, "digest_and_short_tables", looked)
    system = SystemPlan(label="a", reference=NEWEST, settings=small_redo(NEWEST))
    design = PLAN.design.model_copy(update={"blocks": 1})
    measured = rested(workspace, PLAN.model_copy(update={"systems": (system,), "design": design}))
    assert seen == ["OFF", "ON"]
    assert [one.failure for one in measured] == [None]
    assert measured[0].dataset


def test_a_run_keeps_little_more_than_its_rows(workspace: Path) -> None:
    logged = {**SMALL_REDO, "log_bin": True}
    system = SystemPlan(label="a", reference="mysql:5.7.22", settings=logged)
    rows = DatasetPlan(tables=2, rows=40_000)
    assert rows.bytes_about > dataset.LOGGED_BYTES
    design = PLAN.design.model_copy(update={"blocks": 1})
    plan = PLAN.model_copy(update={"systems": (system,), "dataset": rows, "design": design})
    assert [one.failure for one in rested(workspace, plan)] == [None]
    (data,) = workspace.rglob("snapshot/data")
    logs = [*data.glob("ib_logfile*"), *data.glob("binlog.*")]
    assert len(logs) > 2
    assert sum(log.stat().st_blocks * 512 for log in logs) < 1024**2
    assert occupied_bytes(data) < disk.KEPT_BYTES + 1.5 * rows.bytes_about
