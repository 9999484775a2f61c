"""What is seen of systems that still approach their rate, on loads with known truth.

How often it errs is tried in `validation.claims.steadiness` (tests/judge/test_method.py).
"""

from __future__ import annotations

import numpy as np
import pytest

from dbdyno.stats.distributions import Numbers
from dbdyno.stats.settling import NEAR, settling


def load(shape: Numbers, trials: int = 5, noise: float = 0.02, seed: int = 1) -> Numbers:
    """Rates of (trial, second) around 1000 times a shape."""
    random = np.random.default_rng([seed, trials, len(shape)])
    level = random.normal(1000, 15, (trials, 1))
    return np.asarray(level * shape * random.normal(1, noise, (trials, len(shape))))


def approach(constant_s: float, length: int, amplitude: float = 0.4) -> Numbers:
    return 1 - amplitude * np.exp(-(np.arange(length) + 0.5) / constant_s)


def flat(length: int) -> Numbers:
    return np.ones(length)


def missing(shape: Numbers, from_s: int) -> float:
    """ln(rate that is approached / mean rate from that second on)."""
    return -float(np.log(shape[from_s:].mean()))


@pytest.mark.parametrize("length", [2, 6, 14, 75, 615])
def test_even_loads_are_steady(length: int) -> None:
    assert settling([load(flat(length)), load(flat(length), seed=2)], length // 5) is None


@pytest.mark.parametrize(
    ("warmup_s", "window_s", "constant_s"), [(15, 60, 15), (15, 60, 40), (4, 10, 15), (0, 6, 4)]
)
def test_the_limits_hold_what_a_warm_up_left(
    warmup_s: int, window_s: int, constant_s: float
) -> None:
    shape = approach(constant_s, warmup_s + window_s)
    held = []
    for seed in range(2, 42):
        found = settling([load(flat(len(shape)), seed=1), load(shape, seed=seed)], warmup_s)
        assert 0 < found.cut_s <= window_s // 2
        even, unsteady = found.left
        assert even.low <= 0 <= even.high
        off = missing(shape, warmup_s + found.cut_s)
        held.append(unsteady.low - NEAR <= off <= unsteady.high + NEAR)
    assert sum(held) >= 0.9 * len(held)


def test_what_falls_has_a_lower_rate_before_it() -> None:
    found = settling([load(approach(15, 40, amplitude=-0.4))], 0)
    low, _, high = found.left[0]
    assert low <= missing(approach(15, 40, amplitude=-0.4), found.cut_s) <= high < 0


def test_a_warm_up_that_ended_before_the_window_changes_nothing() -> None:
    shape = approach(1, 75)
    assert settling([load(shape), load(flat(75), seed=2)], 15) is None


def test_a_quick_warm_up_does_not_hide_a_slow_one() -> None:
    shape = approach(1, 75, 0.3) - 0.1 * np.exp(-np.arange(75) / 20)
    found = settling([load(flat(75), 10), load(shape, 10, seed=2)], 15)
    assert found.left[1].high >= missing(shape, 15 + found.cut_s) - NEAR


def test_one_trial_of_each_system_is_enough_where_the_change_is_large() -> None:
    loads = [load(approach(10, 60), 1), load(approach(10, 60), 1, seed=2)]
    assert settling(loads, 10) is not None


@pytest.mark.parametrize("length", [1, 2, 3])
def test_too_little_tells_nothing(length: int) -> None:
    assert settling([load(flat(length), 1)], 0) is None


def test_loads_without_an_event_tell_nothing() -> None:
    assert settling([np.zeros((3, 20)), load(flat(20))], 5) is None
