"""The machine in each trial: shared, held back, or changed since another arm.
(docs/reference/findings.md)

A machine slowed down by a quota, heat, lack of memory or a lower clock does not show it as load. A
clock is compared with the run's other trials. Before each arm, with no server up, some arithmetic
and a few syncs are timed: a time is reported if it lies more than three deviations (1.4826 × the
median absolute deviation) from the run's median.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.measurement.disturbance import disturbance_of, host_cpu
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Probe, WatchSample, mean_over_time
from dbdyno.plan.plan import Plan


class Limit(NamedTuple):
    """Limits of a quantity: beyond the first it is a note, from the second on a doubt."""

    note: float
    doubtful: float = math.inf


LIMITS: Final[Mapping[str, Limit]] = {
    # Most virtual machines lose 0.5 % in one trial of a dozen; 2 % can move a rate by the margin.
    "steal": Limit(0.005, 0.02),
    # The method's 2 %; kernel work done for the server counts as another's too.
    "others": Limit(0.02, 0.10),
    "busy": Limit(0.95),
    "quota": Limit(0, 0),
    "heat": Limit(0, 0),
    "memory": Limit(0, 0.01),
    "swap": Limit(0, 1),
    "clock": Limit(0.03, 0.10),
    "arithmetic": Limit(0.05, 0.20),
    "sync": Limit(0.50, 2.00),
}
"""Shares, times in the window, pages a second, and shares off the run's usual value."""
TRIALS_MIN: Final = 3
"""Least number of trials for a usual clock."""
PROBES_MIN: Final = 5
"""Least number of probes for a usable deviation."""
DEVIATIONS_MAX: Final = 3.0
NORMAL: Final = 1.4826
"""Turns a median absolute deviation into a standard deviation, for normal data."""
PROBED: Final[Mapping[str, Callable[[Probe], float | None]]] = {
    "arithmetic": lambda probe: probe.cpu_ms,
    "sync": lambda probe: probe.sync_ms,
}

Rows = Iterator[dict[str, Any]]
"""Quantities to hold against their limits: `what`, `value`, and further values for the report."""


def machine(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful or a note: the machine was shared, held back, or another than before in a trial."""
    complete = [m for m in measurements if m.failure is None]
    clocks, probes = _clocks(complete), _probes(complete)
    for m in complete:
        rows, level = [], Level.NOTE
        for row in (*_watched(m), *_clock(m, clocks), *_probed(m, probes)):
            limit, size = LIMITS[row["what"]], abs(row["value"])
            if size > limit.note:
                is_doubtful = size >= limit.doubtful
                level = Level.DOUBTFUL if is_doubtful else level
                rows.append({"limit": limit.doubtful if is_doubtful else limit.note, **row})
        if rows:
            yield on_trial(m, "machine", level, rows=rows)


def _watched(m: Measurement) -> Rows:
    """Quantities of the window by itself."""
    seen, samples = disturbance_of(m), m.watch_measured
    if seen is not None:
        yield {"what": "steal", "value": seen.steal}
        if seen.is_attributed:  # else the server is one of them, or runs on another machine
            # Ticks of processes and of the host are counted apart: a little below 0 is nobody's.
            others = max(0.0, seen.others)
            used = {"used": others * seen.cores, "cores": seen.cores}
            yield {"what": "others", "value": others, **used}
    cores = mean_over_time(samples, host_cpu) or 0.0
    generator = mean_over_time(samples, lambda s: s.generator_cpu) or 0.0
    if cores > 0 and generator > 0:
        unused = mean_over_time(samples, lambda s: s.host_cpu_idle + s.host_cpu_iowait) or 0.0
        shares = {"idle": unused / cores, "generator": generator / cores}
        yield {"what": "busy", "value": 1 - shares["idle"], **shares}
    yield {"what": "quota", "value": _total(m, lambda s: s.throttled_per_s)}
    yield {"what": "heat", "value": _total(m, lambda s: s.thermal_events_per_s)}
    waiting = mean_over_time(samples, lambda s: s.pressure_memory_some)
    yield {"what": "memory", "value": waiting or 0.0}
    if pages := _total(m, lambda s: s.swap_pages_per_s):
        yield {"what": "swap", "value": pages / m.window_s, "pages": round(pages)}


def _total(measurement: Measurement, read: Callable[[WatchSample], float | None]) -> float:
    """A rate added up over the window's samples; 0 where it is unknown."""
    return sum((read(s) or 0.0) * s.length_s for s in measurement.watch_measured)


def _mhz(m: Measurement) -> float | None:
    """Mean clock of the cores in the window."""
    known = [sample.cpu_mhz for sample in m.watch_measured if sample.cpu_mhz is not None]
    return statistics.fmean(known) if known else None


def _clocks(complete: Sequence[Measurement]) -> dict[str, list[float]]:
    """Clocks of each machine's trials."""
    clocks: dict[str, list[float]] = {}
    for m in complete:
        if (mhz := _mhz(m)) is not None:
            clocks.setdefault(m.machine, []).append(mhz)
    return clocks


def _clock(m: Measurement, clocks: Mapping[str, Sequence[float]]) -> Rows:
    """The clock beside the machine's other trials."""
    mhz, known = _mhz(m), clocks.get(m.machine, ())
    if mhz is not None and len(known) >= TRIALS_MIN:
        usual = statistics.median(known)
        yield {"what": "clock", "value": mhz / usual - 1, "usual_mhz": usual}


Arm = tuple[str, int, str]


def _arm(m: Measurement) -> Arm:
    return m.trial.system, m.trial.block, m.trial.cell.setting


def _probes(complete: Sequence[Measurement]) -> dict[str, dict[Arm, Probe]]:
    """Probes before each arm, by machines."""
    probes: dict[str, dict[Arm, Probe]] = {}
    for m in complete:
        if m.evidence.probe is not None:
            probes.setdefault(m.machine, {})[_arm(m)] = m.evidence.probe
    return probes


def _probed(m: Measurement, probes: Mapping[str, Mapping[Arm, Probe]]) -> Rows:
    """Times of the probe before the trial's arm, as shares off the machine's usual times."""
    of_machine = probes.get(m.machine, {})
    if (own := of_machine.get(_arm(m))) is None:
        return
    for what, read in PROBED.items():
        known = [value for one in of_machine.values() if (value := read(one)) is not None]
        value = read(own)
        if value is None or len(known) < PROBES_MIN:
            continue
        usual = statistics.median(known)
        deviation = NORMAL * statistics.median(abs(one - usual) for one in known)
        if usual > 0 and abs(value - usual) > DEVIATIONS_MAX * deviation:
            yield {"what": what, "value": value / usual - 1}
