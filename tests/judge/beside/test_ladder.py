"""Along the levels of a ladder: what may be claimed of crossing curves and of their ends."""

from __future__ import annotations

import numpy as np
import pytest

from dbdyno.judge.beside.ladder import reference_level
from dbdyno.judge.judgement import judge
from dbdyno.judge.verdict import Word
from dbdyno.plan.plan import Plan
from support import making
from support.making import A, B

LEVELS = (1, 8, 64)


def plan(threads: tuple[int, ...] = LEVELS, **facts: object) -> Plan:
    return making.plan(threads=threads, blocks=5, **facts)


def ladder(ratios: dict[int, float], rates: dict[int, float], noise: float = 0.002) -> list:
    """Five blocks: the baseline at these rates, the other at these ratios of them."""
    random = np.random.default_rng(5)
    return [
        trial
        for threads, ratio in ratios.items()
        for trial in making.pairs(
            tuple(ratio * float(np.exp(random.normal(0, noise))) for _ in range(5)),
            threads=threads,
            tps=rates[threads],
        )
    ]


RATES = {1: 300.0, 8: 2000.0, 64: 1500.0}


def test_opposite_verdicts_prove_a_crossover_and_say_between_which_levels():
    (found,) = judge(ladder({1: 1.2, 8: 1.1, 64: 0.8}, RATES), plan()).crossovers
    assert (found.better, found.worse, found.between) == ((1, 8), (64,), ((8, 64),))
    assert (found.baseline, found.system, found.workload) == (A, B, "oltp_read_write")

    (found,) = judge(ladder({1: 1.2, 8: 1.0, 64: 0.8}, RATES), plan()).crossovers
    assert found.between == ((1, 64),), "a level without a direction lies within the crossing"
    by_chance = ladder({1: 1.02, 8: 1.0, 64: 0.98}, RATES, noise=0.03)
    assert judge(by_chance, plan()).crossovers == ()


def test_one_level_is_no_ladder():
    judged = judge(ladder({8: 1.2}, RATES), plan(threads=(8,)))
    assert (judged.crossovers, judged.regressions) == ((), ())


@pytest.mark.parametrize(
    ("levels", "middle"), [((1, 8), 1), ((64, 1, 8), 8), ((1, 2, 4, 8), 2), ((4,), 4)]
)
def test_the_middle_level_is_known_before_the_run(levels, middle):
    assert reference_level(levels) == middle


def test_a_fall_from_the_middle_to_the_highest_level_is_found_for_each_system():
    rates = {1: 300.0, 8: 2000.0, 64: 1500.0}
    judged = judge(ladder({1: 1.0, 8: 1.0, 64: 1.4}, rates), plan())
    falls, rises = judged.regressions
    assert (falls.system, falls.threads_reference, falls.threads_most) == (A, 8, 64)
    assert (falls.word, falls.material, falls.blocks) == (Word.WORSE, True, 5)
    assert falls.ratio == pytest.approx(0.75, rel=0.001)
    assert (rises.system, rises.word) == (B, Word.BETTER)


def test_blocks_in_which_a_system_stood_still_are_not_left_out_of_its_course():
    made = [
        making.stood_still(A, one.trial.block, threads=64)
        if (one.trial.system, one.trial.cell.threads) == (A, 64) and one.trial.block < 2
        else one
        for one in ladder({1: 1.0, 8: 1.0, 64: 0.8}, {1: 300.0, 8: 2000.0, 64: 2000.0})
    ]
    still, falls = judge(made, plan()).regressions
    assert (still.system, still.word, still.ratio, still.low) == (A, Word.UNDECIDED, None, None)
    assert (falls.system, falls.word) == (B, Word.WORSE)


def test_a_level_that_takes_longer_to_warm_up_is_no_fall():
    def rates(level: int, constant_s: float, block: int) -> tuple[float, ...]:
        noise = np.random.default_rng([block, level]).normal(1, 0.01, 14)
        return tuple(1000 * noise * (1 - 0.6 * np.exp(-np.arange(14) / constant_s)))

    trials = [
        making.measurement(
            A, block, level, rates=rates(level, constant_s, block), window_s=14, warmup_s=0
        )
        for block in range(5)
        for level, constant_s in ((8, 5), (64, 15))
    ]
    (found,) = judge(trials, plan(threads=(8, 64), systems=(A,))).regressions
    assert found.ratio < 0.9, "by its windows alone it would fall"
    assert (found.word, found.material) == (Word.UNDECIDED, False)
    assert found.low < found.ratio < 1 < found.high


def test_the_ladders_of_a_system_hold_together():
    both = ("oltp_read_write", "oltp_read_only")
    trials = [
        making.measurement(A, block, threads, rate, workload=workload)
        for workload in both
        for threads, rate in ((1, 300.0), (8, 301.0))
        for block in range(3)
    ]
    found = judge(trials, plan(threads=(1, 8), workloads=both, systems=(A,))).regressions
    assert [one.workload for one in found] == list(both)
    assert all(0.025 <= one.level < 0.05 for one in found)
    assert {one.word for one in found} == {Word.EQUIVALENT}


def test_too_few_blocks_have_no_word():
    trials = [making.measurement(A, block, threads) for threads in (1, 8) for block in range(2)]
    (found,) = judge(trials, plan(threads=(1, 8), systems=(A,))).regressions
    assert (found.word, found.low, found.level, found.blocks) == (Word.NO_VERDICT, None, None, 2)
