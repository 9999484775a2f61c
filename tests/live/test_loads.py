"""A run on a real server whose blocks rest on two loads in turn: other files, the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.experiment import runner
from dbdyno.experiment.order import trials_of
from dbdyno.measurement.measurement import Measurement, loads_of
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.store.store import Store
from support import lab_process
from support.fakes import Progress
from support.real_server import SMALL_REDO

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]
PLAN = Plan(
    systems=(SystemPlan(label="a", reference="mysql:8.0.15", settings=SMALL_REDO),),
    workloads=(WorkloadPlan(name="oltp_read_only"),),
    dataset=DatasetPlan(tables=4, rows=2000, loads=2),
    load=LoadPlan(threads=(2,)),
    trial=TrialPlan(warmup_s=0, window_s=1),
    design=DesignPlan(blocks=3, disturbance_max=1.0),  # other tests run beside it
)


@pytest.fixture
def workspace() -> Iterator[Path]:
    with lab_process.workspace() as folder:
        yield folder


def rested(workspace: Path) -> list[Measurement]:
    with Store.open(workspace) as store:
        run = store.create_run(PLAN, "dbdyno run", {}, len(trials_of(PLAN, "")))
        runner.run(PLAN, store, run, workspace, Progress())
        return store.measurements(run.run_id)


def test_blocks_rest_on_two_loads_in_turn_and_the_next_run_on_a_new_one(workspace: Path) -> None:
    first = rested(workspace)
    assert [one.failure for one in first] == [None] * 3
    one, two, again = (measured.load for measured in first)
    assert one == again != two
    assert loads_of(first) == 2
    assert len({measured.dataset for measured in first}) == 1
    assert first[0].dataset
    sums = [place.read_text() for place in workspace.glob("systems/*/*/snapshot/files.json")]
    assert len(set(sums)) == 2
    later = {measured.load for measured in rested(workspace)}
    assert len(later & {one, two}) == 1
    assert len(later) == 2
