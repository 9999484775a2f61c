"""Steadiness within each window: slow seconds, dips, stalls, recovery, tail.

Two systems of the same throughput differ if one stands still for a second every minute. Every
number here is of a single trial; `counts` compares systems block by block. Trials are never
averaged second by second, since an average would hide the dips of each
(docs/how-it-works/stability.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Final

import numpy as np

from dbdyno.judge.audit import Sound
from dbdyno.judge.checks.course import SECONDS_MIN, rates_of, whole_seconds
from dbdyno.judge.checks.standstill import STALL_EVENTS_MIN
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import BY_NAME
from dbdyno.measurement.parts import Interval, Noun
from dbdyno.stats.distributions import Numbers

LOW_SHARE: Final = 0.8
DIP_SHARE: Final = 0.7
RECOVERED_SHARE: Final = 0.95
CHANCE_SD: Final = 3.0
"""A low second also misses at least so many √(events), since few events scatter by themselves."""
STALL_S_MIN: Final = 0.2


class Dip(Noun):
    """Seconds in a row below 70 % of the window's median rate.

    Attributes:
        start_s, end_s: since the load began.
        least: the lowest second's share of the median.
        recovered_s: from its start to the end of the first second at 95 % of the median again; None
            if not within the window.
    """

    start_s: float
    end_s: float
    least: float
    recovered_s: float | None


class Stall(Noun):
    """A stretch of 0.2 s or more with events running and no statement answered.

    Attributes:
        until_s: end of the second in which it ended, since the load began.
        seconds: length of the longest to end in that second.
    """

    until_s: float
    seconds: float


class Stability(Noun):
    """Steadiness of a sound trial; None where its window is too short.

    Attributes:
        rate_per_s_median: of the window's whole seconds.
        low_share: share of seconds below 80 % of the median.
        stalls: None if not recorded (an imported log).
        latency_p99_over_p50: 99th percentile of latency over its median.
        latency_ms_p999: None with fewer than 100 requests beyond it.
    """

    trial: str
    cell: Cell
    system: str
    block: int
    seconds: int
    rate_per_s_median: float
    low_share: float | None
    dips: tuple[Dip, ...]
    stalls: tuple[Stall, ...] | None
    latency_p99_over_p50: float | None
    latency_ms_p999: float | None

    @property
    def stall_s_longest(self) -> float:
        """Length of the longest stall in seconds, 0 without a stall."""
        return max((stall.seconds for stall in self.stalls or ()), default=0.0)

    @property
    def stall_s_total(self) -> float:
        """All stalls together in seconds."""
        return math.fsum(stall.seconds for stall in self.stalls or ())

    @property
    def dip_s_total(self) -> float:
        """All dips together in seconds."""
        return math.fsum(dip.end_s - dip.start_s for dip in self.dips)


def stability(sound: Iterable[Sound]) -> list[Stability]:
    """Describe every sound trial with whole seconds, in the order of trials."""
    return [_of(one) for one in sound if whole_seconds(one.condensed)]


def dips_of(seconds: Sequence[Interval], rates: Numbers) -> list[Dip]:
    """The dips of these seconds; rates are theirs."""
    median = float(np.median(rates))
    low = rates < _bound(median, DIP_SHARE)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], low, [False]))))
    return [
        _dip(seconds, rates, median, int(begin), int(end))
        for begin, end in zip(edges[::2], edges[1::2], strict=True)
    ]


def stalls_of(measured: Iterable[Interval], rate_per_s: float) -> list[Stall]:
    """The stalls ending in these intervals.

    At a rate so low as to expect fewer than ten events in it, silence is no stall.
    """
    silent = ((i.end_s, i.silence_ns_max / 1e9) for i in measured)
    return [
        Stall(until_s=until_s, seconds=silence_s)
        for until_s, silence_s in silent
        if silence_s >= STALL_S_MIN and silence_s * rate_per_s >= STALL_EVENTS_MIN
    ]


def _of(sound: Sound) -> Stability:
    measurement, trial = sound.condensed, sound.trial
    seconds, rates = whole_seconds(measurement), rates_of(measurement)
    median = float(np.median(rates))
    long_enough = len(rates) >= SECONDS_MIN
    listened = any(i.silence_ns_max for i in measurement.intervals)
    return Stability(
        trial=trial.key,
        cell=trial.cell,
        system=trial.system,
        block=trial.block,
        seconds=len(rates),
        rate_per_s_median=median,
        low_share=float((rates < _bound(median, LOW_SHARE)).mean()) if long_enough else None,
        dips=tuple(dips_of(seconds, rates)) if long_enough else (),
        stalls=tuple(stalls_of(measurement.measured, median)) if listened else None,
        latency_p99_over_p50=_tail(sound),
        latency_ms_p999=sound.value(BY_NAME["latency_ms_p999"]),
    )


def _tail(trial: Sound) -> float | None:
    p99, p50 = (trial.value(BY_NAME[name]) for name in ("latency_ms_p99", "latency_ms_p50"))
    return p99 / p50 if p99 and p50 else None


def _bound(median: float, share: float) -> float:
    """Rate below which a second is low: by the share, and by more than chance explains."""
    return min(share * median, median - CHANCE_SD * math.sqrt(median))


def _dip(seconds: Sequence[Interval], rates: Numbers, median: float, begin: int, end: int) -> Dip:
    again = np.flatnonzero(rates[end:] >= RECOVERED_SHARE * median)
    start_s = seconds[begin].start_s
    return Dip(
        start_s=start_s,
        end_s=seconds[end - 1].end_s,
        least=float(rates[begin:end].min()) / median,
        recovered_s=seconds[end + int(again[0])].end_s - start_s if again.size else None,
    )


STALLS: Final = "stalls"
DIPS: Final = "dips"

COUNTS: Final[Mapping[str, Callable[[Stability], int | None]]] = {
    STALLS: lambda one: None if one.stalls is None else len(one.stalls),
    DIPS: lambda one: None if one.low_share is None else len(one.dips),
}


class CountPair(Noun):
    """Number of stalls or of dips in both systems' trials of a cell.

    Attributes:
        what: a name of `COUNTS`.
        baseline_total, system_total: over the blocks of both.
    """

    cell: Cell
    baseline: str
    system: str
    what: str
    baseline_total: int
    system_total: int
    blocks: int


def counts(stabilities: Iterable[Stability], baseline: str, system: str) -> list[CountPair]:
    """Stalls and dips of a system beside the baseline's, by cells."""
    arms: dict[Cell, dict[str, dict[int, Stability]]] = {}
    for stability in stabilities:
        blocks = arms.setdefault(stability.cell, {}).setdefault(stability.system, {})
        blocks[stability.block] = stability
    counted = []
    for (cell, of_cell), what in product(arms.items(), COUNTS):
        below, above = of_cell.get(baseline, {}), of_cell.get(system, {})
        read = ((COUNTS[what](below[at]), COUNTS[what](above[at])) for at in below if at in above)
        pairs = [(a, b) for a, b in read if a is not None and b is not None]
        if pairs:
            counted.append(
                CountPair(
                    cell=cell,
                    baseline=baseline,
                    system=system,
                    what=what,
                    baseline_total=sum(a for a, _ in pairs),
                    system_total=sum(b for _, b in pairs),
                    blocks=len(pairs),
                )
            )
    return counted
