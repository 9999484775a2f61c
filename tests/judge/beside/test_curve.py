"""The ratio along the threads as a curve: smoother than its cells, and no curve where none is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.judge.beside.curve import Curve, SmoothedRatio, crossing
from dbdyno.judge.judgement import Judgement, judge
from dbdyno.judge.verdict import Word
from support import making

LEVELS = (1, 2, 4, 8, 16, 32, 64, 128)


def judged(course: dict[int, float], noise: float = 0.02) -> Judgement:
    """Five blocks of a ladder with these ratios, each trial off by some noise."""
    random = np.random.default_rng(3)
    trials = [
        trial
        for threads, ratio in course.items()
        for trial in making.pairs(
            tuple(ratio * math.exp(random.normal(0, noise)) for _ in range(5)), threads=threads
        )
    ]
    return judge(trials, making.plan(threads=tuple(course), blocks=5))


def falling(threads: int) -> float:
    return math.exp(0.3 - 0.15 * math.log2(threads) / 2 - 0.01 * math.log2(threads) ** 2 / 2)


SMOOTH = {threads: falling(threads) for threads in LEVELS}


def test_a_curve_holds_the_truth_in_a_band_narrower_than_most_cells():
    found = judged(SMOOTH)
    (curve,) = found.curves
    assert [point.threads for point in curve.points] == list(LEVELS)
    narrower = []
    for point, verdict in zip(curve.points, found.verdicts, strict=True):
        assert point.low < SMOOTH[point.threads] < point.high
        assert verdict.low is not None
        assert verdict.high is not None
        narrower.append(point.high / point.low < verdict.high / verdict.low)
    assert sum(narrower) >= len(LEVELS) - 2  # at its two ends a curve knows little more than a cell


def test_the_threads_at_which_the_systems_cross_have_an_interval():
    found = judged(SMOOTH)
    (curve,) = found.curves
    assert isinstance(curve, Curve)
    assert curve.crossing is not None
    truth = float(np.exp(np.interp(0, [-np.log(SMOOTH[t]) for t in LEVELS], np.log(LEVELS))))
    assert curve.crossing.low < truth < curve.crossing.high
    assert curve.crossing.low < curve.crossing.threads < curve.crossing.high
    assert not curve.crossing.rises
    assert {Word.BETTER, Word.WORSE} <= {verdict.word for verdict in found.verdicts}
    assert found.crossovers == (), "a ladder has a single crossing"


def test_levels_that_jump_have_no_curve():
    jumping = {t: 1.3 if place % 2 else 0.8 for place, t in enumerate(LEVELS)}
    found = judged(jumping)
    assert found.curves == ()
    assert len(found.crossovers) == 1


def test_few_levels_have_no_curve():
    assert judged(dict.fromkeys(LEVELS[:4], 1.1)).curves == ()


@pytest.mark.parametrize(
    ("signs", "crosses"),
    [
        ((1, 1, -1, -1), True),
        ((-1, -1, 0, 1), True),
        ((1, 1, 0, 0), False),
        ((0, 0, 0, 0), False),
        ((1, -1, 1, -1), False),
    ],
)
def test_a_crossing_takes_a_band_on_one_side_and_then_on_the_other(signs, crosses):
    points = [
        SmoothedRatio(
            threads=threads,
            ratio=math.exp(0.2 * sign),
            low=math.exp(0.2 * sign - 0.1),
            high=math.exp(0.2 * sign + 0.1),
        )
        for threads, sign in zip(LEVELS, signs, strict=False)
    ]
    found = crossing(points)
    assert (found is not None) == crosses
    if found:
        assert found.low < found.threads < found.high
