"""The decision table row by row, and its symmetry."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.judge.estimate import estimated
from dbdyno.judge.finding import Level, Reason
from dbdyno.judge.interval import FIXED, LEVEL
from dbdyno.judge.judgement import enough
from dbdyno.judge.verdict import Word, block_seconds, blocks_needed, verdict_of, word_of
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import DesignPlan, Plan
from support import making
from support.made_estimates import (
    estimate,
    estimate_from,
    finding,
    held,
    sample,
    samples,
    shape,
)
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
    few = estimate_from([0.1] * blocks)
    verdict = verdict_of(few, 0.02)
    assert (verdict.word, verdict.material, verdict.blocks_needed) == (Word.NO_VERDICT, False, None)
    assert verdict.reasons[0] == Reason(
        kind="too-few-blocks", values={"blocks": blocks, "least": 3}
    )


def test_below_three_blocks_because_of_void_trials_is_void():
    two = estimate_from([0.1, 0.1])
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


def needed(
    sd: float,
    blocks: int,
    design: DesignPlan = FIXED,
    level: float = LEVEL,
    freedom: float | None = None,
) -> int | None:
    """Blocks needed by a tie with this standard deviation."""
    interval = held(0.9, 1.1, level, sd=sd, freedom=blocks - 1 if freedom is None else freedom)
    return blocks_needed(estimate(1.0, 0.9, 1.1, blocks, sd), interval, 0.02, design)


def test_blocks_needed_are_more_than_there_are_and_none_beyond_a_thousand():
    assert needed(0.03, 40) == 41
    assert needed(1.0, 3) is None
    assert blocks_needed(estimate(1.0, None, None, 2), None, 0.02) is None


def test_of_a_known_tie_as_many_blocks_as_its_spread_takes():
    """Half width z(0.975) σ/√n, and z(0.925) σ/√n for the mean: both within ln 1.02."""
    by_hand = ((1.960 + 1.440) * 0.15 / math.log(1.02)) ** 2
    assert needed(0.15, 400) == pytest.approx(by_hand, rel=0.06)


@pytest.mark.parametrize("sd", [0.015, 0.03])
def test_noise_known_from_other_cells_too_takes_fewer_blocks(sd):
    """As few as if σ were known: by z, and at most twice as many as for a true tie."""
    alone, among = needed(sd, 4), needed(sd, 4, freedom=200)
    assert 4 < among < alone
    by_hand = ((1.960 + 1.440) * sd / math.log(1.02)) ** 2
    assert by_hand / 2 < among < 2 * by_hand


@pytest.mark.parametrize("log_sd", [0.02, 0.05])
@pytest.mark.parametrize("truth", [0.0, 0.03, 0.06])
def test_a_new_run_of_the_blocks_needed_decides_in_four_of_five(truth, log_sd):
    random = np.random.default_rng([12, round(truth * 100), round(log_sd * 100)])
    decided = []
    while len(decided) < 120:
        first = verdict_of(estimate_from(random.normal(truth, log_sd, 5)), 0.02)
        if first.word is Word.UNDECIDED and first.blocks_needed is not None:
            again = verdict_of(
                estimate_from(random.normal(truth, log_sd, first.blocks_needed)), 0.02
            )
            decided.append(again.word is not Word.UNDECIDED)
        elif truth / log_sd > 2:  # hardly ever undecided
            break
    assert sum(decided) >= 0.8 * len(decided) - 2 * math.sqrt(0.16 * len(decided))


def test_blocks_needed_until_decided_are_more_and_those_of_a_cells_share_too():
    alone = needed(0.03, 20)
    for more in (
        needed(0.03, 20, DesignPlan(blocks=20, stop="decided")),
        needed(0.03, 20, level=0.05 / 8),
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
    wider = held(0.995, 1.046, level=0.00625, cells=8)
    verdict = verdict_of(alone, 0.02, held=wider, block_s=60.0)
    assert verdict.word is Word.UNDECIDED
    assert (verdict.low, verdict.high, verdict.level, verdict.cells) == (0.995, 1.046, 0.00625, 8)
    assert verdict.estimate == alone
    assert verdict.seconds_needed == 60.0 * (verdict.blocks_needed - 8)
    alone = {"word": Word.BETTER, "material": False, "cells": 8}
    assert verdict.reasons == (Reason(kind="alone", values=alone),)


def test_a_word_that_stays_the_same_among_others_needs_no_reason():
    wider = held(1.03, 1.07, level=0.00625, cells=8)
    verdict = verdict_of(estimate(1.05, 1.04, 1.06), 0.02, held=wider)
    assert (verdict.word, verdict.material, verdict.reasons) == (Word.BETTER, True, ())


@given(st.floats(-0.06, 0.06), st.floats(0.005, 0.06), st.integers(3, 8))
def test_blocks_needed_decide_if_the_next_ones_are_alike(mean, log_sd, blocks):
    logs = shape(mean, log_sd, blocks)
    ((alone, interval),) = estimated([sample(logs)])
    more = blocks_needed(alone, interval, 0.02)
    assert more > blocks
    alike = estimate_from(shape(mean, log_sd, more))
    assert verdict_of(alike, 0.02).word is not Word.UNDECIDED


def test_scatter_beyond_all_numbers_has_finite_ends_and_a_word():
    wild = [-600.0, 0.0, 600.0]
    alone, among = (estimated(samples(*[wild] * cells))[0] for cells in (1, 5))
    for one in (alone, among):
        assert 0 < one.held.low < one.held.high < math.inf
        assert verdict_of(one.estimate, 0.02, held=one.held).word is Word.UNDECIDED


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
