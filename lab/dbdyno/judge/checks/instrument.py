"""How often verdicts erred, counted over all runs of a workspace; servers that are not ours.

Two things are counted: how many comparisons of a system with itself were called different, and how
many planted slowdowns were seen. Intervals of the shares are those of Clopper and Pearson (1934).
Of comparisons with themselves 5 in 100 may be called different, as intervals of 95 % miss; with
more of them than chance gives in 99 of 100 workspaces the instrument is out of calibration
(docs/how-it-works/controls.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final

from pydantic import Field

from dbdyno.judge.finding import Finding, Level
from dbdyno.language.words import count, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.outcome import ControlOutcome
from dbdyno.measurement.parts import Noun
from dbdyno.plan.plan import Plan
from dbdyno.stats.distributions import beta_quantile, binomial_exceeded

MISSED: Final = 0.05
"""Share of 95 % intervals that miss what they are about."""
CHANCE: Final = 0.01
"""A workspace without fault is called out of calibration no more often."""


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
        different_allowed: as many as chance explains in so many of them.
        found: planted slowdowns whose whole interval lies below 1.
        covered: planted slowdowns whose interval covers what was planted.
        loaded_anew: comparisons of a system with itself in which each block had loads of its own.
    """

    different: Share = Share()
    different_allowed: int = 0
    found: Share = Share()
    covered: Share = Share()
    loaded_anew: Annotated[int, Field(exclude_if=lambda value: not value)] = 0

    @property
    def is_out_of_calibration(self) -> bool:
        """Whether more was called different than chance explains."""
        return self.different.count > self.different_allowed


def ledger_of(outcomes: Iterable[ControlOutcome]) -> Ledger:
    """Counts the outcomes that have an interval."""
    counted = [outcome for outcome in outcomes if outcome.counts]
    same = [outcome for outcome in counted if outcome.kind == "same"]
    planted = [outcome for outcome in counted if outcome.kind == "planted"]
    return Ledger(
        different=share_of(sum(outcome.different for outcome in same), len(same)),
        different_allowed=allowed(len(same)),
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


def allowed(total: int) -> int:
    """The least number that chance exceeds in at most one of a hundred workspaces."""
    return binomial_exceeded(CHANCE, total, MISSED) if total else 0


def out_of_calibration(ledger: Ledger) -> Iterator[Finding]:
    """Doubtful: of the workspace's comparisons with themselves too many were called different."""
    if not ledger.is_out_of_calibration:
        return
    different = ledger.different
    yield Finding(
        check="out-of-calibration",
        level=Level.DOUBTFUL,
        evidence=say(
            "in {total} runs of this workspace the baseline was compared with itself, and {count} "
            "times called different; chance explains {allowed} (the true share is {low:.1f} to "
            "{high:.1f} %, {expected:.0f} % is promised)",
            total=different.total,
            count=different.count,
            allowed=ledger.different_allowed,
            low=different.low * 100,
            high=different.high * 100,
            expected=MISSED * 100,
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
