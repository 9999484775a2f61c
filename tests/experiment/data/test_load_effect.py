"""The measurement of what loads differ by: on numbers with known truth, and as a tiny run."""

from __future__ import annotations

import numpy as np
import pytest
from validation.load_effect import Effect, effect_of, effects, measured, plan_of, rows

from support.fakes import Progress, World

LOADS = [str(block % 10) for block in range(30)]


def made(load_sd: float, drift: float = 0.0, count: int = 400) -> list[Effect]:
    """What is found in runs of ten loads and three starts that differ by 1 %."""
    random = np.random.default_rng(7)
    found = []
    for _ in range(count):
        each = random.normal(0, load_sd, 10)[np.arange(30) % 10]
        logs = each + random.normal(0, 0.01, 30) + drift * np.arange(30)
        found.append(effect_of(LOADS, list(logs)))
    return found


@pytest.mark.parametrize("load_sd", [0.005, 0.02])
@pytest.mark.parametrize("drift", [0.0, 0.002])
def test_the_effect_is_found_with_its_interval(load_sd: float, drift: float) -> None:
    found = made(load_sd, drift)
    typical = np.sqrt(np.mean([one.load_sd**2 for one in found]))
    assert typical == pytest.approx(load_sd, rel=0.15)
    assert np.median([one.start_sd for one in found]) == pytest.approx(0.01, rel=0.05)
    covered = np.mean([one.low <= load_sd <= one.high for one in found])
    assert covered >= 0.93  # by its construction it is a little too wide


def test_loads_that_do_nothing_are_seldom_said_to() -> None:
    found = made(0.0)
    assert 0.025 <= np.mean([one.p < 0.05 for one in found]) <= 0.08
    assert np.mean([one.low == 0 for one in found]) >= 0.95


def test_a_tiny_run_rests_on_its_loads_in_turn_and_gives_a_row_a_workload(tmp_path) -> None:
    plan = plan_of("mysql:8.0.15", 2, 3, 1, 1000)
    trials = measured(plan, tmp_path, Progress(), World().makers)
    by_block = [one.load for one in trials[::2]]
    assert len(trials) == 12
    assert len(set(by_block)) == 2
    assert by_block == by_block[:2] * 3
    table = [row.split(" | ") for row in rows("mysql:8.0.15", effects(trials))]
    tps = [row for row in table if row[2] == "`transactions_per_s`"]
    assert [row[1] for row in tps] == ["`oltp_read_only`", "`oltp_read_write`"]
    assert tps[0][3:6] == ["0.0 %", "0.0 % to 0.0 %", "0.0 %"]  # the fake is always as fast
