"""Claims about one comparison: intervals, words, and where a trial's measured part begins.

To add one: a function that counts, a line in `CLAIMS`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from validation.claims.claim import Claim, Seen, percent, share_of
from validation.noise import (
    HERE_SD,
    KINDS,
    RESTART_SD,
    Numbers,
    log_ratios,
)

from dbdyno.judge.interval import FIXED, interval
from dbdyno.judge.uses import power
from dbdyno.judge.verdict import Word, word_of

MARGIN: Final = 0.02
WINDOW_S: Final = 60
HERE: Final = HERE_SD / RESTART_SD
WORSE: Final = (Word.WORSE,)
EQUIVALENT: Final = (Word.EQUIVALENT,)


class Pair(NamedTuple):
    """Of each experiment, whether its interval holds the truth, and its width against another's."""

    holds: Numbers
    widths: Numbers


def words_of(differences: Numbers) -> list[Word]:
    """The word for each experiment: a row of its blocks' log ratios."""
    found = interval(differences, FIXED)
    ends = zip(np.exp(found.mean - found.half), np.exp(found.mean + found.half), strict=True)
    return [word_of(low, high, MARGIN)[0] for low, high in ends]


def covered(
    blocks: int, kind: str, experiments: int, correlation: float = 0.6, scale: float = 1.0
) -> Seen:
    """How often the interval holds the true ratio."""
    place = [1, blocks, KINDS.index(kind), round(correlation * 10), round(scale * 10)]
    differences, truth = log_ratios(
        np.random.default_rng(place),
        experiments,
        blocks,
        kind,
        correlation=correlation,
        scale=scale,
    )
    found = interval(differences, FIXED)
    return share_of(np.abs(found.mean - truth) <= found.half)


def said(words: tuple[Word, ...], blocks: int, change: float, experiments: int) -> Seen:
    """How often one of those words is said of a true change, on even starts."""
    random = np.random.default_rng([2, blocks, round(abs(change) * 1000)])
    differences, _ = log_ratios(random, experiments, blocks, "normal", math.log1p(change))
    return share_of([found in words for found in words_of(differences)])


def planned(blocks: int, noise: float, experiments: int) -> Seen:
    """How often a difference is seen of which the planner says: in four of five comparisons."""
    difference = power.difference_seen(blocks, noise, WINDOW_S, "blocks") or 0.0
    random = np.random.default_rng([17, blocks, round(noise * 1000)])
    scale = noise / RESTART_SD
    logs, _ = log_ratios(random, experiments, blocks, "normal", math.log1p(difference), scale=scale)
    found = interval(logs, FIXED)
    return share_of(found.mean > found.half)


def planned_tie(blocks: int, noise: float, margin: float, experiments: int) -> Seen:
    """How much more often ties are called equivalent than the planner says."""
    random = np.random.default_rng([18, blocks, round(noise * 1000)])
    logs, _ = log_ratios(random, experiments, blocks, "normal", scale=noise / RESTART_SD)
    found = interval(logs, FIXED)
    seen = share_of(np.abs(found.mean) + found.half < math.log1p(margin))
    said = power.tie_power(margin, blocks, noise, WINDOW_S)
    return Seen(seen.value - said, seen.error, seen.count)


CLAIMS: Final = (
    *(
        Claim(
            f"a 95 % interval contains the true difference: {blocks} blocks, starts {kind}",
            *(0.94, 0.97, 20_000, partial(covered, blocks, kind)),
        )
        for kind in KINDS
        for blocks in (3, 5, 8, 10)
    ),
    *(
        Claim(
            "a 95 % interval contains the true difference: "
            f"5 blocks, seconds correlated by {correlation:g}",
            *(0.94, 0.97, 20_000, partial(covered, 5, "normal", correlation=correlation)),
        )
        for correlation in (0.0, 0.3, 0.9)
    ),
    *(
        Claim(
            f"a 95 % interval contains the true difference: {blocks} blocks, starts {kind}, of 4 %",
            *(0.94, 0.97, 20_000, partial(covered, blocks, kind, scale=HERE)),
        )
        for kind, blocks in (*(("normal", n) for n in (3, 5, 8, 10)), *((k, 5) for k in KINDS[1:]))
    ),
    *(
        Claim(
            f"a difference forecast to be detected in 80 % of runs is detected: {blocks} blocks, "
            f"starts of {noise * 100:g} %",
            *(0.78, 0.82, 20_000, partial(planned, blocks, noise)),
        )
        for blocks in (5, 12)
        for noise in (RESTART_SD, HERE_SD)
    ),
    *(
        Claim(
            f"share of equal systems called *same*, minus the forecast: {blocks} blocks, starts of "
            f"{noise * 100:g} %, margin {percent(margin)}",
            *(-0.02, 0.02, 20_000, partial(planned_tie, blocks, noise, margin)),
        )
        for blocks, noise, margin in ((12, RESTART_SD, 0.02), (12, HERE_SD, 0.05))
    ),
    Claim(
        "a true difference of 2 % is detected: 12 blocks",
        *(0.70, None, 20_000, partial(said, WORSE, 12, -0.02)),
    ),
    Claim(
        "a true difference of 5 % is detected: 12 blocks",
        *(0.99, None, 20_000, partial(said, WORSE, 12, -0.05)),
    ),
    *(
        Claim(
            f"a true difference of 2 %, the margin, is called *same*: {blocks} blocks",
            *(None, 0.025, 40_000, partial(said, EQUIVALENT, blocks, 0.02)),
        )
        for blocks in (5, 12)
    ),
)
