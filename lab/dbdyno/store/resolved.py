"""A plan with the outcome of its run: rates that a pilot found, the design that a time chose.

The store keeps a plan as it was written. Rates follow from the stored measurements of the pilot
alone, so a stored run has the same rates whenever it is read.

A pilot chooses levels and nothing else. Its trials are in no estimate; all systems get the same
rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from dbdyno.measurement.measurement import Measurement, is_sustained
from dbdyno.plan.load import RUNGS_MAX, LoadPlan, PilotFound
from dbdyno.plan.plan import ChosenDesign, Plan, TrialPlan
from dbdyno.plan.settings import setting_names
from dbdyno.plan.spelling import share_of
from dbdyno.stats.open_loop import Point, rate_at_limit
from dbdyno.store.reading import StoredRun
from dbdyno.store.store import Store

SEARCH_RATES: Final = 4
"""Rates tried in search of one limit; each halves where it can lie."""
RUNG: Final = 1.06
"""From one rate of the ladder to the next."""
RUNGS_ASIDE: Final = RUNGS_MAX // 2
"""Rates below and above each system's limit, beside that next to it."""


def resolved_run(store: Store, run: StoredRun) -> StoredRun:
    """The run with the rates that its pilot found and the design that its time chose, so far."""
    pilots = store.pilots(run.run_id) if run.plan.load.needs_pilot else []
    return replace(run, plan=resolved(run.plan, pilots, store.design(run.run_id)))


def resolved(plan: Plan, pilots: Sequence[Measurement], chosen: ChosenDesign | None) -> Plan:
    """The plan with the rates that its pilot found and the design that its time chose.

    The plan itself while its pilot has not ended and no design is chosen.

    Args:
        pilots: all measurements of the run's pilot so far, failed ones too.
    """
    if plan.load.awaits_pilot:
        plan = _with_rates(plan, pilots)
    return with_chosen(plan, chosen)


def with_chosen(plan: Plan, chosen: ChosenDesign | None) -> Plan:
    """The plan with the warm-up, window and blocks that its run chose; as it is without them."""
    if chosen is None:
        return plan
    trial = TrialPlan(warmup_s=chosen.warmup_s, window_s=chosen.window_s)
    design = plan.design.model_copy(update={"chosen": chosen, "blocks": chosen.blocks})
    return plan.model_copy(update={"trial": trial, "design": design})


def _with_rates(plan: Plan, pilots: Sequence[Measurement]) -> Plan:
    names, workloads = setting_names(plan.settings), [one.label for one in plan.workloads]
    searches = (
        tried_of(pilots, system.label, workload, setting)
        for setting in names
        for system in plan.systems
        for workload in workloads
    )
    if not all(is_ended(plan.load, tried) for tried in searches):
        return plan
    rates = [
        rate
        for setting in names
        for workload in workloads
        if (rate := _found(plan, pilots, workload, setting)) is not None
    ]
    return with_found(plan, rates)


def tried_of(
    pilots: Sequence[Measurement], system: str, workload: str, setting: str
) -> list[Measurement]:
    """The pilot's sound measurements of one search, and refusals of a cell that cannot be run."""
    return [
        one
        for one in pilots
        if (one.trial.system, one.trial.cell.workload, one.trial.cell.setting)
        == (system, workload, setting)
        and (one.failure is None or one.impossible)
    ]


def is_ended(load: LoadPlan, tried: Sequence[Measurement]) -> bool:
    """True if a pilot needs no further trial of a system, workload and setting (`tried_of`).

    A system that cannot bear a load is not tried again.
    """
    if any(one.impossible for one in tried):
        return True
    capacity_per_s = capacity_per_s_of(tried)
    if capacity_per_s is None:
        return False
    is_found = len(list(points_of(load, tried))) >= SEARCH_RATES
    return not load.seeks_rates or capacity_per_s <= 0 or is_found


def capacity_per_s_of(tried: Sequence[Measurement]) -> float | None:
    """Events a second of the closed loop; None before it was measured."""
    closed = [one for one in tried if one.trial.cell.rate_per_s is None]
    return closed[0].events / closed[0].window_s if closed and closed[0].window_s else None


def points_of(load: LoadPlan, tried: Sequence[Measurement]) -> Iterator[Point]:
    """Points of a latency search, one for each rate tried.

    Percentiles are read from any number of requests: they only choose levels.
    """
    slo = load.slo
    for trial in tried:
        rate = trial.trial.cell.rate_per_s
        if rate is not None and slo is not None:
            latency_ms = trial.histogram().quantile(slo.quantile) / 1e6 if trial.events else None
            yield Point(rate, latency_ms, is_sustained(trial))


def _found(
    plan: Plan, pilots: Sequence[Measurement], workload: str, setting: str
) -> PilotFound | None:
    """Rates of a workload and setting; None if no system can run it."""
    sustained: dict[str, float] = {}
    limits: dict[str, float] = {}
    for system in plan.systems:
        tried = tried_of(pilots, system.label, workload, setting)
        capacity_per_s = capacity_per_s_of(tried)
        if not capacity_per_s or any(one.impossible for one in tried):
            continue
        sustained[system.label] = capacity_per_s
        if plan.load.seeks_rates:
            points = [*points_of(plan.load, tried), Point(capacity_per_s, None, sustained=False)]
            met = rate_at_limit(points, limit_ms_of(plan.load))
            limits[system.label] = met.rate_per_s or capacity_per_s
    return rates_found(plan.load, workload, setting, sustained, limits) if sustained else None


def rates_found(
    load: LoadPlan,
    workload: str,
    setting: str,
    sustained: dict[str, float],
    limits: dict[str, float],
) -> PilotFound:
    """The rates to measure, from the sustained rates and the limits of all systems."""
    sustained_per_s = {label: rounded(rate) for label, rate in sustained.items()}
    slowest = min(sustained_per_s.values())
    shares = [share for text in load.rates if (share := share_of(text)) is not None]
    rates = {rounded(share * slowest) for share in shares}
    if load.seeks_rates:
        rates |= set(_ladder(limits))
    return PilotFound(
        workload=workload,
        setting=setting,
        sustained_per_s=sustained_per_s,
        limits_per_s={label: rounded(rate) for label, rate in limits.items()}
        if load.seeks_rates
        else {},
        rates_per_s=tuple(sorted(rates)),
    )


def _ladder(limits: dict[str, float]) -> Iterator[float]:
    """Rates around each system's limit, all on one grid, so that near limits share theirs."""
    base = min(limits.values())
    for limit in limits.values():
        middle = round(math.log(limit / base) / math.log(RUNG))
        for place in range(middle - RUNGS_ASIDE, middle + RUNGS_ASIDE + 1):
            yield rounded(base * RUNG**place)


def with_found(plan: Plan, pilots: Sequence[PilotFound]) -> Plan:
    """The plan with these rates."""
    load = plan.load.model_copy(update={"pilot": tuple(pilots)})
    return plan.model_copy(update={"load": load})


def limit_ms_of(load: LoadPlan) -> float:
    """The latency limit; infinite without one."""
    return load.slo.limit_ms if load.slo is not None else math.inf


def rounded(rate: float) -> float:
    """Three significant digits: a level is a name too."""
    return float(f"{rate:.3g}")
