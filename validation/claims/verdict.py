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
    SECOND_SD,
    Numbers,
    levels,
    log_ratios,
    seconds,
)

from dbdyno.judge.interval import FIXED, interval
from dbdyno.judge.uses import power
from dbdyno.judge.uses.power import Stop
from dbdyno.judge.verdict import Word, word_of
from dbdyno.plan.plan import DesignPlan
from dbdyno.stats.steady import steady

MARGIN: Final = 0.02
WINDOW_S: Final = 60
HERE: Final = HERE_SD / RESTART_SD
CAP_S: Final = 300
"""The longest that a trial's load runs to become steady."""
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


def planned(blocks: int, noise: float, stop: Stop, experiments: int) -> Seen:
    """How often a difference is seen of which the planner says: in four of five comparisons."""
    design = DesignPlan(blocks=blocks, stop=stop, margin=MARGIN)
    difference = power.difference_seen(blocks, noise, WINDOW_S, stop) or 0.0
    random = np.random.default_rng([17, blocks, round(noise * 1000)])
    scale = noise / RESTART_SD
    logs, _ = log_ratios(random, experiments, blocks, "normal", math.log1p(difference), scale=scale)
    found = interval(logs, design)
    return share_of(found.mean > found.half)


def planned_tie(blocks: int, noise: float, margin: float, experiments: int) -> Seen:
    """How much more often ties are called equivalent than the planner says."""
    random = np.random.default_rng([18, blocks, round(noise * 1000)])
    logs, _ = log_ratios(random, experiments, blocks, "normal", scale=noise / RESTART_SD)
    found = interval(logs, FIXED)
    seen = share_of(np.abs(found.mean) + found.half < math.log1p(margin))
    said = power.tie_power(margin, blocks, noise, WINDOW_S)
    return Seen(seen.value - said, seen.error, seen.count)


def winner_of_a_tie(kind: str, experiments: int) -> Seen:
    """How often the whole way from warm-up to word names a winner where nothing differs.

    Five blocks; each trial warms up for 5 to 25 s to its rate, is looked at after 120 s and then
    each minute up to 300 s, and counts from where `steady` cuts it, as
    docs/how-it-works/procedure.md has it."""
    random = np.random.default_rng([3, KINDS.index(kind)])
    level, truth = levels(random, experiments, 5, kind, 0.0)
    differences = np.array([_warmed(random, one) for one in level])
    found = interval(differences[..., 1] - differences[..., 0] - truth, FIXED)
    return share_of(np.abs(found.mean) > found.half)


def _warmed(random: np.random.Generator, level: Numbers) -> Numbers:
    """Log rates of one experiment's trials, (block, system), after their warm-up is cut off."""
    second = np.arange(CAP_S)
    made = np.empty(level.shape)
    for place, log_rate in np.ndenumerate(level):
        slow = 1 - 0.4 * np.exp(-second / random.uniform(5, 25))
        rates = 1000 * np.exp(log_rate + seconds(random, (CAP_S,))) * slow
        made[place] = math.log(_kept(rates).mean())
    return made


def _kept(rates: Numbers) -> Numbers:
    """The rates after the first cut that is found; the last half where none is by the cap."""
    for length in range(120, CAP_S + 1, 60):
        cut_s = steady(rates[:length]).cut_s
        if cut_s is not None:
            return rates[cut_s:length]
    return rates[CAP_S // 2 :]


SERIES_S: Final = 180
AT: Final = np.arange(SERIES_S)
FLAT: Final = np.ones(SERIES_S)
DRIFT: Final = 1 - 0.10 * AT / SERIES_S
LATE_DROP: Final = np.where(AT < 130, 1.0, 0.85)
CHECKPOINTS: Final = np.where(AT % 30 < 3, 0.6, 1.0)


def not_steady(shape: Numbers, experiments: int) -> Seen:
    """How often a series of that shape is not taken for steady."""
    random = np.random.default_rng([4, round(float(shape.sum()) * 10)])
    series = 1000 * shape * np.exp(seconds(random, (experiments, SERIES_S)))
    return share_of([steady(rates).cut_s is None for rates in series])


SECONDS: Final = np.arange(CAP_S)
TUNED: Final = {
    f"of 40 % with a time constant of {tau} s": 1 - 0.4 * np.exp(-SECONDS / tau) for tau in (15, 25)
}
"""Warm-ups on which `steady` was made."""
UNSEEN: Final = {
    "of 60 % with a time constant of 10 s": 1 - 0.6 * np.exp(-SECONDS / 10),
    "of 15 % with a time constant of 35 s": 1 - 0.15 * np.exp(-SECONDS / 35),
    "of 30 % in a straight line of 50 s": 1 - 0.3 * np.clip(1 - SECONDS / 50, 0, 1),
    "of 30 % within 5 s and 10 % within 40 s": 1
    - 0.3 * np.exp(-SECONDS / 5)
    - 0.1 * np.exp(-SECONDS / 40),
}
"""Warm-ups on which nothing was tuned."""
BIAS_MAX: Final = MARGIN / 2
"""Half the margin: two systems of which one warms up would still not be told apart by it alone."""


def bias_after(shape: Numbers, experiments: int) -> Seen:
    """How far the mean after the cut lies from the rate that a warm-up leads to."""
    random = np.random.default_rng([5, round(float(shape.sum()) * 10)])
    noises = np.exp(seconds(random, (experiments, CAP_S)) - SECOND_SD**2 / 2)
    biases = [float(_kept(shape * noise).mean()) - 1 for noise in noises]
    return Seen(
        abs(float(np.mean(biases))), float(np.std(biases)) / math.sqrt(len(biases)), experiments
    )


CLAIMS: Final = (
    *(
        Claim(
            f"95 % interval of {blocks} blocks holds the truth, starts {kind}",
            *(0.94, 0.97, 20_000, partial(covered, blocks, kind)),
        )
        for kind in KINDS
        for blocks in (3, 5, 8, 10)
    ),
    *(
        Claim(
            f"the same for 5 blocks, seconds correlated by {correlation:g}",
            *(0.94, 0.97, 20_000, partial(covered, 5, "normal", correlation=correlation)),
        )
        for correlation in (0.0, 0.3, 0.9)
    ),
    *(
        Claim(
            f"95 % interval of {blocks} blocks holds the truth, starts {kind}, of 4 %",
            *(0.94, 0.97, 20_000, partial(covered, blocks, kind, scale=HERE)),
        )
        for kind, blocks in (*(("normal", n) for n in (3, 5, 8, 10)), *((k, 5) for k in KINDS[1:]))
    ),
    *(
        Claim(
            f"what the planner says {words} see four times in five, starts of {noise * 100:g} %",
            *(0.78, 0.82, 20_000, partial(planned, blocks, noise, stop)),
        )
        for words, blocks, stop in (("5 blocks", 5, "blocks"), ("12 blocks", 12, "blocks"))
        for noise in (RESTART_SD, HERE_SD)
    ),
    *(
        Claim(
            f"ties told more often than the planner says, {blocks} blocks, starts of "
            f"{noise * 100:g} %, margin {percent(margin)}",
            *(-0.02, 0.02, 20_000, partial(planned_tie, blocks, noise, margin)),
        )
        for blocks, noise, margin in ((12, RESTART_SD, 0.02), (12, HERE_SD, 0.05))
    ),
    Claim(
        "a true 2 % is found with 12 blocks", 0.70, None, 20_000, partial(said, WORSE, 12, -0.02)
    ),
    Claim(
        "a true 5 % is found with 12 blocks", 0.99, None, 20_000, partial(said, WORSE, 12, -0.05)
    ),
    *(
        Claim(
            f"a true 2 %, the margin, is called equivalent with {blocks} blocks",
            *(None, 0.025, 40_000, partial(said, EQUIVALENT, blocks, 0.02)),
        )
        for blocks in (5, 12)
    ),
    Claim(
        "a tie gets a winner, warm-up and all (warmup: auto), starts normal",
        *(0.035, 0.065, 2000, partial(winner_of_a_tie, "normal")),
    ),
    *(
        Claim(
            f"a tie gets a winner, warm-up and all (warmup: auto), starts {kind}",
            *(None, 0.065, 2000, partial(winner_of_a_tie, kind)),
        )
        for kind in ("slow10", "bimodal", "t3")
    ),
    Claim("a drift of 10 % over 180 s is caught", 0.99, None, 400, partial(not_steady, DRIFT)),
    Claim("a drop by 15 % after 130 s is caught", 0.99, None, 400, partial(not_steady, LATE_DROP)),
    Claim("180 flat seconds are not taken for steady", None, 0.20, 400, partial(not_steady, FLAT)),
    Claim("checkpoints each 30 s are", None, 0.20, 400, partial(not_steady, CHECKPOINTS)),
    *(
        Claim(
            f"bias left by a warm-up {words}",
            *(None, BIAS_MAX, 400, partial(bias_after, shape)),
        )
        for words, shape in (TUNED | UNSEEN).items()
    ),
)
