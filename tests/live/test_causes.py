"""The first cause that the lab names, where a cause is planted or known."""

from __future__ import annotations

import pytest
from validation import causes

pytestmark = [pytest.mark.live, pytest.mark.alone]


REAL = ("flush-log", "synchronous-commit")
"""They take a minute each."""


@pytest.mark.parametrize(
    "case",
    ["hot", "lock", "sync", *(pytest.param(case, marks=pytest.mark.nightly) for case in REAL)],
)
def test_the_right_cause_is_first(case: str) -> None:
    seen = []
    for seed in (1, 2):  # few short blocks, and the machine may do much else beside them
        seen.append(causes.experiment(case, seed, blocks=4, window_s=1.5))
        if causes.is_right(seen[-1]):
            return
    pytest.fail(f"{seen}")
