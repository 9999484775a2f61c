"""Was the generator what was measured, and was the rate sustained? Each limit from both sides."""

from __future__ import annotations

import math
import random

import pytest

from dbdyno._engine import Histogram
from dbdyno.judge.audit import audit, examine
from dbdyno.judge.checks import generator
from dbdyno.judge.checks.generator import few_requests, rate_not_sustained
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import judge
from dbdyno.measurement.certificate import CertificateFacts, KnownAnswer
from dbdyno.measurement.measurement import EVENT, Cell, ThreadPlacement
from dbdyno.measurement.parts import DoubledThreads, ThreadsSlice, TrialEvidence
from dbdyno.plan.load import LoadPlan, SloPlan
from dbdyno.report.tell.findings import evidence
from support import making
from support.made_rates import at_rate
from support.making import A, B

PLAN = making.plan()


@pytest.mark.parametrize(("share", "void"), [(0.2, False), (0.70, False), (0.71, True)])
def test_generator_above_70_percent_of_a_core_is_void(share, void):
    found = generator.client_bound(making.measurement(cpu_share_max=share), PLAN)
    assert (found is not None) == void
    if found:
        assert found.level is Level.VOID
        assert "used 71 % of a core (limit 70 %, threads in all: 1)" in evidence(found)


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
        assert f"p99 {lag_ms:.2f} ms" in evidence(finding)


def placed(system: str, block: int, *placements: ThreadPlacement):
    made = making.measurement(system, block)
    return making.changed(made, engine=made.engine.model_copy(update={"placements": placements}))


def test_arms_of_a_block_want_one_placement_of_the_generator():
    batch = [ThreadPlacement(policy="batch") for _ in (0, 1)]
    beside = ThreadPlacement(policy="normal", refused="a batch thread")
    same = [placed(system, block, batch[block]) for block in (0, 1) for system in (A, B)]
    assert list(generator.unequal_placement(same, PLAN)) == []
    assert list(generator.unequal_placement([placed(A, 0), placed(B, 0, beside)], PLAN)) == []
    other = [*same, placed(A, 2, beside), placed(B, 2, batch[0])]
    (found,) = generator.unequal_placement(other, PLAN)
    assert (found.level, found.cell) == (Level.DOUBTFUL, making.measurement().trial.cell)
    assert evidence(found) == (
        "the generator's threads ran otherwise beside one system than beside another in 1 of 3 "
        "blocks: mysql:5.7.22: normal; mysql:8.0.15: batch"
    )
    broken = making.changed(placed(B, 3, batch[0]), failure="lost")
    assert list(generator.unequal_placement([*same, placed(A, 3, beside), broken], PLAN)) == []


def test_a_closed_loop_has_no_timer_that_could_be_late():
    assert generator.timer_late(making.measurement(), PLAN) is None


@pytest.mark.parametrize(("ceiling", "found"), [(2000.1, False), (1900.0, True), (None, False)])
def test_half_of_the_ceiling_is_near(ceiling, found):
    made = making.changed(making.measurement(), evidence=TrialEvidence(ceiling_per_s=ceiling))
    finding = generator.near_ceiling(made, PLAN)
    assert (finding is not None) == found
    if finding:
        assert evidence(finding).startswith("1000 events/s are 53 % of the 1900")


def test_an_open_loop_is_not_held_against_the_ceiling():
    made = making.changed(making.measurement(), evidence=TrialEvidence(ceiling_per_s=100.0))
    assert generator.near_ceiling(making.with_trial(made, rate_per_s=1000.0), PLAN) is None


ORDER = (1, 2, 2, 1, 1, 2, 2, 1)


def by_turns(faster, noise=0.0, drift=0.0, order=ORDER, seed=1, usual=1):
    """A trial with slices of 1000 events/s, by so much faster where the threads are twice as many.

    Args:
        noise: standard deviation of a slice's ln rate; drift: what ln rate gains a slice.
    """
    chance = random.Random(seed)
    slices = [
        ThreadsSlice(
            threads=times * usual,
            rate_per_s=1000
            * (1 + faster * (times == 2))
            * math.exp(chance.gauss(0, noise) + drift * number),
        )
        for number, times in enumerate(order)
    ]
    seen = DoubledThreads(
        workload="oltp_read_write",
        connections=8,
        setting="default",
        slice_s=3.0,
        slices=tuple(slices),
    )
    return making.changed(making.measurement(), evidence=TrialEvidence(doubled_threads=(seen,)))


def judged(made):
    return list(generator.generator_threads([made], PLAN))


def test_a_load_that_is_faster_with_twice_the_threads_was_held_back():
    (finding,) = judged(by_turns(0.05, noise=0.002, usual=2))
    assert (finding.check, finding.level) == ("generator-threads", Level.DOUBTFUL)
    assert "(4 instead of 2, 8 connections)" in evidence(finding)
    assert "changed by +5." in evidence(finding) or "changed by +4." in evidence(finding)
    assert "4 pairs of slices of 3.0 s (limit 2 %)" in evidence(finding)
    assert "held the load back" in finding.advice
    assert finding.cell == Cell(workload="oltp_read_write", threads=8)
    assert finding.system is None


@pytest.mark.parametrize("faster", [0.0, 0.01, -0.01])
def test_nothing_is_said_where_two_percent_is_excluded(faster):
    assert judged(by_turns(faster, noise=0.002)) == []


def test_a_standstill_in_a_slice_is_no_rate():
    (seen,) = by_turns(0.0, noise=0.002).evidence.doubled_threads
    still = seen.slices[1].model_copy(update={"rate_per_s": 0.0})
    slices = (seen.slices[0], still, *seen.slices[2:])
    one = TrialEvidence(doubled_threads=(seen.model_copy(update={"slices": slices}),))
    assert judged(making.changed(making.measurement(), evidence=one)) == []


def test_a_steady_drift_is_no_difference():
    assert judged(by_turns(0.0, drift=0.004)) == []
    (finding,) = judged(by_turns(0.04, drift=0.002))
    assert finding.level is Level.DOUBTFUL


def test_an_interval_that_is_too_wide_is_a_note():
    (finding,) = judged(by_turns(0.0, noise=0.05))
    assert finding.level is Level.NOTE
    assert "varied too much to see 2 %" in finding.advice
    low, high = evidence(finding).split("interval ")[1].split(", ")[0].split(" to ")
    assert low.startswith("-")
    assert high.startswith("+")


def test_slower_with_twice_the_threads_is_a_note_and_no_doubt_about_the_generator():
    (finding,) = judged(by_turns(-0.15, noise=0.005))
    assert finding.level is Level.NOTE
    assert "changed by -15." in evidence(finding) or "changed by -14." in evidence(finding)
    assert "not what limits this load" in finding.advice


def test_the_interval_errs_as_seldom_as_it_promises():
    """A true change of just 2 % may be called a doubt in 2.5 % of runs; one of none never is."""
    edge = [judged(by_turns(0.02, noise=0.004, seed=seed)) for seed in range(2000)]
    called = sum(bool(found) and found[0].level is Level.DOUBTFUL for found in edge)
    assert 0.015 < called / 2000 < 0.036
    none = [judged(by_turns(0.0, noise=0.004, seed=seed)) for seed in range(2000)]
    assert sum(bool(found) and found[0].level is Level.DOUBTFUL for found in none) == 0


def test_slices_that_could_not_have_twice_the_threads_say_nothing():
    assert judged(by_turns(0.5, order=(1,) * 8)) == []
    assert judged(by_turns(0.5, order=(1, 2, 2, 1))) == []
    failed = making.changed(by_turns(0.5), failure="the server died")
    assert judged(failed) == []


def test_the_audit_hands_it_on_and_keeps_the_trial():
    found = audit([by_turns(0.05, noise=0.002)], PLAN)
    assert "generator-threads" in {finding.check for finding in found.findings}
    assert len(found.sound) == 1


AT_RATES = making.plan(load=LoadPlan(rates=("1000",)))
LADDER = making.plan(load=LoadPlan(slo=SloPlan(limit_ms=20)))


def test_a_backlog_that_grows_is_doubtful_with_its_numbers() -> None:
    found = rate_not_sustained(at_rate(sustained=False), AT_RATES)
    assert found is not None
    assert found.level is Level.DOUBTFUL
    assert "1000 requests/s fell due and 800.0 were answered" in evidence(found)
    assert "grew by 200.0 a second" in evidence(found)
    assert "to 2400" in evidence(found)


def test_a_rung_of_a_ladder_may_break() -> None:
    found = rate_not_sustained(at_rate(sustained=False), LADDER)
    assert found is not None
    assert found.level is Level.NOTE


@pytest.mark.parametrize("made", [at_rate(), making.measurement(), at_rate(rate=None, served=500)])
def test_what_is_taken_is_no_finding(made) -> None:
    assert rate_not_sustained(made, AT_RATES) is None


def test_few_requests_say_which_window_would_do() -> None:
    found = few_requests(at_rate(rate=200), AT_RATES)
    assert found is not None
    assert evidence(found) == "2000 requests, p99 needs 10000: 100 beyond it"
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
    assert len(found) == void
    if found:
        assert evidence(found[0]) == (
            "the generator's certificate of then did not pass: throughput off by -10.0 % (limit"
            " 2.0 %): four workers of 10 ms, asked by 8 connections"
        )


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
