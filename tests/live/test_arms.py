"""One system under two settings on a real server, reached through its socket alone, told more."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.judge.judgement import judge
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, ProcedurePlan, TrialPlan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.report.tell.verdicts import sentence
from dbdyno.servers import base, open
from support.real_run import measured_alone
from support.real_server import SMALL_REDO, small_redo

pytestmark = pytest.mark.live
MODULES = ("module_log", "module_trx", "module_buffer")
READ, WRITE = "oltp_point_select", "oltp_write_only"


def plan() -> Plan:
    system = SystemPlan(
        label="mysql",
        reference="mysql:8.0.33",
        settings={**SMALL_REDO, "skip_networking": 1, "innodb_monitor_enable": MODULES},
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
        design=DesignPlan(blocks=3, disturbance_max=1.0),
        procedure=ProcedurePlan(restart="cell"),
        settings=SettingsPlan(durability=("double-1", "0/2")),
    )


@pytest.fixture(scope="module")
def measured() -> Iterator[list[Measurement]]:
    with measured_alone(plan(), 12) as found:
        yield found


def test_two_settings_of_one_system_are_compared(measured: list[Measurement]) -> None:
    assert len(measured) == 12
    judged = judge(measured, plan())
    arms = {(one.cell.workload, one.baseline, one.system) for one in judged.verdicts}
    assert arms == {
        (workload, "durability double-1", "durability 0/2") for workload in (READ, WRITE)
    }
    assert all(one.estimate.blocks == 3 for one in judged.verdicts)
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
    assert told == ["SET GLOBAL innodb_lru_scan_depth = 2048"] * 12


@pytest.mark.parametrize(
    "reference",
    ["mysql:5.6.24", "mysql:5.7.22", "mysql:9.7.4", "mariadb:10.1.23", "mariadb:11.8.9"],
)
def test_every_family_can_do_without_a_network(reference: str) -> None:
    with tempfile.TemporaryDirectory(prefix="dbdyno-") as name:
        Path(name).chmod(0o755)
        asked = {**small_redo(reference), "skip_networking": True}
        spec = base.ServerSpec("local", reference, asked)
        made = open.instance(spec, Path(name) / "system", lambda text: None)
        server = made.start()
        try:
            assert server.endpoint.port == 0
            assert server.settings()["skip_networking"] == "ON"
        finally:
            made.close()


def test_every_module_of_a_list_is_switched_on() -> None:
    with tempfile.TemporaryDirectory(prefix="dbdyno-") as name:
        Path(name).chmod(0o755)
        asked = {**SMALL_REDO, "innodb_monitor_enable": MODULES}
        made = open.instance(
            base.ServerSpec("monitored", "mysql:8.0.33", asked),
            Path(name) / "system",
            lambda text: None,
        )
        server = made.start()
        try:
            seen = server.ask(
                "SELECT DISTINCT subsystem FROM information_schema.innodb_metrics"
                " WHERE status = 'enabled'"
            )
        finally:
            made.close()
    assert {"transaction", "buffer", "log"} <= {row[0] for row in seen}
