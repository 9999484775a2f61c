"""Claims about what is made of verdicts: two runs compared, and the gate.

To add one: a function that counts, a line in `CLAIMS`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np
from validation.claims.claim import Claim, Seen, share_of
from validation.claims.grid import FAR, UNTIL_DECIDED, Truths, estimates_of, grids
from validation.claims.verdict import MARGIN
from validation.noise import HERE_SD, RESTART_SD, Numbers

from dbdyno.judge.uses.agreement import Agreeing, agreements
from dbdyno.judge.uses.gate import GateOutcome, gate
from dbdyno.judge.verdict import Verdict, Word, adjusted, verdict_of
from dbdyno.plan.plan import BLOCKS_MIN, DesignPlan

FIXED_BLOCKS: Final = DesignPlan(blocks=5, margin=MARGIN)
LONG: Final = DesignPlan(stop="decided", blocks=20, margin=MARGIN)
Designs = tuple[DesignPlan, DesignPlan]
LIMIT: Final = 0.03
AT_LIMIT: Final = math.log(1 - LIMIT)
"""What lies there is neither slower than the limit nor, by a hair, held."""


def run_of(logs: Numbers, design: DesignPlan) -> tuple[Verdict, ...]:
    """The verdicts on the cells of (block, cell) as such a run ends: in time, or when decided."""
    first = BLOCKS_MIN if design.stop == "decided" else len(logs)
    found: tuple[Verdict, ...] = ()
    for blocks in range(first, len(logs) + 1):
        made = estimates_of(logs[:blocks], design)
        found = tuple(
            verdict_of(one, design.margin, adjusted=held, design=design)
            for one, held in zip(made, adjusted(made, design), strict=True)
        )
        if Word.UNDECIDED not in {verdict.word for verdict in found}:
            break
    return found


def two_runs_differ(truths: Truths, designs: Designs, start_sd: float, experiments: int) -> Seen:
    """How often two runs of one truth are said to differ in some cell."""
    random = np.random.default_rng([14, len(truths), round(start_sd * 1000)])
    first, second = (grids(random, experiments, d.blocks, truths, start_sd) for d in designs)
    pairs = (
        (run_of(one, designs[0]), run_of(other, designs[1]))
        for one, other in zip(first, second, strict=True)
    )
    return share_of([_any_differs(pair, designs) for pair in pairs])


def _any_differs(pair: tuple[tuple[Verdict, ...], tuple[Verdict, ...]], designs: Designs) -> bool:
    return Agreeing.DIFFER in {one.word for one in agreements(*pair, designs)}


def gate_says(
    outcome: GateOutcome, truths: Truths, design: DesignPlan, start_sd: float, experiments: int
) -> Seen:
    """How often a gate at 3 % says so of some cell that is slower by just that."""
    random = np.random.default_rng([15, len(truths), round(start_sd * 1000)])
    wrong = []
    for logs in grids(random, experiments, design.blocks, truths, start_sd):
        passages = gate(run_of(logs, design), LIMIT).passages
        said = {p.outcome for p, truth in zip(passages, truths, strict=True) if truth == AT_LIMIT}
        wrong.append(outcome in said)
    return share_of(wrong)


TWO_RUNS: Final = (
    ("of 5 blocks", (FIXED_BLOCKS, FIXED_BLOCKS)),
    ("until decided, 20 blocks at most", (LONG, LONG)),
    ("one of 5 blocks and one until decided", (FIXED_BLOCKS, LONG)),
)
GATES: Final = (
    ("a cell", (AT_LIMIT,), FIXED_BLOCKS),
    ("some of 8 cells", (AT_LIMIT,) * 8, FIXED_BLOCKS),
    ("a cell beside 7 at -30 %", (*(FAR,) * 7, AT_LIMIT), FIXED_BLOCKS),
    ("some of 2 cells of a run until decided", (AT_LIMIT,) * 2, UNTIL_DECIDED),
)
CLAIMS: Final = (
    *(
        Claim(
            f"two runs {words} of one truth, -3 %, are said to differ, starts {start_sd * 100:g} %",
            *(None, 0.05, 4000, partial(two_runs_differ, (-0.03,), designs, start_sd)),
        )
        for words, designs in TWO_RUNS
        for start_sd in (RESTART_SD, HERE_SD)
    ),
    Claim(
        "two runs until decided, 20 blocks at most, of one truth, a tie, are said to differ",
        *(None, 0.05, 4000, partial(two_runs_differ, (0.0,), (LONG, LONG), RESTART_SD)),
    ),
    Claim(
        "two runs of 5 blocks of one truth are said to differ in some of 8 cells",
        *(None, 0.05, 4000),
        partial(two_runs_differ, (-0.03,) * 8, (FIXED_BLOCKS, FIXED_BLOCKS), RESTART_SD),
    ),
    *(
        Claim(
            f"the gate calls {words} slower that is just at its limit",
            *(None, 0.025, 10_000),
            partial(gate_says, GateOutcome.SLOWER, truths, design, RESTART_SD),
        )
        for words, truths, design in GATES
    ),
    *(
        Claim(
            f"the gate says held of {words} just beyond its limit",
            *(
                None,
                0.025,
                10_000,
                partial(gate_says, GateOutcome.HELD, truths, design, RESTART_SD),
            ),
        )
        for words, truths, design in GATES
    ),
)
