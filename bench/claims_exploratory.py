"""Claims about the list of cells that are worth measuring again (`judge.exploratory`).

It promises less than verdicts do, so what it promises is measured, and so is what it does not: how
often a list has any tie in it, and how many ties are among its entries that have no verdict.

To add one: a function that counts, a line in `CLAIMS`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np
from bench.claims import Claim, Seen, share_of
from bench.claims_grid import GRID, grids_of_ties
from bench.noise import Numbers

from dbdyno.judge.exploratory import stepped_up
from dbdyno.judge.sequential import FIRST_LOOK, FIXED, level_left
from dbdyno.plan import DesignPlan

APART: Final = np.array([0.04] * 5 + [0.0] * 3 + [-0.04] * 2 + [0.0] * 10)
"""Log ratios of twenty cells of which seven differ (method.md E9)."""
UNTIL_DECIDED: Final = DesignPlan(stop="decided", blocks=20)


def lists(grids: Numbers, design: DesignPlan) -> Numbers:
    """Which cells of each grid are listed, of log ratios by (grid, block, cell)."""
    blocks = grids.shape[1]
    errors = grids.std(axis=1, ddof=1) / math.sqrt(blocks)
    levels = level_left(grids.mean(axis=1) / errors, blocks, design)
    return np.array([stepped_up(list(of_grid)) for of_grid in levels])


def some_tie_listed(truths: Numbers, blocks: int, experiments: int) -> Seen:
    """How often a list has a cell in it that is a tie."""
    random = np.random.default_rng([13, blocks])
    listed = lists(grids_of_ties(random, experiments, blocks) + truths, FIXED)
    return share_of((listed & (truths == 0)).any(axis=1))


def ties_of_a_list(blocks: int, experiments: int) -> Seen:
    """The share of ties in a list, which is none in an empty one."""
    random = np.random.default_rng([14, blocks])
    listed = lists(grids_of_ties(random, experiments, blocks) + APART, FIXED)
    ties = (listed & (APART == 0)).sum(axis=1) / np.maximum(listed.sum(axis=1), 1)
    return Seen(float(ties.mean()), float(ties.std()) / math.sqrt(experiments), experiments)


def some_tie_listed_at_any_look(experiments: int) -> Seen:
    """How often twenty ties have a list at any look of a run that may end at each."""
    random = np.random.default_rng(15)
    grids = grids_of_ties(random, experiments, UNTIL_DECIDED.blocks)
    looks = range(FIRST_LOOK, UNTIL_DECIDED.blocks + 1)
    seen = [lists(grids[:, :blocks], UNTIL_DECIDED).any(axis=1) for blocks in looks]
    return share_of(np.any(seen, axis=0))


CLAIMS: Final = (
    *(
        Claim(
            f"any of 20 ties is listed as worth measuring again, {blocks} blocks",
            *(None, 0.055, 20_000, partial(some_tie_listed, np.zeros(len(GRID)), blocks)),
        )
        for blocks in (5, 8)
    ),
    Claim(
        "until decided, 20 blocks at most: any of 20 ties is listed at any look",
        *(None, 0.055, 4000, some_tie_listed_at_any_look),
    ),
    *(
        Claim(
            f"ties in a list where 7 of 20 cells are 4 % apart, {blocks} blocks",
            *(None, 0.05, 20_000, partial(ties_of_a_list, blocks)),
        )
        for blocks in (5, 8, 12)
    ),
    *(
        Claim(
            f"any tie is in that list, {blocks} blocks",
            *(None, 0.16, 20_000, partial(some_tie_listed, APART, blocks)),
        )
        for blocks in (5, 8, 12)
    ),
)
