"""The first cause that the lab names, where a cause is planted or known."""

from __future__ import annotations

import pytest
from validation import causes

pytestmark = [pytest.mark.live, pytest.mark.alone]


PLANTED = [(case, 1.5) for case in ("hot", "lock", "sync")]
REAL = [
    pytest.param(case, 5.0, marks=pytest.mark.nightly)  # they take a minute each
    for case in ("flush-log", "synchronous-commit")
]


@pytest.mark.parametrize(("case", "window_s"), [*PLANTED, *REAL])
def test_the_right_cause_is_first(case: str, window_s: float) -> None:
    seen = []
    for seed in (1, 2):  # few short blocks, and the machine may do much else beside them
        seen.append(causes.experiment(case, seed, blocks=4, window_s=window_s))
        if causes.is_right(seen[-1]):
            return
    pytest.fail(f"{seen}")
