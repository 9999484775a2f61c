"""Did the trial run to its end, on one server, at a steady rate and without a stall?

The series of a trial shows since when it was steady (`stats.steady`). If a system of a block takes
longer than the plan's warm-up, the windows of all systems of the block begin when the last of them
had become steady, as different cuts would compare different minutes of the machine
(docs/how-it-works/verdicts.md). At least a minute is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from dbdyno.judge.checks.standstill import STALL_EVENTS_MIN, stands_still
from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.language.words import Said, listed, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Interval, Phase
from dbdyno.plan.plan import Plan
from dbdyno.stats.distributions import line
from dbdyno.stats.steady import FLOOR_S, KEPT_S_MIN, steady

UPTIME_SHORT_S: Final = 2.0
"""The counter has whole seconds, at both readings."""
UPTIME_LONG_S: Final = 5.0
SILENCE_S_MIN: Final = 0.5
"""Far beyond what a queue or a scheduler explains, and below the stalls that are complained of."""
DRIFT_SHARE_MAX: Final = 0.02
DRIFT_P_MAX: Final = 0.01
"""The method's gate has p < .05, where a false alarm costs a minute; here it would be printed
beside a verdict, with dozens of trials in a run."""
BATCH_S: Final = 10
BATCH_S_MIN: Final = 2
BATCHES_MIN: Final = 6


def trial_failed(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: the trial did not end as planned."""
    if measurement.failure is None:
        return None
    return on_trial(
        measurement,
        "trial-failed",
        Level.VOID,
        say(
            "after {window_s:.1f} s of the window: {failure}",
            window_s=measurement.window_s,
            failure=measurement.failure,
        ),
        say("look at the server's log; a resumed run repeats the trial and keeps this attempt"),
    )


def server_restarted(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: the server's uptime grew by less than the window; doubtful: by much more.

    Where the times of the two readings are known, they say by how much: a server that stands still
    may answer the first only when the second is due. More means that the counters cover another
    span than the window, so that they prove nothing.
    """
    uptime_s = measurement.server.status.get("Uptime")
    if uptime_s is None:
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
        say(
            "the server's uptime grew by {uptime_s:.0f} s over a window of {window_s:.1f} s "
            "({least_s:.0f} to {most_s:.0f} s expected)",
            uptime_s=uptime_s,
            window_s=measurement.window_s,
            least_s=least_s,
            most_s=most_s,
        ),
        say("look for a crash or a restart in the server's log")
        if uptime_s < least_s
        else say("the counters were read late; is the machine overloaded?"),
    )


def stall(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: the server stood still within the window, though not for most of it.

    That is half a second in which events ran and nothing was answered, wherever it lies: one that
    begins in the middle of a second leaves events in both seconds it touches. Where nobody looked
    for that, it is a measured second without one event.
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
    empty = [i for i in measurement.measured if i.events == 0 and is_long(i.end_s - i.start_s)]
    if not silent and not empty:
        return None
    if silent:
        seen = say(
            "no statement was answered for up to {longest_s:.2f} s while events ran",
            longest_s=max(i.silence_ns_max for i in silent) / 1e9,
        )
    else:
        seen = say(
            "no event in {empty} of {all} measured seconds",
            empty=len(empty),
            all=len(measurement.measured),
        )
    return on_trial(
        measurement,
        "stall",
        Level.DOUBTFUL,
        say(
            "{seen}, at {rate:.1f} events/s on average; seconds since the load began: {seconds}",
            seen=seen,
            rate=rate_per_s,
            seconds=_seconds(silent or empty),
        ),
        say(
            "compare with the server's log (checkpoint, flush); a stall that belongs to the system "
            "needs windows that hold several of them"
        ),
    )


def _seconds(intervals: list[Interval]) -> Said:
    named = [f"{interval.start_s:.0f}" for interval in intervals[:10]]
    return listed([*named, *("…" for _ in intervals[10:11])])


def drift(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: the rate still rose or fell over the window (docs/reference/findings.md).

    A line is fitted to the rates of 10-s batches: single seconds are too alike their neighbours.
    Windows below a minute are cut into six batches, which are the least for a line; they cry
    wolf a little more often. The difference of the window's halves is said beside it. A head that
    does not count because the trial was not steady yet is left out.
    """
    counted = from_second(measurement, own_cut_s(measurement))
    rates = np.array([i.events / (i.end_s - i.start_s) for i in whole_seconds(counted)])
    batch_s = min(BATCH_S, len(rates) // BATCHES_MIN)
    if batch_s < BATCH_S_MIN:
        return None
    batches = len(rates) // batch_s
    means = rates[: batches * batch_s].reshape(batches, batch_s).mean(axis=1)
    fit = line(np.arange(batches), means)
    change = fit.slope * batches / float(means.mean())
    if abs(change) <= DRIFT_SHARE_MAX or fit.chance >= DRIFT_P_MAX:
        return None
    halves = means[-(batches // 2) :].mean() / means[: batches // 2].mean() - 1
    return on_trial(
        measurement,
        "drift",
        Level.DOUBTFUL,
        say(
            "events/s changed by {change:+.1%} over the window (line through {batches} means of "
            "{batch_s} s, p = {chance:.4f}; limit {limit:.0%}), second half against first "
            "{halves:+.1%}",
            change=change,
            batches=batches,
            batch_s=batch_s,
            chance=fit.chance,
            limit=DRIFT_SHARE_MAX,
            halves=halves,
        ),
        say("warm up for longer; if it falls, look for growing data or a filling log"),
    )


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


Rates = npt.NDArray[np.float64]

SECONDS_MIN: Final = 10
"""Below that many seconds nothing is said about their course."""


def whole_seconds(measurement: Measurement) -> list[Interval]:
    """The measured intervals of about a second; what is left over at the end is none."""
    return [i for i in measurement.measured if 0.5 < i.end_s - i.start_s < 1.5]


def rates_of(measurement: Measurement) -> Rates:
    """Events a second in each whole second of the window."""
    return np.array([i.events / (i.end_s - i.start_s) for i in whole_seconds(measurement)])
