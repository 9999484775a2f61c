"""What a pilot tries, and which rates come of it, against servers of known capacity."""

from __future__ import annotations

import math

import pytest

from dbdyno.experiment.schedule.pilot import (
    FIRST_SEQUENCE,
    foreseen,
    next_trial,
    piloting,
    trials_expected,
)
from dbdyno.measurement.measurement import NO_BLOCK, Measurement, is_sustained
from dbdyno.plan.load import LoadPlan, SloPlan
from dbdyno.plan.plan import Plan, cells
from dbdyno.store.resolved import resolved
from support import making
from support.made_rates import at_rate

SERVICE_MS = 2.0
LIMIT = SloPlan(metric="p50", limit_ms=10)
CAPACITIES = {making.A: 1000.0, making.B: 800.0}


def plan_of(load: LoadPlan) -> Plan:
    return making.plan(window_s=60, warmup_s=15).model_copy(update={"load": load})


def answered(plan: Plan, system: str, rate: float | None) -> Measurement:
    """What a queue of that system's capacity shows: latency grows as it is filled."""
    capacity = CAPACITIES[system]
    latency_ms = SERVICE_MS / max(1 - (rate or 0) / capacity, 0.001)
    return at_rate(
        system,
        NO_BLOCK,
        rate,
        latency_ms if rate else plan.load.connections / capacity * 1e3,
        sustained=rate is None or rate < capacity,
        served=capacity if rate is None else None,
        connections=plan.load.connections,
        is_pilot=True,
    )


def piloted(plan: Plan, pilots: list[Measurement]) -> Plan:
    for system in CAPACITIES:
        while trial := next_trial(plan, "run-1", pilots, system, "default"):
            assert trial.sequence == FIRST_SEQUENCE + len(pilots)
            assert (trial.block, trial.is_pilot) == (NO_BLOCK, True)
            made = answered(plan, system, trial.cell.rate_per_s)
            pilots.append(making.changed(made, trial=trial))
    return resolved(plan, pilots, None)


def test_shares_are_those_of_the_slower_system() -> None:
    pilots: list[Measurement] = []
    found = piloted(plan_of(LoadPlan(rates=("50%", "90%"))), pilots)
    assert [one.trial.cell.rate_per_s for one in pilots] == [None, None]
    (one,) = found.load.pilot
    assert one.sustained_per_s == CAPACITIES
    assert one.rates_per_s == (400.0, 720.0)
    assert [cell.rate_per_s for cell in cells(found)] == [400.0, 720.0]


def test_a_limit_is_closed_in_and_the_ladder_lies_around_it_on_both_systems() -> None:
    pilots: list[Measurement] = []
    found = piloted(plan_of(LoadPlan(slo=LIMIT)), pilots)
    assert len(pilots) == 2 * 5 == trials_expected(plan_of(LoadPlan(slo=LIMIT)))
    (one,) = found.load.pilot
    truth = {label: capacity * (1 - SERVICE_MS / 10) for label, capacity in CAPACITIES.items()}
    for label, limit in truth.items():
        assert one.limits_per_s[label] == pytest.approx(limit, rel=0.04)
        below = [rate for rate in one.rates_per_s if rate < limit]
        above = [rate for rate in one.rates_per_s if rate > limit]
        assert len(below) >= 2
        assert len(above) >= 2
    steps = [b / a for a, b in zip(one.rates_per_s, one.rates_per_s[1:], strict=False)]
    assert min(steps) > 1.05, "no two rates are nearly the same"


def test_what_comes_next_follows_from_what_is_stored() -> None:
    plan, pilots = plan_of(LoadPlan(slo=LIMIT)), list[Measurement]()
    piloted(plan, pilots)
    for count in range(len(pilots)):
        system = pilots[count].trial.system
        assert next_trial(plan, "run-1", pilots[:count], system, "default") == pilots[count].trial
        assert resolved(plan, pilots[:count], None) is plan


def test_a_failed_trial_is_tried_again_and_an_impossible_one_is_not() -> None:
    plan = plan_of(LoadPlan(rates=("50%",)))
    first = next_trial(plan, "run-1", [], making.A, "default")
    assert first is not None
    failed = making.changed(answered(plan, making.A, None), failure="it died")
    again = next_trial(plan, "run-1", [failed], making.A, "default")
    assert again is not None
    assert (again.key, again.sequence) == (first.key, first.sequence + 1)
    refused = making.changed(failed, impossible=True)
    assert next_trial(plan, "run-1", [refused], making.A, "default") is None
    other = answered(plan, making.B, None)
    assert resolved(plan, [refused, other], None).load.pilot[0].rates_per_s == (400.0,)
    nobody = [refused, making.changed(other, failure="no", impossible=True)]
    assert resolved(plan, nobody, None).load.pilot == ()


def test_plans_without_a_pilot_are_left_as_they_are() -> None:
    for load in (LoadPlan(), LoadPlan(rates=("500",)), LoadPlan(slo=LIMIT, rates=("500",))):
        plan = plan_of(load)
        assert trials_expected(plan) == 0
        assert resolved(plan, [], None) is plan
        assert foreseen(plan) is plan


def test_a_plan_can_be_counted_before_its_pilot() -> None:
    whole = foreseen(plan_of(LoadPlan(rates=("50%", "70%"))))
    assert len(cells(whole)) == 2
    assert len(cells(foreseen(plan_of(LoadPlan(slo=LIMIT))))) == 6


def test_a_pilot_is_short() -> None:
    trial = piloting(plan_of(LoadPlan(slo=LIMIT)).trial)
    assert (trial.warmup_s, trial.window_s) == (10, 20)


def test_a_closed_loop_is_sustained_by_its_nature() -> None:
    assert is_sustained(making.measurement())
    assert is_sustained(at_rate())
    assert not is_sustained(at_rate(sustained=False))


def test_a_limit_that_nothing_keeps_still_has_a_ladder() -> None:
    found = piloted(plan_of(LoadPlan(slo=SloPlan(metric="p50", limit_ms=0.1))), [])
    (one,) = found.load.pilot
    assert all(math.isfinite(rate) and rate > 0 for rate in one.rates_per_s)
