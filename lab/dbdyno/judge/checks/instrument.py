"""How large errors were, over all runs of a workspace; servers that are not ours.

In each comparison of a system with itself the error is known, and its interval says how large
errors are: error / half width gives Student's t, and its tail the standard normal number with the
same tail. The squares of so many add up to a chi square, unless errors are larger than the
intervals promise. The instrument is out of calibration if they add up to more than in 99 of 100
workspaces without fault (docs/how-it-works/controls.md). Counts of how many were called different,
and of how many planted slowdowns were seen, are told beside it, with the intervals of Clopper and
Pearson (1934); they see less, as a count forgets by how much an interval missed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dbdyno.judge.finding import Finding, Level
from dbdyno.language.words import count, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.outcome import ControlOutcome
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import Plan
from dbdyno.stats.distributions import (
    beta_quantile,
    chi_square_exceeded,
    normal_of_student,
    student_quantile,
)

MISSED: Final = 0.05
"""Share of 95 % intervals that miss what they are about."""
CHANCE: Final = 0.01
"""A workspace without fault is called out of calibration no more often."""
RUNS_MIN: Final = 10
"""Fewer comparisons of a system with itself are not judged."""
ERROR_MAX: Final = 3.0
"""No error counts for more, so that one run that went astray decides nothing about the others."""


class Share(Noun):
    """How many of how many, and what share that may be in the long run.

    Attributes:
        low, high: 95 % interval of the share, Clopper-Pearson; 0 and 1 where there is none.
    """

    count: int = 0
    total: int = 0
    low: float = 0.0
    high: float = 1.0


class Ledger(Noun):
    """The controls of all complete runs of a workspace, this one's included.

    Attributes:
        different: comparisons of a system with itself that were called better or worse.
        error_size: how large their errors were, as a multiple of what their intervals promise: 1
            is as promised; None below ten of them, which say too little.
        error_size_allowed: as large as chance explains over so many of them.
        found: planted slowdowns whose whole interval lies below 1.
        covered: planted slowdowns whose interval covers what was planted.
        loaded_anew: comparisons of a system with itself in which each block had loads of its own.
    """

    different: Share = Share()
    error_size: float | None = None
    error_size_allowed: float | None = None
    found: Share = Share()
    covered: Share = Share()
    loaded_anew: int = 0

    @property
    def is_out_of_calibration(self) -> bool:
        """Whether errors were larger than chance explains."""
        if self.error_size is None or self.error_size_allowed is None:
            return False
        return self.error_size > self.error_size_allowed


def ledger_of(outcomes: Iterable[ControlOutcome]) -> Ledger:
    """Counts the outcomes that have an interval."""
    counted = [outcome for outcome in outcomes if outcome.counts]
    same = [outcome for outcome in counted if outcome.kind == "same"]
    planted = [outcome for outcome in counted if outcome.kind == "planted"]
    enough = len(same) >= RUNS_MIN
    return Ledger(
        different=share_of(sum(outcome.different for outcome in same), len(same)),
        error_size=error_size([error_of(outcome) for outcome in same]) if enough else None,
        error_size_allowed=error_size_allowed(len(same)) if enough else None,
        found=share_of(sum(outcome.seen_slower for outcome in planted), len(planted)),
        covered=share_of(sum(outcome.held is True for outcome in planted), len(planted)),
        loaded_anew=sum(outcome.loads >= outcome.blocks for outcome in same),
    )


def share_of(count: int, total: int) -> Share:
    """The share with its interval (Clopper and Pearson 1934, by quantiles of the beta law)."""
    if total == 0:
        return Share()
    tail = MISSED / 2
    low = beta_quantile(tail, count, total - count + 1) if count > 0 else 0.0
    high = beta_quantile(1 - tail, count + 1, total - count) if count < total else 1.0
    return Share(count=count, total=total, low=low, high=high)


def error_of(outcome: ControlOutcome) -> float:
    """How far an outcome lies from the truth, standard normal if its interval is right.

    Raises:
        ValueError: it has no interval.
    """
    if outcome.ratio is None or outcome.low is None or outcome.high is None:
        raise ValueError(f"{outcome.kind} has no interval")
    off = abs(math.log(outcome.ratio / outcome.truth))
    half = math.log(outcome.high / outcome.low) / 2
    if off == 0:
        return 0.0
    # A repeated interval is taken for Student's: it is wider, so its errors look smaller.
    freedom = outcome.blocks - 1
    t = off / half * student_quantile(1 - MISSED / 2, freedom) if half else math.inf
    return min(ERROR_MAX, normal_of_student(t, freedom))


def error_size(errors: Sequence[float]) -> float:
    """The root of the mean square of one error or more."""
    return math.sqrt(math.fsum(error**2 for error in errors) / len(errors))


def error_size_allowed(total: int) -> float:
    """What chance exceeds in one of a hundred workspaces with so many errors."""
    return math.sqrt(chi_square_exceeded(CHANCE, total) / total)


def out_of_calibration(ledger: Ledger) -> Iterator[Finding]:
    """Doubtful: the workspace's comparisons with themselves erred by more than they promise."""
    if not ledger.is_out_of_calibration:
        return
    different = ledger.different
    yield Finding(
        check="out-of-calibration",
        level=Level.DOUBTFUL,
        evidence=say(
            "in {total} runs of this workspace the baseline was compared with itself: errors were "
            "{size:.2f} times as large as their intervals promise, and chance explains "
            "{allowed:.2f} times ({count} were called different)",
            total=different.total,
            size=ledger.error_size,
            allowed=ledger.error_size_allowed,
            count=different.count,
        ),
        advice=say(
            "trust no verdict of this machine until it is known why: look for other work on it, "
            "a clock that changes, a disk that fills, too short windows"
        ),
    )


def uncontrolled_server(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: a system's servers are somebody else's, an endpoint."""
    measured = {m.trial.system for m in measurements}
    for system in plan.systems:
        if not system.is_endpoint or system.label not in measured:
            continue
        blocks = {m.trial.block for m in measurements if m.trial.system == system.label}
        yield Finding(
            check="uncontrolled-server",
            level=Level.DOUBTFUL,
            evidence=say(
                "{system} is an endpoint: in {blocks} its servers were not restarted and its rows "
                "not restored; its processes, disks and other clients were not seen",
                system=system.label,
                blocks=count(len(blocks), "block"),
            ),
            advice=say(
                "restart and reload it between runs yourself, keep others off it, or measure a "
                "system that dbdyno can start"
            ),
            system=system.label,
        )
