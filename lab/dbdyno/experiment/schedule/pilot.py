"""The pilot of an open loop: which rates are worth measuring, found by measuring.

Rates that are shares of what the slower system sustains, and rates around the limit of a latency,
depend on the machine. So before the first block every system runs each workload once in a closed
loop, and where a latency limit is given, at a few rates around it. The next trial follows from the
plan and the stored measurements alone: an interrupted pilot goes on where it was. Its outcome is
read by `store/resolved.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.measurement.measurement import NO_BLOCK, Cell, Measurement, Trial
from dbdyno.plan.plan import Plan
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
"""Of the closed loop's throughput: where a limit is looked for first."""
FORESEEN_PER_S: Final = 1234.0
"""Takes the place of a rate that the pilot has yet to find; nobody is likely to type it."""


def piloting(plan: Plan) -> Plan:
    """The plan with the times of its pilot's trials: no longer than it takes to choose levels."""
    trial = plan.trial
    short = {
        "window_s": min(trial.window_s, WINDOW_S_MAX),
        "warmup_s": min(trial.warmup_s, WARMUP_S_MAX),
    }
    return plan.model_copy(update={"trial": trial.model_copy(update=short)})


def next_trial(
    plan: Plan, run_id: str, pilots: Sequence[Measurement], system: str, setting: str
) -> Trial | None:
    """What the pilot measures next on a system with a setting; None when nothing is left.

    Args:
        pilots: all measurements of the run's pilot so far, failed ones too.
    """
    for workload in plan.workloads:
        cell = _next_cell(plan, tried_of(pilots, system, workload.label, setting), workload.label)
        if cell is not None:
            cell = cell.model_copy(update={"setting": setting})
            return Trial(
                run_id=run_id,
                sequence=FIRST_SEQUENCE + len(pilots),
                block=NO_BLOCK,
                position=0,
                system=system,
                cell=cell,
                seed=_seed(plan, cell),
                is_pilot=True,
            )
    return None


def foreseen(plan: Plan) -> Plan:
    """The plan as if its pilot had ended, with rates made up: for counting cells and time."""
    if not plan.load.needs_pilot or plan.load.pilot:
        return plan
    labels = [system.label for system in plan.systems]
    limits = {label: FORESEEN_PER_S * RUNG**place for place, label in enumerate(labels)}
    sustained = dict.fromkeys(labels, FORESEEN_PER_S)
    return with_found(
        plan,
        [
            rates_found(plan, workload.label, setting, sustained, limits)
            for setting in setting_names(plan.settings)
            for workload in plan.workloads
        ],
    )


def trials_expected(plan: Plan) -> int:
    """How many trials the pilot takes; 0 without one or when it is done."""
    if not plan.load.needs_pilot or plan.load.pilot:
        return 0
    each = 1 + SEARCH_RATES * plan.load.seeks_rates
    return each * len(plan.systems) * len(plan.workloads) * len(setting_names(plan.settings))


def _next_cell(plan: Plan, tried: Sequence[Measurement], workload: str) -> Cell | None:
    """The next load of one system and workload; None where the search has ended."""
    if is_ended(plan, tried):
        return None
    cell = Cell(workload=workload, threads=plan.load.connections)
    capacity_per_s = capacity_per_s_of(tried)
    if capacity_per_s is None:
        return cell
    rate = _next_rate(plan, list(points_of(plan, tried)), capacity_per_s)
    return cell.model_copy(update={"rate_per_s": rate})


def _next_rate(plan: Plan, points: Sequence[Point], capacity_per_s: float) -> float:
    """Half way between the highest rate that kept the limit and the lowest that did not."""
    if not points:
        return rounded(FIRST_SHARE * capacity_per_s)
    limit_ms = limit_ms_of(plan)
    broke = [p.rate_per_s for p in points if not _keeps(p, limit_ms)]
    high = min([capacity_per_s, *broke])
    low = max([0.0, *(p.rate_per_s for p in points if _keeps(p, limit_ms) and p.rate_per_s < high)])
    return rounded((low + high) / 2)


def _keeps(point: Point, limit_ms: float) -> bool:
    return point.sustained and point.latency_ms is not None and point.latency_ms <= limit_ms


def _seed(plan: Plan, cell: Cell) -> int:
    return draw(plan.seed, "pilot", cell.key) >> 1
