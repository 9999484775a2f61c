"""Claims about many cells at once, and about ladders of threads.

To add one: a function that counts, a line in `CLAIMS`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np
from validation.claims.claim import Claim, Seen, share_of
from validation.claims.verdict import MARGIN
from validation.noise import CORRELATION, RESTART_SD, SECOND_SD, Numbers

from dbdyno.judge.beside import scalability
from dbdyno.judge.beside.grid import block_means
from dbdyno.judge.estimate import estimate_of
from dbdyno.judge.interval import FIXED, interval
from dbdyno.judge.verdict import Word, adjusted, word_of
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import PRIMARY
from dbdyno.stats import usl

GRID: Final = [Cell(workload=w, threads=n) for w in "abcd" for n in (1, 4, 16, 64, 256)]
"""Twenty cells: four workloads, five levels each."""
WINDOW_SD: Final = SECOND_SD * math.sqrt((1 + CORRELATION) / (1 - CORRELATION) / 60)
"""What a window of 60 s leaves of the noise of its seconds."""
LADDER: Final = (1, 2, 4, 8, 16, 32, 64, 128)
SIGMA, KAPPA = 0.03, 0.0004
CELL_SD: Final = 0.012
"""Cells of one start scatter by 1.2 %."""


def grids_of_ties(random: np.random.Generator, count: int, blocks: int) -> Numbers:
    """Log ratios of (grid, block, cell); a workload's cells share their restarts."""
    shape = (count, blocks, 4, 5, 2)
    starts = random.normal(0, RESTART_SD, (*shape[:3], 1, 2))
    both = starts + random.normal(0, WINDOW_SD, shape)
    ratios: Numbers = (both[..., 1] - both[..., 0]).reshape(count, blocks, len(GRID))
    return ratios


def whole_covered(blocks: int, experiments: int) -> Seen:
    """How often the interval of the geometric mean over all cells holds the truth."""
    random = np.random.default_rng([8, blocks])
    held = []
    for grid in grids_of_ties(random, experiments, blocks):
        logs = {cell: dict(enumerate(grid[:, place])) for place, cell in enumerate(GRID)}
        found = interval(list(block_means(logs).values()), FIXED)
        held.append(bool(abs(found.mean) <= found.half))
    return share_of(held)


def some_winner(blocks: int, experiments: int) -> Seen:
    """How often any of twenty ties gets a winner."""
    random = np.random.default_rng([9, blocks])
    return share_of([_has_winner(grid) for grid in grids_of_ties(random, experiments, blocks)])


def _has_winner(grid: Numbers) -> bool:
    found = [
        estimate_of(list(grid[:, place]), cell, PRIMARY, "A", "B")
        for place, cell in enumerate(GRID)
    ]
    held = [one for one in adjusted(found, FIXED) if one is not None]
    words = [word_of(one.low, one.high, MARGIN)[0] for one in held]
    return Word.BETTER in words or Word.WORSE in words


def ladders(random: np.random.Generator, count: int, blocks: int, kappa: float) -> Numbers:
    """Rates of (experiment, block, level) around a law with that coherency."""
    n = np.array(LADDER, dtype=float)
    law = 1000 * n / (1 + SIGMA * (n - 1) + kappa * n * (n - 1))
    starts = random.normal(0, RESTART_SD, (count, blocks, 1))
    made: Numbers = law * np.exp(starts + random.normal(0, CELL_SD, (count, blocks, len(n))))
    return made


def peak_covered(blocks: int, experiments: int) -> Seen:
    """How often the interval of the peak's threads holds the true number."""
    rates = ladders(np.random.default_rng([10, blocks]), experiments, blocks, KAPPA)
    found = interval(np.log(usl.peaks(usl.fit(LADDER, rates))), FIXED)
    truth = 0.5 * math.log((1 - SIGMA) / KAPPA)
    return share_of(np.abs(found.mean - truth) <= found.half)


def peak_invented(blocks: int, experiments: int) -> Seen:
    """How often a ladder that only rises gets a peak."""
    rates = ladders(np.random.default_rng([11, blocks]), experiments, blocks, 0.0)
    return share_of([_has_peak(one) for one in rates])


def _has_peak(rates: Numbers) -> bool:
    laws = usl.fit(LADDER, rates)
    return not (
        scalability.of_law(LADDER, rates, laws, FIXED) or scalability.of_peak(LADDER, laws, FIXED)
    )


CLAIMS: Final = (
    *(
        Claim(
            f"95 % interval over 20 cells that share restarts holds the truth, {blocks} blocks",
            *(0.94, 0.96, 4000, partial(whole_covered, blocks)),
        )
        for blocks in (5, 8)
    ),
    *(
        Claim(
            f"any of 20 ties gets a winner, {blocks} blocks",
            *(None, 0.055, 3000, partial(some_winner, blocks)),
        )
        for blocks in (5, 8)
    ),
    *(
        Claim(
            f"95 % interval of the peak's threads holds the truth, {blocks} blocks",
            *(0.93, 0.97, 6000, partial(peak_covered, blocks)),
        )
        for blocks in (3, 5, 8)
    ),
    *(
        Claim(
            f"a ladder without a peak gets one, {blocks} blocks",
            *(None, 0.05, 1500, partial(peak_invented, blocks)),
        )
        for blocks in (3, 8)
    ),
)
