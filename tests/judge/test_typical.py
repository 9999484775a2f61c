"""A typical value has the interval of its blocks, or none below three."""

from __future__ import annotations

import math

import pytest

from dbdyno.judge.interval import FIXED, typical, typical_of_logs
from dbdyno.plan.plan import DesignPlan


def test_interval_is_students():
    found = typical([1.0, 2.0, 3.0, 4.0], FIXED)
    # t(0.975, 3) = 3.18245; s = 1.29099
    assert (found.value, found.blocks) == (2.5, 4)
    assert found.low == pytest.approx(2.5 - 3.18245 * 1.29099 / 2, abs=1e-4)
    assert found.high == pytest.approx(2.5 + 3.18245 * 1.29099 / 2, abs=1e-4)


def test_two_blocks_have_a_value_and_no_interval():
    found = typical([0.1, 0.3], FIXED)
    assert (found.value, found.low, found.high, found.blocks) == (0.2, None, None, 2)


def test_logs_come_back_as_a_geometric_mean():
    found = typical_of_logs([math.log(1), math.log(4), math.log(16)], FIXED)
    assert found.value == pytest.approx(4)
    assert found.low * found.high == pytest.approx(16)  # symmetric on the scale of ratios


def test_a_run_that_may_stop_early_has_wider_intervals():
    until_decided = DesignPlan(blocks=12, stop="decided")
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    fixed, repeated = (typical(values, design) for design in (FIXED, until_decided))
    # method.md 1.b: 5.01 standard errors at the fifth of twelve looks
    assert repeated.high - 3 == pytest.approx(5.01 * 1.5811 / math.sqrt(5), rel=0.01)
    assert repeated.high > fixed.high


def test_nothing_is_not_a_number():
    assert typical([], FIXED) is None
    assert typical_of_logs([], FIXED) is None
