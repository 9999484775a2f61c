"""Honest publications are seldom accused, planted faults nearly always found; the full count is
`python -m validation.audit_rates`."""

from __future__ import annotations

from validation.audit_rates import FAULTS, HONEST, readings, share_accused


def test_error_rates_of_a_small_sample() -> None:
    pages = readings(16, 2)
    assert {page.cells for of_kind in pages.values() for page in of_kind} == {"exact"}
    shares = {kind: share_accused(of_kind) for kind, of_kind in pages.items()}
    assert shares.pop(HONEST) == 0
    assert shares.keys() == FAULTS.keys()
    assert min(shares.values()) >= 1 / 2
