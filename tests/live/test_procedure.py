"""The whole procedure on two real servers: settings proven, steps taken, impossible cells void.

One small run, looked at from all sides: what was asked of the plan stands in what the servers say
of themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from dbdyno.judge.judgement import judge
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, ProcedurePlan, TrialPlan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from support.real_run import measured_alone
from support.real_server import SMALL_REDO

pytestmark = pytest.mark.live
SYSTEMS = ("mysql:5.7.22", "mysql:8.0.15")
CONNECTIONS_MAX = 16
SETTINGS = {**SMALL_REDO, "max_connections": CONNECTIONS_MAX}
POOL_BYTES_MIN = 8 * 1024**2


def plan() -> Plan:
    return Plan(
        systems=tuple(
            SystemPlan(label=name, reference=name, settings=SETTINGS) for name in SYSTEMS
        ),
        workloads=(WorkloadPlan(name="oltp_read_write"),),
        dataset=DatasetPlan(tables=2, rows=5000),
        load=LoadPlan(threads=(2, 64)),
        trial=TrialPlan(warmup_s=0, window_s=1),
        design=DesignPlan(blocks=1, disturbance_max=1.0),
        procedure=ProcedurePlan(drop_caches=True, purge_binlogs=True, settle_cap_s=60),
        settings=SettingsPlan(
            durability=("0/2",), buffer_pool=("50%",), thread_pool=("off", "on"), binlog=("on",)
        ),
    )


@pytest.fixture(scope="module")
def measured() -> Iterator[list[Measurement]]:
    with measured_alone(plan(), 8) as found:
        yield found


def ran(measured: list[Measurement]) -> list[Measurement]:
    return [one for one in measured if one.failure is None]


def test_what_cannot_be_is_void_with_its_reason_and_the_rest_ran(
    measured: list[Measurement],
) -> None:
    assert len(measured) == 8
    assert len(ran(measured)) == 2
    for one in measured:
        if "thread_pool on" in one.trial.cell.setting:
            assert one.impossible
            assert "has no thread pool" in (one.failure or "")
        elif one.trial.cell.threads == 64:
            assert one.impossible
            assert "max_connections" in (one.failure or "")
        else:
            assert one.failure is None, one.failure


def test_the_settings_of_the_cell_are_in_force(measured: list[Measurement]) -> None:
    for one in ran(measured):
        settings = one.server.settings
        assert settings["innodb_flush_log_at_trx_commit"] == "2"
        assert settings["sync_binlog"] == "0"
        assert settings["log_bin"] == "ON"
    pools = {int(one.server.settings["innodb_buffer_pool_size"]) for one in ran(measured)}
    assert len(pools) == 1
    assert POOL_BYTES_MIN <= pools.pop() <= 2 * POOL_BYTES_MIN


def test_every_step_is_kept_and_was_done(measured: list[Measurement]) -> None:
    tried = [one for one in measured if one.procedure]
    assert len(tried) == 4
    for one in tried:
        steps = {step.name: step for step in one.procedure}
        assert steps["purge binary logs"].done
        assert "MB" in steps["purge binary logs"].detail
        if "start" in steps:
            assert list(steps)[:3] == ["restore", "drop caches", "start"]
            assert steps["drop caches"].done is os.access("/proc/sys/vm/drop_caches", os.W_OK)
            assert "settle" not in steps
        else:
            assert steps["settle"].done, steps["settle"].detail
            assert steps["settle"].detail.startswith("dirty pages ")
    assert sum("start" in [s.name for s in one.procedure] for one in measured) == 2


def test_the_server_is_as_it_was_after_it_settled(measured: list[Measurement]) -> None:
    assert {one.trial.system for one in ran(measured)} == set(SYSTEMS)
    for one in ran(measured):
        assert float(one.server.settings["innodb_max_dirty_pages_pct"]) >= 50


def test_both_systems_hold_the_same_rows(measured: list[Measurement]) -> None:
    digests = {one.dataset for one in ran(measured)}
    assert len(digests) == 1
    assert len(digests.pop()) == 16


def test_only_the_cell_that_cannot_run_is_found(measured: list[Measurement]) -> None:
    checks = {finding.check for finding in judge(measured, plan()).findings}
    assert "cell-cannot-run" in checks
    assert "unequal-dataset" not in checks
    assert "incomplete-run" not in checks
