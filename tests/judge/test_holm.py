"""Words that hold together: by hand on a few cells, and by simulation on grids of twenty."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.judge.estimate import Estimate, estimate_of
from dbdyno.judge.interval import FIXED, quantile
from dbdyno.judge.verdict import Word, adjusted, widened, word_of
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import PRIMARY
from dbdyno.plan.plan import DesignPlan
from support.made_estimates import estimate
from support.making import A, B

MARGIN = math.log(1.02)
CELLS = [Cell(workload="oltp_read_write", threads=threads) for threads in range(1, 21)]


def of(logs, cell: Cell = CELLS[0]) -> Estimate:
    return estimate_of(list(logs), cell, PRIMARY, A, B)


def spread(mean: float, sd: float = 0.01, n: int = 5) -> Estimate:
    shape = np.arange(n) - (n - 1) / 2
    return of(mean + shape * sd / shape.std(ddof=1))


def test_one_cell_keeps_its_own_interval():
    alone = spread(0.01)
    (held,) = adjusted([alone], FIXED)
    assert held is not None
    assert (held.low, held.high) == pytest.approx((alone.low, alone.high))
    assert (held.level, held.cells) == (0.05, 1)


def test_cells_beyond_the_margin_hand_their_share_on_and_others_keep_it():
    far, also_far, tie, open_one = spread(0.2), spread(-0.2), spread(0.0, 0.002), spread(0.02)
    held = adjusted([far, tie, open_one, also_far], FIXED)
    levels = [one.level for one in held if one is not None]
    assert levels == pytest.approx([0.05 / 4, 0.05 / 2, 0.05 / 2, 0.05 / 4])
    assert {one.cells for one in held if one is not None} == {4}


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


def test_an_estimate_of_another_spread_is_not_confused_with_its_interval():
    given = estimate(1.0, 0.99, 1.01, blocks=8, log_sd=0.02)
    wide = widened(given, FIXED, 0.005, 10)
    assert wide.low < 0.99
    assert (wide.level, wide.cells) == (0.005, 10)


def is_wrong(word: Word, material: bool, truth: float) -> bool:
    if word is Word.EQUIVALENT:
        return abs(truth) >= MARGIN
    sign = {Word.BETTER: 1.0, Word.WORSE: -1.0}.get(word, 0.0)
    return sign != 0 and (sign * truth <= 0 or (material and sign * truth < MARGIN))


def wrong_grids(truths: list[float], n: int, sd: float, together: bool) -> float:
    """The share of grids in which any word is wrong."""
    random = np.random.default_rng([len(truths), n])
    wrong, grids = 0, 3000
    samples = random.normal(0, sd, (grids, n, len(truths))) + np.array(truths)
    for grid in samples:
        means, sds = grid.mean(axis=0), grid.std(axis=0, ddof=1)
        found = [
            estimate(math.exp(mean), 1.0, 1.0, blocks=n, log_sd=float(sd))
            for mean, sd in zip(means, sds, strict=True)
        ]
        held = adjusted(found, FIXED) if together else [widened(e, FIXED, 0.05, 1) for e in found]
        words = [word_of(one.low, one.high, 0.02) for one in held if one is not None]
        wrong += any(is_wrong(*word, truth) for word, truth in zip(words, truths, strict=True))
    return wrong / grids


@pytest.mark.parametrize(
    ("truths", "n", "sd"),
    [
        ([0.0] * 20, 8, 0.02),
        ([0.0] * 10 + [0.06] * 10, 20, 0.024),  # 11 % if cells that are equivalent handed on
        ([MARGIN * 0.9999] * 20, 8, 0.015),
    ],
    ids=["ties", "half of them apart", "at the margin"],
)
def test_some_word_of_twenty_is_wrong_in_5_percent_of_grids_at_most(truths, n, sd):
    # promised 5 %; two standard errors of 3000 grids are 0.8 %
    assert wrong_grids(truths, n, sd, together=True) <= 0.058


def test_each_cell_by_itself_would_name_a_winner_somewhere_in_over_half_of_all_grids_of_ties():
    assert wrong_grids([0.0] * 20, 8, 0.02, together=False) >= 0.5
