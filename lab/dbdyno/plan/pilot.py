"""The pilot of an open loop: which rates are worth measuring, found by measuring.

Rates that are shares of what the slower system sustains, and rates around the limit of a latency,
depend on the machine. So before the first block every system runs each workload once in a closed
loop, and where a latency limit is given, at a few rates around it. What comes next, and what it all
came to, follows from the plan and the stored measurements alone: an interrupted pilot goes on where
it was, and a stored run knows its rates again whenever it is read.

A pilot chooses levels and nothing else. Its trials are in no estimate; all systems get the same
rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.measurement.measurement import Cell, Measurement, Trial
from dbdyno.plan.load import RUNGS_MAX, PilotFound, share_of
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import setting_names
from dbdyno.stats.draw import draw
from dbdyno.stats.open_loop import Growth, Point, growth, rate_at_limit

NO_BLOCK: Final = -1
"""A pilot's trials belong to no block."""
FIRST_SEQUENCE: Final = -100_000
"""A pilot comes before the run's first trial, which is 0."""
WINDOW_S_MAX: Final = 20.0
WARMUP_S_MAX: Final = 10.0
FIRST_SHARE: Final = 0.7
"""Of the closed loop's throughput: where a limit is looked for first."""
SEARCH_RATES: Final = 4
"""Rates tried in search of one limit; each halves where it can lie."""
RUNG: Final = 1.06
"""From one rate of the ladder to the next."""
RUNGS_ASIDE: Final = RUNGS_MAX // 2
"""Rates below and above each system's limit, beside that next to it."""
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
        cell = _next_cell(plan, _of(pilots, system, workload.label, setting), workload.label)
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


def resolved(plan: Plan, pilots: Sequence[Measurement]) -> Plan:
    """The plan with the rates that its pilot found; the plan itself while something is missing."""
    if not plan.load.needs_pilot or plan.load.pilot:
        return plan
    names = setting_names(plan.settings)
    for setting in names:
        for system in plan.systems:
            if next_trial(plan, "", pilots, system.label, setting) is not None:
                return plan
    found = [
        one
        for setting in names
        for workload in plan.workloads
        if (one := _found(plan, pilots, workload.label, setting)) is not None
    ]
    return _with_found(plan, found)


def foreseen(plan: Plan) -> Plan:
    """The plan as if its pilot had ended, with rates made up: for counting cells and time."""
    if not plan.load.needs_pilot or plan.load.pilot:
        return plan
    labels = [system.label for system in plan.systems]
    limits = {label: FORESEEN_PER_S * RUNG**place for place, label in enumerate(labels)}
    sustained = dict.fromkeys(labels, FORESEEN_PER_S)
    return _with_found(
        plan,
        [
            _rates(plan, workload.label, setting, sustained, limits)
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


def is_pilot(measurement: Measurement) -> bool:
    """Whether it looked for rates, and is no part of the comparison."""
    return measurement.trial.is_pilot


def backlog_growth(measurement: Measurement) -> Growth | None:
    """How the backlog moved; None in a closed loop, and where too little was seen."""
    rate, window = measurement.trial.cell.rate_per_s, measurement.measured
    return growth([i.end_s for i in window], [i.backlog for i in window], rate) if rate else None


def is_sustained(measurement: Measurement) -> bool:
    """Whether the server took what it was offered, as far as can be seen."""
    seen = backlog_growth(measurement)
    return seen is None or seen.sustained


def _of(
    pilots: Sequence[Measurement], system: str, workload: str, setting: str
) -> list[Measurement]:
    return [
        one
        for one in pilots
        if (one.trial.system, one.trial.cell.workload, one.trial.cell.setting)
        == (system, workload, setting)
        and (one.failure is None or one.impossible)
    ]


def _next_cell(plan: Plan, tried: Sequence[Measurement], workload: str) -> Cell | None:
    """The next load of one system and workload; a system that cannot bear it is asked no more."""
    cell = Cell(workload=workload, threads=plan.load.connections)
    if any(one.impossible for one in tried):
        return None
    capacity_per_s = _capacity_per_s(tried)
    if capacity_per_s is None:
        return cell
    points = list(_points(plan, tried))
    if not plan.load.seeks_rates or capacity_per_s <= 0 or len(points) >= SEARCH_RATES:
        return None
    rate = _next_rate(plan, points, capacity_per_s)
    return cell.model_copy(update={"rate_per_s": rate})


def _next_rate(plan: Plan, points: Sequence[Point], capacity_per_s: float) -> float:
    """Half way between the highest rate that kept the limit and the lowest that did not."""
    if not points:
        return _rounded(FIRST_SHARE * capacity_per_s)
    limit_ms = _limit_ms(plan)
    broke = [p.rate_per_s for p in points if not _keeps(p, limit_ms)]
    high = min([capacity_per_s, *broke])
    low = max([0.0, *(p.rate_per_s for p in points if _keeps(p, limit_ms) and p.rate_per_s < high)])
    return _rounded((low + high) / 2)


def _keeps(point: Point, limit_ms: float) -> bool:
    return point.sustained and point.latency_ms is not None and point.latency_ms <= limit_ms


def _capacity_per_s(tried: Sequence[Measurement]) -> float | None:
    closed = [one for one in tried if one.trial.cell.rate_per_s is None]
    return closed[0].events / closed[0].window_s if closed and closed[0].window_s else None


def _points(plan: Plan, tried: Sequence[Measurement]) -> Iterator[Point]:
    """What was seen at rates. Percentiles are read whatever the count: they only choose levels."""
    slo = plan.load.slo
    for one in tried:
        rate = one.trial.cell.rate_per_s
        if rate is not None and slo is not None:
            latency_ms = one.histogram().quantile(slo.quantile) / 1e6 if one.events else None
            yield Point(rate, latency_ms, is_sustained(one))


def _found(
    plan: Plan, pilots: Sequence[Measurement], workload: str, setting: str
) -> PilotFound | None:
    """What came of one workload and setting; None where no system can run it."""
    sustained: dict[str, float] = {}
    limits: dict[str, float] = {}
    for system in plan.systems:
        tried = _of(pilots, system.label, workload, setting)
        capacity_per_s = _capacity_per_s(tried)
        if not capacity_per_s or any(one.impossible for one in tried):
            continue
        sustained[system.label] = capacity_per_s
        if plan.load.seeks_rates:
            points = [*_points(plan, tried), Point(capacity_per_s, None, sustained=False)]
            met = rate_at_limit(points, _limit_ms(plan))
            limits[system.label] = met.rate_per_s or capacity_per_s
    return _rates(plan, workload, setting, sustained, limits) if sustained else None


def _rates(
    plan: Plan, workload: str, setting: str, sustained: dict[str, float], limits: dict[str, float]
) -> PilotFound:
    rounded = {label: _rounded(rate) for label, rate in sustained.items()}
    slowest = min(rounded.values())
    shares = [share for text in plan.load.rates if (share := share_of(text)) is not None]
    rates = {_rounded(share * slowest) for share in shares}
    if plan.load.seeks_rates:
        rates |= set(_ladder(limits))
    return PilotFound(
        workload=workload,
        setting=setting,
        sustained_per_s=rounded,
        limits_per_s={label: _rounded(rate) for label, rate in limits.items()}
        if plan.load.seeks_rates
        else {},
        rates_per_s=tuple(sorted(rates)),
    )


def _ladder(limits: dict[str, float]) -> Iterator[float]:
    """Rates around each system's limit, all on one grid, so that near limits share theirs."""
    base = min(limits.values())
    for limit in limits.values():
        middle = round(math.log(limit / base) / math.log(RUNG))
        for place in range(middle - RUNGS_ASIDE, middle + RUNGS_ASIDE + 1):
            yield _rounded(base * RUNG**place)


def _with_found(plan: Plan, found: Sequence[PilotFound]) -> Plan:
    load = plan.load.model_copy(update={"pilot": tuple(found)})
    return plan.model_copy(update={"load": load})


def _limit_ms(plan: Plan) -> float:
    return plan.load.slo.limit_ms if plan.load.slo is not None else math.inf


def _rounded(rate: float) -> float:
    """Three significant digits: a level is a name too."""
    return float(f"{rate:.3g}")


def _seed(plan: Plan, cell: Cell) -> int:
    return draw(plan.seed, "pilot", cell.key) >> 1
