"""Claims about what is made of verdicts: two runs compared, and the gate.

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

from dbdyno.judge.estimate import Sample, estimated
from dbdyno.judge.uses.agreement import Agreeing, agreements
from dbdyno.judge.uses.gate import GateOutcome, gate
from dbdyno.judge.verdict import Verdict, Word, verdict_of
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import PRIMARY
from dbdyno.plan.plan import BLOCKS_MIN, DesignPlan

GRID: Final = tuple(Cell(workload="w", threads=2**level) for level in range(8))
"""Eight cells of one start."""
WINDOW_SD: Final = SECOND_SD * math.sqrt((1 + CORRELATION) / (1 - CORRELATION) / 60)
"""What a window of 60 s leaves of the noise of its seconds."""
UNTIL_DECIDED: Final = DesignPlan(stop="decided", blocks=12, margin=MARGIN)
FIXED_BLOCKS: Final = DesignPlan(blocks=5, margin=MARGIN)
LONG: Final = DesignPlan(stop="decided", blocks=20, margin=MARGIN)
Designs = tuple[DesignPlan, DesignPlan]
Truths = Sequence[float]
LIMIT: Final = 0.03
AT_LIMIT: Final = math.log(1 - LIMIT)
"""What lies there is neither slower than the limit nor, by a hair, held."""


def grids(
    random: np.random.Generator, count: int, blocks: int, truths: Truths, start_sd: float
) -> Numbers:
    """Log ratios of (grid, block, cell); the cells of a block share its restarts."""
    shared = random.normal(0, start_sd, (count, blocks, 1, 2))
    both = shared + random.normal(0, WINDOW_SD, (count, blocks, len(truths), 2))
    return np.asarray(both[..., 1] - both[..., 0] + np.array(truths))


def run_of(logs: Numbers, design: DesignPlan) -> tuple[Verdict, ...]:
    """The verdicts on the cells of (block, cell) as such a run ends: in time, or when decided."""
    first = BLOCKS_MIN if design.stop == "decided" else len(logs)
    verdicts: tuple[Verdict, ...] = ()
    for blocks in range(first, len(logs) + 1):
        samples = [
            Sample(cell, PRIMARY.name, "A", "B", dict(enumerate(of_cell.tolist())))
            for cell, of_cell in zip(GRID, logs[:blocks].T, strict=False)
        ]
        verdicts = tuple(
            verdict_of(estimate, design.margin, held=held, design=design)
            for estimate, held in estimated(samples, design)
        )
        if Word.UNDECIDED not in {verdict.word for verdict in verdicts}:
            break
    return verdicts


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
    ("some of 2 cells of a run until decided", (AT_LIMIT,) * 2, UNTIL_DECIDED),
)
CLAIMS: Final = (
    *(
        Claim(
            "two runs of the same systems are said to differ: "
            f"{words}, -3 %, starts {start_sd * 100:g} %",
            *(None, 0.05, 4000, partial(two_runs_differ, (-0.03,), designs, start_sd)),
        )
        for words, designs in TWO_RUNS
        for start_sd in (RESTART_SD, HERE_SD)
    ),
    Claim(
        "two runs of the same systems are said to differ: until decided, 20 blocks at most, a tie",
        *(None, 0.05, 4000, partial(two_runs_differ, (0.0,), (LONG, LONG), RESTART_SD)),
    ),
    Claim(
        "two runs of the same systems are said to differ: of 5 blocks, -3 %, in some of 8 cells",
        *(None, 0.05, 4000),
        partial(two_runs_differ, (-0.03,) * 8, (FIXED_BLOCKS, FIXED_BLOCKS), RESTART_SD),
    ),
    *(
        Claim(
            f"the gate calls a cell slower that is exactly at the limit: {words}",
            *(None, 0.025, 10_000),
            partial(gate_says, GateOutcome.SLOWER, truths, design, RESTART_SD),
        )
        for words, truths, design in GATES
    ),
    *(
        Claim(
            f"the gate calls a cell held that is just beyond the limit: {words}",
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
