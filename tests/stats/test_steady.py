"""Steady or not, on series whose truth is known; docs/how-it-works/method.md has the rates of right
answers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.stats import steady as room
from dbdyno.stats.steady import FLOOR_S, change_points, long_run_variance, mser_cut, steady

SECONDS = np.arange(180)
SHAPES = {
    "flat": np.ones(180),
    "warm-up": 1 - 0.4 * np.exp(-SECONDS / 15),
    "step up": np.where(SECONDS < 40, 0.8, 1.0),
    "drift": 1 - 0.10 * SECONDS / 180,
    "drop": np.where(SECONDS < 130, 1.0, 0.85),
    "dips": np.where(SECONDS % 30 < 3, 0.6, 1.0),
}
RUNS = 60


def noise(generator, count=180, alike=0.6, spread=0.03):
    """Seconds that are alike their neighbours, as those of a real load."""
    drawn = generator.normal(0, spread * np.sqrt(1 - alike**2), count)
    made = np.empty(count)
    made[0] = generator.normal(0, spread)
    for second in range(1, count):
        made[second] = alike * made[second - 1] + drawn[second]
    return np.exp(made)


def judged(shape):
    generator = np.random.default_rng(12)
    return [
        (steady(series), series)
        for series in (1000 * SHAPES[shape] * noise(generator) for _ in range(RUNS))
    ]


@pytest.mark.parametrize(
    ("shape", "most"), [("flat", 0.30), ("warm-up", 0.30), ("step up", 0.30), ("dips", 0.05)]
)
def test_what_is_steady_at_its_end_is_rarely_refused_and_hardly_biased(shape, most):
    found = judged(shape)
    accepted = [(one, series) for one, series in found if one.cut_s is not None]
    assert len(found) - len(accepted) <= most * RUNS
    level = SHAPES[shape][60:].mean()
    biases = [series[one.cut_s :].mean() / (1000 * level) - 1 for one, series in accepted]
    assert abs(np.mean(biases)) < (0.01 if shape == "dips" else 0.005)


@pytest.mark.parametrize("shape", ["drift", "drop"])
def test_what_slows_down_is_caught(shape):
    assert sum(one.cut_s is None for one, _ in judged(shape)) >= 0.97 * RUNS


def test_a_flat_line_is_steady_from_the_floor_on():
    assert steady([500.0] * 120) == (FLOOR_S, "steady since second 10 of 120")


@pytest.mark.parametrize(
    ("rates", "why"),
    [
        ([500.0] * 30, "30 s are too few to tell, 70 s are the least"),
        ([0.0] * 120, "there was no event since second 0 of 120"),
        ([500.0] * 100 + [0.0] * 20, "there was no event since second 100 of 120"),
        ([500.0] * 90 + [400.0] * 60, "it was 25.0% faster from second 0 to 90"),
        ([300.0] * 90 + [400.0] * 50, "it is alike only since second 90 of 140"),
    ],
)
def test_a_refusal_says_why(rates, why):
    assert steady(rates) == (None, why)


def test_a_rise_too_slow_for_a_change_point_is_reported_as_a_trend(monkeypatch):
    monkeypatch.setattr(room, "PENALTY", 1e9)
    monkeypatch.setattr(room, "mser_cut", lambda rates: 0)
    assert steady(1000 + np.arange(120)).why == "it still changed by +10.3% since second 10"


def test_change_points_are_those_of_a_search_through_all_partitions():
    generator = np.random.default_rng(3)
    series = np.concatenate([generator.normal(mean, 1, 9) for mean in (10, 14, 9)])

    def cost(points):
        edges = [0, *points, len(series)]
        parts = [series[a:b] for a, b in pairwise(edges)]
        return sum(((part - part.mean()) ** 2).sum() for part in parts) + 5.0 * len(points)

    each = [
        [],
        *([a] for a in range(5, 23)),
        *([a, b] for a in range(5, 18) for b in range(a + 5, 23)),
        *([a, b, c] for a in range(5, 13) for b in range(a + 5, 18) for c in range(b + 5, 23)),
    ]
    assert change_points(series, 5.0) == min(each, key=cost)


def test_mser_cuts_what_is_far_from_the_rest():
    assert mser_cut(np.array([100.0] * 20 + [200.0, 201.0] * 40)) == 20
    assert mser_cut(np.array([200.0, 201.0] * 40)) == 0


def test_long_run_variance_is_that_of_long_means_and_no_level_shift_swells_it():
    generator = np.random.default_rng(7)
    flat = generator.normal(1000, 30, 4000)
    assert long_run_variance(flat) == pytest.approx(900, rel=0.25)
    assert long_run_variance(flat + np.where(np.arange(4000) < 2000, 0, 500)) == pytest.approx(
        long_run_variance(flat), rel=0.02
    )


@given(st.lists(st.floats(0, 1e6), max_size=200))
def test_every_series_gets_an_answer(rates):
    one = steady(rates)
    assert one.why
    assert one.cut_s is None or FLOOR_S <= one.cut_s <= len(rates) - 60
