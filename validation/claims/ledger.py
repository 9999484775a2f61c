"""Claims about the ledger of controls: is an instrument that errs more than it says found?

To add one: a function that counts, a line in `CLAIMS`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np
from validation.claims.claim import Claim, Seen, share_of
from validation.claims.grid import GRID, UNTIL_DECIDED
from validation.claims.verdict import MARGIN
from validation.noise import KINDS, Numbers, log_ratios

from dbdyno.judge.checks.instrument import ledger_of
from dbdyno.judge.estimate import estimate_of
from dbdyno.judge.interval import FIXED, interval
from dbdyno.judge.verdict import Word, verdict_of
from dbdyno.measurement.metric import PRIMARY
from dbdyno.measurement.outcome import ControlOutcome
from dbdyno.plan.plan import BLOCKS_MIN, DesignPlan

UNDERSTATED: Final = 1.5


def called(
    runs: int,
    kind: str,
    experiments: int,
    design: DesignPlan = FIXED,
    blocks: int = 5,
    understated: float = 1.0,
) -> Seen:
    """How often a ledger of so many runs is called out of calibration.

    Args:
        understated: how much larger the error of a run's mean is than its blocks show, as that of a
            load is, which all blocks of a run share.
    """
    random = np.random.default_rng([16, runs, blocks, KINDS.index(kind)])
    found = []
    for _ in range(experiments):
        logs, _ = log_ratios(random, runs, blocks, kind)
        error = logs.std() / math.sqrt(blocks)
        shared = random.normal(0, error * math.sqrt(understated**2 - 1), (runs, 1))
        ledger = ledger_of([_outcome(one, design) for one in logs + shared])
        found.append(ledger.is_out_of_calibration)
    return share_of(found)


def mixed_control(blocks: int, experiments: int) -> Seen:
    """How often a control's interval holds the truth if its cell, and so its noise, changes."""
    random = np.random.default_rng([19, blocks])
    logs, truth = log_ratios(random, experiments, blocks, "normal")
    uneven = logs * random.choice((1.0, 2.0, 4.0), (experiments, blocks))
    found = interval(uneven, FIXED)
    return share_of(np.abs(found.mean - truth) <= found.half)


def _outcome(logs: Numbers, design: DesignPlan) -> ControlOutcome:
    """What the baseline against itself came to, at the end of the run."""
    first = BLOCKS_MIN if design.stop == "decided" else len(logs)
    for blocks in range(first, len(logs) + 1):
        made = estimate_of(list(logs[:blocks]), GRID[0], PRIMARY, "A", "B", design)
        word = verdict_of(made, MARGIN, design=design).word
        if word is not Word.UNDECIDED:
            break
    return ControlOutcome(
        kind="same",
        cell=made.cell,
        system=made.baseline,
        ratio=made.ratio,
        low=made.low,
        high=made.high,
        blocks=made.blocks,
        word=word.value,
        truth=1.0,
        held=None,
    )


CLAIMS: Final = (
    *(
        Claim(
            f"95 % interval of a control whose cells scatter by 1.5, 3 and 6 %, {blocks} blocks",
            *(0.94, None, 20_000, partial(mixed_control, blocks)),
        )
        for blocks in (5, 12)
    ),
    *(
        Claim(
            f"a ledger of {runs} runs without fault is out of calibration, starts {kind}",
            *(None, 0.01, 1000, partial(called, runs, kind)),
        )
        for runs, kind in ((20, "normal"), (100, "normal"), (100, "t3"), (100, "bimodal"))
    ),
    Claim(
        "a ledger of 100 runs until decided without fault is out of calibration",
        *(None, 0.01, 300),
        partial(called, 100, "normal", design=UNTIL_DECIDED, blocks=12),
    ),
    *(
        Claim(
            f"a ledger of {runs} runs of {blocks} blocks with errors 1.5 times as promised is",
            *(least, None, 500),
            partial(called, runs, "normal", blocks=blocks, understated=UNDERSTATED),
        )
        for runs, blocks, least in ((50, 5, 0.5), (100, 5, 0.9), (100, 12, 0.9))
    ),
)
