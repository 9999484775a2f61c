"""Intervals that hold at every look: against printed multipliers, and by simulation."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from validation.multipliers import HEAD, HORIZONS, PATHS, SEED, final_levels, multipliers

from dbdyno.judge import multiplier_table
from dbdyno.judge.interval import (
    FIXED,
    HORIZON_MAX,
    LEVEL,
    Held,
    final_level,
    interval,
    quantile,
    together,
    typical,
    typical_of_logs,
)
from dbdyno.judge.multiplier_table import FINAL_LEVELS, LEVELS
from dbdyno.plan.plan import DesignPlan
from dbdyno.stats.pooled import OWN
from support.made_estimates import shape

# docs/how-it-works/verdicts.md
PRINTED = {
    12: (14.9, 7.02, 5.01, 4.15, 3.67, 3.37, 3.16, 3.00, 2.88, 2.78),
    20: (
        *(20.7, 8.79, 6.00, 4.86, 4.24, 3.86, 3.60, 3.41, 3.26, 3.15),
        *(3.05, 2.97, 2.90, 2.84, 2.79, 2.74, 2.70, 2.66),
    ),
}
PRINTED_LAST = {(12, 0.01): 3.79, (12, 0.0025): 4.71, (20, 0.01): 3.48, (20, 0.0025): 4.16}


def until_decided(blocks: int) -> DesignPlan:
    return DesignPlan(blocks=blocks, stop="decided")


@pytest.mark.parametrize("horizon", PRINTED)
def test_multipliers_are_those_of_the_method(horizon):
    design = until_decided(horizon)
    found = [quantile(n, design) for n in range(3, horizon + 1)]
    # those were simulated with 300 000 paths, which leaves 0.4 % at the first look
    assert found == pytest.approx(PRINTED[horizon], rel=0.01)


@pytest.mark.parametrize(("horizon", "level"), PRINTED_LAST)
def test_multipliers_of_a_cells_share_are_those_of_the_method(horizon, level):
    found = quantile(horizon, until_decided(horizon), level)
    assert found == pytest.approx(PRINTED_LAST[horizon, level], rel=0.01)


def test_fixed_blocks_have_students_interval():
    assert quantile(5, FIXED) == pytest.approx(2.776445, rel=1e-6)
    assert quantile(5, FIXED, 0.01) == pytest.approx(4.604095, rel=1e-6)


@given(st.integers(3, 200), st.integers(3, 200), st.floats(1e-6, 0.05, allow_subnormal=False))
def test_an_early_end_never_makes_an_interval_narrower(n, blocks, level):
    found = quantile(n, until_decided(blocks), level)
    assert found >= stats.t.ppf(1 - level / 2, n - 1) * (1 - 1e-9)
    assert math.isfinite(found)


@given(st.integers(3, HORIZON_MAX + 50), st.floats(1e-5, 0.05))
def test_a_smaller_level_is_a_wider_interval(horizon, level):
    assert final_level(horizon, level / 2) < final_level(horizon, level) <= level * (1 + 1e-9)


def test_one_look_is_the_level_itself_and_beyond_the_table_the_looks_add_up():
    assert final_level(3) == pytest.approx(0.05)
    beyond = LEVELS[-1] / 2
    nominal = [final_level(10, beyond) * n / 10 for n in range(3, 11)]
    assert sum(nominal) == pytest.approx(beyond)


def test_levels_between_those_of_the_table_are_interpolated():
    between = final_level(12, 0.05 / 3)
    assert final_level(12, 0.01) < between < final_level(12, 0.025)
    assert between == pytest.approx(0.00501, rel=0.03)  # simulated with 400 000 paths


def test_two_blocks_have_no_interval_yet():
    assert quantile(2, until_decided(12)) == math.inf
    assert interval([0.1, 0.1], until_decided(12)).half == math.inf
    with pytest.raises(ValueError, match="two numbers at least, found 1"):
        interval([0.1], FIXED)


# Intervals that hold together, by hand; `tests/judge/test_method.py` has their error rates.


def held_of(*cells: list[float], design: DesignPlan = FIXED) -> list[Held | None]:
    """The intervals of the cells of a workload; NaN stands for a missing block."""
    samples = [{n: log for n, log in enumerate(logs) if not math.isnan(log)} for logs in cells]
    return together(samples, ["workload"] * len(cells), design)


@pytest.mark.parametrize("design", [FIXED, until_decided(12)])
def test_a_single_cell_has_the_interval_of_its_own_blocks(design):
    (held,) = held_of(shape(0.01, 0.02, 5), design=design)
    half = quantile(5, design) * 0.02 / math.sqrt(5)
    assert (math.log(held.low), math.log(held.high)) == pytest.approx((0.01 - half, 0.01 + half))
    assert (held.low, held.high) == (held.alone_low, held.alone_high)
    assert (held.level, held.cells) == (pytest.approx(LEVEL), 1)
    assert (held.sd, held.freedom) == pytest.approx((0.02, 4))


def test_several_cells_share_the_level_and_know_more_of_their_noise():
    logs = [
        shape(0.1 * cell, 0.01, 5)[cell:] + shape(0.1 * cell, 0.01, 5)[:cell] for cell in range(4)
    ]
    for held in held_of(*logs):
        assert held.cells == 4
        assert (1 - OWN) * LEVEL / 4 <= held.level < LEVEL
        assert held.low < held.alone_low < held.alone_high < held.high
        assert held.freedom > 4
        half = quantile(5, FIXED, held.level, held.freedom) * held.sd / math.sqrt(5)
        assert math.log(held.high / held.low) == pytest.approx(2 * half, rel=1e-3)
    widths = [
        math.log(one.high / one.low)
        for design in (FIXED, until_decided(12))
        for one in held_of(*logs, design=design)[:1]
    ]
    assert widths[1] > widths[0], "room for all looks"


def levels_of(*cells: list[float]) -> list[float]:
    return [held.level for held in held_of(*cells) if held is not None]


def test_a_cell_far_beyond_the_margin_keeps_half_of_its_share_and_the_others_get_the_rest():
    far, also_far, tie = shape(0.3, 0.01, 5), shape(-0.3, 0.01, 5), shape(0.0, 0.002, 5)
    assert levels_of(far, tie) == pytest.approx([0.05 / 4, 0.05 * 3 / 4])
    assert levels_of(far, tie, also_far) == pytest.approx([0.05 / 6, 0.05 * 4 / 6, 0.05 / 6])
    assert levels_of(far, also_far) == pytest.approx([0.025, 0.025]), "unused where all are far"
    assert levels_of(tie, tie) == pytest.approx([0.025, 0.025])
    _, near = held_of(far, tie)
    assert math.log(near.high) == pytest.approx(3.0643 * 0.002 / math.sqrt(5), rel=1e-4)


def test_a_far_cells_interval_ends_where_far_begins_and_anothers_is_wider_beyond_it():
    tie, just_far, uneven = shape(0.0, 0.002, 5), shape(-0.106, 0.025, 5), shape(-0.07, 0.03, 5)
    _, far, wide = held_of(tie, just_far, uneven)

    def half(sd: float, level: float) -> float:
        return quantile(5, FIXED, level) * sd / math.sqrt(5)

    assert -0.106 + half(0.025, 0.05 / 6) > -math.log(1.06), "without its end at far"
    assert math.log(far.high) == pytest.approx(-math.log(1.06))
    assert math.log(far.low) == pytest.approx(-0.106 - half(0.025, 0.05 / 6))
    assert math.log(wide.low) == pytest.approx(-0.07 - half(0.03, 0.05 / 6))
    assert math.log(wide.high) == pytest.approx(-0.07 + half(0.03, wide.level))


def test_a_cell_below_three_blocks_claims_nothing_and_takes_no_share():
    cell = shape(0.0, 0.01, 5)
    short, held = held_of([0.1, 0.1], cell)
    assert short is None
    assert [held] == held_of(cell)
    assert held_of([0.1], []) == [None, None]
    assert held_of() == []


def test_a_cell_with_missing_blocks_is_one_of_those_that_hold_together():
    cell = shape(0.0, 0.01, 6)
    gaps = [cell[0], math.nan, math.nan, *cell[3:]]
    whole, held = held_of(cell[::-1], gaps)
    assert held.cells == whole.cells == 2
    typical_log = sum(log for log in gaps if not math.isnan(log)) / 4
    assert math.log(held.low * held.high) / 2 == pytest.approx(typical_log)


# A typical value has the interval of its blocks, or none below three.


def test_interval_is_students():
    found = typical([1.0, 2.0, 3.0, 4.0], FIXED)
    # t(0.975, 3) = 3.18245; s = 1.29099
    assert (found.value, found.blocks) == (2.5, 4)
    assert found.low == pytest.approx(2.5 - 3.18245 * 1.29099 / 2, abs=1e-4)
    assert found.high == pytest.approx(2.5 + 3.18245 * 1.29099 / 2, abs=1e-4)


def test_two_blocks_have_a_value_and_no_interval_and_none_have_nothing():
    found = typical([0.1, 0.3], FIXED)
    assert (found.value, found.low, found.high, found.blocks) == (0.2, None, None, 2)
    assert typical([], FIXED) is typical_of_logs([], FIXED) is None


def test_logs_come_back_as_a_geometric_mean_with_finite_ends():
    found = typical_of_logs([math.log(1), math.log(4), math.log(16)], FIXED)
    assert found.value == pytest.approx(4)
    assert found.low * found.high == pytest.approx(16)  # symmetric on the scale of ratios
    wild = typical_of_logs([-600.0, 0.0, 600.0], FIXED)
    assert 0 < wild.low < wild.value < wild.high < math.inf


def test_a_run_that_may_stop_early_has_wider_intervals():
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    fixed, repeated = (typical(values, design) for design in (FIXED, until_decided(12)))
    # docs/how-it-works/verdicts.md: 5.01 standard errors at the fifth of twelve looks
    assert repeated.high - 3 == pytest.approx(5.01 * 1.5811 / math.sqrt(5), rel=0.01)
    assert repeated.high > fixed.high


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
