"""When a scalability law is not fitted, or its peak not claimed: every reason as a word.

A least-squares fit gives three numbers to any ladder. Each of these reasons is a case in which
they would be wrong while looking right (method.md 1.d). The first four refuse the law itself; the
last three leave the law, which describes what was measured, and refuse the peak.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

from dbdyno.judge.checks.design import BLOCKS_MIN
from dbdyno.judge.typical import typical
from dbdyno.judge.wording import change
from dbdyno.language.words import Said, listed, name, say
from dbdyno.plan.plan import DesignPlan
from dbdyno.stats import usl
from dbdyno.stats.distributions import fisher_tail
from dbdyno.stats.usl import Laws, Numbers

OFF_MAX: Final = 0.05
"""No level's typical throughput may lie further from the law."""
LACK_OF_FIT_P: Final = 0.01
UNKNOWNS: Final = 3


class Refusal(StrEnum):
    """Why there is no law, or no peak."""

    FEW_BLOCKS = "few blocks"
    CLIENT_BOUND = "client-bound"
    SUPER_LINEAR = "super-linear"
    LACK_OF_FIT = "lack of fit"
    NO_PEAK = "no peak"
    PEAK_NOT_REACHED = "peak not reached"
    FALLS_FROM_START = "falls from the start"


class Refused(NamedTuple):
    """A reason and its evidence."""

    refusal: Refusal
    why: Said


def of_ladder(
    blocks: int, whole: int, missing: Sequence[int], client_bound: Sequence[int]
) -> Refused | None:
    """Why these trials are no ladder to fit.

    Args:
        blocks: that have a sound trial at some level; whole: those that have one at every level.
        missing: levels that have none in some block.
        client_bound: levels at which the generator was the limit in any block; the blocks in which
            it was not are no fair choice.
    """
    if client_bound:
        named = listed([str(level) for level in client_bound])
        why = say("the load generator was the limit at {levels} threads", levels=named)
        return Refused(Refusal.CLIENT_BOUND, why)
    if whole < BLOCKS_MIN:
        why = say(
            "{whole} of {blocks} blocks have a sound trial at every level; {least} are the least",
            whole=whole,
            blocks=blocks,
            least=BLOCKS_MIN,
        )
        if missing:
            named = listed([str(level) for level in missing])
            why = say("{why} (some have none at {levels} threads)", why=why, levels=named)
        return Refused(Refusal.FEW_BLOCKS, why)
    return None


def of_law(levels: Sequence[int], rates: Numbers, laws: Laws, design: DesignPlan) -> Refused | None:
    """Why the law does not describe these rates of blocks (first axis) at levels (last axis)."""
    return _super_linear(levels, rates, design) or _lack_of_fit(levels, rates, laws)


def of_peak(levels: Sequence[int], laws: Laws, design: DesignPlan) -> Refused | None:
    """Why the law's peak is not a peak of the server."""
    kappa = typical(laws.kappa.tolist(), design)
    most = levels[-1]
    flat = int((laws.kappa == 0).sum())
    if kappa is None or kappa.low is None or flat or kappa.low <= 0:
        return Refused(Refusal.NO_PEAK, say("no peak up to {threads} threads", threads=most))
    threads = float(np.exp(np.log(usl.peaks(laws)).mean()))
    if threads > most:
        why = say("peak not reached: it lies beyond {threads} threads", threads=most)
        return Refused(Refusal.PEAK_NOT_REACHED, why)
    if threads < levels[0]:
        why = say("throughput falls from {level} on", level=_threads(levels[0]))
        return Refused(Refusal.FALLS_FROM_START, why)
    return None


def residuals(levels: Sequence[int], rates: Numbers, laws: Laws) -> Numbers:
    """ln of each rate over what its block's law gives at that level."""
    off: Numbers = np.log(rates) - np.log(usl.throughput(laws, levels))
    return off


def lack_of_fit(off: Numbers) -> float:
    """How likely chance alone makes the levels' residuals as alike over blocks as they are.

    The mean residuals of the levels times the blocks, against how the blocks scatter about them
    (the pure error): the ratio is F with K − 3 and (n − 1)(K − 3) degrees of freedom, since each
    block's residuals lie in the K − 3 dimensions which its own fit leaves.
    """
    blocks, levels = off.shape
    mean = off.mean(axis=0)
    between, within = levels - UNKNOWNS, (blocks - 1) * (levels - UNKNOWNS)
    pure = float(((off - mean) ** 2).sum()) / within
    lack = blocks * float((mean**2).sum()) / between
    if pure == 0:
        return 1.0 if lack == 0 else 0.0
    return fisher_tail(lack / pure, between, within)


def _super_linear(levels: Sequence[int], rates: Numbers, design: DesignPlan) -> Refused | None:
    """Whether a thread does more in company than alone, which contention cannot explain."""
    contention = typical(usl.contention_unbounded(levels, rates).tolist(), design)
    each = np.exp(np.log(rates / np.asarray(levels)).mean(axis=0))
    best = int(each.argmax())
    if contention is None or contention.high is None or contention.high >= 0 or best == 0:
        return None
    why = say(
        "super-linear: a thread does {gain} at {more} against {first}",
        more=_threads(levels[best]),
        gain=change(float(each[best] / each[0])),
        first=_threads(levels[0]),
    )
    return Refused(Refusal.SUPER_LINEAR, why)


def _lack_of_fit(levels: Sequence[int], rates: Numbers, laws: Laws) -> Refused | None:
    off = residuals(levels, rates, laws)
    by_level = np.exp(off.mean(axis=0))
    worst = int(np.abs(by_level - 1).argmax())
    seen = {"off": change(float(by_level[worst])), "level": _threads(levels[worst])}
    if abs(by_level[worst] - 1) > OFF_MAX:
        most = name(change(1 + OFF_MAX).removeprefix("+"))
        why = say("the law does not fit: {off} at {level}, over {most}", **seen, most=most)
        return Refused(Refusal.LACK_OF_FIT, why)
    chance = lack_of_fit(off)
    if chance < LACK_OF_FIT_P:
        why = say(
            "the law does not fit: blocks leave it alike, most at {level} ({off}; p = {chance})",
            **seen,
            chance=f"{chance:.1g}",
        )
        return Refused(Refusal.LACK_OF_FIT, why)
    return None


def _threads(count: int) -> Said:
    return say("1 thread") if count == 1 else say("{count} threads", count=count)
