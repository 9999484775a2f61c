"""Claims about runs that stop when they are decided: looked at after every block from the third.

To add one: a function that counts, a line in `CLAIMS`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np
from validation.claims.claim import Claim, Seen, share_of
from validation.claims.verdict import MARGIN
from validation.noise import KINDS, Numbers, log_ratios

from dbdyno.judge.interval import interval
from dbdyno.judge.verdict import Word, word_of
from dbdyno.plan.plan import BLOCKS_MIN, DesignPlan

OTHER: Final = (Word.BETTER, Word.WORSE)


def all_looks_cover(horizon: int, experiments: int) -> Seen:
    """How often the intervals of all looks hold the truth at once."""
    samples = np.random.default_rng([6, horizon]).standard_normal((experiments, horizon))
    held = np.ones(experiments, dtype=bool)
    for blocks in range(BLOCKS_MIN, horizon + 1):
        found = interval(samples[:, :blocks], _design(horizon))
        held &= np.abs(found.mean) <= found.half
    return share_of(held)


def ends_as(
    words: tuple[Word, ...], horizon: int, kind: str, change: float, experiments: int
) -> Seen:
    """How often a run of at most `horizon` blocks ends with one of those words."""
    random = np.random.default_rng([7, horizon, KINDS.index(kind), round(abs(change) * 1000)])
    logs, _ = log_ratios(random, experiments, horizon, kind, math.log1p(change))
    return share_of([last_word(one, _design(horizon)) in words for one in logs])


def last_word(logs: Numbers, design: DesignPlan) -> Word:
    """What a run says at its end, these being its blocks' log ratios."""
    word = Word.UNDECIDED
    for blocks in range(BLOCKS_MIN, len(logs) + 1):
        found = interval(logs[:blocks], design)
        low, high = found.mean - found.half, found.mean + found.half
        word, _ = word_of(math.exp(low), math.exp(high), MARGIN)
        if word is not Word.UNDECIDED:
            break
    return word


def _design(horizon: int) -> DesignPlan:
    return DesignPlan(stop="decided", blocks=horizon, margin=MARGIN)


CLAIMS: Final = (
    *(
        Claim(
            "run until decided, the intervals of all looks contain the truth: "
            f"{horizon} blocks at most",
            *(0.945, 0.955, 200_000, partial(all_looks_cover, horizon)),
        )
        for horizon in (12, 20, 30)
    ),
    *(
        Claim(
            "run until decided, equal systems are called different: "
            f"20 blocks at most, starts {kind}",
            *(None, 0.055, 4000, partial(ends_as, OTHER, 20, kind, 0.0)),
        )
        for kind in ("normal", "slow10", "t3")
    ),
    Claim(
        "run until decided, a difference of the margin is called *same*: 20 blocks at most",
        *(None, 0.025, 4000, partial(ends_as, (Word.EQUIVALENT,), 20, "normal", -MARGIN)),
    ),
    Claim(
        "run until decided, a true difference of 5 % is detected: 20 blocks at most",
        *(0.99, None, 4000, partial(ends_as, (Word.WORSE,), 20, "normal", -0.05)),
    ),
)
