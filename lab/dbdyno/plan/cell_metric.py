"""What a verdict is about: throughput where the server sets the pace, latency where the rate does.

In a closed loop a faster server does more, so throughput is compared. At a rate all systems do the
same number of requests, and what differs is how long they take: a percentile of latency from the
intended start, that of the plan's latency limit or else p99 (method.md 1.f.6).
"""

from __future__ import annotations

from typing import Final

from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import BY_NAME, PRIMARY, Metric
from dbdyno.plan.plan import Plan

AT_A_RATE: Final = BY_NAME["latency_ms_p99"]


def metric_of(plan: Plan, cell: Cell) -> Metric:
    """The metric that the cell's verdicts are about."""
    return PRIMARY if cell.rate_per_s is None else latency_of(plan)


def latency_of(plan: Plan) -> Metric:
    """The percentile that the plan's open loops are about."""
    slo = plan.load.slo
    return AT_A_RATE if slo is None else BY_NAME[f"latency_ms_{slo.metric}"]
