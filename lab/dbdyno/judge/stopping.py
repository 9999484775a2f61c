"""When a run until decided may end: no cell is left whose word more blocks could still change.

Any reason to stop would do, since repeated intervals hold at every look (`sequential`); this one
stops where the user's question is answered. A cell that never had a sound pair in three blocks does
not hold the others up: what is void three times over is void for a cause, and the report names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dbdyno.judge.checks.design import BLOCKS_MIN
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan

VerdictsOf = Callable[[Sequence[Measurement], Plan], Sequence[Verdict]]


def decided(measurements: Sequence[Measurement], plan: Plan, verdicts_of: VerdictsOf) -> bool:
    """Whether a run that stops when decided has no cell left to decide.

    Args:
        verdicts_of: gives the verdicts on those measurements.
    """
    if plan.design.stop != "decided" or not measurements:
        return False
    blocks = max(measurement.trial.block for measurement in measurements) + 1
    if blocks < BLOCKS_MIN:
        return False
    return not any(_is_open(verdict) for verdict in verdicts_of(measurements, plan))


def _is_open(verdict: Verdict) -> bool:
    if verdict.word is Word.UNDECIDED:
        return True
    return verdict.word in (Word.VOID, Word.NO_VERDICT) and verdict.estimate.blocks > 0
