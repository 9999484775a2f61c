"""Where the window of a trial begins to count: in both arms of a block at the later of their cuts.

A trial that carries its warm-up within itself shows by its own series since when it was steady
(`steady`). If one system of a block takes longer than the plan's warm-up, a part of its window is
still warm-up. Cutting its head alone would compare different minutes of the machine, so the windows
of all systems of the block begin where the last of them had become steady (method.md 1.a.3). The
rule keeps a minute at least; where it finds no steady part nothing is cut, for then there is no
better window to take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dbdyno.judge.finding import Finding, Level
from dbdyno.language.words import listed, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.measurement_parts import Interval, Phase
from dbdyno.plan.plan import Plan
from dbdyno.stats.steady import FLOOR_S, KEPT_S_MIN, steady

Place = tuple[int, str]
"""A cell of a block: all its trials begin to count at the same second of their loads."""


def place_of(measurement: Measurement) -> Place:
    """The block and the cell of a trial."""
    return measurement.trial.block, measurement.trial.cell.key


def later_cuts(measurements: Iterable[Measurement]) -> dict[Place, float]:
    """Seconds of load after which windows count, for those places where it is not all of them."""
    latest: dict[Place, float] = {}
    for measurement in measurements:
        cut_s = own_cut_s(measurement)
        if cut_s is not None:
            place = place_of(measurement)
            latest[place] = max(cut_s, latest.get(place, 0.0))
    return latest


def own_cut_s(measurement: Measurement) -> float | None:
    """Seconds of load after which this trial was steady, if they reach into its window.

    None for a trial that had become steady before it began, that failed, or that is too short.
    """
    if measurement.failure is not None or measurement.until_steady is not None:
        return None
    if measurement.window_s <= KEPT_S_MIN or len(measurement.intervals) < FLOOR_S + KEPT_S_MIN:
        return None
    loaded = [one for one in measurement.intervals if one.phase is not Phase.DRAIN]
    cut = steady([_rate(one) for one in loaded]).cut_s
    cut_s = None if cut is None else loaded[cut].start_s
    return cut_s if cut_s is not None and cut_s > measurement.warmup_s else None


def from_second(measurement: Measurement, from_s: float | None) -> Measurement:
    """The same trial with a warm-up until that second of the load; None leaves it as it is."""
    if from_s is None:
        return measurement
    intervals = [
        one.model_copy(update={"phase": Phase.WARMUP})
        if one.phase is Phase.MEASURED and one.start_s < from_s
        else one
        for one in measurement.intervals
    ]
    kept = [one for one in intervals if one.phase is Phase.MEASURED]
    if not kept:  # the other arm's load was longer than this one's
        return measurement
    fields = {name: getattr(measurement, name) for name in Measurement.model_fields}
    changed = {
        "intervals": tuple(intervals),
        "warmup_s": kept[0].start_s,
        "window_s": kept[-1].end_s - kept[0].start_s,
    }
    return Measurement.model_construct(**{**fields, **changed})


def later_cut(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Note: windows of a block begin to count later, as one of its systems was not steady yet."""
    for place, from_s in later_cuts(measurements).items():
        there = [one for one in measurements if place_of(one) == place]
        slow = [one for one in there if own_cut_s(one) == from_s]
        yield Finding(
            check="later-cut",
            level=Level.NOTE,
            evidence=say(
                "block {block}: {systems} became steady after {seconds:.0f} s of load, which is "
                "{into:.0f} s into the window; the windows of all systems of the block count from "
                "there",
                block=place[0] + 1,
                systems=listed(one.trial.system for one in slow),
                seconds=from_s,
                into=from_s - slow[0].warmup_s,
            ),
            advice=say("raise trial.warmup, or let each trial wait with warmup: auto"),
            cell=there[0].trial.cell,
        )


def _rate(interval: Interval) -> float:
    seconds = interval.end_s - interval.start_s
    return interval.events / seconds if seconds > 0 else 0.0
