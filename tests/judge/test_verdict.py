"""The decision table row by row, and its symmetry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.judge.estimate import Estimate, estimate_of
from dbdyno.judge.finding import Level
from dbdyno.judge.verdict import Adjusted, Word, blocks_needed, verdict_of, word_of
from dbdyno.measurement.metric import PRIMARY
from dbdyno.plan.plan import DesignPlan
from support.made_estimates import CELL, estimate, finding
from support.making import A, B

MIRROR = {Word.BETTER: Word.WORSE, Word.WORSE: Word.BETTER}


@pytest.mark.parametrize(
    ("low", "high", "word", "material"),
    [
        (1.02, 1.05, Word.BETTER, True),
        (1.0199, 1.05, Word.BETTER, False),
        (1.001, 1.02, Word.BETTER, False),
        (1.001, 1.0199, Word.EQUIVALENT, False),
        (0.981, 1.019, Word.EQUIVALENT, False),
        (0.981, 0.999, Word.EQUIVALENT, False),
        (0.97, 0.999, Word.WORSE, False),
        (1 / 1.02, 0.999, Word.WORSE, False),
        (0.95, 0.9804, Word.WORSE, False),
        (0.95, 1 / 1.02, Word.WORSE, True),
        (0.75, 0.79, Word.WORSE, True),
        (0.97, 1.01, Word.UNDECIDED, False),
        (0.99, 1.03, Word.UNDECIDED, False),
        (0.5, 2.0, Word.UNDECIDED, False),
        (1.0, 1.03, Word.UNDECIDED, False),
    ],
)
def test_decision_table(low, high, word, material):
    assert word_of(low, high, 0.02) == (word, material)


@given(st.floats(-0.2, 0.2), st.floats(1e-6, 0.2), st.floats(0.001, 0.5))
def test_swapping_the_systems_mirrors_the_word(middle, half, margin):
    # in logs, where mirroring is exact but for the last digit, which a shift of 1e-9 steps over
    there = word_of(math.exp(middle - half), math.exp(middle + half), margin)
    back = word_of(math.exp(-middle - half), math.exp(-middle + half), margin)
    edges = (0.0, math.log1p(margin), -math.log1p(margin))
    if all(abs(end - edge) > 1e-9 for end in (middle - half, middle + half) for edge in edges):
        assert back == (MIRROR.get(there[0], there[0]), there[1])


def test_lower_latency_is_better():
    lower = estimate(0.8, 0.75, 0.85, metric="latency_ms_avg")
    assert (verdict_of(lower, 0.02).word, verdict_of(lower, 0.02).material) == (Word.BETTER, True)
    higher = estimate(1.2, 1.15, 1.25, metric="latency_ms_avg")
    assert verdict_of(higher, 0.02).word is Word.WORSE


@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_below_three_blocks_there_is_no_verdict(blocks):
    few = estimate_of([0.1] * blocks, CELL, PRIMARY, A, B)
    verdict = verdict_of(few, 0.02)
    assert (verdict.word, verdict.material, verdict.blocks_needed) == (Word.NO_VERDICT, False, None)
    assert verdict.reasons[0].endswith("3 are the least for a verdict")


def test_below_three_blocks_because_of_void_trials_is_void():
    two = estimate_of([0.1, 0.1], CELL, PRIMARY, A, B)
    found = [
        finding("client-bound", trial="1/b/c"),
        finding("errors", trial="2/b/c"),
        finding("client-bound", trial="2/b/c"),
    ]
    verdict = verdict_of(two, 0.02, found)
    assert verdict.word is Word.VOID
    assert verdict.reasons == (
        "2 sound blocks; 3 are the least for a verdict",
        "2 void trials left out: client-bound (2×), errors",
    )


def test_verdict_stands_when_enough_blocks_are_left():
    verdict = verdict_of(estimate(0.8, 0.75, 0.85, blocks=4), 0.02, [finding("errors")])
    assert (verdict.word, verdict.material) == (Word.WORSE, True)
    assert verdict.reasons == (
        "few blocks: 4 (5 or more are good)",
        "1 void trial left out: errors",
    )


def test_reasons_name_doubts_and_an_open_size_but_no_notes():
    found = [finding("steal", Level.DOUBTFUL), finding("short-window", Level.NOTE)]
    verdict = verdict_of(estimate(1.02, 1.005, 1.035), 0.02, found)
    assert verdict.reasons == (
        "whether by more than the margin of 2 % is undecided",
        "doubtful: steal",
    )


@pytest.mark.parametrize(
    ("ratio", "blocks", "log_sd", "needed"),
    [
        # t(0.975, 10) · 0.03 / √11 = 0.02015 > h = ln 1.02 = 0.01980; one block more: 0.01906
        (1.0, 5, 0.03, 12),
        # a difference of twice the margin is shown by leaving 1 outside: h = 0.04 (n = 5: 0.0372)
        (math.exp(0.04), 4, 0.03, 5),
        (1.0, 40, 0.03, 41),  # by luck not yet decided: one block more at least
        (1.0, 3, 1.0, None),  # beyond 1000
    ],
)
def test_blocks_needed(ratio, blocks, log_sd, needed):
    assert blocks_needed(estimate(ratio, 0.9, 1.1, blocks, log_sd), 0.02) == needed


def test_blocks_needed_until_decided_are_more_and_those_of_a_cells_share_too():
    tie = estimate(1.0, 0.9, 1.1, 5, 0.03)
    design = DesignPlan(blocks=20, stop="decided")
    needed = blocks_needed(tie, 0.02, design)
    assert needed == 18  # 2.79 · 0.03 / √17 = 0.0203 > ln 1.02 = 0.0198 > 2.74 · 0.03 / √18
    share = blocks_needed(tie, 0.02, level=0.05 / 8)
    assert share is not None
    assert share > 12


def test_a_run_that_may_not_take_the_blocks_it_needs_says_so():
    tie, short = estimate(1.0, 0.9, 1.1, 12, 0.03), DesignPlan(blocks=12, stop="decided")
    verdict = verdict_of(tie, 0.02, design=short)
    assert verdict.blocks_needed is not None
    assert verdict.blocks_needed > 12
    assert verdict.reasons == (
        "this run may take 12 blocks at most; a new one with more of them would decide",
    )
    assert verdict_of(tie, 0.02, design=DesignPlan(blocks=30, stop="decided")).reasons == ()
    assert verdict_of(tie, 0.02).reasons == ()


def test_the_word_comes_from_the_interval_that_holds_together():
    alone = estimate(1.02, 1.005, 1.035)
    wider = Adjusted(low=0.995, high=1.046, level=0.00625, cells=8)
    verdict = verdict_of(alone, 0.02, adjusted=wider, block_s=60.0)
    assert verdict.word is Word.UNDECIDED
    assert (verdict.low, verdict.high, verdict.level, verdict.cells) == (0.995, 1.046, 0.00625, 8)
    assert verdict.estimate == alone
    assert verdict.blocks_needed is not None
    assert verdict.seconds_needed == 60.0 * (verdict.blocks_needed - 8)
    assert verdict.reasons == (
        "by itself its 95 % interval would say better; among 8 cells that could be chance",
    )


def test_a_word_that_stays_the_same_among_others_needs_no_reason():
    wider = Adjusted(low=1.03, high=1.07, level=0.00625, cells=8)
    verdict = verdict_of(estimate(1.05, 1.04, 1.06), 0.02, adjusted=wider)
    assert (verdict.word, verdict.material, verdict.reasons) == (Word.BETTER, True, ())


def test_lower_latency_is_better_among_others_too():
    wider = Adjusted(low=0.7, high=0.9, level=0.025, cells=2)
    latency = estimate(0.8, 0.75, 0.85, metric="latency_ms_p99")
    assert verdict_of(latency, 0.02, adjusted=wider).word is Word.BETTER


@given(st.floats(-0.06, 0.06), st.floats(0.005, 0.06), st.integers(3, 8))
def test_blocks_needed_decide_if_the_next_ones_are_alike(mean, log_sd, blocks):
    def alike(n: int) -> Estimate:
        """An estimate over n blocks of just that mean and spread."""
        shape = np.arange(n) - (n - 1) / 2
        return estimate_of(list(mean + shape * (log_sd / shape.std(ddof=1))), CELL, PRIMARY, A, B)

    needed = blocks_needed(alike(blocks), 0.02)
    assert needed is not None
    assert needed > blocks
    assert verdict_of(alike(needed), 0.02).word is not Word.UNDECIDED
    if needed > blocks + 1:
        assert verdict_of(alike(needed - 1), 0.02).word is Word.UNDECIDED
