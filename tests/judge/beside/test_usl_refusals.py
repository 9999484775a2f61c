"""Every reason not to fit or to claim no peak, and how seldom they are wrong
(docs/how-it-works/method.md)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dbdyno.judge.beside import scalability
from dbdyno.judge.beside.scalability import NoFit
from dbdyno.judge.interval import FIXED, interval
from dbdyno.stats import usl
from support.made_ladders import FLAT, LEVELS, PEAK_THREADS, PEAKING, law, noisy

THREADS = np.array(LEVELS, dtype=float)
EXPERIMENTS = 400


def refusal(levels, rates):
    """What is refused of these blocks' rates; None for a peak."""
    laws = usl.fit(levels, rates)
    refused = scalability.of_law(levels, rates, laws, FIXED) or scalability.of_peak(
        levels, laws, FIXED
    )
    return refused and refused.refusal


def blocks(truth, seed=3, levels=LEVELS, count=5):
    return noisy(levels, truth, (count,), np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("whole", "missing", "bound", "expected", "says"),
    [
        (5, [], [64, 128], NoFit.CLIENT_BOUND, "at 64, 128 threads"),
        (2, [], [], NoFit.FEW_BLOCKS, "2 of 5 blocks"),
        (2, [64, 128], [], NoFit.FEW_BLOCKS, "none at 64, 128 threads"),
    ],
)
def test_what_is_no_ladder_is_not_fitted(whole, missing, bound, expected, says):
    refused = scalability.of_ladder(5, whole, missing, bound)
    assert refused.refusal is expected
    assert says in refused.why
    assert scalability.of_ladder(5, 3, [8], []) is None


def test_a_peak_within_the_ladder_is_not_refused():
    assert refusal(LEVELS, blocks(PEAKING)) is None


def test_a_ladder_that_ends_before_its_peak_does_not_name_one():
    short = LEVELS[:6]
    rates = blocks(PEAKING, levels=short)
    laws = usl.fit(short, rates)
    refused = scalability.of_peak(short, laws, FIXED)
    assert refused.refusal is NoFit.PEAK_NOT_REACHED
    assert refused.why == "peak not reached: it lies beyond 32 threads"


def test_a_ladder_without_a_peak_says_up_to_where():
    rates = blocks(FLAT)
    refused = scalability.of_peak(LEVELS, usl.fit(LEVELS, rates), FIXED)
    assert refused == (NoFit.NO_PEAK, "no peak up to 128 threads")


def test_throughput_that_only_falls_has_its_peak_below_the_ladder():
    levels = (8, 16, 32, 64, 128)
    rates = law(np.array(levels, dtype=float), 0.5, 0.05) * np.ones((5, 1))
    rates *= np.exp(np.random.default_rng(1).standard_normal(rates.shape) * 0.002)
    assert refusal(levels, rates) is NoFit.FALLS_FROM_START


def test_threads_that_do_more_in_company_are_not_fitted():
    rates = law(THREADS, -0.03, 0.002) * blocks(PEAKING) / law(THREADS, *PEAKING)
    laws = usl.fit(LEVELS, rates)
    refused = scalability.of_law(LEVELS, rates, laws, FIXED)
    assert refused.refusal is NoFit.SUPER_LINEAR
    assert refused.why.startswith("super-linear: a thread does +")


def test_a_cliff_is_no_law():
    rates = blocks(FLAT)
    rates[:, -2:] *= 0.6
    refused = scalability.of_law(LEVELS, rates, usl.fit(LEVELS, rates), FIXED)
    assert refused.refusal is NoFit.LACK_OF_FIT
    assert refused.why.startswith("the law does not fit: ")
    assert refused.why.endswith(", over 5.0 %")


def test_a_small_but_sure_bend_is_found_by_its_likeness_over_blocks():
    # 2.5 % at two levels is below the limit of 5 %, but not chance in eight blocks of 0.2 % noise
    random = np.random.default_rng(4)
    rates = law(THREADS, *PEAKING) * np.exp(random.standard_normal((8, 8)) * 0.002)
    rates[:, 3] *= 1.025
    refused = scalability.of_law(LEVELS, rates, usl.fit(LEVELS, rates), FIXED)
    assert refused.refusal is NoFit.LACK_OF_FIT
    assert "blocks leave it alike, most at 8 threads (+" in refused.why


def simulated(truth, count):
    """How often each refusal came, as shares; None is a peak."""
    random = np.random.default_rng([count, 8])
    rates = noisy(LEVELS, truth, (EXPERIMENTS, count), random)
    seen = Counter(refusal(LEVELS, of_one) for of_one in rates)
    return Counter({found: times / EXPERIMENTS for found, times in seen.items()})


@pytest.mark.parametrize("count", [3, 5, 8])
def test_the_interval_of_a_peak_covers_it(count):
    rates = noisy(LEVELS, PEAKING, (4000, count), np.random.default_rng(count))
    found = interval(np.log(usl.peaks(usl.fit(LEVELS, rates))), FIXED)
    covered = np.abs(found.mean - np.log(PEAK_THREADS)) <= found.half
    assert 0.93 <= covered.mean() <= 0.97


@pytest.mark.parametrize("count", [3, 8])
def test_a_true_peak_is_found_and_its_law_seldom_called_a_bad_fit(count):
    seen = simulated(PEAKING, count)
    assert seen[None] >= 0.97
    assert seen[NoFit.LACK_OF_FIT] <= 0.03


@pytest.mark.parametrize("count", [3, 8])
def test_hardly_any_peak_is_invented(count):
    seen = simulated(FLAT, count)
    assert seen[None] <= 0.01
    assert seen[NoFit.NO_PEAK] >= 0.9
