"""A series' likeness to itself: known autocorrelation, known rhythms, and none where none is."""

from __future__ import annotations

import numpy as np
import pytest
from tests import making
from tests.judge.made_seconds import alike, trial

from dbdyno.judge.seconds import (
    period_s,
    rates_of,
    rho1,
    running_median,
    whole_seconds,
)


def test_the_piece_at_the_windows_end_is_no_second():
    made = trial((100.0,) * 10)
    piece = made.intervals[-1].model_copy(update={"start_s": 12.0, "end_s": 12.2, "events": 30})
    made = making.changed(made, intervals=(*made.intervals, piece), window_s=10.2)
    assert len(whole_seconds(made)) == 10
    assert rates_of(made).tolist() == [100.0] * 10


def test_a_slow_clock_does_not_change_the_rate():
    made = trial((100.0,) * 10)
    late = made.intervals[5].model_copy(update={"end_s": made.intervals[5].start_s + 1.25})
    made = making.changed(made, intervals=(*made.intervals[:5], late, *made.intervals[6:]))
    assert rates_of(made)[3] == pytest.approx(80.0)


def test_running_median_takes_what_there_is_at_the_ends():
    found = running_median(np.array([1.0, 9.0, 2.0, 3.0, 100.0]), 3)
    assert found.tolist() == [5.0, 2.0, 3.0, 3.0, 51.5]


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6, 0.9])
def test_correlation_of_neighbours_is_estimated_without_much_bias(rho):
    random = np.random.default_rng(5)
    found = [rho1(alike(random, 120, rho)) for _ in range(300)]
    assert np.mean(found) == pytest.approx(rho, abs=0.03)


@pytest.mark.parametrize("rates", [[1.0] * 9, [5.0] * 60, []])
def test_what_never_changes_or_is_too_short_has_no_correlation(rates):
    assert rho1(np.array(rates)) is None
    assert period_s(np.array(rates)) is None


def dips(every: int, length: int, depth: float):
    return lambda at: 1 - depth * ((at % every) < length)


@pytest.mark.parametrize(
    ("every", "shape"),
    [
        (12, dips(12, 2, 0.3)),
        (8, dips(8, 1, 0.4)),
        (15, dips(15, 3, 0.3)),
        (12, lambda at: 1 + 0.08 * np.sin(2 * np.pi * at / 12)),
    ],
)
def test_a_rhythm_is_found_with_its_length(every, shape):
    random = np.random.default_rng(every)
    found = [period_s(shape(np.arange(60)) * alike(random, 60)) for _ in range(100)]
    near = [length for length in found if length is not None and abs(length - every) <= 1]
    assert len(near) >= 90


@pytest.mark.parametrize("seconds", [30, 60, 120])
@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_a_series_without_a_rhythm_is_seldom_given_one(seconds, rho):
    random = np.random.default_rng([seconds, int(rho * 10)])
    found = [period_s(alike(random, seconds, rho)) for _ in range(200)]
    assert sum(length is not None for length in found) <= 5


def test_a_drift_is_no_rhythm():
    random = np.random.default_rng(9)
    rates = alike(random, 120) * np.linspace(1, 0.8, 120)
    assert period_s(rates) is None
