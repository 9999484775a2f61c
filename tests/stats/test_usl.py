"""The fit finds the law it was given, and the closest lawful one where none fits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from dbdyno.stats import usl
from support.made_ladders import LEVELS, PEAK_THREADS, PEAKING, law, noisy

THREADS = np.array(LEVELS, dtype=float)


def test_an_exact_law_comes_back():
    found = usl.fit(LEVELS, law(THREADS, *PEAKING))
    assert [float(part) for part in found] == pytest.approx([100, *PEAKING])
    assert float(usl.peaks(found)) == pytest.approx(PEAK_THREADS, abs=0.001)


def test_many_ladders_are_fitted_at_once_as_one_by_one():
    rates = noisy(LEVELS, PEAKING, (4, 3), np.random.default_rng(1))
    whole = usl.fit(LEVELS, rates)
    assert whole.kappa.shape == (4, 3)
    for place in np.ndindex(4, 3):
        alone = usl.fit(LEVELS, rates[place])
        assert [part[place] for part in whole] == pytest.approx([float(part) for part in alone])


@pytest.mark.parametrize("truth", [PEAKING, (0.0, 0.001), (0.2, 0.0), (0.0, 0.0)])
def test_the_fit_is_the_least_squares_of_lawson_and_hanson(truth):
    # an independent solver of the same problem: non-negative least squares, weights X/N
    random = np.random.default_rng(2)
    for rates in noisy(LEVELS, truth, (30,), random):
        columns = np.stack([np.ones(8), THREADS - 1, THREADS * (THREADS - 1)], axis=-1)
        scale = columns.max(axis=0)
        c, _ = nnls(columns / scale * (rates / THREADS)[:, None], np.ones(8))
        c = c / scale
        found = usl.fit(LEVELS, rates)
        assert float(found.per_s_of_one) == pytest.approx(1 / c[0])
        assert float(found.sigma) == pytest.approx(c[1] / c[0], abs=1e-9)
        assert float(found.kappa) == pytest.approx(c[2] / c[0], abs=1e-12)


def test_a_ladder_that_only_rises_has_no_peak():
    found = usl.fit(LEVELS, law(THREADS, 0.05, 0.0))
    assert float(found.kappa) == pytest.approx(0, abs=1e-12)
    flat = usl.Laws(np.array(1.0), np.array(0.05), np.array(0.0))
    assert np.isinf(usl.peaks(flat))


def test_more_than_all_queueing_peaks_left_of_everything():
    falling = usl.Laws(np.array(1.0), np.array(1.5), np.array(0.01))
    assert float(usl.peaks(falling)) < 1


def test_a_super_linear_start_wants_negative_contention():
    assert float(usl.contention_unbounded(LEVELS, law(THREADS, -0.02, 0.001))) < 0
    assert float(usl.contention_unbounded(LEVELS, law(THREADS, 0.02, 0.001))) > 0


def test_fifty_thousand_threads_do_not_upset_the_arithmetic():
    levels = (1, 100, 1000, 10_000, 50_000)
    found = usl.fit(levels, law(np.array(levels, dtype=float), 1e-3, 1e-8))
    assert float(found.sigma) == pytest.approx(1e-3)
    assert float(found.kappa) == pytest.approx(1e-8)
