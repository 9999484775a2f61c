"""Claims about ladders of threads: the peak by the law of scalability, and ladders without a peak.

To add one: a function that counts, a line in `CLAIMS`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np
from validation.claims.claim import Claim, Seen, share_of
from validation.noise import RESTART_SD, Numbers

from dbdyno.judge.beside import scalability
from dbdyno.judge.interval import FIXED, interval
from dbdyno.stats import usl

LADDER: Final = (1, 2, 4, 8, 16, 32, 64, 128)
SIGMA, KAPPA = 0.03, 0.0004
CELL_SD: Final = 0.012
"""Cells of one start scatter by 1.2 %."""


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
            f"a 95 % interval contains the true number of threads at the peak: {blocks} blocks",
            *(0.93, 0.97, 6000, partial(peak_covered, blocks)),
        )
        for blocks in (3, 5, 8)
    ),
    *(
        Claim(
            f"a peak is reported where throughput only flattens out: {blocks} blocks",
            *(None, 0.05, 1500, partial(peak_invented, blocks)),
        )
        for blocks in (3, 8)
    ),
)
