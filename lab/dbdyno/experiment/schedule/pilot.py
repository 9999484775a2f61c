"""The pilot of an open loop: short trials to find the rates to measure.

Shares of the rate sustained by the slower system, and rates around a latency limit, depend on the
machine. So before the first block every system runs each workload once in a closed loop, and for a
latency limit at a few rates around it. The next trial follows from the plan and the stored
measurements alone: an interrupted pilot goes on where it was. Its outcome is read by
`store/resolved.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.measurement.measurement import NO_BLOCK, Cell, Measurement, Trial
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import Plan, TrialPlan
from dbdyno.plan.settings import setting_names
from dbdyno.stats.draw import draw
from dbdyno.stats.open_loop import Point
from dbdyno.store.resolved import (
    RUNG,
    SEARCH_RATES,
    capacity_per_s_of,
    is_ended,
    limit_ms_of,
    points_of,
    rates_found,
    rounded,
    tried_of,
    with_found,
)

FIRST_SEQUENCE: Final = -100_000
"""A pilot comes before the run's first trial, which is 0."""
WINDOW_S_MAX: Final = 20.0
WARMUP_S_MAX: Final = 10.0
FIRST_SHARE: Final = 0.7
"""First rate tried for a limit, as a share of the closed loop's throughput."""
FORESEEN_PER_S: Final = 1234.0
"""Placeholder for a rate still to be found; a number that a user hardly types."""


def piloting(trial: TrialPlan) -> TrialPlan:
    """Times of a pilot's trials: just long enough to choose levels."""
    return TrialPlan(
        warmup_s=min(trial.warmup_s, WARMUP_S_MAX), window_s=min(trial.window_s, WINDOW_S_MAX)
    )


def next_trial(
    plan: Plan, run_id: str, pilots: Sequence[Measurement], system: str, setting: str
) -> Trial | None:
    """Next trial of the pilot on a system with a setting; None at its end.

    Args:
        pilots: all measurements of the run's pilot so far, failed trials too.
    """
    for workload in plan.workloads:
        tried = tried_of(pilots, system, workload.label, setting)
        cell = _next_cell(plan.load, tried, workload.label)
        if cell is not None:
            cell = cell.model_copy(update={"setting": setting})
            return Trial(
                run_id=run_id,
                sequence=FIRST_SEQUENCE + len(pilots),
                block=NO_BLOCK,
                position=0,
                system=system,
                cell=cell,
                seed=draw(plan.seed, "pilot", cell.key) >> 1,
                is_pilot=True,
            )
    return None


def foreseen(plan: Plan) -> Plan:
    """The plan as if its pilot had ended, with rates made up: for counting cells and time."""
    if not plan.load.awaits_pilot:
        return plan
    labels = [system.label for system in plan.systems]
    limits = {label: FORESEEN_PER_S * RUNG**place for place, label in enumerate(labels)}
    sustained = dict.fromkeys(labels, FORESEEN_PER_S)
    return with_found(
        plan,
        [
            rates_found(plan.load, workload.label, setting, sustained, limits)
            for setting in setting_names(plan.settings)
            for workload in plan.workloads
        ],
    )


def trials_expected(plan: Plan) -> int:
    """Number of the pilot's trials; 0 for a plan without a pilot or with its outcome."""
    if not plan.load.awaits_pilot:
        return 0
    each = 1 + SEARCH_RATES * plan.load.seeks_rates
    return each * len(plan.systems) * len(plan.workloads) * len(setting_names(plan.settings))


def _next_cell(load: LoadPlan, tried: Sequence[Measurement], workload: str) -> Cell | None:
    """Next load of a system and workload; None at the end of the search."""
    if is_ended(load, tried):
        return None
    cell = Cell(workload=workload, threads=load.connections)
    capacity_per_s = capacity_per_s_of(tried)
    if capacity_per_s is None:
        return cell
    rate = _next_rate(load, list(points_of(load, tried)), capacity_per_s)
    return cell.model_copy(update={"rate_per_s": rate})


def _next_rate(load: LoadPlan, points: Sequence[Point], capacity_per_s: float) -> float:
    """The middle between the highest rate that kept the limit and the lowest rate that broke it."""
    if not points:
        return rounded(FIRST_SHARE * capacity_per_s)
    limit_ms = limit_ms_of(load)
    broke = [p.rate_per_s for p in points if not _keeps(p, limit_ms)]
    high = min([capacity_per_s, *broke])
    low = max([0.0, *(p.rate_per_s for p in points if _keeps(p, limit_ms) and p.rate_per_s < high)])
    return rounded((low + high) / 2)


def _keeps(point: Point, limit_ms: float) -> bool:
    return point.sustained and point.latency_ms is not None and point.latency_ms <= limit_ms
