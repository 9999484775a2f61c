"""Intervals with noise estimated from all cells: answers known beforehand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dbdyno.stats.distributions import Numbers
from dbdyno.stats.pooled import GROUP_MIN, OWN, Pooled, effective_number, pooled

LEVEL = 0.05


def alike(seed: int, blocks: int, cells: int) -> Numbers:
    """Independent cells of the same noise."""
    return np.random.default_rng(seed).normal(size=(blocks, cells))


def of(blocks: Numbers, groups: Sequence[object] | None = None, level: float = LEVEL) -> Pooled:
    return pooled(blocks, groups or [""] * blocks.shape[1], level)


@pytest.mark.parametrize("level", [0.05, 0.001])
def test_a_single_cell_has_students_interval_to_the_digit(level: float) -> None:
    logs = [0.3, -0.1, 0.25, 0.0, 0.12]
    alone = of(np.array([logs]).T, level=level)
    student = stats.t.interval(1 - level, 4, np.mean(logs), stats.sem(logs))
    assert (alone.mean[0] - alone.together[0], alone.mean[0] + alone.together[0]) == pytest.approx(
        student, rel=1e-12
    )
    assert alone.alone == alone.together
    assert (alone.level, alone.freedom[0]) == (level, 4)


def test_many_cells_alike_have_nearly_the_normal_quantile_at_sidaks_level() -> None:
    cells, blocks = 200, 8
    among = of(alike(3, blocks, cells))
    sidak = 1 - (1 - LEVEL) ** (1 / cells)
    normal = stats.norm.isf(sidak / 2) / math.sqrt(blocks)
    assert np.median(among.together) == pytest.approx(normal, rel=0.2)
    assert np.median(among.together) < stats.t.isf(sidak / 2, blocks - 1) / math.sqrt(blocks) / 1.5
    assert (1 - OWN) * LEVEL / cells <= among.level <= 1.5 * sidak
    assert np.median(among.freedom) > 1.5 * (blocks - 1)


def test_fewer_cells_than_a_group_keep_their_own_noise_at_sidaks_level() -> None:
    cells = GROUP_MIN - 1
    apart = alike(7, 5, cells) * np.geomspace(0.01, 1, cells)
    few, sidak = of(apart), 1 - (1 - LEVEL) ** (1 / cells)
    errors = apart.std(axis=0, ddof=1) / math.sqrt(5)
    assert few.together == pytest.approx(stats.t.isf(sidak / 2, 4) * errors)
    assert few.alone == pytest.approx(stats.t.isf(LEVEL / 2, 4) * errors)
    assert few.level == pytest.approx(sidak)


def test_cells_that_go_up_and_down_together_gain_no_degrees_of_freedom() -> None:
    single, strangers = alike(5, 5, 1), alike(5, 5, 40)
    copies = np.hstack([single, -single] * 4)
    assert effective_number(copies - copies.mean(axis=0)) == pytest.approx(1)
    assert effective_number(strangers - strangers.mean(axis=0)) > 20
    assert (of(copies).alone > 0.9 * of(single).alone).all()


def test_a_cell_much_noisier_than_its_neighbours_keeps_an_interval_of_its_own() -> None:
    blocks = alike(1, 5, 16)
    blocks /= blocks.std(axis=0, ddof=1)
    blocks[:, 7] *= 10
    half = of(blocks).together
    assert half[7] > 3 * np.median(half)


def test_groups_have_noises_of_their_own_if_they_are_large_enough() -> None:
    blocks = alike(2, 5, 12) * np.array([1] * 6 + [12] * 6)
    split = of(blocks, ["quiet"] * 6 + ["loud"] * 6)
    mixed = of(blocks)
    assert split.together[:6].mean() < mixed.together[:6].mean()
    few = GROUP_MIN - 1
    small = of(blocks, ["quiet"] * few + ["loud"] * (12 - few))
    assert small.together == pytest.approx(mixed.together)


def test_missing_blocks_are_no_values_and_make_an_interval_wider() -> None:
    blocks = alike(4, 6, 5)
    blocks[:, 0] = (1, -1, 1, -1, 1, -1)
    whole = of(blocks)
    blocks[4:, 0] = math.nan
    missing = of(blocks)
    assert missing.mean == pytest.approx(np.nanmean(blocks, axis=0))
    assert missing.together[0] > 1.1 * whole.together[0]
    assert np.isfinite(missing.together).all()


@pytest.mark.parametrize("there", [0, 1])
def test_below_two_values_a_cell_has_no_interval(there: int) -> None:
    blocks = alike(6, 3, 2)
    blocks[there:, 1] = math.nan
    with pytest.raises(ValueError, match=f"two values at least, found {there}"):
        of(blocks)


def test_blocks_equal_to_the_last_digit_have_an_interval_of_hardly_any_width() -> None:
    same = of(np.full((3, 4), 0.25))
    assert same.mean == pytest.approx(np.full(4, 0.25))
    assert (same.together > 0).all()
    assert same.together.max() < 1e-4


def test_noises_apart_by_orders_of_magnitude_have_finite_intervals() -> None:
    blocks = np.full((6, 16), 0.25)
    blocks[:, 7:12] += alike(8, 6, 5) / 10
    for groups in (["same"] * 16, ["still"] * 7 + ["loud"] * 5 + ["others"] * 4):
        apart = of(blocks, groups)
        assert np.isfinite(apart.together).all()
        assert apart.together[7:12].min() > 100 * apart.together[:7].max()


SIZES = {"seed": st.integers(0, 10_000), "blocks": st.integers(3, 7), "cells": st.integers(2, 9)}


@given(**SIZES)
def test_the_order_of_cells_and_of_blocks_changes_no_interval(
    seed: int, blocks: int, cells: int
) -> None:
    made, random = alike(seed, blocks, cells), np.random.default_rng(seed)
    groups = [cell % 2 for cell in range(cells)]
    order = random.permutation(cells)
    here = of(made, groups)
    moved = of(made[random.permutation(blocks)][:, order], [groups[place] for place in order])
    assert moved.mean == pytest.approx(here.mean[order])
    assert moved.together == pytest.approx(here.together[order], rel=1e-3)
    assert moved.level == pytest.approx(here.level, rel=1e-2)


@given(**SIZES, factor=st.floats(0.01, 100), shift=st.floats(-5, 5))
def test_intervals_move_and_scale_with_the_blocks(
    seed: int, blocks: int, cells: int, factor: float, shift: float
) -> None:
    made = alike(seed, blocks, cells)
    here, there = of(made), of(factor * made + shift)
    assert there.mean == pytest.approx(factor * here.mean + shift)
    assert there.sd == pytest.approx(factor * here.sd, rel=1e-3)
    assert there.together == pytest.approx(factor * here.together, rel=1e-3)
    assert there.alone == pytest.approx(factor * here.alone, rel=1e-3)


@given(**SIZES)
def test_an_interval_among_others_is_never_narrower_than_by_itself(
    seed: int, blocks: int, cells: int
) -> None:
    among = of(alike(seed, blocks, cells))
    assert (among.together >= among.alone).all()
    assert (1 - OWN) * LEVEL / cells * 0.99 <= among.level <= LEVEL
    student = stats.t.isf(among.level / 2, among.freedom) * among.sd / math.sqrt(blocks)
    assert among.together == pytest.approx(student, rel=1e-3)


def test_a_quiet_cell_among_loud_cells_shows_that_it_is_quiet() -> None:
    loud = alike(5, 8, 6)
    quiet = loud * np.array([0.01, 1, 1, 1, 1, 1])
    own = stats.t.isf(OWN * LEVEL / 6 / 2, 7) * quiet[:, 0].std(ddof=1) / math.sqrt(8)
    assert of(quiet).together[0] <= own * (1 + 1e-9)
    assert of(quiet).together[0] < 0.1 * of(loud).together[0]
