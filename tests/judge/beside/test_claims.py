"""A publication's claims against planted rates: its cells together, and each."""

from __future__ import annotations

import math

import pytest

from dbdyno.judge.beside.claims import ClaimedCell, ClaimWord, JudgedClaim
from dbdyno.judge.judgement import judge
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.plan.publication import RATE_VARIATION, Claim, PublishedPlan
from support import making
from support.making import A, B

EVEN = (1.0, 1.01, 0.99, 1.005, 0.995)
"""What a block does to the second system."""
WIDE = (1.0, 1.5, 0.7, 1.3, 0.8)
THIRD = Claim(text="a third better", of=A, than=B, ratio_min=1.25, ratio_max=1.42)


def plan(*claims: Claim, threads: tuple[int, ...] = (8,), **facts: object) -> Plan:
    published = PublishedPlan(source="somebody", claims=claims)
    return making.plan(threads=threads, published=published, **facts)


def of_claim(measured: list[Measurement], followed: Plan) -> JudgedClaim:
    (claim,) = judge(measured, followed).claims
    return claim


def judged(measured: list[Measurement], followed: Plan) -> list[ClaimedCell]:
    return list(of_claim(measured, followed).cells)


@pytest.mark.parametrize(
    ("ratio", "blocks", "word"),
    [
        (0.75, EVEN, ClaimWord.SUPPORTED),
        (0.9, EVEN, ClaimWord.CONTRADICTED),  # better, but not by a third
        (0.5, EVEN, ClaimWord.CONTRADICTED),  # by far more
        (0.75, WIDE, ClaimWord.OPEN),
        (0.8, EVEN, ClaimWord.OPEN),  # the interval holds the claim's end
        (0.75, EVEN[:2], ClaimWord.OPEN),  # no interval
    ],
)
def test_a_cell_says_what_its_whole_interval_says(
    ratio: float, blocks: tuple[float, ...], word: ClaimWord
) -> None:
    made = making.pairs(tuple(ratio * one for one in blocks))
    (cell,) = judged(made, plan(THIRD, blocks=len(blocks)))
    assert cell.word is word
    assert cell.blocks == len(blocks)
    assert cell.ratio == pytest.approx(1 / ratio, rel=0.02)


def test_blocks_that_are_left_when_a_system_stood_still_support_nothing() -> None:
    made = making.pairs(tuple(0.75 * one for one in EVEN))
    made[1] = making.stood_still(B, 0)
    (cell,) = judged(made, plan(THIRD))
    assert (cell.word, cell.ratio, cell.blocks) == (ClaimWord.OPEN, None, 0)


def test_a_claim_may_be_supported_by_its_cells_together_and_open_in_each() -> None:
    """Blocks move two cells up and two down, as far as beyond either end of the claim."""
    levels, swings = (1, 2, 4, 8), (0.1, -0.1, 0.08, -0.08, 0.0)
    measured = [
        trial
        for place, threads in enumerate(levels)
        for trial in making.pairs(
            tuple(0.75 * math.exp(swing * (-1) ** place) for swing in swings), threads=threads
        )
    ]
    claim = of_claim(measured, plan(THIRD, threads=levels))
    assert (claim.word, claim.count(ClaimWord.OPEN)) == (ClaimWord.SUPPORTED, 4)
    assert claim.ratio == pytest.approx(1 / 0.75, rel=1e-3)
    assert 1.25 < claim.low < claim.ratio < claim.high < 1.42
    elsewhere = plan(THIRD.model_copy(update={"ratio_min": 1.4}), threads=levels)
    assert of_claim(measured, elsewhere).word is ClaimWord.CONTRADICTED


@pytest.mark.parametrize("has_a_standstill", [True, False])
def test_a_cell_without_three_ratios_leaves_its_claim_open(has_a_standstill: bool) -> None:
    measured = [
        trial
        for threads in (1, 8)
        for trial in making.pairs(tuple(0.75 * one for one in EVEN), threads=threads)
    ]
    assert of_claim(measured, plan(THIRD, threads=(1, 8))).word is ClaimWord.SUPPORTED
    short = [one for one in measured if one.trial.cell.threads == 1 or one.trial.block < 2]
    still = [*measured[:-1], making.stood_still(B, 4)]
    claim = of_claim(still if has_a_standstill else short, plan(THIRD, threads=(1, 8)))
    assert [one.word for one in claim.cells] == [ClaimWord.SUPPORTED, ClaimWord.OPEN]
    assert (claim.word, claim.low) == (ClaimWord.OPEN, None)


def test_each_cell_speaks_for_itself() -> None:
    made = [
        trial
        for threads, ratio in ((1, 0.75), (8, 0.98))
        for trial in making.pairs(tuple(ratio * one for one in EVEN), threads=threads)
    ]
    both = judged(made, plan(THIRD, threads=(1, 8)))
    assert [(one.cell.threads, one.word.value) for one in both] == [
        (1, "supported"),
        (8, "contradicted"),
    ]


def test_a_claim_along_the_load_compares_a_system_with_itself() -> None:
    drops = Claim(text="drops at 64", of=B, threads=(64,), than_threads=8, ratio_max=0.98)
    made = [
        *making.pairs(tuple(1.2 * one for one in EVEN), threads=8),
        *making.pairs(tuple(0.8 * one for one in EVEN[::-1]), threads=64),
    ]
    (cell,) = judged(made, plan(drops, threads=(8, 64)))
    assert (cell.cell.threads, cell.word) == (64, ClaimWord.SUPPORTED)
    assert cell.ratio == pytest.approx(0.8 / 1.2, rel=0.001)


def test_how_unevenly_the_seconds_went_is_compared_too() -> None:
    jitters = Claim(text="jitters", of=B, than=A, metric=RATE_VARIATION, ratio_min=1.5)
    shape = (1, -1, 1, -1, 1, -1, 1, -1, 1, -1)
    made = [
        making.measurement(
            system, block, rates=tuple(1000 * (1 + swing * moved * one) for one in shape)
        )
        for block, moved in enumerate(EVEN)
        for system, swing in ((A, 0.02), (B, 0.2))
    ]
    (cell,) = judged(made, plan(jitters))
    assert cell.word is ClaimWord.SUPPORTED
    assert cell.ratio == pytest.approx(10, rel=0.01)
    short = [
        making.measurement(system, block, window_s=4) for block in range(5) for system in (A, B)
    ]
    (cell,) = judged(short, plan(jitters, window_s=4))
    assert (cell.word, cell.ratio) == (ClaimWord.OPEN, None)


def test_what_a_run_leaves_out_is_not_judged() -> None:
    made = making.pairs(EVEN)
    for claim in (
        THIRD.model_copy(update={"workloads": ("oltp_read_only",)}),
        THIRD.model_copy(update={"threads": (64,)}),
        THIRD.model_copy(update={"than_threads": 64}),
        THIRD.model_copy(update={"of": "another"}),
    ):
        of_none = of_claim(made, plan(claim))
        assert (of_none.cells, of_none.word, of_none.ratio) == ((), ClaimWord.OPEN, None)


def test_doubts_on_either_side_stand_beside_the_word() -> None:
    made = [
        making.measurement(system, block, tps=rate, steal=1.0 if block == 2 else 0.0)
        for block in range(5)
        for system, rate in ((A, 1000.0), (B, 750.0))
    ]
    (cell,) = judged(made, plan(THIRD, design={"disturbance_max": 1.0}))
    assert cell.doubts
