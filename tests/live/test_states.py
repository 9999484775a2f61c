"""States of connections under a load that waits for one row, on real servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, ProcedurePlan, TrialPlan
from dbdyno.plan.workload import WorkloadPlan
from support.real_run import measured_alone
from support.real_server import small

pytestmark = pytest.mark.live
SYSTEMS = ("mysql:5.7.22", "mysql:8.0.33", "mariadb:11.8.9", "postgres:18.6")
THREADS = 4


@pytest.fixture(scope="module")
def measured() -> Iterator[dict[str, Measurement]]:
    plan = Plan(
        systems=small(*SYSTEMS),
        workloads=(WorkloadPlan(name="oltp_write_only"),),
        dataset=DatasetPlan(tables=1, rows=1),
        load=LoadPlan(threads=(THREADS,)),
        trial=TrialPlan(warmup_s=1, window_s=4),
        design=DesignPlan(blocks=1, disturbance_max=1.0),
        procedure=ProcedurePlan(sample_stacks=True),
    )
    with measured_alone(plan, len(SYSTEMS)) as trials:
        yield {one.trial.system: one for one in trials}


@pytest.mark.parametrize("system", SYSTEMS)
def test_connections_wait_for_the_row_that_all_of_them_update(
    measured: dict[str, Measurement], system: str
) -> None:
    one = measured[system]
    assert one.failure is None
    assert one.states is not None, one.procedure
    assert one.states.samples >= 5
    connections = one.states.connections
    assert sum(connections.values()) == pytest.approx(THREADS, abs=0.3)
    assert connections.get("row lock", 0) > 1, connections
