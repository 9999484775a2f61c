from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.report.charts.ratios import TICKS_APART, View, view_of


@given(some.floats(0.005, 8))
def test_any_view_has_a_few_round_ticks_within_it(reach: float) -> None:
    ticks = View(reach).ticks()
    places = [place for place, _ in ticks]
    assert all(abs(place) <= reach + 1e-9 for place in places)
    assert all(b - a >= TICKS_APART * reach * 0.999 for a, b in pairwise(places))
    assert (0.0, "0") in ticks


@pytest.mark.parametrize(
    ("reach", "labels"),
    [
        (math.log(1.06), ["−4 %", "−2 %", "0", "+2 %", "+4 %", "+6 %"]),
        (math.log(4.5), ["−70 %", "−40 %", "0", "+100 %", "+300 %"]),
    ],
)
def test_ticks_are_changes(reach: float, labels: list[str]) -> None:
    assert [words for _, words in View(reach).ticks()] == labels


def test_a_wide_interval_does_not_press_the_rest_together() -> None:
    view = view_of([0.95, 1.05], [0.01, 100.0], margin=0.02)
    assert view.reach < math.log(1.3)
    assert not view.holds(100.0)
    assert view.within(100.0) == view.reach
    assert view.within(0.01) == -view.reach


def test_margin_and_ratios_are_always_in_view() -> None:
    view = view_of([1.0], [], margin=0.05)
    assert view.holds(1.05)
    assert view_of([0.2], [], margin=0.02).holds(0.2)
