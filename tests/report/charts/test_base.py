from __future__ import annotations

import pytest

from dbdyno.language.words import say
from dbdyno.report.charts.base import (
    ASIDE_ALL_MAX,
    POINTS_TOLD_MAX,
    arranged,
    aside,
    colour,
    in_words,
)


@pytest.mark.parametrize("count", [1, 2, 4, 12])
def test_systems_stand_side_by_side_about_their_level(count: int) -> None:
    systems = [f"s{place}" for place in range(count)]
    offsets = [aside(systems, system) for system in systems]
    assert sum(offsets) == pytest.approx(0)
    assert len(set(offsets)) == count
    assert max(offsets) - min(offsets) <= ASIDE_ALL_MAX


def test_one_panel_stands_alone() -> None:
    assert arranged([{"mark": "bar"}], 2) == {"mark": "bar"}
    assert arranged([{}, {}], 2)["columns"] == 2


def test_colours_begin_again_after_the_last() -> None:
    scale = colour([f"s{place}" for place in range(9)])["scale"]
    assert len(scale["range"]) == 9
    assert scale["range"][7] == scale["range"][0]


def test_a_long_list_of_points_is_no_description() -> None:
    few = in_words("T", "ms", [say("a: {n}", n=n) for n in range(2)])
    assert few == "T, ms. a: 0; a: 1."
    many = in_words("T", "ms", [say("a: {n}", n=n) for n in range(POINTS_TOLD_MAX + 1)])
    assert many == "T, ms. 41 points; the tables have their numbers."
