"""Disturbance by others: the servers' CPU taken, and its share in each arm.
(docs/how-it-works/procedure.md)

A disturbance of all arms of a block alike cancels in its ratio. A disturbance of one arm looks like
a difference of the systems. So a trial which lost more than the plan allows is void, and it is
measured again with all others of its cell; arms with unequal losses below the limit are doubtful.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from dbdyno.judge.finding import Finding, Level, on_trial
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
"""Trials of 10 s on a quiet machine of two cores differed by 2 % of its CPU, trials of 2 s by 7 %
(docs/how-it-works/procedure.md)."""


def disturbed(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: others took more of the CPU than the plan allows; a note if measured again."""
    limit = plan.design.disturbance_max
    seen = beyond(measurement, limit)
    if seen is None:
        return None
    return on_trial(
        measurement,
        "disturbed",
        Level.VOID,
        case="attributed" if seen.is_attributed else "stolen",
        others=seen.cpu,
        steal=seen.steal,
        limit=limit * 100,
    )


def uneven_disturbance(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: others took more beside an arm of a block than beside another."""
    groups: dict[Cell, dict[int, list[tuple[str, Disturbance]]]] = {}
    for m in measurements:
        seen = disturbance_of(m) if m.failure is None and m.trial.block >= 0 else None
        if seen is not None and beyond(m, plan.design.disturbance_max) is None:
            blocks = groups.setdefault(m.trial.cell, {})
            blocks.setdefault(m.trial.block, []).append((m.trial.system, seen))
    for cell, blocks in groups.items():
        uneven = [*filter(None, (_uneven(block, arms) for block, arms in sorted(blocks.items())))]
        if uneven:
            yield Finding(
                check="uneven-disturbance",
                level=Level.DOUBTFUL,
                values={"blocks": len(blocks), "limit": UNEVEN_MAX * 100, "uneven": uneven},
                cell=cell,
            )


def _uneven(block: int, arms: Sequence[tuple[str, Disturbance]]) -> dict[str, Any] | None:
    """Figures of a block's arms if they lie too far apart, by quantities known of each of them."""
    is_attributed = all(seen.is_attributed for _, seen in arms)
    figures = [_figures(arm, seen, is_attributed) for arm, seen in arms]
    lost = [figure["all"] for figure in figures]
    return {"block": block + 1, "arms": figures} if max(lost) - min(lost) > UNEVEN_MAX else None


def _figures(arm: str, seen: Disturbance, is_attributed: bool) -> dict[str, Any]:
    if not is_attributed:
        return {"arm": arm, "all": seen.steal}
    parts = {"cpu": seen.cpu, "steal": seen.steal, "wait": seen.waiting or 0.0}
    return {"arm": arm, "all": sum(parts.values()), **parts}


def measured_again(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Notes of `disturbed`: cells measured again, or no longer; sees replaced trials."""
    for place, times in repeats(measurements).items():
        if times:
            there = [m for m in measurements if place_of(m.trial) == place]
            cell = there[0].trial.cell
            again = {"block": place.block + 1, "times": times, **_why_again(there, plan)}
            yield _noted(cell=cell.model_dump(), **again)
    limit = plan.design.disturbance_max
    of_blocks = (m for m in current(measurements) if m.trial.block >= 0)
    lost = {place_of(m.trial) for m in of_blocks if beyond(m, limit) is not None}
    if lost and not to_repeat(measurements, plan.design.blocks, limit):
        yield _noted(case="used-up", cells=len(lost))


def _why_again(of_block: Sequence[Measurement], plan: Plan) -> dict[str, Any]:
    limit = plan.design.disturbance_max
    shares = [
        (m.trial.system, seen.share) for m in of_block if (seen := beyond(m, limit)) is not None
    ]
    if shares:
        arm, share = max(shares, key=lambda one: one[1])
        return {"case": "others", "arm": arm, "share": share}
    return {"case": "lost" if any(m.lost for m in of_block) else "other-limit"}


def _noted(**values: object) -> Finding:
    return Finding(check="disturbed", level=Level.NOTE, values=values)
