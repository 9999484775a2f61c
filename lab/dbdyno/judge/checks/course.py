"""Did the trial run its course: to its end, on one server, warm and without standing still?"""

from __future__ import annotations

from typing import Final

import numpy as np

from dbdyno.judge.checks.checks_window import from_second, own_cut_s
from dbdyno.judge.checks.seconds import whole_seconds
from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.language.words import Said, listed, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.measurement_parts import Interval
from dbdyno.plan.plan import Plan
from dbdyno.stats.distributions import line

UPTIME_SHORT_S: Final = 2.0
"""The counter has whole seconds, at both readings."""
UPTIME_LONG_S: Final = 5.0
STALL_EVENTS_MIN: Final = 10
"""A time is said to stand still only if that many events were to be expected in it."""
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

    More means that the counters cover another span than the window, so that they prove nothing.
    """
    uptime_s = measurement.server.status.get("Uptime")
    if uptime_s is None:
        return None
    least_s = measurement.window_s - UPTIME_SHORT_S
    most_s = measurement.window_s + measurement.warmup_s + UPTIME_LONG_S
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
    """Doubtful: the server stood still within the window.

    That is half a second in which events ran and nothing was answered, wherever it lies: one that
    begins in the middle of a second leaves events in both seconds it touches. Where nobody looked
    for that, it is a measured second without one event.
    """
    rate_per_s = measurement.events / measurement.window_s

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
    """Doubtful: the rate still rose or fell over the window (method.md 1.a.3, gate iii).

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
