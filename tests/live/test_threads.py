"""Threads of real servers are read by group: together they have the server's CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.experiment.watch.proc import queued_ns, text_of
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from support.real_run import measured_alone
from support.real_server import small_redo

pytestmark = [pytest.mark.live, pytest.mark.alone]
MYSQL, UNNAMED, POSTGRES = "mysql:9.7.4", "mysql:5.7.22", "postgres:18.6"
"""MySQL with names of its threads, and without; PostgreSQL has processes."""
PLAN = Plan(
    systems=tuple(
        SystemPlan(label=name, reference=name, settings=small_redo(name) | own)
        for name, own in ((MYSQL, {"performance_schema": "ON"}), (UNNAMED, {}), (POSTGRES, {}))
    ),
    workloads=(WorkloadPlan(name="oltp_read_write"),),
    dataset=DatasetPlan(tables=2, rows=1000),
    load=LoadPlan(threads=(8,)),
    trial=TrialPlan(warmup_s=2, window_s=5),
    design=DesignPlan(blocks=1, disturbance_max=1.0),
)
GROUPS = {
    MYSQL: {"connection"},
    UNNAMED: {"connection", "unnamed"},
    POSTGRES: {"connection", "walwriter", "checkpointer", "postmaster"},
}


@pytest.fixture(scope="module")
def measured() -> Iterator[list[Measurement]]:
    with measured_alone(PLAN, 3) as measurements:
        yield measurements


def test_groups_of_threads_have_the_servers_cpu(measured: list[Measurement]) -> None:
    for one in measured:
        threads = one.server.threads
        assert threads.keys() >= GROUPS[one.trial.system]
        cpu_s = sum(group.user_s + group.system_s for group in threads.values())
        assert cpu_s == pytest.approx(one.server.cpu_s, rel=0.05)
        connection = threads["connection"]
        assert connection.user_s + connection.system_s > 0.5 * cpu_s


def test_threads_wait_for_a_cpu_no_longer_than_the_window(measured: list[Measurement]) -> None:
    is_counted = queued_ns(text_of(Path("/proc/self/schedstat"))) is not None
    for one in measured:
        queued_s = one.server.threads["connection"].queued_s
        assert (queued_s is not None) == is_counted
        assert 0 <= (queued_s or 0.0) < 1.1 * 8 * one.window_s
