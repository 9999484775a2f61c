"""The decision table row by row, and its symmetry."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.judge.estimate import Estimate, estimate_of
from dbdyno.judge.finding import Level, Reason
from dbdyno.judge.interval import FIXED, quantile
from dbdyno.judge.judgement import enough
from dbdyno.judge.verdict import (
    Adjusted,
    Word,
    adjusted,
    block_seconds,
    blocks_needed,
    verdict_of,
    widened,
    word_of,
)
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.metric import BY_NAME, PRIMARY
from dbdyno.plan.plan import DesignPlan, Plan
from support import making
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
    assert verdict.reasons[0] == Reason(
        kind="too-few-blocks", values={"blocks": blocks, "least": 3}
    )


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
        Reason(kind="too-few-blocks", values={"blocks": 2, "least": 3}),
        Reason(kind="void", values={"trials": 2, "checks": {"client-bound": 2, "errors": 1}}),
    )


def test_reasons_name_doubts_and_an_open_size_but_no_notes():
    found = [finding("machine", Level.DOUBTFUL), finding("machine-drift", Level.NOTE)]
    verdict = verdict_of(estimate(1.02, 1.005, 1.035), 0.02, found)
    assert verdict.reasons == (
        Reason(kind="size-undecided", values={"margin": 0.02}),
        Reason(kind="doubtful", values={"checks": {"machine": 1}}),
    )


def test_blocks_needed_are_more_than_there_are_and_none_beyond_a_thousand():
    assert blocks_needed(estimate(1.0, 0.9, 1.1, 40, 0.03), 0.02) == 41
    assert blocks_needed(estimate(1.0, 0.9, 1.1, 3, 1.0), 0.02) is None


def test_of_a_known_tie_as_many_blocks_as_its_spread_takes():
    """Half width z(0.975) σ/√n, and z(0.925) σ/√n for the mean: both within ln 1.02."""
    by_hand = ((1.960 + 1.440) * 0.15 / math.log(1.02)) ** 2
    needed = blocks_needed(estimate(1.0, 0.9, 1.1, 400, 0.15), 0.02)
    assert needed == pytest.approx(by_hand, rel=0.06)


@pytest.mark.parametrize("log_sd", [0.02, 0.05])
@pytest.mark.parametrize("truth", [0.0, 0.03, 0.06])
def test_a_new_run_of_the_blocks_needed_decides_in_four_of_five(truth, log_sd):
    random = np.random.default_rng([12, round(truth * 100), round(log_sd * 100)])
    decided = []
    while len(decided) < 120:
        first = verdict_of(of(random.normal(truth, log_sd, 5)), 0.02)
        if first.word is Word.UNDECIDED and first.blocks_needed is not None:
            again = verdict_of(of(random.normal(truth, log_sd, first.blocks_needed)), 0.02)
            decided.append(again.word is not Word.UNDECIDED)
        elif truth / log_sd > 2:  # hardly ever undecided
            break
    assert sum(decided) >= 0.8 * len(decided) - 2 * math.sqrt(0.16 * len(decided))


def test_blocks_needed_until_decided_are_more_and_those_of_a_cells_share_too():
    tie = estimate(1.0, 0.9, 1.1, 20, 0.03)
    alone = blocks_needed(tie, 0.02)
    for more in (
        blocks_needed(tie, 0.02, DesignPlan(blocks=20, stop="decided")),
        blocks_needed(tie, 0.02, level=0.05 / 8),
    ):
        assert 1.2 * alone < more < 3 * alone


def test_a_run_that_may_not_take_the_blocks_it_needs_says_so():
    tie, short = estimate(1.0, 0.9, 1.1, 12, 0.02), DesignPlan(blocks=12, stop="decided")
    verdict = verdict_of(tie, 0.02, design=short)
    assert verdict.blocks_needed > 12
    assert verdict.reasons == (Reason(kind="most-blocks", values={"blocks": 12}),)
    assert verdict_of(tie, 0.02, design=DesignPlan(blocks=30, stop="decided")).reasons == ()
    assert verdict_of(tie, 0.02).reasons == ()


def test_the_word_comes_from_the_interval_that_holds_together():
    alone = estimate(1.02, 1.005, 1.035)
    wider = Adjusted(low=0.995, high=1.046, level=0.00625, cells=8)
    verdict = verdict_of(alone, 0.02, adjusted=wider, block_s=60.0)
    assert verdict.word is Word.UNDECIDED
    assert (verdict.low, verdict.high, verdict.level, verdict.cells) == (0.995, 1.046, 0.00625, 8)
    assert verdict.estimate == alone
    assert verdict.seconds_needed == 60.0 * (verdict.blocks_needed - 8)
    alone = {"word": Word.BETTER, "material": False, "cells": 8}
    assert verdict.reasons == (Reason(kind="alone", values=alone),)


def test_a_word_that_stays_the_same_among_others_needs_no_reason():
    wider = Adjusted(low=1.03, high=1.07, level=0.00625, cells=8)
    verdict = verdict_of(estimate(1.05, 1.04, 1.06), 0.02, adjusted=wider)
    assert (verdict.word, verdict.material, verdict.reasons) == (Word.BETTER, True, ())


@given(st.floats(-0.06, 0.06), st.floats(0.005, 0.06), st.integers(3, 8))
def test_blocks_needed_decide_if_the_next_ones_are_alike(mean, log_sd, blocks):
    def alike(n: int) -> Estimate:
        """An estimate over n blocks of just that mean and spread."""
        shape = np.arange(n) - (n - 1) / 2
        return estimate_of(list(mean + shape * (log_sd / shape.std(ddof=1))), CELL, PRIMARY, A, B)

    needed = blocks_needed(alike(blocks), 0.02)
    assert needed > blocks
    assert verdict_of(alike(needed), 0.02).word is not Word.UNDECIDED


# Words that hold together, by hand on a few cells; `tests/judge/test_method.py` has error rates.


def of(logs) -> Estimate:
    return estimate_of(list(logs), CELL, PRIMARY, A, B)


def spread(mean: float, sd: float = 0.01, n: int = 5) -> Estimate:
    shape = np.arange(n) - (n - 1) / 2
    return of(mean + shape * sd / shape.std(ddof=1))


def test_one_cell_keeps_its_own_interval():
    alone = spread(0.01)
    (held,) = adjusted([alone], FIXED)
    assert (held.low, held.high) == pytest.approx((alone.low, alone.high))
    assert (held.level, held.cells) == (0.05, 1)


def test_cells_far_beyond_the_margin_keep_half_of_their_share_and_the_others_get_the_rest():
    far, also_far, tie, apart = spread(0.3), spread(-0.3), spread(0.0, 0.002), spread(0.06)
    held = adjusted([far, tie, apart, also_far], FIXED)
    levels = [one.level for one in held if one is not None]
    assert levels == pytest.approx([0.05 / 8, 0.05 * 3 / 8, 0.05 * 3 / 8, 0.05 / 8])
    assert sum(levels) == pytest.approx(0.05)
    assert {one.cells for one in held if one is not None} == {4}


def test_where_all_cells_are_far_none_needs_the_others_share():
    held = adjusted([spread(0.3), spread(-0.3)], FIXED)
    assert [one.level for one in held if one] == [0.025, 0.025]


def test_a_far_cell_s_interval_ends_where_far_begins_and_another_s_is_wider_beyond_it():
    tie, just_far, uneven = spread(0.0, 0.002), spread(-0.106, 0.025), spread(-0.07, 0.03)
    _, far, wide = adjusted([tie, just_far, uneven], FIXED)
    kept = widened(just_far, FIXED, 0.05 / 6, 3)
    assert kept.high > far.high == pytest.approx(1 / 1.06)
    assert far.low == kept.low
    assert wide.low == widened(uneven, FIXED, 0.05 / 6, 3).low
    assert wide.high == widened(uneven, FIXED, wide.level, 3).high


def test_by_hand():
    # t(1 − 0.05/4, 4) = 3.495406 from a printed table; half 3.495406 · 0.01 / √5
    held = adjusted([spread(0.0), spread(0.0)], FIXED)
    assert held[0] is not None
    assert math.log(held[0].high) == pytest.approx(3.495406 * 0.01 / math.sqrt(5), rel=1e-6)
    assert held[0].low == pytest.approx(1 / held[0].high)


def test_a_cell_without_an_interval_claims_nothing_and_takes_no_share():
    held = adjusted([of([0.1, 0.1]), spread(0.0)], FIXED)
    assert held[0] is None
    assert held[1] is not None
    assert (held[1].level, held[1].cells) == (0.05, 1)
    assert adjusted([], FIXED) == []
    with pytest.raises(ValueError, match="2 blocks have no interval"):
        widened(of([0.1, 0.1]), FIXED, 0.05, 1)


def test_a_run_until_decided_takes_repeated_intervals_at_the_same_shares():
    design = DesignPlan(blocks=12, stop="decided")
    held = adjusted([spread(0.0), spread(0.0)], design)
    assert held[0] is not None
    half = quantile(5, design, 0.025) * 0.01 / math.sqrt(5)
    assert math.log(held[0].high) == pytest.approx(half)


def test_scatter_beyond_all_numbers_has_finite_ends_and_a_word():
    wild = estimate_of([-600.0, 0.0, 600.0], CELL, BY_NAME["latency_ms_avg"], A, B)
    wide = widened(wild, FIXED, 0.005, 10)
    assert 0 < wide.low < wide.high < math.inf
    for held in (None, wide):
        assert verdict_of(wild, 0.02, adjusted=held).word is Word.UNDECIDED


# When a run until decided may end, asked of whole measurements.


CLEAR = (0.77, 0.771, 0.769, 0.77)
OPEN = (1.0, 1.05, 0.95, 1.02)


def plan(stop: str = "decided", **facts: object) -> Plan:
    return making.plan(blocks=12, design={"stop": stop}, **facts)


def void(trials: list[Measurement]) -> list[Measurement]:
    return [
        making.changed(one, engine=one.engine.model_copy(update={"cpu_share_max": 0.9}))
        for one in trials
    ]


@pytest.mark.parametrize(
    ("ratios", "ends"), [(CLEAR, True), (CLEAR[:2], False), (OPEN, False), ((), False)]
)
def test_a_run_ends_when_its_cell_is_decided_and_three_blocks_are_there(ratios, ends):
    assert enough(making.pairs(ratios), plan()) is ends
    assert enough(making.pairs(ratios), plan("blocks")) is False


def test_every_cell_must_be_decided():
    both = plan(threads=(1, 8))
    decided = making.pairs(CLEAR, threads=1)
    assert enough(decided + making.pairs(OPEN, threads=8), both) is False
    assert enough(decided + making.pairs(CLEAR, threads=8), both) is True


def test_a_cell_that_is_void_each_time_does_not_hold_the_others_up():
    both = plan(threads=(1, 8))
    decided = making.pairs(CLEAR, threads=1)
    never = void(making.pairs(CLEAR, threads=8))
    assert enough(decided + never, both) is True
    sometimes = [*never[:4], *making.pairs(CLEAR, threads=8)[4:]]
    assert enough(decided + sometimes, both) is False


def test_a_tie_ends_the_run_once_it_is_decided():
    tie = tuple(1 + 0.0005 * (-1) ** block for block in range(8))
    assert enough(making.pairs(tie), plan()) is True
    assert enough(making.pairs(tie[:3]), plan(systems=(A, B), margin=0.001)) is False


# What a block takes here, from the times at which trials began.


BEGIN = datetime.fromisoformat("2026-11-21T06:00:00+00:00")


def begun(block: int, after_s: float, system: str = A, machine: str = ""):
    at = (BEGIN + timedelta(seconds=after_s)).isoformat("T", "milliseconds")
    return making.changed(making.measurement(system, block), started_at=at, machine=machine)


@pytest.mark.parametrize(
    ("trials", "seconds"),
    [
        # from block to block; a pause does not count
        ([begun(0, 0), begun(0, 40, B), begun(1, 90), begun(2, 180), begun(3, 9000)], 90),
        # machines that run blocks beside each other share the time
        (
            [
                begun(n, s, A, m)
                for n, s, m in ((0, 0, "a"), (1, 1, "b"), (2, 90, "a"), (3, 91, "b"))
            ],
            45,
        ),
        # a single block takes its loads at least
        ([begun(0, 0), begun(0, 40, B)], 24),
        ([making.changed(making.measurement(), started_at="some day")], None),
        ([], None),
    ],
)
def test_a_block_takes_the_time_from_its_start_to_the_next(trials, seconds):
    assert block_seconds(trials) == (seconds and pytest.approx(seconds))
