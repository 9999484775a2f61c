"""Rates that a server takes, and rates that it does not; windows that hold requests enough."""

from __future__ import annotations

import pytest

from dbdyno.judge.audit import examine
from dbdyno.judge.checks.generator import few_requests, rate_not_sustained
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import judge
from dbdyno.plan.load import LoadPlan, SloPlan
from support import making
from support.made_rates import at_rate

PLAN = making.plan().model_copy(update={"load": LoadPlan(rates=("1000",))})
LADDER = making.plan().model_copy(update={"load": LoadPlan(slo=SloPlan(limit_ms=20))})


def test_a_backlog_that_grows_is_doubtful_with_its_numbers() -> None:
    found = rate_not_sustained(at_rate(sustained=False), PLAN)
    assert found is not None
    assert found.level is Level.DOUBTFUL
    assert "1000 requests/s fell due and 800.0 were answered" in found.evidence
    assert "grew by 200.0 a second" in found.evidence
    assert "to 2400" in found.evidence


def test_a_rung_of_a_ladder_may_break() -> None:
    found = rate_not_sustained(at_rate(sustained=False), LADDER)
    assert found is not None
    assert found.level is Level.NOTE


@pytest.mark.parametrize("made", [at_rate(), making.measurement(), at_rate(rate=None, served=500)])
def test_what_is_taken_is_no_finding(made) -> None:
    assert rate_not_sustained(made, PLAN) is None


def test_few_requests_say_which_window_would_do() -> None:
    found = few_requests(at_rate(rate=200), PLAN)
    assert found is not None
    assert found.evidence == "2000 requests, p99 needs 10000: 100 beyond it"
    assert "50 s or more" in found.advice
    assert few_requests(at_rate(rate=1000), PLAN) is None
    assert few_requests(making.measurement(tps=10), PLAN) is None
    lower = PLAN.model_copy(
        update={"load": LoadPlan(slo=SloPlan(metric="p95", limit_ms=9), rates=("200",))}
    )
    assert few_requests(at_rate(rate=200), lower) is None


def test_idle_connections_are_no_fault_at_a_rate() -> None:
    assert [found.check for found in examine(at_rate(latency_ms=3), PLAN)] == []


def test_a_verdict_at_a_rate_is_about_latency_and_carries_the_doubt() -> None:
    blocks = [
        at_rate(system, block, 1300, latency_ms, sustained=system == making.A)
        for block in range(5)
        for system, latency_ms in ((making.A, 10 + block / 100), (making.B, 80 + block))
    ]
    plan = PLAN.model_copy(update={"load": LoadPlan(rates=("1300",))})
    (verdict,) = judge(blocks, plan).verdicts
    assert (verdict.metric, verdict.word.value) == ("latency_ms_p99", "worse")
    assert any("rate-not-sustained" in reason for reason in verdict.reasons)
