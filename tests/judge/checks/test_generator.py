"""Was the generator what was measured, and was the rate sustained? Each limit from both sides."""

from __future__ import annotations

import pytest

from dbdyno._engine import Histogram
from dbdyno.judge.audit import examine
from dbdyno.judge.checks import generator
from dbdyno.judge.checks.generator import few_requests, rate_not_sustained
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import judge
from dbdyno.measurement.certificate import CertificateFacts, KnownAnswer
from dbdyno.measurement.measurement import EVENT
from dbdyno.measurement.parts import TrialEvidence
from dbdyno.plan.load import LoadPlan, SloPlan
from support import making
from support.made_rates import at_rate

PLAN = making.plan()


@pytest.mark.parametrize(("share", "void"), [(0.2, False), (0.70, False), (0.71, True)])
def test_generator_above_70_percent_of_a_core_is_void(share, void):
    found = generator.client_bound(making.measurement(cpu_share_max=share), PLAN)
    assert (found is not None) == void
    if found:
        assert (found.level, found.values) == (
            Level.VOID,
            {"share": 0.71, "limit": 0.7, "threads": 1},
        )


def late(lag_ms: float, latency_ms: float = 10.0):
    """A trial whose generator was so late in two of a hundred events."""
    made = making.measurement(latency_ms=latency_ms, spread=0.0)
    lag = Histogram()
    for number in range(100):
        lag.record(int((lag_ms if number < 2 else 0.01) * 1e6))
    first = made.intervals[2]
    blobs = {EVENT: first.histograms[EVENT], "timer_lag": lag.encode()}
    first = first.model_copy(update={"histograms": blobs})
    return making.changed(made, intervals=(*made.intervals[:2], first, *made.intervals[3:]))


@pytest.mark.parametrize(
    ("lag_ms", "latency_ms", "found"),
    [(0.19, 1.0, False), (0.22, 1.0, True), (0.45, 10.0, False), (0.55, 10.0, True)],
)
def test_lateness_is_held_against_a_fifth_of_a_millisecond_and_the_median(
    lag_ms, latency_ms, found
):
    finding = generator.timer_late(late(lag_ms, latency_ms), PLAN)
    assert (finding is not None) == found
    if finding:
        assert finding.level is Level.DOUBTFUL
        assert finding.values["late_ms"] == pytest.approx(lag_ms, rel=0.02)


def test_a_closed_loop_has_no_timer_that_could_be_late():
    assert generator.timer_late(making.measurement(), PLAN) is None


@pytest.mark.parametrize(("ceiling", "found"), [(2000.1, False), (1900.0, True), (None, False)])
def test_half_of_the_ceiling_is_near(ceiling, found):
    made = making.changed(making.measurement(), evidence=TrialEvidence(ceiling_per_s=ceiling))
    finding = generator.near_ceiling(made, PLAN)
    assert (finding is not None) == found
    if finding:
        assert finding.level is Level.DOUBTFUL
        assert finding.values["share"] == pytest.approx(1000 / 1900)
    assert generator.near_ceiling(making.with_trial(made, rate_per_s=1000.0), PLAN) is None


AT_RATES = making.plan(load=LoadPlan(rates=("1000",)))
LADDER = making.plan(load=LoadPlan(slo=SloPlan(limit_ms=20)))


def test_a_backlog_that_grows_is_doubtful_with_its_numbers_and_a_rung_may_break() -> None:
    found = rate_not_sustained(at_rate(sustained=False), AT_RATES)
    assert found.level is Level.DOUBTFUL
    numbers = {"rate_per_s": 1000, "answered_per_s": 800, "growth_per_s": 200, "backlog": 2400}
    assert numbers.items() <= found.values.items()
    assert rate_not_sustained(at_rate(sustained=False), LADDER).level is Level.NOTE


@pytest.mark.parametrize("made", [at_rate(), making.measurement(), at_rate(rate=None, served=500)])
def test_what_is_taken_is_no_finding(made) -> None:
    assert rate_not_sustained(made, AT_RATES) is None


def test_few_requests_say_which_window_would_do() -> None:
    found = few_requests(at_rate(rate=200), AT_RATES)
    assert (found.values["requests"], found.values["needed"]) == (2000, 10_000)
    assert found.values["window_s"] == 50
    assert few_requests(at_rate(rate=1000), AT_RATES) is None
    assert few_requests(making.measurement(tps=10), AT_RATES) is None
    lower = AT_RATES.model_copy(
        update={"load": LoadPlan(slo=SloPlan(metric="p95", limit_ms=9), rates=("200",))}
    )
    assert few_requests(at_rate(rate=200), lower) is None


def test_idle_connections_are_no_fault_at_a_rate() -> None:
    assert [found.check for found in examine(at_rate(latency_ms=3), AT_RATES)] == []


def test_a_verdict_at_a_rate_is_about_latency_and_carries_the_doubt() -> None:
    blocks = [
        at_rate(system, block, 1300, latency_ms, sustained=system == making.A)
        for block in range(5)
        for system, latency_ms in ((making.A, 10 + block / 100), (making.B, 80 + block))
    ]
    plan = AT_RATES.model_copy(update={"load": LoadPlan(rates=("1300",))})
    (verdict,) = judge(blocks, plan).verdicts
    assert (verdict.metric, verdict.word.value) == ("latency_ms_p99", "worse")
    assert any(
        "rate-not-sustained" in reason.values.get("checks", {}) for reason in verdict.reasons
    )


WRONG = KnownAnswer(question="saturated", statistic="throughput", truth=400.0, seen=360.0)


@pytest.mark.parametrize(
    ("facts", "void"),
    [
        (None, False),
        (CertificateFacts(), False),
        (CertificateFacts(digest="abc", made_at="then"), False),
        (CertificateFacts(digest="abc", made_at="then", wrong=(WRONG,)), True),
        (CertificateFacts(digest="abc", wrong=(WRONG,), changed=("kernel",)), False),
    ],
)
def test_no_verdict_beside_a_certificate_that_failed(facts, void):
    measured = [
        making.changed(one, certificate=facts) for one in making.pairs([0.8, 0.81, 0.79, 0.8, 0.8])
    ]
    judged = judge(measured, making.plan(blocks=5))
    assert {verdict.word.value for verdict in judged.verdicts} == {"void" if void else "worse"}
    found = [one for one in judged.findings if one.check == "certificate-failed"]
    seen = {"made_at": "then", "wrong": [WRONG.model_dump()], "late": []}
    assert [one.values for one in found] == [seen] * void


def test_a_certificate_that_failed_voids_the_trials_of_its_machine_alone() -> None:
    good = CertificateFacts(digest="abc", made_at="then")
    bad = CertificateFacts(digest="def", made_at="then", wrong=(WRONG,))
    measured = [
        making.changed(one, certificate=bad if one.trial.block in (1, 3) else good)
        for one in making.pairs((0.8, 0.81, 0.79, 0.8, 0.8))
    ]
    judged = judge(measured, making.plan(blocks=5))
    found = [one for one in judged.findings if one.check == "certificate-failed"]
    theirs = [one.trial.key for one in measured if one.trial.block in (1, 3)]
    assert [one.trial for one in found] == theirs
    assert [verdict.estimate.blocks for verdict in judged.verdicts] == [3]
