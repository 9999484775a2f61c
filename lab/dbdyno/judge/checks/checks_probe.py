"""Was the machine itself the same before every arm? (method.md 1.g, probe within 3 MAD)

Before each arm, with no server up, the lab times a piece of arithmetic and a few syncs. What strays
from the run's median by more than three deviations (1.4826 × the median absolute one) was another
machine for that arm: a neighbour, a cooler, a disk that was busy with something else.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from dbdyno.judge.finding import Finding, Level
from dbdyno.language.words import Said, listed, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.measurement_evidence import Probe
from dbdyno.plan.plan import Plan

PROBES_MIN: Final = 5
"""Fewer have no deviation worth the name."""
DEVIATIONS_MAX: Final = 3.0
NORMAL: Final = 1.4826
"""Makes a median absolute deviation of normal data the standard one."""


class Side(NamedTuple):
    """One of the probe's two numbers, and from which change on it matters."""

    what: Said
    read: Callable[[Probe], float | None]
    note: float
    doubtful: float


SIDES: Final = (
    Side(say("arithmetic"), lambda probe: probe.cpu_ms, 0.05, 0.20),
    Side(say("a sync"), lambda probe: probe.sync_ms, 0.50, 2.00),
)


def probe_strays(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful or a note: before an arm the machine was slower or faster than before the others."""
    arms: dict[tuple[str, int, str], Probe] = {}
    for m in measurements:
        if m.failure is None and m.evidence.probe is not None:
            arms[m.trial.system, m.trial.block, m.trial.cell.setting] = m.evidence.probe
    for system in dict.fromkeys(place[0] for place in arms):
        own = {place: probe for place, probe in arms.items() if place[0] == system}
        parts, level = [], Level.NOTE
        for side in SIDES:
            known = [v for probe in arms.values() if (v := side.read(probe)) is not None]
            for (_, block, _), probe in own.items():
                off = _stray(side, side.read(probe), known)
                if off is None:
                    continue
                place = {"block": block + 1, "what": side.what, "off": off}
                parts.append(say("block {block}: {what} {off:+.0%}", **place))
                level = Level.DOUBTFUL if abs(off) > side.doubtful else level
        if parts:
            yield Finding(
                check="probe-strays",
                level=level,
                evidence=say(
                    "before arms of {system} the machine took another time than usual in this "
                    "run: {parts}",
                    system=system,
                    parts=listed(parts),
                ),
                advice=say("look what else ran then; the block's ratio may carry it"),
                system=system,
            )


def _stray(side: Side, value: float | None, known: Sequence[float]) -> float | None:
    """By which share a value is off the median; None where it is within what is usual."""
    if value is None or len(known) < PROBES_MIN:
        return None
    usual = statistics.median(known)
    deviation = NORMAL * statistics.median(abs(one - usual) for one in known)
    off = value - usual
    if usual <= 0 or abs(off) <= max(DEVIATIONS_MAX * deviation, side.note * usual):
        return None
    return off / usual
