"""Intervals of many counters at once: answers known beforehand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dbdyno.stats.moderated import moderated

LEVEL = 0.05
NONE = np.zeros(1)


def test_a_single_counter_has_students_interval() -> None:
    logs = [0.3, -0.1, 0.25, 0.0, 0.12]
    seen = moderated(np.array([logs]).T, NONE)
    low, high = stats.t.interval(1 - LEVEL, 4, np.mean(logs), stats.sem(logs))
    assert seen.half_widths(LEVEL)[0] == pytest.approx((high - low) / 2, rel=1e-9)
    assert seen.mean[0] == pytest.approx((low + high) / 2)


def test_counters_alike_have_nearly_the_normal_quantile_at_sidaks_level() -> None:
    counters, blocks = 200, 8
    noise = np.random.default_rng(3).normal(size=(blocks, counters))
    halves = moderated(noise, np.zeros(counters)).half_widths(LEVEL)
    share = 1 - (1 - LEVEL) ** (1 / counters)
    assert np.median(halves) == pytest.approx(
        stats.norm.isf(share / 2) / math.sqrt(blocks), rel=0.2
    )


def test_the_prior_of_variances_is_found() -> None:
    """Variances drawn around 2 with 4 degrees of freedom; blocks have 4 more."""
    random = np.random.default_rng(5)
    sds = np.sqrt(2 * 4 / random.chisquare(4, 800))
    noise = random.normal(size=(5, 800)) * sds
    seen = moderated(noise, np.zeros(800))
    assert seen.freedom[0] - 4 == pytest.approx(4, rel=0.3)
    variances = (4 * 2 + 4 * noise.var(axis=0, ddof=1)) / 8
    assert np.median(seen.error**2 * 5 / variances) == pytest.approx(1, rel=0.1)


def test_counters_that_move_together_tell_no_more_than_one_of_them() -> None:
    noise = np.random.default_rng(7).normal(size=(5, 1)) * np.linspace(1, 2, 50)
    assert moderated(noise, np.zeros(50)).freedom == pytest.approx(np.full(50, 4.0), abs=0.1)


def test_small_counts_have_the_noise_of_counts_at_least() -> None:
    seen = moderated(np.zeros((4, 3)), np.array([0.1, 0.4, 0.0]))
    assert (seen.error >= np.sqrt(np.array([0.1, 0.4, 0.0]) / 4)).all()


def test_a_missing_block_is_left_out() -> None:
    blocks = np.array([[0.1, 0.2], [0.3, np.nan], [0.2, 0.4], [0.1, 0.3]])
    seen = moderated(blocks, np.zeros(2))
    assert seen.mean == pytest.approx([0.175, 0.3])
    assert seen.freedom[0] - seen.freedom[1] == pytest.approx(1)
