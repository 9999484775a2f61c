"""Claims about many cells at once, and about ladders of threads.

To add one: a function that counts, a line in `CLAIMS`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
from validation.claims.claim import Claim, Seen, share_of
from validation.claims.verdict import MARGIN
from validation.noise import CORRELATION, HERE_SD, RESTART_SD, SECOND_SD, Numbers

from dbdyno.judge.beside import scalability
from dbdyno.judge.beside.grid import block_means
from dbdyno.judge.estimate import Estimate, estimate_of
from dbdyno.judge.interval import FIXED, interval
from dbdyno.judge.verdict import Adjusted, Word, adjusted, widened, word_of
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import PRIMARY
from dbdyno.plan.plan import DesignPlan
from dbdyno.stats import usl

APART: Final = (Word.BETTER, Word.WORSE)
UNDECIDED: Final = (Word.UNDECIDED,)
GRID: Final = [Cell(workload=w, threads=n) for w in "abcd" for n in (1, 4, 16, 64, 256)]
"""Twenty cells: four workloads, five levels each."""
WINDOW_SD: Final = SECOND_SD * math.sqrt((1 + CORRELATION) / (1 - CORRELATION) / 60)
"""What a window of 60 s leaves of the noise of its seconds."""
UNTIL_DECIDED: Final = DesignPlan(stop="decided", blocks=12, margin=MARGIN)
LADDER: Final = (1, 2, 4, 8, 16, 32, 64, 128)
SIGMA, KAPPA = 0.03, 0.0004
CELL_SD: Final = 0.012
"""Cells of one start scatter by 1.2 %."""


Truths = Sequence[float]
TIES: Final = (0.0,) * 20
FAR: Final = math.log(0.7)
ONE_TIE: Final = (FAR,) * 19 + (0.0,)
STAGED: Final = tuple(math.log1p(-0.06 - 0.03 * place / 19) for place in range(20))
"""From -6 to -9 %: cells that are decided one after the other."""
SOME_FAR: Final = (FAR,) * 6 + (0.0, 0.03)


def grids(
    random: np.random.Generator,
    count: int,
    blocks: int,
    truths: Truths = TIES,
    start_sd: float = RESTART_SD,
) -> Numbers:
    """Log ratios of (grid, block, cell); five cells that follow each other share their restarts."""
    cells, starts = len(truths), -(-len(truths) // 5)
    shared = np.repeat(random.normal(0, start_sd, (count, blocks, starts, 2)), 5, axis=2)
    both = shared[:, :, :cells] + random.normal(0, WINDOW_SD, (count, blocks, cells, 2))
    ratios: Numbers = both[..., 1] - both[..., 0] + np.array(truths)
    return ratios


def whole_covered(blocks: int, experiments: int) -> Seen:
    """How often the interval of the geometric mean over all cells holds the truth."""
    random = np.random.default_rng([8, blocks])
    held = []
    for grid in grids(random, experiments, blocks):
        logs = {cell: dict(enumerate(grid[:, place])) for place, cell in enumerate(GRID)}
        found = interval(list(block_means(logs).values()), FIXED)
        held.append(bool(abs(found.mean) <= found.half))
    return share_of(held)


def some_winner(blocks: int, experiments: int) -> Seen:
    """How often any of twenty ties gets a winner."""
    random = np.random.default_rng([9, blocks])
    made = grids(random, experiments, blocks)
    return share_of([any(word_in(one, APART) for one in together(grid)) for grid in made])


def some_statement_wrong(cells: int, blocks: int, experiments: int) -> Seen:
    """How often ties get a winner in a cell or in the word about all cells together."""
    random = np.random.default_rng([20, cells, blocks])
    wrong = []
    for grid in grids(random, experiments, blocks, (0.0,) * cells):
        logs = {cell: dict(enumerate(of)) for cell, of in zip(GRID, grid.T, strict=False)}
        whole = interval(list(block_means(logs).values()), FIXED)
        low, high = math.exp(whole.mean - whole.half), math.exp(whole.mean + whole.half)
        of_cells = any(word_in(one, APART) for one in together(grid))
        wrong.append(of_cells or word_of(low, high, MARGIN)[0] in APART)
    return share_of(wrong)


def some_missed(
    truths: Truths, blocks: int, start_sd: float, experiments: int, design: DesignPlan = FIXED
) -> Seen:
    """How often any interval that is shown of a cell leaves the truth out."""
    random = np.random.default_rng([12, len(truths), blocks, round(start_sd * 1000)])
    made = grids(random, experiments, blocks, truths, start_sd)
    return share_of([misses(grid, truths, design) for grid in made])


def misses(grid: Numbers, truths: Truths, design: DesignPlan) -> bool:
    """Whether any cell's interval leaves the truth out: at the end, or at any look on the way."""
    looks = range(3 if design.stop == "decided" else len(grid), len(grid) + 1)
    return any(
        not one.low <= math.exp(truth) <= one.high
        for blocks in looks
        for one, truth in zip(together(grid[:blocks], design), truths, strict=True)
    )


def decided_besides(truths: Truths, blocks: int, start_sd: float, experiments: int) -> Seen:
    """How many more of the cells that are not far get a word than if each had an equal share."""
    random = np.random.default_rng([13, len(truths), blocks, round(start_sd * 1000)])
    near = [place for place, truth in enumerate(truths) if truth != FAR]
    more = []
    for grid in grids(random, experiments, blocks, truths, start_sd):
        held = together(grid)
        equal = [widened(one, FIXED, 0.05 / len(truths), len(truths)) for one in estimates_of(grid)]
        gained = [word_in(equal[p], UNDECIDED) - word_in(held[p], UNDECIDED) for p in near]
        more.append(np.mean(gained))
    return Seen(float(np.mean(more)), float(np.std(more)) / math.sqrt(experiments), experiments)


def together(grid: Numbers, design: DesignPlan = FIXED) -> list[Adjusted]:
    """The intervals that the judge shows of a grid's cells."""
    return [one for one in adjusted(estimates_of(grid, design), design) if one is not None]


def estimates_of(grid: Numbers, design: DesignPlan = FIXED) -> list[Estimate]:
    """Each cell by itself."""
    return [
        estimate_of(list(logs), cell, PRIMARY, "A", "B", design)
        for logs, cell in zip(grid.T, GRID, strict=False)
    ]


def word_in(one: Adjusted, words: tuple[Word, ...]) -> bool:
    """Whether the interval gives one of those words."""
    return word_of(one.low, one.high, MARGIN)[0] in words


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
            f"any of {cells} ties, or all cells together, gets a winner, 5 blocks",
            *(None, 0.1, 4000, partial(some_statement_wrong, cells, 5)),
        )
        for cells in (2, 8, 20)
    ),
    *(
        Claim(
            f"any shown interval misses: {words}, {blocks} blocks, starts {start_sd * 100:g} %",
            *(None, 0.055, 10_000, partial(some_missed, truths, blocks, start_sd)),
        )
        for words, truths, blocks in (
            ("20 ties", TIES, 8),
            ("19 cells at -30 % and a tie", ONE_TIE, 8),
            ("20 cells from -6 to -9 %", STAGED, 8),
            ("a cell at -30 % and a tie", (FAR, 0.0), 5),
        )
        for start_sd in (RESTART_SD, HERE_SD)
    ),
    Claim(
        "any shown interval misses at any look: a cell at -30 % and a tie, 12 blocks at most",
        *(None, 0.055, 4000),
        partial(some_missed, (FAR, 0.0), 12, RESTART_SD, design=UNTIL_DECIDED),
    ),
    *(
        Claim(
            "beside 6 cells at -30 %, of a tie and a true 3 % so many more are decided than with "
            f"equal shares, {blocks} blocks",
            *(0.0, None, 2000, partial(decided_besides, SOME_FAR, blocks, RESTART_SD)),
        )
        for blocks in (5, 12)
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
