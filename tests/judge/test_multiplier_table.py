"""The shipped table is what its own program makes, made again in small."""

from __future__ import annotations

import pytest
from validation.multipliers import HEAD, HORIZONS, PATHS, SEED, final_levels, multipliers

from dbdyno.judge import multiplier_table
from dbdyno.judge.multiplier_table import FINAL_LEVELS, LEVELS


def test_made_again_with_fewer_paths_multipliers_agree_within_a_percent():
    made = final_levels([8, 12, 20], [0.05, 0.025], 150_000, seed=3)
    for horizon, (level, half) in made.items():
        assert (level, half) == pytest.approx(FINAL_LEVELS[horizon][:2], rel=0.03)
        shipped = multipliers(horizon, FINAL_LEVELS[horizon][0])
        assert multipliers(horizon, level) == pytest.approx(shipped, rel=0.01)


def test_it_holds_every_horizon_and_level_that_the_program_makes():
    assert tuple(FINAL_LEVELS) == HORIZONS
    assert FINAL_LEVELS[3] == LEVELS
    for row in FINAL_LEVELS.values():
        assert sorted(row, reverse=True) == list(row)
        assert len(row) == len(LEVELS)


def test_its_head_says_how_it_was_made():
    said = HEAD.partition("\n")[2].partition("says what")[0].format(paths=PATHS, seed=SEED)
    assert said.split("`sequential`")[0] in (multiplier_table.__doc__ or "")
