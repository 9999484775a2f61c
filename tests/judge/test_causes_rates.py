"""Causes of simulated differences, a few of each; `validation.claims.causes_rates` has all."""

from __future__ import annotations

import pytest
from validation.claims.causes_rates import PLANTED, Kind, share_claimed, share_first


@pytest.mark.parametrize("kind", ["even", "shared starts"])
def test_a_counter_of_equal_systems_is_seldom_named(kind: Kind) -> None:
    assert share_claimed(kind, blocks=5, runs=40, forced=True) <= 0.15
    assert share_claimed(kind, blocks=4, runs=10, forced=False) <= 0.1


@pytest.mark.parametrize("cause", PLANTED)
def test_a_planted_cause_is_named_first(cause: str) -> None:
    assert share_first(cause, "even", blocks=5, runs=10) >= 0.8
