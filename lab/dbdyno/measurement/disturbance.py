"""Disturbance of trials by others, and the trials to measure again because of it.

A trial is disturbed by other processes' CPU and by CPU time that the hypervisor gave to others.
Above the plan's `design.disturbance_max` the trial is void. After its block has ended, its place
is measured again while repeats are left: the same workload at the same load on all systems and
settings. The decision depends on others' use alone, never on a result. Making asks this module for
trials to repeat, judging for trials that count, so both apply the same limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.measurement.parts import WatchSample, mean_over_time

REPEATS_MIN: Final = 2
REPEATS_SHARE: Final = 4
"""Number of blocks for each allowed repeat of a load, beyond the first `REPEATS_MIN`."""
REPEATS_OF_PLACE: Final = 2
"""Limit of repeats at the same place; further disturbance has a lasting cause."""
CHARGED_MIN: Final = 0.2
"""Share of a window's seconds; a single second may be a late reading."""


class Disturbance(NamedTuple):
    """Others' use of the host in a trial's window, as shares of its CPU time (0 to 1).

    Attributes:
        others: CPU of processes besides server, generator and replicas.
        interrupts: part of `others` that may be interrupts, on a kernel that does not say how it
            counts them.
        steal: CPU given to others by the hypervisor.
        waiting: I/O wait, as far as disks moved more bytes than the server asked for; None if
            unknown.
        cores: the host's.
        is_attributed: True if the server's own CPU is known; if not, it is in `others`.
    """

    others: float
    steal: float
    waiting: float | None
    cores: float
    is_attributed: bool
    interrupts: float = 0.0

    @property
    def cpu(self) -> float:
        """Least CPU used by processes of others; 0 if unknown."""
        return max(0.0, self.others - self.interrupts) if self.is_attributed else 0.0

    @property
    def share(self) -> float:
        """The quantity limited by the plan: CPU of others and steal."""
        return self.cpu + self.steal


def disturbance_of(measurement: Measurement) -> Disturbance | None:
    """Others' use in the trial's window; None if the host was not watched."""
    samples = measurement.watch_measured
    cores = _mean(samples, host_cpu)
    if cores <= 0 or measurement.window_s <= 0:
        return None
    apart = measurement.evidence.irq_apart
    others = _mean(samples, _not_own) - (_mean(samples, _interrupts) if apart else 0.0)
    unclear = apart is None and not _are_charged(samples)
    return Disturbance(
        others=others / cores,
        steal=_mean(samples, lambda s: s.host_cpu_steal) / cores,
        waiting=_waiting(measurement, samples, cores),
        cores=cores,
        is_attributed=any(sample.server_cpu > 0 for sample in samples),
        interrupts=_mean(samples, _interrupts) / cores if unclear else 0.0,
    )


def _mean(samples: Sequence[WatchSample], read: Callable[[WatchSample], float]) -> float:
    return mean_over_time(samples, read) or 0.0


def host_cpu(sample: WatchSample) -> float:
    """All CPU time of the host in a second, idle time included."""
    return (
        sample.host_cpu_user
        + sample.host_cpu_system
        + sample.host_cpu_iowait
        + sample.host_cpu_steal
        + sample.host_cpu_idle
    )


def _not_own(sample: WatchSample) -> float:
    busy = sample.host_cpu_user + sample.host_cpu_system
    return busy - sample.server_cpu - sample.generator_cpu - (sample.replicas_cpu or 0.0)


def _interrupts(sample: WatchSample) -> float:
    return sample.host_cpu_irq + sample.host_cpu_softirq


def _are_charged(samples: Sequence[WatchSample]) -> bool:
    """True if the kernel charges interrupts to the processes they stop.

    Then their time exceeds the rest besides server and generator in many seconds.
    """
    more = sum(_not_own(sample) < _interrupts(sample) for sample in samples)
    return more > CHARGED_MIN * len(samples)


def _waiting(
    measurement: Measurement, samples: Sequence[WatchSample], cores: float
) -> float | None:
    """Others' part of the I/O wait, by bytes beyond the server's own."""
    disks = servers = 0.0
    for s in samples:
        if s.server_read_bytes_per_s is None or s.server_written_bytes_per_s is None:
            return None
        if s.replicas_cpu is not None:
            return None  # nobody counts the replicas' bytes
        disks += (s.disk_read_bytes_per_s + s.disk_written_bytes_per_s) * s.length_s
        servers += (s.server_read_bytes_per_s + s.server_written_bytes_per_s) * s.length_s
    if disks <= 0:
        return 0.0
    return max(0.0, 1 - servers / disks) * _mean(samples, lambda s: s.host_cpu_iowait) / cores


def disturbed(measurement: Measurement, limit: float) -> Disturbance | None:
    """Disturbance of a completed trial above `limit`, else None."""
    if measurement.failure is not None:
        return None
    disturbance = disturbance_of(measurement)
    return disturbance if disturbance is not None and disturbance.share > limit else None


class BlockLoad(NamedTuple):
    """Place where trials are compared: all arms of a block, at the same workload and load."""

    block: int
    load: str


_LOAD: Final = re.compile(r"^.*?/threads=\d+(?:/rate=[^/]+)?(?=/)")
_AGAIN: Final = re.compile(r"/again=(\d{1,9})$")


def _place(block: int, cell_key: str) -> BlockLoad:
    load = _LOAD.match(cell_key)
    return BlockLoad(block, load[0] if load else cell_key)


def place_of(trial: Trial) -> BlockLoad:
    """The place where a trial is compared with the other arms'."""
    return _place(trial.block, trial.cell.key)


def repeats_max(blocks: int, loads: int) -> int:
    """Number of repeats allowed to a run with these blocks and loads, over all places."""
    return loads * max(REPEATS_MIN, blocks // REPEATS_SHARE)


def repeats_of(trials: Iterable[tuple[int, str, str]]) -> dict[BlockLoad, int]:
    """Number of repeats of each place.

    Args:
        trials: block, key of the cell, and key of every stored trial.
    """
    latest: dict[BlockLoad, int] = {}
    for block, cell_key, key in trials:
        place, repeat = _place(block, cell_key), _AGAIN.search(key)
        latest[place] = max(latest.get(place, 0), int(repeat[1]) if repeat else 0)
    return latest


def repeats(measurements: Iterable[Measurement]) -> dict[BlockLoad, int]:
    """Number of repeats of each place in these measurements."""
    return repeats_of((m.trial.block, m.trial.cell.key, m.trial.key) for m in measurements)


def current(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Measurements of the last repeat of each place, the only ones to count."""
    every = list(measurements)
    latest = repeats(every)
    return [m for m in every if m.trial.repeat == latest[place_of(m.trial)]]


def lost(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Trials of the last repeats that lost a machine and were not completed on a resume."""
    every = current(measurements)
    sound = {m.trial.key for m in every if m.failure is None}
    return [m for m in every if m.lost and m.trial.key not in sound]


def to_repeat(measurements: Iterable[Measurement], blocks: int, limit: float) -> list[BlockLoad]:
    """Places to measure again according to the stored trials, the first block's first.

    These are places with a disturbed trial or a lost machine. A pilot's trials belong to no block.
    """
    every = [m for m in measurements if m.trial.block >= 0]
    latest = repeats(every)
    repeats_left = repeats_max(blocks, len({place.load for place in latest})) - sum(latest.values())
    places = {
        place_of(m.trial)
        for m in [*lost(every), *(m for m in current(every) if disturbed(m, limit))]
    }
    due = sorted(place for place in places if latest[place] < REPEATS_OF_PLACE)
    return due[: max(0, repeats_left)]
