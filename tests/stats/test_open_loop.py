"""Backlogs and limits against queues whose truth is known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from dbdyno.stats.open_loop import Point, RateSide, growth, rate_at_limit, rising

RUNS = 300
STEPS_PER_S = 50


def backlogs(load: float, rate_per_s: float, window_s: int, seed: int) -> np.ndarray:
    """Backlog at the end of each second of many windows: random arrivals, random service."""
    chance = np.random.default_rng(seed)
    waiting = np.zeros(RUNS)
    ends = []
    for step in range(window_s * STEPS_PER_S):
        due = chance.poisson(rate_per_s / STEPS_PER_S, RUNS)
        taken = chance.poisson(rate_per_s / load / STEPS_PER_S, RUNS)
        waiting = np.maximum(0, waiting + due - taken)
        if (step + 1) % STEPS_PER_S == 0:
            ends.append(waiting.copy())
    return np.array(ends).T


def share_not_sustained(load: float, window_s: int) -> float:
    seen = [
        growth(range(1, window_s + 1), one.astype(int).tolist(), 1000)
        for one in backlogs(load, 1000, window_s, seed=7)
    ]
    return sum(one is not None and not one.sustained for one in seen) / RUNS


@pytest.mark.parametrize("window_s", [10, 60])
@pytest.mark.parametrize("load", [0.5, 0.8, 0.9, 0.97])
def test_what_a_server_takes_is_sustained_however_it_comes(load: float, window_s: int) -> None:
    assert share_not_sustained(load, window_s) <= 0.01


@pytest.mark.parametrize(
    ("load", "window_s", "found"), [(1.05, 60, 0.85), (1.1, 60, 0.99), (1.25, 10, 0.99), (2, 4, 1)]
)
def test_what_a_server_cannot_take_is_not(load: float, window_s: int, found: float) -> None:
    assert share_not_sustained(load, window_s) >= found


def test_growth_is_in_requests_a_second_and_a_backlog_that_stays_or_too_short_has_none() -> None:
    seen = growth(range(1, 41), [50 * second for second in range(1, 41)], 400)
    assert seen.per_s == pytest.approx(50)
    assert seen.limit_per_s == pytest.approx(3 * math.sqrt(2 * 400 * 10) / 10)
    assert not seen.sustained
    assert growth(range(60), [5000] * 60, 100) == (0.0, pytest.approx(3 * math.sqrt(3000) / 15))
    assert growth([], [], 100) is growth([0], [3], 100) is None


def queue_p99_ms(rate: float) -> float:
    """M/M/1 that serves in 1 ms, 1000 a second: 99 of 100 stay no longer."""
    return math.log(100) / (1 - rate / 1000)


def ladder(middle: float, step: float = 1.06) -> list[Point]:
    rates = [middle * step**place for place in range(-2, 3)]
    return [
        Point(rate, queue_p99_ms(rate), sustained=True)
        if rate < 1000
        else Point(rate, 900.0, sustained=False)
        for rate in rates
    ]


@pytest.mark.parametrize("off", [0.93, 0.97, 1.0, 1.04, 1.08])
@pytest.mark.parametrize("limit_ms", [8.0, 20.0, 50.0])
def test_the_rate_of_a_known_queue_is_found_within_a_part_of_a_step(
    limit_ms: float, off: float
) -> None:
    truth = 1000 * (1 - math.log(100) / limit_ms)
    met = rate_at_limit(ladder(truth * off), limit_ms)
    assert met.side is RateSide.BETWEEN
    # The curve bends upwards: a line meets the limit early, never late.
    assert 0.965 * truth < met.rate_per_s <= truth * 1.0001


def test_a_limit_beyond_the_rates_has_no_number_but_a_side() -> None:
    points = [Point(rate, queue_p99_ms(rate), sustained=True) for rate in (500, 600, 700)]
    assert rate_at_limit(points, 1000) == (RateSide.ABOVE, 700)
    assert rate_at_limit(points, 5) == (RateSide.BELOW, 500)
    assert rate_at_limit([], 5) == (RateSide.UNKNOWN, None)
    assert rate_at_limit([Point(500, None, sustained=True)], 5) == (RateSide.UNKNOWN, None)


def test_a_rate_that_is_not_sustained_breaks_every_limit() -> None:
    points = [Point(500, 4.0, sustained=True), Point(600, 4.0, sustained=False)]
    met = rate_at_limit(points, 1000)
    assert met.side is RateSide.BETWEEN
    assert 500 <= met.rate_per_s <= 600
    nothing_read = [Point(500, None, sustained=True), points[1]]
    assert rate_at_limit(nothing_read, 1000) == (RateSide.UNKNOWN, None)
    unread = [points[0], Point(600, None, sustained=False)]
    assert rate_at_limit(unread, 1000).side is RateSide.BETWEEN


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12))
def test_values_that_fall_are_pooled_as_in_isotonic_regression(values: list[float]) -> None:
    assert rising(values) == pytest.approx(isotonic_regression(values).x.tolist(), abs=1e-9)


def test_one_stall_at_a_low_rate_does_not_decide() -> None:
    calm = [Point(rate, queue_p99_ms(rate), sustained=True) for rate in range(500, 1000, 50)]
    stalled = [replace(calm[0], latency_ms=25.0), *calm[1:]]
    truth, found = (rate_at_limit(points, 20).rate_per_s for points in (calm, stalled))
    assert found == pytest.approx(truth, rel=0.01)


@given(
    st.lists(
        st.builds(
            Point,
            st.floats(1, 1e5),
            st.none() | st.floats(0, 1e5),
            sustained=st.booleans(),
        ),
        max_size=8,
        unique_by=lambda point: point.rate_per_s,
    ),
    st.floats(0.01, 1e4),
)
def test_whatever_was_seen_the_rate_lies_among_those_tried(
    points: list[Point], limit_ms: float
) -> None:
    met = rate_at_limit(points, limit_ms)
    rates = [point.rate_per_s for point in points]
    if met.rate_per_s is not None:
        assert min(rates) * (1 - 1e-9) <= met.rate_per_s <= max(rates) * (1 + 1e-9)
    else:
        assert met.side is RateSide.UNKNOWN
