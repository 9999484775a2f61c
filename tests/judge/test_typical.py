"""A typical value has the interval of its blocks, or none below three."""

from __future__ import annotations

import math

import pytest

from dbdyno.judge.typical import typical, typical_of_logs


def test_interval_is_students():
    found = typical([1.0, 2.0, 3.0, 4.0])
    # t(0.975, 3) = 3.18245; s = 1.29099
    assert (found.value, found.blocks) == (2.5, 4)
    assert found.low == pytest.approx(2.5 - 3.18245 * 1.29099 / 2, abs=1e-4)
    assert found.high == pytest.approx(2.5 + 3.18245 * 1.29099 / 2, abs=1e-4)


def test_two_blocks_have_a_value_and_no_interval():
    found = typical([0.1, 0.3])
    assert (found.value, found.low, found.high, found.blocks) == (0.2, None, None, 2)


def test_logs_come_back_as_a_geometric_mean():
    found = typical_of_logs([math.log(1), math.log(4), math.log(16)])
    assert found.value == pytest.approx(4)
    assert found.low * found.high == pytest.approx(16)  # symmetric on the scale of ratios


def test_nothing_is_not_a_number():
    assert typical([]) is None
    assert typical_of_logs([]) is None
