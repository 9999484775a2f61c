"""Did the systems take turns, and at what time? (method.md 1.g, order and time)

Blocks cancel what a machine does over hours only if the arms of a block lie next to each other.
Runs of dbdyno are drawn so; one that was interrupted in the midst of a block, or that was put
together from logs, may not be.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final

import numpy as np

from dbdyno.judge.finding import Finding, Level
from dbdyno.language.words import say
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.stats.distributions import line

BLOCKS_MIN: Final = 2
PAUSE_S_MIN: Final = 1800.0
PAUSE_FACTOR: Final = 10.0
"""A pause within a block is told from that length on, and if it is so much longer than usual."""
TRIALS_MIN: Final = 8
DRIFT_MIN: Final = 0.02
DRIFT_P_MAX: Final = 0.01


def sequential_design(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: all trials of a system came before, or after, all those of the baseline."""
    places = _places(measurements)
    baseline = plan.systems[0].label
    for system in places:
        blocks = {m.trial.block for m in measurements if m.trial.system == system}
        if system == baseline or baseline not in places or len(blocks) < BLOCKS_MIN:
            continue
        own, its = places[system], places[baseline]
        if max(own) > min(its) and max(its) > min(own):
            continue
        yield Finding(
            check="sequential-design",
            level=Level.DOUBTFUL,
            evidence=say(
                "{system} and {baseline} did not take turns: all trials of one came first",
                system=system,
                baseline=baseline,
            ),
            advice=say(
                "whatever changed on the machine meanwhile looks like a difference of the systems; "
                "measure them in blocks"
            ),
            system=system,
        )


def split_block(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: a long pause lies between the trials of one block."""
    pauses: dict[int, list[float]] = {}
    for block in dict.fromkeys(m.trial.block for m in measurements):
        own = [m for m in measurements if m.trial.block == block and m.failure is None]
        pauses[block] = _pauses(own)
    known = [pause for found in pauses.values() for pause in found]
    usual_s = statistics.median(known) if known else 0.0
    limit_s = max(PAUSE_S_MIN, PAUSE_FACTOR * usual_s)
    for block, found in pauses.items():
        if found and max(found) > limit_s:
            yield Finding(
                check="split-block",
                level=Level.DOUBTFUL,
                evidence=say(
                    "{hours:.1f} h lie between trials of block {block}; {usual:.0f} s are usual",
                    hours=max(found) / 3600,
                    block=block + 1,
                    usual=usual_s,
                ),
                advice=say("the machine may have been another by then; run one more block"),
            )


def machine_drift(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Note: the rates of all systems rose or fell together over the run; blocks cancel that."""
    points = _off_their_means(measurements)
    if len(points) < TRIALS_MIN:
        return
    places, rates = np.array(points).T
    if np.ptp(places) == 0:
        return
    fit = line(places, rates)
    change = math.expm1(fit.slope * float(np.ptp(places)))
    if abs(change) <= DRIFT_MIN or fit.chance >= DRIFT_P_MAX:
        return
    yield Finding(
        check="machine-drift",
        level=Level.NOTE,
        evidence=say(
            "over the run the rates of all systems changed by {change:+.1%} together "
            "(line through {count} trials, p = {chance:.4f})",
            change=change,
            count=len(points),
            chance=fit.chance,
        ),
        advice=say("ratios within blocks do not carry it; absolute rates do"),
    )


def _off_their_means(measurements: Sequence[Measurement]) -> list[tuple[float, float]]:
    """Place in the run, and logarithm of the rate against the mean of its system and cell."""
    groups: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for m in measurements:
        if m.failure is None and m.events and m.window_s > 0:
            point = (float(m.trial.sequence), math.log(m.events / m.window_s))
            groups.setdefault((m.trial.system, m.trial.cell.key), []).append(point)
    return [
        (place, rate - statistics.fmean(r for _, r in group))
        for group in groups.values()
        for place, rate in group
    ]


def _places(measurements: Sequence[Measurement]) -> dict[str, list[int]]:
    """The places of each system's complete trials in the run."""
    found: dict[str, list[int]] = {}
    for m in measurements:
        if m.failure is None:
            found.setdefault(m.trial.system, []).append(m.trial.sequence)
    return found


def _pauses(trials: Sequence[Measurement]) -> list[float]:
    """Seconds from the end of each trial to the begin of the next, where both tell a time."""
    spans = []
    for m in trials:
        try:
            began_s = datetime.fromisoformat(m.started_at).timestamp()
        except ValueError:
            continue
        spans.append((began_s, began_s + m.warmup_s + m.window_s))
    spans.sort()
    return [later[0] - earlier[1] for earlier, later in pairwise(spans)]
