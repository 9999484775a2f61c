"""Did the machine leave the server alone, was it held back, and was it the same before every arm?
(docs/reference/findings.md)

What slows a machine down (a quota, heat, lack of memory, a lower clock) does not show as load. A
clock is compared with that of the run's other trials. Before each arm, with no server up, some
arithmetic and a few syncs are timed: a finding if a time lies more than three deviations (1.4826 ×
the median absolute one) from the run's median.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.language.words import Said, count, listed, say
from dbdyno.measurement.disturbance import disturbance_of, host_cpu
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Probe, WatchSample, mean_over_time
from dbdyno.plan.plan import Plan

STEAL_SHARE_NOTE: Final = 0.005
STEAL_SHARE_DOUBTFUL: Final = 0.02
"""Above the method's 0.5 % a note, as most virtual machines lose that much in one trial of a dozen;
what can move a rate by the usual margin throws doubt."""
OTHER_SHARE_NOTE: Final = 0.02
OTHER_SHARE_DOUBTFUL: Final = 0.10
"""Above the method's 2 % a note: kernel work done for the server counts as another's too."""
IDLE_SHARE_MIN: Final = 0.05


def steal(measurement: Measurement, plan: Plan) -> Finding | None:
    """Note or doubtful: the hypervisor gave this machine's time to others."""
    seen = disturbance_of(measurement)
    if seen is None or seen.steal <= STEAL_SHARE_NOTE:
        return None
    is_doubtful = seen.steal > STEAL_SHARE_DOUBTFUL
    return on_trial(
        measurement,
        "steal",
        Level.DOUBTFUL if is_doubtful else Level.NOTE,
        say(
            "{share:.2%} of the host's CPU was stolen in the window (limit {limit:.1%})",
            share=seen.steal,
            limit=STEAL_SHARE_DOUBTFUL if is_doubtful else STEAL_SHARE_NOTE,
        ),
        say("use a machine that is not shared, or repeat at a quieter time"),
    )


def other_processes(measurement: Measurement, plan: Plan) -> Finding | None:
    """Note or doubtful: the host was busier than server and generator together."""
    seen = disturbance_of(measurement)
    if seen is None or seen.others <= OTHER_SHARE_NOTE:
        return None
    is_doubtful = seen.others > OTHER_SHARE_DOUBTFUL
    return on_trial(
        measurement,
        "other-processes",
        Level.DOUBTFUL if is_doubtful else Level.NOTE,
        say(
            "processes besides server and generator used {share:.1%} of the host's CPU "
            "({used:.2f} of {cores:.1f} cores; limit {limit:.0%})",
            share=seen.others,
            used=seen.others * seen.cores,
            cores=seen.cores,
            limit=OTHER_SHARE_DOUBTFUL if is_doubtful else OTHER_SHARE_NOTE,
        ),
        say("stop what else runs on this machine"),
    )


def shared_machine(measurement: Measurement, plan: Plan) -> Finding | None:
    """Note: server and generator together left no core idle, so each slowed the other down."""
    samples = measurement.watch_measured
    cores = mean_over_time(samples, host_cpu) or 0.0
    if cores <= 0:
        return None
    unused = mean_over_time(samples, lambda s: s.host_cpu_idle + s.host_cpu_iowait) or 0.0
    idle = unused / cores
    generator = (mean_over_time(samples, lambda s: s.generator_cpu) or 0.0) / cores
    if idle >= IDLE_SHARE_MIN or generator <= 0:
        return None
    return on_trial(
        measurement,
        "shared-machine",
        Level.NOTE,
        say(
            "generator and server share the machine: {idle:.1%} of the host's CPU was idle "
            "(limit {limit:.0%}), the generator used {generator:.1%}",
            idle=idle,
            limit=IDLE_SHARE_MIN,
            generator=generator,
        ),
        say(
            "the ratio of two systems still stands, the absolute rate is this machine's; pin the "
            "generator to cores of its own or load from another host"
        ),
    )


PRESSURE_NOTE: Final = 0.0
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
            "a CPU quota was used up {times} in the window (limit 0)",
            times=count(round(times), "time"),
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
        say(
            "cores were slowed down for heat {times} in the window",
            times=count(round(times), "time"),
        ),
        say("cool the machine, or fix its clock below the limit and say so"),
    )


def memory_pressure(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful above 1 %, a note below: tasks stood still for want of memory."""
    samples = measurement.watch_measured
    share = mean_over_time(samples, lambda sample: sample.pressure_memory_some) or 0.0
    if share <= PRESSURE_NOTE:
        return None
    return on_trial(
        measurement,
        "memory-pressure",
        Level.DOUBTFUL if share > PRESSURE_DOUBTFUL else Level.NOTE,
        say(
            "in {share:.2%} of the window some task waited for memory (limit {limit:.0%})",
            share=share,
            limit=PRESSURE_DOUBTFUL if share > PRESSURE_DOUBTFUL else PRESSURE_NOTE,
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
        say(
            "{pages} moved to or from swap in the window, {per_s:.2f} a second (limit {limit:g})",
            pages=count(round(pages), "page"),
            per_s=per_s,
            limit=SWAP_DOUBTFUL_PER_S if per_s >= SWAP_DOUBTFUL_PER_S else 0,
        ),
        say("switch swap off (swapoff -a), or give the servers smaller caches"),
    )


def uneven_clock(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Note from 3 %, doubtful above 10 %: the cores' clock was another than in the other trials of
    the machine."""
    machines: dict[str, list[float]] = {}
    for m in measurements:
        if m.failure is None and (known := _known(m, lambda sample: sample.cpu_mhz)):
            machines.setdefault(m.machine, []).append(statistics.fmean(known))
    for clocks in machines.values():
        yield from _uneven(clocks)


def _uneven(clocks: Sequence[float]) -> Iterator[Finding]:
    if len(clocks) < TRIALS_MIN:
        return
    usual = statistics.median(clocks)
    off = [clock / usual - 1 for clock in clocks if abs(clock / usual - 1) > CLOCK_NOTE]
    if not off:
        return
    worst = max(off, key=abs)
    is_doubtful = abs(worst) > CLOCK_DOUBTFUL
    yield Finding(
        check="uneven-clock",
        level=Level.DOUBTFUL if is_doubtful else Level.NOTE,
        evidence=say(
            "in {count} of {total} trials the cores' clock was off its usual {usual:.0f} MHz by "
            "more than {limit:.0%}, at worst by {worst:+.1%}",
            count=sum(abs(one) > CLOCK_DOUBTFUL for one in off) if is_doubtful else len(off),
            total=len(clocks),
            usual=usual,
            limit=CLOCK_DOUBTFUL if is_doubtful else CLOCK_NOTE,
            worst=worst,
        ),
        advice=say("fix the clock (governor performance, no turbo), then measure again"),
    )


def _known(measurement: Measurement, read: Callable[[WatchSample], float | None]) -> list[float]:
    """The known values of a field in the window's samples."""
    return [value for s in measurement.watch_measured if (value := read(s)) is not None]


def _total(measurement: Measurement, read: Callable[[WatchSample], float | None]) -> float:
    """A rate added up over the window's samples; 0 where it is unknown."""
    return sum((read(s) or 0.0) * s.length_s for s in measurement.watch_measured)


PROBES_MIN: Final = 5
"""Fewer probes give no usable deviation."""
DEVIATIONS_MAX: Final = 3.0
NORMAL: Final = 1.4826
"""Turns a median absolute deviation into a standard deviation, for normal data."""


class ProbeNumber(NamedTuple):
    """One of the probe's two numbers, and from which change on it matters."""

    what: Said
    read: Callable[[Probe], float | None]
    note: float
    doubtful: float


SIDES: Final = (
    ProbeNumber(say("arithmetic"), lambda probe: probe.cpu_ms, 0.05, 0.20),
    ProbeNumber(say("a sync"), lambda probe: probe.sync_ms, 0.50, 2.00),
)


def probe_strays(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful or a note: before an arm the machine was slower or faster than before its others."""
    arms: dict[tuple[str, int, str], tuple[str, Probe]] = {}
    for m in measurements:
        if m.failure is None and m.evidence.probe is not None:
            place = m.trial.system, m.trial.block, m.trial.cell.setting
            arms[place] = m.machine, m.evidence.probe
    for system in dict.fromkeys(place[0] for place in arms):
        own = {place: found for place, found in arms.items() if place[0] == system}
        parts, level = [], Level.NOTE
        for side in SIDES:
            for (_, block, _), (machine, probe) in own.items():
                of_machine = (side.read(one) for at, one in arms.values() if at == machine)
                known = [value for value in of_machine if value is not None]
                off = _stray(side, side.read(probe), known)
                if off is None:
                    continue
                seen = {"block": block + 1, "what": side.what, "off": off}
                parts.append(say("block {block}: {what} {off:+.0%}", **seen))
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


def _stray(side: ProbeNumber, value: float | None, known: Sequence[float]) -> float | None:
    """By which share a value is off the median; None where it is within what is usual."""
    if value is None or len(known) < PROBES_MIN:
        return None
    usual = statistics.median(known)
    deviation = NORMAL * statistics.median(abs(one - usual) for one in known)
    off = value - usual
    if usual <= 0 or abs(off) <= max(DEVIATIONS_MAX * deviation, side.note * usual):
        return None
    return off / usual
