"""`dbdyno audit --self`: what of a run of dbdyno's own is held against the rules."""

from __future__ import annotations

import pytest

from dbdyno.audit.audit import audit, of_run
from dbdyno.audit.tables import Publication
from dbdyno.judge.estimate import SystemValue
from dbdyno.judge.judgement import Judgement
from dbdyno.measurement.measurement import Cell
from dbdyno.plan.plan import Plan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from support import making


def own(plan: Plan, *values: tuple[Cell, str, float]) -> Publication:
    """A run of system A with three blocks of each cell: its metrics by dbdyno's names."""
    seen = tuple(
        SystemValue(
            cell=cell, system="A", metric=metric, value=value, low=None, high=None, blocks=3
        )
        for cell, metric, value in values
    )
    return of_run(plan, Judgement(findings=(), values=seen, estimates=(), verdicts=()))


def rules(asked: Publication, rule: str) -> list[str]:
    """What that rule says of it."""
    return [str(one.sentence) for one in audit(asked).entries if one.rule == rule]


def test_rates_over_the_same_connections_are_cells_of_their_own() -> None:
    cells = own(
        making.plan(),
        *(
            (Cell(workload="w", threads=64, rate_per_s=rate), "transactions_per_s", rate)
            for rate in (500.0, 1000.0)
        ),
    ).cells()
    assert [(one.title, one.values["tps"].text) for one in cells] == [
        ("A, w, 64 threads, rate 500/s", "500.000"),
        ("A, w, 64 threads, rate 1000/s", "1000.000"),
    ]


@pytest.mark.parametrize(
    "script",
    ["\nlocal RESTS = true\n", "function thread_run() end"],
    ids=["think_time", "thread_run"],
)
def test_connections_that_rest_contradict_no_mean_latency(script: str) -> None:
    """1 ms of work after 9 ms of rest, beside a workload without rests."""
    rests = WorkloadPlan(name="shop.yaml", script=script)
    plan = making.plan(workloads=("oltp_point_select",))
    plan = making.with_parts(plan, workloads=(*plan.workloads, rests))
    values = [
        (Cell(workload=workload, threads=threads), metric, value)
        for workload, each_per_s in (("oltp_point_select", 1000.0), ("shop", 100.0))
        for threads in (1, 8)
        for metric, value in (
            ("transactions_per_s", each_per_s * threads),
            ("latency_ms_avg", 1.0),
            ("latency_ms_p99", 2.0),
        )
    ]
    asked = own(plan, *values)
    assert rules(asked, "concurrency") == []
    assert [set(one.values) for one in asked.cells()] == [
        *[{"tps", "latency_ms_avg", "latency_ms_p99"}] * 2,
        *[{"tps", "latency_ms_p99"}] * 2,
    ]


@pytest.mark.parametrize(
    ("workload", "per_event", "told"),
    [
        (WorkloadPlan(name="orders_insert.yaml", script="event"), 5.39, 0),
        (WorkloadPlan(name="oltp_read_write", label="inserts"), 20.1, 0),
        (WorkloadPlan(name="oltp_read_write", options={"point_selects": 12}), 22.1, 0),
        (WorkloadPlan(name="oltp_read_write"), 20.0, 0),
        (WorkloadPlan(name="oltp_read_write"), 22.1, 1),
    ],
    ids=["a template", "a label", "an option", "as printed", "of another run"],
)
def test_a_label_says_how_many_statements_an_event_has_only_of_sysbenchs_workloads(
    workload: WorkloadPlan, per_event: float, told: int
) -> None:
    cell = Cell(workload=workload.label, threads=8)
    plan = making.with_parts(making.plan(), workloads=(workload,))
    values = ((cell, "transactions_per_s", 1000), (cell, "queries_per_s", 1000 * per_event))
    assert len(rules(own(plan, *values), "statements")) == told


def test_of_an_imported_run_only_what_was_seen_is_told() -> None:
    """Three blocks of each cell of one system, of one version, and no interval."""
    seen = (Cell(workload="oltp_read_write", threads=8), "transactions_per_s", 1000.0)
    system = SystemPlan(label="A", reference="imported:MySQL-8.0")
    imported = making.with_parts(making.plan(), systems=(system,))
    assert rules(own(imported, seen), "missing") == []
    assert rules(own(imported), "missing") == ["each cell has one run"]
    measured = SystemPlan(label="A", reference="mysql:8.0.15")
    ours = making.with_parts(making.plan(), systems=(measured,))
    assert rules(own(ours, seen), "missing") == [
        "the publication does not state: how much repeated measurements differed"
    ]
