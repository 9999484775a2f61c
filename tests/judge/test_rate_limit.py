"""The highest rate within a limit: known queues, blocks outside the rates, intervals that cover."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from dbdyno.judge.finding import Reason
from dbdyno.judge.judgement import enough, judge
from dbdyno.judge.rate_limit import RateSearch
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.load import LoadPlan, PilotFound, SloPlan
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import SettingsPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.stats.open_loop import RateSide
from support import making
from support.made_rates import at_rate

LIMIT_MS = 20.0
SERVICE_MS = 4.0
RATES = tuple(round(880 * 1.06**place) for place in range(8))
FOUND = PilotFound(
    workload="oltp_read_write",
    setting="default",
    sustained_per_s={making.A: 1250.0, making.B: 1250.0},
    limits_per_s={making.A: 1000.0, making.B: 1000.0},
    rates_per_s=RATES,
)


def plan_of(blocks: int = 5) -> Plan:
    load = LoadPlan(slo=SloPlan(metric="p50", limit_ms=LIMIT_MS), pilot=(FOUND,))
    return making.plan(blocks=blocks, load=load)


def trial(system: str, block: int, rate: float, limit: float) -> Measurement:
    """A queue whose latency is LIMIT_MS at `limit` and grows without end a quarter above it."""
    capacity = limit / (1 - SERVICE_MS / LIMIT_MS)
    latency_ms = SERVICE_MS / max(1 - rate / capacity, 0.01)
    return at_rate(
        system, block, rate, latency_ms, sustained=rate < capacity, window_s=4, connections=64
    )


def run(limits: dict[str, list[float]]) -> list[Measurement]:
    return [
        trial(system, block, rate, limit)
        for system, of_blocks in limits.items()
        for block, limit in enumerate(of_blocks)
        for rate in RATES
    ]


def search(limits: dict[str, list[float]]) -> RateSearch:
    blocks = len(limits[making.A])
    (found,) = judge(run(limits), plan_of(blocks)).slo
    return found


def test_known_limits_are_found_and_compared_within_blocks() -> None:
    drift = (1.0, 0.97, 1.05, 1.02, 0.99)
    found = search({making.A: [1000 * d for d in drift], making.B: [1100 * d for d in drift]})
    a, b = found.limits
    assert (found.metric, found.limit_ms, found.connections) == ("latency_ms_p50", 20.0, 64)
    typical = math.exp(sum(map(math.log, drift)) / 5)
    assert a.rate_per_s == pytest.approx(1000 * typical, rel=0.01)
    assert b.rate_per_s == pytest.approx(1100 * typical, rel=0.01)
    assert a.low < 1000 < a.high
    (verdict,) = found.verdicts
    assert verdict.word is Word.BETTER
    assert verdict.estimate.ratio == pytest.approx(1.1, rel=0.01)
    assert verdict.metric == "rate_at_limit_per_s"
    assert [block.side for block in a.by_block] == [RateSide.BETWEEN] * 5
    assert [point.rate_per_s for point in a.by_block[0].points] == list(RATES)


def test_a_block_outside_the_rates_takes_the_verdict_away_and_says_why() -> None:
    found = search({making.A: [1000.0] * 5, making.B: [1100, 1100, 5000, 1100, 1100]})
    (verdict,) = found.verdicts
    assert verdict.word is Word.NO_VERDICT
    outside = {"system": making.B, "blocks": 5, "sides": {"above": 1}}
    assert verdict.reasons[0] == Reason(kind="limit-outside", values=outside)
    assert (verdict.low, verdict.high) == (None, None), "the other blocks were chosen by chance"
    assert (verdict.estimate.low, verdict.estimate.high) == (None, None)
    assert (verdict.blocks_needed, verdict.seconds_needed) == (None, None)
    assert found.limits[1].blocks == 4
    assert found.limits[1].count(RateSide.ABOVE) == 1
    below = search({making.A: [1000.0] * 3, making.B: [100.0] * 3})
    assert below.verdicts[0].reasons[0].values["sides"] == {"below": 3}
    assert below.limits[1].rate_per_s is None


def test_blocks_that_are_left_give_no_word_and_no_reasons_for_one() -> None:
    limits = {making.A: [1000.0] * 6, making.B: [1015, 1025, 1018, 1022, 1020, 1021]}
    (inside,) = search(limits).verdicts
    assert (inside.word, inside.material) == (Word.BETTER, False)
    size = Reason(kind="size-undecided", values={"margin": 0.02})
    assert size in inside.reasons
    limits[making.B][5] = 5000
    (outside,) = search(limits).verdicts
    assert outside.word is Word.NO_VERDICT
    assert size not in outside.reasons


def test_a_block_outside_the_rates_does_not_keep_a_run_from_its_end() -> None:
    plan = making.with_parts(plan_of(12), design={"stop": "decided"})
    above = run({making.A: [1000.0] * 3, making.B: [1100, 5000, 1100]})
    assert enough(above, plan)
    undecided = run({making.A: [1000.0] * 3, making.B: [940, 1000, 1060]})
    assert not enough(undecided, plan)


def test_a_system_outside_the_rates_does_not_end_the_run_for_the_others() -> None:
    plan = making.with_parts(plan_of(12), design={"stop": "decided"})
    third = SystemPlan(label="C", reference="mysql:8.4.0")
    plan = making.with_parts(plan, systems=(*plan.systems, third))
    limits = {making.A: [1000.0] * 3, making.B: [940.0, 1000, 1060], "C": [1100.0, 5000, 1100]}
    assert not enough(run(limits), plan)
    assert enough(run({**limits, making.B: [1100.0] * 3}), plan)


SMALL, LARGE = "buffer_pool 1G", "buffer_pool 2G"


def of_settings(limits: dict[str, float], blocks: int = 5) -> tuple[Plan, list[Measurement]]:
    """One system under two settings, each at rates of its own around its limit."""
    rungs = {name: tuple(map(round, np.linspace(0.9, 1.1, 3) * at)) for name, at in limits.items()}
    found = tuple(
        FOUND.model_copy(update={"setting": name, "rates_per_s": rates})
        for name, rates in rungs.items()
    )
    plan = making.with_parts(
        plan_of(blocks),
        load={"pilot": found},
        systems=plan_of().systems[:1],
        settings=SettingsPlan(buffer_pool=("1G", "2G")),
    )
    return plan, [
        with_setting(trial(making.A, block, rate, limits[name]), name)
        for name, rates in rungs.items()
        for block in range(blocks)
        for rate in rates
    ]


def with_setting(made: Measurement, name: str) -> Measurement:
    cell = made.trial.cell.model_copy(update={"setting": name})
    return making.with_trial(made, cell=cell)


def test_settings_whose_rates_differ_have_the_findings_of_both() -> None:
    plan, made = of_settings({SMALL: 1000.0, LARGE: 1400.0})

    def verdict_with(change: Callable[[Measurement], dict[str, object]], blocks: int) -> Verdict:
        spoiled = [
            making.changed(one, **change(one))
            if one.trial.cell.setting == LARGE and one.trial.block < blocks
            else one
            for one in made
        ]
        ((verdict,),) = (one.verdicts for one in judge(spoiled, plan).slo if one.verdicts)
        return verdict

    def stolen(one: Measurement) -> dict[str, object]:
        return {"watch": tuple(s.model_copy(update={"host_cpu_steal": 0.2}) for s in one.watch)}

    verdict = verdict_with(stolen, 5)
    assert (verdict.baseline, verdict.system, verdict.word) == (SMALL, LARGE, Word.BETTER)
    assert verdict.reasons == (Reason(kind="doubtful", values={"checks": {"machine": 15}}),)
    verdict = verdict_with(lambda one: {"failure": "it died"}, 3)
    assert verdict.word is Word.VOID
    assert verdict.reasons[:2] == (
        Reason(kind="too-few-blocks", values={"blocks": 2, "least": 3}),
        Reason(kind="void", values={"trials": 9, "checks": {"trial-failed": 9}}),
    )


def test_rungs_have_values_but_no_verdicts_and_asked_rates_have_both() -> None:
    measured = run({making.A: [1000.0] * 3, making.B: [1000.0] * 3})
    rungs = judge(measured, plan_of(3))
    assert rungs.verdicts == ()
    assert {value.cell.rate_per_s for value in rungs.values} == set(RATES)
    given = LoadPlan(slo=SloPlan(metric="p50", limit_ms=20), rates=tuple(map(str, RATES)))
    asked = judge(measured, plan_of(3).model_copy(update={"load": given}))
    assert len(asked.verdicts) == len(RATES)
    assert asked.slo[0].limits == rungs.slo[0].limits


def test_percentiles_with_too_few_requests_give_no_number() -> None:
    load = LoadPlan(slo=SloPlan(metric="p99", limit_ms=20), pilot=(FOUND,))
    plan = plan_of(3).model_copy(update={"load": load})
    (found,) = judge(run({making.A: [1000.0] * 3, making.B: [1000.0] * 3}), plan).slo
    assert found.verdicts[0].reasons[0].values["sides"] == {"unknown": 3}


def test_one_system_has_a_limit_and_no_verdict_and_without_a_limit_there_is_no_search() -> None:
    plan = plan_of(3)
    alone = plan.model_copy(update={"systems": plan.systems[:1]})
    (found,) = judge(run({making.A: [1000.0] * 3}), alone).slo
    assert (len(found.limits), found.verdicts) == (1, ())
    assert judge([at_rate()], making.plan(load=LoadPlan(rates=("1000",)))).slo == ()
