"""Causes of a difference: where a transaction's time and CPU go, and which counters differ.

    time of a transaction = CPU + waiting for a CPU + waiting for locks, disks, network

Parts are in microseconds per transaction, with an interval of their difference over the blocks.
Counters are ranked by how much of the difference they can explain (`counters.py`).
docs/how-it-works/statistics.md has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final

from dbdyno.judge.beside.accounting import (
    EFFECT_MIN,
    Both,
    factor_logs,
    paired,
    serving_s,
    time_us,
)
from dbdyno.judge.beside.counters import EXPLAINS_MOST, Change, CounterTable, TimeScale, changes
from dbdyno.judge.estimate import Pairs
from dbdyno.judge.interval import LEVEL, end_of, interval
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.measurement.cost import beside_process
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.parts import CONNECTION, Noun
from dbdyno.plan.plan import BLOCKS_MIN, DesignPlan
from dbdyno.stats.distributions import each_level

GROUPS_MAX: Final = 6
"""Groups of threads, or states, by name; all others together are `other`."""


class Factor(Noun):
    """A factor of the throughput ratio, with its 95 % interval over the blocks.

    Attributes:
        name: `work` (CPU per transaction), `taken` (CPU that others had) or `waiting`.
        ratio: below 1 it makes the system slower.
    """

    name: str
    ratio: float
    low: float
    high: float


class TimePart(Noun):
    """A part of a transaction's time or CPU, in µs per transaction.

    Attributes:
        name: `cpu`, `queued`, `waiting`; `user`, `kernel`; a group of threads; or a state.
        difference_us: the system's less the baseline's, mean over blocks; low_us, high_us: its
            interval, which holds together with those of the other parts.
        share: of the difference of the whole; None if that may be 0.
    """

    name: str
    baseline_us: float
    system_us: float
    difference_us: float
    low_us: float
    high_us: float
    share: float | None

    @property
    def is_sure(self) -> bool:
        """True if its interval leaves out 0."""
        return not self.low_us <= 0 <= self.high_us


class Causes(Noun):
    """Reasons why a system is slower or faster in a cell.

    Attributes:
        factors: their product is the throughput ratio. Empty where the ratio is not of throughput,
            or the server's CPU is unknown.
        time: parts of a transaction's time; cpu: parts of its CPU, user and kernel; threads: the
            same CPU by group of threads; states: its time by the sampled state of its connection.
            Empty where not observed.
        changes: counters that surely differ and can explain 5 %, the likeliest cause first; ten at
            most. Empty unless the verdict is better or worse.
        examined: number of counters compared.
        is_different: the verdict is better or worse.
    """

    cell: Cell
    baseline: str
    system: str
    factors: tuple[Factor, ...]
    time: tuple[TimePart, ...]
    cpu: tuple[TimePart, ...]
    threads: tuple[TimePart, ...]
    states: tuple[TimePart, ...]
    changes: tuple[Change, ...]
    examined: int
    is_different: bool = False

    @property
    def first(self) -> Change | Factor | None:
        """The likeliest cause: a counter, else the largest factor; None without a difference."""
        if not self.is_different:
            return None
        if self.changes and self.changes[0].explains >= EXPLAINS_MOST:
            return self.changes[0]
        sign = math.copysign(1.0, sum(math.log(factor.ratio) for factor in self.factors))
        along = {sign * math.log(factor.ratio): factor for factor in self.factors}
        return along[max(along)] if along and max(along) >= EFFECT_MIN else None


Us = Mapping[str, float]


def causes(pairs: Pairs, verdicts: Iterable[Verdict], design: DesignPlan) -> Iterator[Causes]:
    """Yield the causes of each verdict with three sound pairs or more, all with transactions."""
    for verdict in verdicts:
        trials = paired(pairs, verdict.estimate)
        every = [(below.measurement, above.measurement) for below, above in trials]
        both = _pairs_with_threads(every)
        if len(both) >= BLOCKS_MIN and all(m.events for pair in both for m in pair):
            yield causes_of(both, verdict, factor_logs(pairs, verdict.estimate), design)


def _pairs_with_threads(both: Both) -> Both:
    """Pairs whose threads were read, if there are enough; else all, as where no thread is seen."""
    known = [pair for pair in both if all(m.server.threads for m in pair)]
    return known if len(known) >= BLOCKS_MIN else both


def causes_of(
    both: Both, verdict: Verdict, logs: Mapping[str, Sequence[float]], design: DesignPlan
) -> Causes:
    """The causes of a verdict, of its trials and the logarithms of its factors in each block."""
    counted, word = CounterTable.of(both), verdict.word
    scale = TimeScale.of(both, {name: fmean(of_factor) for name, of_factor in logs.items()})
    is_different = word in (Word.BETTER, Word.WORSE)
    is_agreed = (word is Word.WORSE) == (scale.difference_us > 0)
    return Causes(
        cell=verdict.cell,
        baseline=verdict.baseline,
        system=verdict.system,
        factors=tuple(_factors(logs, design)),
        time=_parts(_times(both), design),
        cpu=_parts([(_cpu(a), _cpu(b)) for a, b in both], design),
        threads=_parts(_largest([(_threads(a), _threads(b)) for a, b in both]), design),
        states=_parts(_largest([(_states(a), _states(b)) for a, b in both]), design),
        changes=tuple(changes(counted, scale, design)) if is_different and is_agreed else (),
        examined=len(counted.names),
        is_different=is_different,
    )


def _ends(values: Sequence[float], design: DesignPlan, level: float) -> tuple[float, float, float]:
    """Mean over blocks, and the ends of its interval."""
    seen = interval(values, design, level)
    mean, half = float(seen.mean), float(seen.half)
    return mean, mean - half, mean + half


def _factors(logs: Mapping[str, Sequence[float]], design: DesignPlan) -> Iterator[Factor]:
    for name, of_factor in logs.items():
        ratio, low, high = map(end_of, _ends(of_factor, design, each_level(LEVEL, len(logs))))
        yield Factor(name=name, ratio=ratio, low=low, high=high)


def _times(both: Both) -> list[tuple[Us, Us]]:
    """Parts of a transaction's time in each trial; queueing only where all trials know it."""
    trials = [measurement for pair in both for measurement in pair]
    named = all(CONNECTION in measurement.server.threads for measurement in trials)
    knows = all(serving_s(m, named=named)[1] is not None for m in trials)

    def of(measurement: Measurement) -> Us:
        """The parts in a closed loop; empty in an open loop."""
        (cpu_s, queued_s), events = (
            serving_s(measurement, named=named),
            beside_process(measurement),
        )
        if measurement.trial.cell.rate_per_s is not None or cpu_s <= 0 or events <= 0:
            return {}
        parts = {"cpu": cpu_s * 1e6 / events}
        if knows and queued_s is not None:
            parts["queued"] = queued_s * 1e6 / events
        return parts | {"waiting": time_us(measurement) - sum(parts.values())}

    return [(of(below), of(above)) for below, above in both]


def _cpu(measurement: Measurement) -> Us:
    groups, events = measurement.server.threads.values(), beside_process(measurement)
    if not groups or events <= 0:
        return {}
    user_s, kernel_s = sum(g.user_s for g in groups), sum(g.system_s for g in groups)
    return {"user": user_s * 1e6 / events, "kernel": kernel_s * 1e6 / events}


def _threads(measurement: Measurement) -> Us:
    if (events := beside_process(measurement)) <= 0:
        return {}
    groups = measurement.server.threads.items()
    return {name: (work.user_s + work.system_s) * 1e6 / events for name, work in groups}


def _states(measurement: Measurement) -> Us:
    """Connections in each state over transactions a second, which is time in it (Little's law)."""
    profile, events = measurement.states, measurement.events
    if profile is None or events <= 0:
        return {}
    each_us = measurement.window_s * 1e6 / events
    return {state: each_us * count for state, count in profile.connections.items()}


def _differences(rows: Sequence[tuple[Us, Us]]) -> dict[str, list[float]]:
    """The system's less the baseline's by block, for each part; a missing part is 0."""
    names = dict.fromkeys(name for pair in rows for parts in pair for name in parts)
    return {
        name: [above.get(name, 0.0) - below.get(name, 0.0) for below, above in rows]
        for name in names
    }


def _largest(rows: Sequence[tuple[Us, Us]]) -> list[tuple[Us, Us]]:
    """The parts that differ most, and the sum of all others."""
    means = {name: abs(fmean(of_part)) for name, of_part in _differences(rows).items()}
    kept = sorted(means, key=lambda name: -means[name])[:GROUPS_MAX]

    def of(parts: Us) -> Us:
        rest = math.fsum(us for name, us in parts.items() if name not in kept)
        few = {name: parts.get(name, 0.0) for name in kept}
        return few | {"other": rest} if len(means) > GROUPS_MAX else few

    return [(of(below) if below else {}, of(above) if above else {}) for below, above in rows]


def _parts(rows: Sequence[tuple[Us, Us]], design: DesignPlan) -> tuple[TimePart, ...]:
    """Parts in µs per transaction; empty where a trial did not observe them."""
    if not all(parts for pair in rows for parts in pair):
        return ()
    differences = _differences(rows)
    whole, whole_low, whole_high = _ends(
        [sum(of_block) for of_block in zip(*differences.values(), strict=True)], design, LEVEL
    )
    is_unsure = whole_low <= 0 <= whole_high
    parts = []
    for name, of_part in differences.items():
        mean, low, high = _ends(of_part, design, each_level(LEVEL, len(differences)))
        parts.append(
            TimePart(
                name=name,
                baseline_us=fmean(below.get(name, 0.0) for below, _ in rows),
                system_us=fmean(above.get(name, 0.0) for _, above in rows),
                difference_us=mean,
                low_us=low,
                high_us=high,
                share=None if is_unsure else mean / whole,
            )
        )
    return tuple(parts)
