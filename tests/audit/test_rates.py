"""Honest publications are seldom accused, planted faults nearly always found; the full count is
`python -m validation.audit_rates`."""

from __future__ import annotations

from validation.audit_rates import FAULTS, HONEST_MAX, rates


def test_error_rates_of_a_small_sample() -> None:
    found = rates(100, 30)
    assert found.pop("honest") <= 2 * HONEST_MAX
    assert found.keys() == FAULTS.keys()
    assert min(found.values()) >= 0.8
