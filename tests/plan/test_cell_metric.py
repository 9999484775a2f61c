"""What a cell's verdict is about."""

from __future__ import annotations

from dbdyno.measurement.measurement import Cell
from dbdyno.plan.load import LoadPlan, SloPlan
from dbdyno.plan.plan import latency_of, metric_of
from support import making

CLOSED = Cell(workload="oltp_read_write", threads=8)
OPEN = Cell(workload="oltp_read_write", threads=8, rate_per_s=100)


def test_a_closed_loop_is_about_throughput_and_a_rate_about_latency() -> None:
    plan = making.plan()
    assert metric_of(plan, CLOSED).name == "transactions_per_s"
    assert metric_of(plan, OPEN).name == "latency_ms_p99"


def test_a_limit_names_the_percentile() -> None:
    load = LoadPlan(slo=SloPlan(metric="p95", limit_ms=20), rates=("100",))
    plan = making.plan().model_copy(update={"load": load})
    assert metric_of(plan, OPEN) is latency_of(plan)
    assert latency_of(plan).name == "latency_ms_p95"
