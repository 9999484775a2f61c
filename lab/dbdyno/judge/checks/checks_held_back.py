"""Was the machine held back: by a quota, heat, want of memory, another clock? (method.md 1.g)

None of these shows as load. A clock is compared with that of the run's other trials, since no other
truth about it is stored.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.language.words import say
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import WatchSample
from dbdyno.plan.plan import Plan

PRESSURE_NOTE: Final = 0.001
PRESSURE_DOUBTFUL: Final = 0.01
"""Share of the window in which a task waited for memory; the method wants none."""
SWAP_DOUBTFUL_PER_S: Final = 1.0
CLOCK_NOTE: Final = 0.03
CLOCK_DOUBTFUL: Final = 0.10
TRIALS_MIN: Final = 3


def throttled(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: a CPU quota of a control group held back the server or the generator."""
    times = _total(measurement, lambda sample: sample.throttled_per_s)
    if not times:
        return None
    return on_trial(
        measurement,
        "throttled",
        Level.DOUBTFUL,
        say(
            "a CPU quota was used up {times:.0f} times in the window (limit 0)",
            times=times,
        ),
        say("raise or remove cpu.max of the control group: what was measured is the quota"),
    )


def overheated(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: a core was slowed down because it was hot."""
    times = _total(measurement, lambda sample: sample.thermal_events_per_s)
    if not times:
        return None
    return on_trial(
        measurement,
        "overheated",
        Level.DOUBTFUL,
        say("cores were slowed down for heat {times:.0f} times in the window", times=times),
        say("cool the machine, or fix its clock below the limit and say so"),
    )


def memory_pressure(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful above 1 %, a note from 0.1 %: tasks stood still for want of memory."""
    shares = _known(measurement, lambda sample: sample.pressure_memory_some)
    share = statistics.fmean(shares) if shares else 0.0
    if share <= PRESSURE_NOTE:
        return None
    return on_trial(
        measurement,
        "memory-pressure",
        Level.DOUBTFUL if share > PRESSURE_DOUBTFUL else Level.NOTE,
        say(
            "in {share:.2%} of the window some task waited for memory (limit {limit:.1%})",
            share=share,
            limit=PRESSURE_NOTE,
        ),
        say("give the machine more memory, or the servers smaller caches"),
    )


def swapping(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful from a page a second on, else a note: memory was moved to or from swap."""
    pages = _total(measurement, lambda sample: sample.swap_pages_per_s)
    if not pages:
        return None
    per_s = pages / measurement.window_s
    return on_trial(
        measurement,
        "swapping",
        Level.DOUBTFUL if per_s >= SWAP_DOUBTFUL_PER_S else Level.NOTE,
        say("{pages:.0f} pages were moved to or from swap in the window (limit 0)", pages=pages),
        say("switch swap off (swapoff -a), or give the servers smaller caches"),
    )


def uneven_clock(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Note from 3 %, doubtful above 10 %: the cores' clock was another than in the other trials."""
    clocks = [
        statistics.fmean(known)
        for m in measurements
        if m.failure is None and (known := _known(m, lambda sample: sample.cpu_mhz))
    ]
    if len(clocks) < TRIALS_MIN:
        return
    usual = statistics.median(clocks)
    off = [clock / usual - 1 for clock in clocks if abs(clock / usual - 1) > CLOCK_NOTE]
    if not off:
        return
    worst = max(off, key=abs)
    yield Finding(
        check="uneven-clock",
        level=Level.DOUBTFUL if abs(worst) > CLOCK_DOUBTFUL else Level.NOTE,
        evidence=say(
            "in {count} of {total} trials the cores' clock was off its usual {usual:.0f} MHz by "
            "more than {limit:.0%}, at worst by {worst:+.1%}",
            count=len(off),
            total=len(clocks),
            usual=usual,
            limit=CLOCK_NOTE,
            worst=worst,
        ),
        advice=say("fix the clock (governor performance, no turbo), then measure again"),
    )


def _known(measurement: Measurement, read: Callable[[WatchSample], float | None]) -> list[float]:
    """What the window's samples tell, without those that do not know."""
    return [value for s in measurement.watch_measured if (value := read(s)) is not None]


def _total(measurement: Measurement, read: Callable[[WatchSample], float | None]) -> float:
    """A rate added up over the window's samples; 0 where nobody knows."""
    return sum((read(s) or 0.0) * s.length_s for s in measurement.watch_measured)
