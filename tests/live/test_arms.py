"""One system under two settings on a real server, reached through its socket alone, told more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dbdyno.judge.judgement import judge
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, ProcedurePlan, TrialPlan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.report.tell.verdicts import sentence
from support.real_run import measured_alone
from support.real_server import SMALL_REDO

pytestmark = pytest.mark.live
READ, WRITE = "oltp_point_select", "oltp_write_only"


def plan() -> Plan:
    system = SystemPlan(
        label="mysql",
        reference="mysql:8.0.33",
        settings={**SMALL_REDO, "skip_networking": 1},
        workload_settings={WRITE: {"binlog_cache_size": "64K"}},
        after_start=("SET GLOBAL innodb_lru_scan_depth = 2048",),
        notes={"host": "a machine of ours"},
    )
    return Plan(
        systems=(system,),
        workloads=(WorkloadPlan(name=READ), WorkloadPlan(name=WRITE)),
        dataset=DatasetPlan(tables=1, rows=2000),
        load=LoadPlan(threads=(4,)),
        trial=TrialPlan(warmup_s=0, window_s=1),
        design=DesignPlan(blocks=1, disturbance_max=1.0),
        procedure=ProcedurePlan(restart="cell"),
        settings=SettingsPlan(durability=("double-1", "0/2")),
    )


@pytest.fixture(scope="module")
def measured() -> Iterator[list[Measurement]]:
    with measured_alone(plan(), 4) as found:
        yield found


def test_two_settings_of_one_system_are_compared(measured: list[Measurement]) -> None:
    assert len(measured) == 4
    judged = judge(measured, plan())
    arms = {(one.cell.workload, one.baseline, one.system) for one in judged.verdicts}
    assert arms == {
        (workload, "durability double-1", "durability 0/2") for workload in (READ, WRITE)
    }
    assert all(one.estimate.blocks == 1 for one in judged.verdicts)
    assert "durability 0/2" in sentence(judged.verdicts[0])


def test_the_load_comes_through_the_socket(measured: list[Measurement]) -> None:
    assert {one.server.settings["skip_networking"] for one in measured} == {"ON"}
    assert all(one.failure is None and one.events > 0 for one in measured)


def test_each_workload_has_its_keys_and_each_start_its_sql(measured: list[Measurement]) -> None:
    sizes = {one.trial.cell.workload: set[str]() for one in measured}
    for one in measured:
        sizes[one.trial.cell.workload].add(one.server.settings["binlog_cache_size"])
    assert sizes == {READ: {"32768"}, WRITE: {"65536"}}
    assert {one.server.settings["innodb_lru_scan_depth"] for one in measured} == {"2048"}
    told = [step.detail for one in measured for step in one.procedure if "SQL" in step.name]
    assert told == ["SET GLOBAL innodb_lru_scan_depth = 2048"] * 4
