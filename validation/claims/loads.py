"""Claims about loads of the data: what becomes of a tie when one load changes what is measured.

A block's log ratio has the effect of its load of each system, besides that of its starts. `SHARED`
is what blocks that share loads pay for it, shown in docs/how-it-works/procedure.md.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
from validation.claims.claim import Claim, Seen, share_of
from validation.claims.stopping import OTHER, last_word
from validation.noise import Numbers, log_ratios

from dbdyno.judge.interval import FIXED, interval
from dbdyno.plan.plan import DesignPlan

LOAD_SD: Final = 0.01
UNTIL_DECIDED: Final = DesignPlan(stop="decided", blocks=12)
SHARED: Final = {
    (6, 1): 0.21,
    (6, 2): 0.11,
    (6, 3): 0.08,
    (12, 1): 0.36,
    (12, 2): 0.20,
    (12, 3): 0.14,
    (12, 6): 0.08,
}
"""By blocks and loads that they rest on in turn: how often a tie gets a winner, about."""


def ties(blocks: int, loads: int, experiments: int) -> Numbers:
    """Log ratios of two equal systems, (experiment, block), that rest on so many loads in turn."""
    random = np.random.default_rng([10, blocks, loads])
    logs, _ = log_ratios(random, experiments, blocks, "normal")
    effects = random.normal(0, LOAD_SD, (2, experiments, loads))
    each = (effects[1] - effects[0])[:, np.arange(blocks) % loads]
    return np.asarray(logs + each)


def winner(blocks: int, loads: int, experiments: int) -> Seen:
    """How often all blocks of a tie together name a winner."""
    found = interval(ties(blocks, loads, experiments), FIXED)
    return share_of(np.abs(found.mean) > found.half)


def winner_when_decided(experiments: int) -> Seen:
    """The same of runs that stop when decided, each block on a load of its own."""
    blocks = UNTIL_DECIDED.blocks
    logs = ties(blocks, blocks, experiments)
    return share_of([last_word(one, UNTIL_DECIDED) in OTHER for one in logs])


CLAIMS: Final = (
    *(
        Claim(
            f"{blocks} blocks, each on loads of its own that change 1 %: a tie gets a winner",
            *(None, 0.06, 20_000, partial(winner, blocks, blocks)),
        )
        for blocks in (6, 12)
    ),
    Claim(
        "until decided, 12 blocks at most, each on loads of its own: a tie gets a winner",
        *(None, 0.055, 4000, winner_when_decided),
    ),
)
