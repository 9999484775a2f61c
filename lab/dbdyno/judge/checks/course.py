"""The course of a trial: to its end, on one server, at a steady rate and without a stall.

Steadiness is judged over all trials of a cell together (`stats.settling`), as a single trial does
not tell a warm-up from noise. If a system was not steady, the windows of all systems and blocks of
the cell are cut at their start by the same seconds, since different cuts would compare different
minutes of the machine. The remainder of its warm-up widens the verdict's interval
(docs/how-it-works/verdicts.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from dbdyno.judge.checks.standstill import STALL_EVENTS_MIN, stands_still
from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.parts import Interval, Phase
from dbdyno.plan.known import Fact, known_of_trial
from dbdyno.plan.plan import Plan
from dbdyno.stats.distributions import Numbers
from dbdyno.stats.settling import NEAR, NO_TAIL, Settling, Tail, settling

UPTIME_SHORT_S: Final = 2.0
"""The counter has whole seconds, at both readings."""
UPTIME_LONG_S: Final = 5.0
SILENCE_S_MIN: Final = 0.5
"""Far beyond the waits in a queue or a scheduler, and below the stalls of user complaints."""


def trial_failed(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: the trial did not end as planned."""
    if measurement.failure is None:
        return None
    return on_trial(
        measurement,
        "trial-failed",
        Level.VOID,
        window_s=measurement.window_s,
        failure=measurement.failure,
    )


def server_restarted(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: the server's uptime grew by less than the window; doubtful: by much more.

    Where the times of the two readings are known, they set the bounds: a stalled server may answer
    the first only when the second is due. Too large a growth means counters over another span than
    the window, so they prove nothing. Some servers have an uptime that never moves, which proves
    nothing either.
    """
    uptime_s, end_s = measurement.server.status.get("Uptime"), measurement.server.uptime_s
    if uptime_s is None or (uptime_s == 0 and not 0 < (end_s or 0) < measurement.load_s):
        return None
    least_s = measurement.window_s - UPTIME_SHORT_S
    most_s = measurement.window_s + measurement.warmup_s + UPTIME_LONG_S
    if len(times_s := measurement.server.status_at_s) == 4:
        asked_s, answered_s, asked_again_s, answered_again_s = times_s
        least_s = min(least_s, asked_again_s - answered_s - UPTIME_SHORT_S)
        most_s = max(most_s, answered_again_s - asked_s + UPTIME_LONG_S)
    if least_s <= uptime_s <= most_s:
        return None
    return on_trial(
        measurement,
        "server-restarted",
        Level.VOID if uptime_s < least_s else Level.DOUBTFUL,
        uptime_s=uptime_s,
        window_s=measurement.window_s,
        least_s=least_s,
        most_s=most_s,
    )


def stall(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: the server stood still within the window, though not for most of it.

    A stall is half a second with events running and no answer, wherever it lies: if it begins in
    the middle of a second, both seconds it touches have events. Where no connection rests between
    events, a measured second without an event is a stall too.
    """
    rate_per_s = measurement.events / measurement.window_s
    if stands_still(measurement, plan):
        return None

    def is_long(seconds: float) -> bool:
        return rate_per_s * seconds >= STALL_EVENTS_MIN

    silent = [
        i
        for i in measurement.measured
        if i.silence_ns_max >= SILENCE_S_MIN * 1e9 and is_long(i.silence_ns_max / 1e9)
    ]
    is_resting = known_of_trial(measurement, plan).has(Fact.RESTING)
    measured = () if is_resting else measurement.measured
    empty = [i for i in measured if i.events == 0 and is_long(i.end_s - i.start_s)]
    if not silent and not empty:
        return None
    longest_s = max((i.silence_ns_max for i in silent), default=0) / 1e9
    return on_trial(
        measurement,
        "stall",
        Level.DOUBTFUL,
        case="silent" if silent else "empty",
        longest_s=longest_s,
        empty=len(empty),
        seconds=len(measurement.measured),
        rate_per_s=rate_per_s,
        at_s=[round(i.start_s) for i in silent or empty],
    )


class Steadiness(NamedTuple):
    """Steadiness of a cell with windows which were not all steady.

    Attributes:
        settling: the cut of its windows, and the warm-up's remainder by `systems`.
        systems: the cell's systems, in the order of their first trials.
        warmup_s: load before the windows.
    """

    settling: Settling
    systems: tuple[str, ...]
    warmup_s: float

    def left(self, system: str) -> Tail:
        """Remainder of a system's warm-up; without a completed event it approaches no rate."""
        if system not in self.systems:
            return NO_TAIL
        return self.settling.left[self.systems.index(system)]


def not_yet_steady(measurements: Iterable[Measurement]) -> dict[Cell, Steadiness]:
    """The cells of closed loops with windows not all steady; in an open loop the rate is given.

    Args:
        measurements: complete trials; if lengths differ within a cell, the part common to all is
            judged.
    """
    trials: dict[Cell, dict[str, list[Measurement]]] = {}
    for measurement in measurements:
        trial = measurement.trial
        if trial.cell.rate_per_s is None and len(rates_of(measurement)) > 1 and measurement.events:
            trials.setdefault(trial.cell, {}).setdefault(trial.system, []).append(measurement)
    steadiness = {cell: _steadiness(of_systems) for cell, of_systems in trials.items()}
    return {cell: steady for cell, steady in steadiness.items() if steady is not None}


def _steadiness(trials: Mapping[str, Sequence[Measurement]]) -> Steadiness | None:
    everything = [one for of_system in trials.values() for one in of_system]
    before = min(len(rates_of(one, Phase.WARMUP)) for one in everything)
    window = min(len(rates_of(one)) for one in everything)

    def load(measurement: Measurement) -> Numbers:
        warmup = rates_of(measurement, Phase.WARMUP)
        return np.concatenate([warmup[len(warmup) - before :], rates_of(measurement)[:window]])

    loads = [np.array([load(one) for one in of_system]) for of_system in trials.values()]
    fit = settling(loads, before)
    if fit is None:
        return None
    return Steadiness(fit, tuple(trials), min(one.warmup_s for one in everything))


def without_head(measurement: Measurement, cut_s: int) -> Measurement:
    """The same trial with the window's first seconds counted as warm-up."""
    if cut_s == 0 or not measurement.measured:
        return measurement
    from_s = measurement.measured[0].start_s + cut_s - 0.5  # seconds are a little off
    intervals = [
        one.model_copy(update={"phase": Phase.WARMUP})
        if one.phase is Phase.MEASURED and one.start_s < from_s
        else one
        for one in measurement.intervals
    ]
    kept = [one for one in intervals if one.phase is Phase.MEASURED]
    if not kept:  # ended before the cut: keep the whole window
        return measurement
    changed = {
        "intervals": tuple(intervals),
        "warmup_s": kept[0].start_s,
        "window_s": kept[-1].end_s - kept[0].start_s,
    }
    return measurement.model_copy(update=changed)


def not_steady(cell: Cell, steadiness: Steadiness) -> Finding | None:
    """Doubtful or a note: the rate still changed, so the cell's windows count later.

    Doubtful where more than half a percent of the change may be left: it widens the verdict's
    interval.
    """
    fit, is_left = steadiness.settling, _most_left(steadiness) > NEAR
    if not is_left and not fit.cut_s:
        return None
    ends = {one: np.expm1(steadiness.left(one)) for one in steadiness.systems}
    left = {
        one: [float(low), float(high)]
        for one, (low, _, high) in ends.items()
        if max(high, -low) > NEAR
    }
    return Finding(
        check="not-steady",
        level=Level.DOUBTFUL if is_left else Level.NOTE,
        values={
            "cut_s": fit.cut_s,
            "from_s": steadiness.warmup_s + fit.cut_s,
            "left": left,
            "until_s": fit.until_s,
        },
        cell=cell,
    )


def _most_left(steadiness: Steadiness) -> float:
    return max(max(high, -low) for low, _, high in steadiness.settling.left)


SECONDS_MIN: Final = 10
"""Fewer seconds are too few to judge their course."""


def whole_seconds(measurement: Measurement, phase: Phase = Phase.MEASURED) -> list[Interval]:
    """The window's intervals of about a second, without a remainder at its end."""
    intervals = (one for one in measurement.intervals if one.phase is phase)
    return [i for i in intervals if 0.5 < i.end_s - i.start_s < 1.5]


def rates_of(measurement: Measurement, phase: Phase = Phase.MEASURED) -> Numbers:
    """Events a second in each whole second of the window."""
    return np.array([i.events / (i.end_s - i.start_s) for i in whole_seconds(measurement, phase)])
