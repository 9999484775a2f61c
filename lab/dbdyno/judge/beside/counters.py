"""Counters that differ between two servers, and how much of a difference they can explain.

A counter differs if its ratio's interval leaves out 1. The intervals of all counters of a cell hold
together, with variances moved towards the common one (`stats/moderated`). A counter can explain its
difference per transaction times the largest plausible time of a unit (`UNITS`), but no more than
the CPU, or the waiting, does. docs/how-it-works/statistics.md has the formulas.

Work in the background, such as a sync once a second, goes on whatever the throughput is. So the
slower system has more of it per transaction, but not per second. It is no cause, unless it keeps a
CPU or a disk busy: a disk that only syncs has as many syncs per second on both systems, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import numpy as np

from dbdyno.judge.beside.accounting import Both, queued_s_of, serving_s, time_us
from dbdyno.judge.interval import end_of, nominal_level
from dbdyno.measurement.cost import COSTS, CountedBy, beside_process, own_counters, source_of
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import CONNECTION, Noun, WatchSample, mean_over_time
from dbdyno.plan.plan import BLOCKS_MIN, DesignPlan
from dbdyno.stats.distributions import Numbers
from dbdyno.stats.moderated import moderated

CPU: Final = "server_cpu_us"
CHANGES_MAX: Final = 10
EXPLAINS_MIN: Final = 0.05
"""A counter that can explain a smaller share of the difference is no cause."""
EXPLAINS_MOST: Final = 0.5
"""From this share on a counter may be the main cause."""
BUSY_MIN: Final = 0.5
"""Work that goes on for a smaller part of each second, the same on both systems, holds up less than
`EXPLAINS_MOST` of a transaction's time, even if all transactions wait for it."""
SIMILAR: Final = 0.8
"""A cost whose ln ratio is at least this share of the CPU's may be what the CPU was used for."""
SMOOTHING: Final = 0.5
"""Added to each count, so that none has a logarithm too."""
SYNC_MS: Final = 10.0
READ_MS: Final = 10.0
"""Time of a sync and of a read on a slow disk, where neither was measured."""


class Change(Noun):
    """A counter, or a cost, that differs between two systems per transaction.

    Attributes:
        name: of a cost (`measurement.cost`), or the server's own name of a counter.
        is_cost: True for a cost.
        baseline, system: count per transaction.
        ratio, low, high: system / baseline with its simultaneous interval; None where one of them
            counts nothing.
        explains: the largest share, 0 to 1, of the difference in a transaction's time that it can
            explain.
    """

    name: str
    is_cost: bool
    baseline: float
    system: float
    ratio: float | None
    low: float | None
    high: float | None
    explains: float


@dataclass(frozen=True)
class UnitTime:
    """The largest plausible time of a unit, in a transaction.

    Attributes:
        cpu_us: CPU that it needs.
        wait_us: time that it waits.
        syncs, reads: syncs and reads of the disk that it waits for, by their measured times.
    """

    cpu_us: float = 0.0
    wait_us: float = 0.0
    syncs: float = 0.0
    reads: float = 0.0


UNITS: Final[Mapping[str, UnitTime]] = {
    CPU: UnitTime(1),
    "rows_read": UnitTime(5),  # found in memory, returned to the executor: 0.1 to 2 µs
    "rows_changed": UnitTime(20),  # with its indexes, undo and redo
    "read_kb": UnitTime(3, reads=1 / 16),  # a page of 16 KB: checksum, place in the buffer pool
    "written_kb": UnitTime(1, 10),  # copied; 100 MB/s to the disk
    "log_kb": UnitTime(1, 10),
    "storage_read_kb": UnitTime(3, reads=1 / 16),
    "storage_written_kb": UnitTime(1),  # into the page cache
    "syncs": UnitTime(50, syncs=1),
    "disk_flushes": UnitTime(50, syncs=1),
    "switches": UnitTime(10, 10),  # 1 to 3 µs, and caches to fill again
    "replies_kb": UnitTime(1, 1),
}
"""Costs, with two to ten times what a unit usually takes: an upper bound, as a cost that explains
too little even so is no cause."""
OWN_UNITS: Final[Mapping[re.Pattern[str], UnitTime]] = {
    re.compile(pattern): unit
    for pattern, unit in {
        r"(?i).*(fsyncs?|_syncs?|wal_sync)": UNITS["syncs"],
        r"(?i).*(pages_read|pool_reads|blks_read|data_reads)": UnitTime(50, reads=1),
        r"Handler_read_.*|Rows_.*read|.*tup_(returned|fetched)": UNITS["rows_read"],
        # A page found in memory, a record of the log copied: 0.1 to 0.5 µs.
        r"(?i)(innodb|key|aria)_.*_requests|.*[_.]hits?|Handler_external_lock": UnitTime(2),
        r"(?i)rpl_semi_sync_.*_wait_time": UnitTime(0, 1),  # in µs
        r"(?i).*_time": UnitTime(0, 1000),  # in ms, of waiting for locks and disks
        r"(?i)(.*[_.])?bytes([_.].*)?": UnitTime(0.001, 0.001),
    }.items()
}
"""The same for the server's own counters, by their names."""
OTHER: Final = UnitTime(20, 20)
"""Any other counter: most of what a server counts takes less than a microsecond."""
SEEN_AGAIN: Final[Mapping[str, str]] = {
    "disk_flushes": "syncs",
    "storage_read_kb": "read_kb",
    "storage_written_kb": "written_kb",
}
"""Costs that see at the disk what another cost saw at the server."""


@dataclass(frozen=True)
class CounterTable:
    """Counts of two systems, in the order of `COSTS` and then of the server.

    Attributes:
        counts, events: of the baseline and the system, of each block and counter; events are those
            in which it was counted, NaN if unknown.
    """

    names: Sequence[str]
    costs: int
    counts: Numbers
    events: Numbers

    @classmethod
    def of(cls, both: Both) -> CounterTable:
        """All costs and counters that every trial has, in three blocks at least."""
        trials = [measurement for pair in both for measurement in pair]
        costs = {cost.name: source for cost in COSTS if (source := source_of(cost, trials))}
        own = {source.name: source for source in own_counters(trials, costs.values())}
        sources = [*costs.values(), *own.values()]
        shape = (len(both), 2, len(sources))
        counts = np.array([[source.total(m) for source in sources] for m in trials], dtype=float)
        events = _events(trials, sources)
        counts, events = (
            np.swapaxes(table.reshape(shape), 0, 1) for table in (np.maximum(counts, 0.0), events)
        )
        kept = (~np.isnan(events).any(axis=0)).sum(axis=0) >= BLOCKS_MIN
        kept &= counts.sum(axis=(0, 1)) > 0
        names = [name for name, is_kept in zip([*costs, *own], kept, strict=True) if is_kept]
        return cls(names, int(kept[: len(costs)].sum()), counts[..., kept], events[..., kept])

    def per_event(self) -> Numbers:
        """Count per transaction of the baseline and the system, over all blocks known of both."""
        known = ~np.isnan(self.events).any(axis=0)
        counts, events = (np.where(known, t, 0.0).sum(axis=1) for t in (self.counts, self.events))
        return np.asarray(counts / events)


def _events(trials: Sequence[Measurement], sources: Sequence[CountedBy]) -> Numbers:
    """Events of each trial for each source; NaN if there are none, or it is unknown how many."""
    ways: dict[Callable[[Measurement], float | None], list[float]] = {}
    for source in sources:
        if source.events not in ways:
            ways[source.events] = [source.events(m) or math.nan for m in trials]
    columns = [ways[source.events] for source in sources]
    return np.array(columns, dtype=float).reshape(len(sources), len(trials)).T


@dataclass(frozen=True)
class TimeScale:
    """Turns a difference in counts into a share of the difference in a transaction's time.

    Attributes:
        difference_us: the system's time of a transaction less the baseline's.
        rates_per_s: transactions/s of the baseline and of the system.
        running: transactions that run at a time; in a closed loop the connections.
        crowd: µs of a transaction's time that go with a µs of its CPU: on a busy machine it also
            waits for the CPU that others use.
        work, waiting: most that CPU, and waiting, explain of the difference, 0 to 1.
        sync_us, read_us: time of a sync, and of a read of a page.
    """

    difference_us: float
    rates_per_s: tuple[float, float]
    running: float
    crowd: float
    work: float
    waiting: float
    sync_us: float
    read_us: float

    @classmethod
    def of(cls, both: Both, logs: Mapping[str, float]) -> TimeScale:
        """Of the trials of two systems, and the logarithms of the throughput ratio's factors."""
        trials = [measurement for pair in both for measurement in pair]
        difference_us = fmean(time_us(above) - time_us(below) for below, above in both)
        faster = [below if difference_us > 0 else above for below, above in both]
        total = sum(logs.values())
        shares = {name: min(1.0, max(0.0, log / total)) for name, log in logs.items() if total}
        probes = [measurement.evidence.probe for measurement in trials]
        syncs_ms = [probe.sync_ms for probe in probes if probe and probe.sync_ms]
        reads_ms = [ms for m in trials if (ms := mean_over_time(m.watch_measured, _read_ms))]
        rates = [fmean(m.events / m.window_s for m in arm) for arm in zip(*both, strict=True)]
        return cls(
            difference_us=difference_us,
            rates_per_s=(rates[0], rates[1]),
            running=fmean(_running(m) for m in faster),
            crowd=fmean(_crowd(m) for m in faster),
            work=shares.get("work", 1.0),
            waiting=max(shares.get("waiting", 1.0), _share_waited(both, difference_us)),
            sync_us=max(syncs_ms, default=SYNC_MS) * 1e3,
            read_us=max(reads_ms, default=READ_MS) * 1e3,
        )

    def explains(self, unit: UnitTime, baseline: float, system: float) -> float:
        """The largest share that a counter can explain; 0 where the faster system has more of it.

        A sync may hold up each running transaction, twice if it came while the last one was done.
        """
        share = (system - baseline) / self.difference_us
        if share <= 0:
            return 0.0
        waiters = max(1.0, min(self.running, 1 / max(baseline, system)))
        wait_us = unit.wait_us + unit.syncs * 2 * waiters * self.sync_us + unit.reads * self.read_us
        by_work = min(self.work, share * unit.cpu_us * self.crowd)
        return min(1.0, by_work + min(self.waiting, share * wait_us))

    def is_background(self, unit: UnitTime, baseline: float, system: float, doubt: float) -> bool:
        """True if the system with more per transaction has no more per second, and it is not busy.

        Args:
            doubt: half width of the counter's ln ratio; a smaller excess per second is none.
        """
        below_per_s, above_per_s = self.rates_per_s
        low, high = sorted(((baseline, baseline * below_per_s), (system, system * above_per_s)))
        us = unit.cpu_us + unit.wait_us + unit.syncs * self.sync_us + unit.reads * self.read_us
        return high[1] <= low[1] * end_of(doubt) and high[1] * us < BUSY_MIN * 1e6


def _running(measurement: Measurement) -> float:
    return time_us(measurement) * measurement.events / measurement.window_s / 1e6


def _share_waited(both: Both, difference_us: float) -> float:
    """Share of the difference in time that is neither CPU nor queueing; 0 if not observed.

    The logarithms' share is smaller where CPU is a small part of the time: 100 µs more of it are
    twice the CPU, though the transaction waits for 1000 µs more.
    """
    pairs = [(_waited_us(below), _waited_us(above)) for below, above in both]
    waited_us = [above - below for below, above in pairs if below is not None and above is not None]
    if len(waited_us) < BLOCKS_MIN or not difference_us:
        return 0.0
    return min(1.0, max(0.0, fmean(waited_us) / difference_us))


def _waited_us(measurement: Measurement) -> float | None:
    queued_s, events = queued_s_of(measurement), beside_process(measurement)
    if queued_s is None or events <= 0:
        return None
    return time_us(measurement) - (measurement.server.cpu_s + queued_s) * 1e6 / events


def _crowd(measurement: Measurement) -> float:
    named = CONNECTION in measurement.server.threads
    cpu_s, queued_s = serving_s(measurement, named=named)
    if cpu_s <= 0:
        return 1.0
    if queued_s is not None:
        return 1 + queued_s / cpu_s
    return max(1.0, _running(measurement) * measurement.window_s / cpu_s)


def _read_ms(sample: WatchSample) -> float | None:
    known = (disk.read_ms_avg for disk in sample.disks.values())
    return max((ms for ms in known if ms is not None), default=None)


def changes(counted: CounterTable, scale: TimeScale, design: DesignPlan) -> list[Change]:
    """Counters that surely differ and can explain a part of the difference, the likeliest first."""
    if not counted.names or not scale.difference_us:
        return []
    smooth = np.log((counted.counts + SMOOTHING) / counted.events)
    least = (1 / (counted.counts + SMOOTHING)).sum(axis=0).mean(axis=0)  # as Poisson's counts have
    seen = moderated(smooth[1] - smooth[0], least)
    halves = seen.half_widths(nominal_level(counted.counts.shape[1], design))
    doubts = np.maximum(halves, math.log1p(design.margin))
    per_event = counted.per_event()
    rows: list[_Ranked] = []
    for at in map(int, np.flatnonzero(np.abs(seen.mean) > doubts)):
        log, half = float(seen.mean[at]), float(halves[at])
        baseline, system = map(float, per_event[:, at])
        name, is_cost = counted.names[at], at < counted.costs
        unit, is_on_both = _unit(name, is_cost) or OTHER, min(baseline, system) > 0
        explains = scale.explains(unit, baseline, system)
        is_cause = explains >= EXPLAINS_MIN and log * (system - baseline) > 0
        if is_cause and not scale.is_background(unit, baseline, system, float(doubts[at])):
            change = Change(
                name=name,
                is_cost=is_cost,
                baseline=baseline,
                system=system,
                ratio=end_of(log) if is_on_both else None,
                low=end_of(log - half) if is_on_both else None,
                high=end_of(log + half) if is_on_both else None,
                explains=explains,
            )
            rows.append(_Ranked(change, log))
    return [ranked.change for ranked in _without_synonyms(rows)][:CHANGES_MAX]


def _unit(name: str, is_cost: bool) -> UnitTime | None:
    """The time of a unit; None if only a bound is known that holds for any counter."""
    if is_cost:
        return UNITS.get(name)
    return next((unit for pattern, unit in OWN_UNITS.items() if pattern.fullmatch(name)), None)


@dataclass(frozen=True)
class _Ranked:
    """A change with its ln ratio."""

    change: Change
    log: float

    @property
    def is_main(self) -> bool:
        return self.change.explains >= EXPLAINS_MOST

    def place(self, cpu_log: float) -> tuple[bool, int, bool, float]:
        """Key of the order: what CPU was used for stands before the CPU itself, unknowns last."""
        change = self.change
        group = 0 if abs(self.log) >= SIMILAR * cpu_log else 2
        if change.name == CPU:
            group = 1
        elif _unit(change.name, change.is_cost) is None:
            group = 3
        return not self.is_main, group, not change.is_cost, -abs(self.log)

    @property
    def is_of_one(self) -> bool:
        """True if only one of the systems counts any."""
        return not min(self.change.baseline, self.change.system)

    def is_seen_by(self, better: _Ranked) -> bool:
        """True if a better place in the order has the same events, counted elsewhere."""
        own, other = self.change, better.change
        if own.is_cost or other.name == CPU:
            return False
        differences = [change.system - change.baseline for change in (own, other)]
        return (
            (self.is_of_one and better.is_of_one)
            or math.isclose(differences[0], differences[1], rel_tol=0.2)
            or math.isclose(self.log, better.log, rel_tol=0.1)
        )


def _without_synonyms(rows: Sequence[_Ranked]) -> list[_Ranked]:
    """The changes in their order, each event once."""
    by_name = {ranked.change.name: ranked for ranked in rows}
    cpu_log = abs(by_name[CPU].log) if CPU in by_name else 0.0
    kept: list[_Ranked] = []
    for ranked in sorted(rows, key=lambda ranked: ranked.place(cpu_log)):
        seen = by_name.get(SEEN_AGAIN.get(ranked.change.name, ""))
        is_again = seen is not None and (seen.is_main or not ranked.is_main)
        if not is_again and not any(ranked.is_seen_by(better) for better in kept):
            kept.append(ranked)
    return kept
