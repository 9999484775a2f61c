"""Did others leave the servers alone, and each arm as much as the other?
(docs/how-it-works/procedure.md)

What disturbs all arms of a block alike cancels in its ratio. What disturbs one of them looks like a
difference of the systems, so a trial that lost more than the plan allows is void, it is measured
again with all others of its cell, and arms that lost unequal shares below that are doubtful.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.language.words import Said, count, listed, name, say
from dbdyno.measurement.disturbance import (
    Disturbance,
    current,
    disturbance_of,
    place_of,
    repeats,
    to_repeat,
)
from dbdyno.measurement.disturbance import disturbed as beyond
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.plan.plan import Plan

UNEVEN_MAX: Final = 0.05
"""Trials of 10 s on a quiet machine of two cores differed by 2 % of its CPU, those of 2 s by 7 %
(docs/how-it-works/procedure.md)."""
BLOCKS_NAMED: Final = 3


def disturbed(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: others took more of the host's CPU in the window than the plan allows."""
    limit = plan.design.disturbance_max
    seen = beyond(measurement, limit)
    if seen is None:
        return None
    shares = {"others": seen.cpu, "steal": seen.steal, "limit": limit * 100}
    return on_trial(
        measurement,
        "disturbed",
        Level.VOID,
        say(
            "processes besides server and generator used {others:.1%} of the host's CPU in the "
            "window, and {steal:.1%} was stolen (limit {limit:g} % together)",
            **shares,
        )
        if seen.is_attributed
        else say("{steal:.1%} of the host's CPU was stolen (limit {limit:g} %)", **shares),
        say(
            "stop what else runs on this machine and measure again; another limit is "
            "design.disturbance_max"
        ),
    )


def uneven_disturbance(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: others took more beside one arm of a block than beside another."""
    groups: dict[Cell, dict[int, list[tuple[Said, Disturbance]]]] = {}
    for m in measurements:
        seen = disturbance_of(m) if m.failure is None and m.trial.block >= 0 else None
        if seen is not None and beyond(m, plan.design.disturbance_max) is None:
            blocks = groups.setdefault(m.trial.cell, {})
            blocks.setdefault(m.trial.block, []).append((m.trial.arm, seen))
    for cell, blocks in groups.items():
        uneven = {block: arms for block, arms in sorted(blocks.items()) if _apart(arms)}
        if not uneven:
            continue
        named = [_figures(block, arms) for block, arms in list(uneven.items())[:BLOCKS_NAMED]]
        yield Finding(
            check="uneven-disturbance",
            level=Level.DOUBTFUL,
            evidence=say(
                "in {uneven} of {blocks} others took unequal shares of the host's CPU beside the "
                "arms, by more than {limit:g} points (their CPU, steal and I/O wait together): "
                "{figures}",
                uneven=len(uneven),
                blocks=count(len(blocks), "block"),
                limit=UNEVEN_MAX * 100,
                figures=listed([*named, *([name("…")] if len(uneven) > len(named) else [])], "; "),
            ),
            advice=say(
                "the ratio carries the difference: stop what else runs on this machine and measure "
                "again"
            ),
            cell=cell,
        )


def _lost(seen: Disturbance) -> float:
    return seen.share + (seen.waiting or 0.0)


def _apart(arms: Sequence[tuple[Said, Disturbance]]) -> bool:
    lost = [_lost(seen) for _, seen in arms]
    return max(lost) - min(lost) > UNEVEN_MAX


def _figures(block: int, arms: Sequence[tuple[Said, Disturbance]]) -> Said:
    shares = (
        say(
            "{arm} {all:.1%} (CPU {cpu:.1%}, steal {steal:.1%}, wait {wait:.1%})",
            arm=arm,
            all=_lost(seen),
            cpu=seen.cpu,
            steal=seen.steal,
            wait=seen.waiting or 0.0,
        )
        for arm, seen in arms
    )
    return say("block {block}: {shares}", block=block + 1, shares=listed(shares))


def measured_again(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Note: what was disturbed was measured again, or no longer; sees replaced trials too."""
    for place, times in repeats(measurements).items():
        if times:
            there = [m for m in measurements if place_of(m.trial) == place]
            cell = there[0].trial.cell
            yield _noted(
                say(
                    "{workload}, {load}, in block {block} was measured again, {times}, because"
                    " {why}; its last measurement counts, the others are stored",
                    workload=cell.workload,
                    load=cell.load,
                    block=place.block + 1,
                    times=count(times, "time"),
                    why=_why_again(there, plan),
                )
            )
    limit = plan.design.disturbance_max
    of_blocks = (m for m in current(measurements) if m.trial.block >= 0)
    lost = {place_of(m.trial) for m in of_blocks if beyond(m, limit) is not None}
    if lost and not to_repeat(measurements, plan.design.blocks, limit):
        yield _noted(
            say(
                "{places} stayed disturbed, with all repeats used that a run of this length has",
                places=count(len(lost), "cell"),
            )
        )


def _why_again(of_block: Sequence[Measurement], plan: Plan) -> Said:
    limit = plan.design.disturbance_max
    found = [(m.trial.arm, seen.share) for m in of_block if (seen := beyond(m, limit)) is not None]
    if found:
        arm, share = max(found, key=lambda one: one[1])
        return say(
            "others disturbed it: {share:.1%} of the host's CPU beside {arm}", share=share, arm=arm
        )
    if any(m.lost for m in of_block):
        return say("a machine was lost")
    return say("others disturbed it: the limit was another one then")


def _noted(evidence: Said) -> Finding:
    return Finding(
        check="measured-again",
        level=Level.NOTE,
        evidence=evidence,
        advice=say("nothing is wrong with what counts; a quiet machine needs no repeats"),
    )
