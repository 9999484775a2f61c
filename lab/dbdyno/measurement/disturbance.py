"""How much others disturbed a trial, and what is measured again because of it.

A trial is disturbed by other processes' CPU and by CPU time that the hypervisor gave to others.
Beyond the plan's `design.disturbance_max` it is void, and what it is compared with in its block is
measured again with it when the block has ended, while repeats are left: that workload at that load
on all systems and settings. Whether that happens follows from what others used, never from a
result. Making asks here whether to measure again, judging asks here which trials count, so both
apply one limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from dbdyno.measurement.measurement import Measurement, Trial
from dbdyno.measurement.parts import WatchSample, mean_over_time
from dbdyno.measurement.replication import NETWORK_CPU_S, REPLICAS_CPU_S

REPEATS_MIN: Final = 2
REPEATS_SHARE: Final = 4
"""So many blocks allow one repeat of each load, and a run may have `REPEATS_MIN` in any case."""
REPEATS_OF_PLACE: Final = 2
"""What is disturbed that often at one place of a run is disturbed by something that stays."""
CHARGED_MIN: Final = 0.2
"""Share of a window's seconds; one by itself may be a reading that came late."""


class Disturbance(NamedTuple):
    """What others took of the host in a trial's window, as shares of its CPU time (0 to 1).

    Attributes:
        others: CPU of processes besides server, generator and replicas.
        interrupts: part of `others` that may be interrupts, which nobody can tell from processes
            on a kernel that does not say how it counts them.
        steal: CPU that the hypervisor gave to others.
        waiting: I/O wait, as far as disks moved more bytes than the server asked for; None where
            that cannot be told.
        cores: the host's.
        is_attributed: whether the server's own CPU is known; if not, it is in `others`.
    """

    others: float
    steal: float
    waiting: float | None
    cores: float
    is_attributed: bool
    interrupts: float = 0.0

    @property
    def cpu(self) -> float:
        """What processes of others used at least; 0 where that is unknown."""
        return max(0.0, self.others - self.interrupts) if self.is_attributed else 0.0

    @property
    def share(self) -> float:
        """What the plan limits: CPU of others and steal."""
        return self.cpu + self.steal


def disturbance_of(measurement: Measurement) -> Disturbance | None:
    """What others took in the trial's window; None where nobody watched."""
    samples = measurement.watch_measured
    cores = _mean(samples, host_cpu)
    if cores <= 0 or measurement.window_s <= 0:
        return None
    apart = measurement.evidence.irq_apart
    others = _mean(samples, _not_own) - (_mean(samples, _interrupts) if apart else 0.0)
    behind = measurement.server.replication
    own_cpu_s = behind.get(REPLICAS_CPU_S, 0) + behind.get(NETWORK_CPU_S, 0)
    others -= own_cpu_s / measurement.window_s
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
    """All CPU time of the host in that second, idle too."""
    return (
        sample.host_cpu_user
        + sample.host_cpu_system
        + sample.host_cpu_iowait
        + sample.host_cpu_steal
        + sample.host_cpu_idle
    )


def _not_own(sample: WatchSample) -> float:
    busy = sample.host_cpu_user + sample.host_cpu_system
    return busy - sample.server_cpu - sample.generator_cpu


def _interrupts(sample: WatchSample) -> float:
    return sample.host_cpu_irq + sample.host_cpu_softirq


def _are_charged(samples: Sequence[WatchSample]) -> bool:
    """Whether seconds show that interrupts are in the CPU time of the processes they stop.

    There are more of them then than is left besides server and generator.
    """
    more = sum(_not_own(sample) < _interrupts(sample) for sample in samples)
    return more > CHARGED_MIN * len(samples)


def _waiting(
    measurement: Measurement, samples: Sequence[WatchSample], cores: float
) -> float | None:
    """Others' part of the I/O wait, by bytes: those that the server asked for are not theirs."""
    if REPLICAS_CPU_S in measurement.server.replication:
        return None
    disks = servers = 0.0
    for s in samples:
        if s.server_read_bytes_per_s is None or s.server_written_bytes_per_s is None:
            return None
        disks += (s.disk_read_bytes_per_s + s.disk_written_bytes_per_s) * s.length_s
        servers += (s.server_read_bytes_per_s + s.server_written_bytes_per_s) * s.length_s
    if disks <= 0:
        return 0.0
    return max(0.0, 1 - servers / disks) * _mean(samples, lambda s: s.host_cpu_iowait) / cores


def disturbed(measurement: Measurement, limit: float) -> Disturbance | None:
    """Disturbance of a completed trial above `limit`, else None."""
    if measurement.failure is not None:
        return None
    found = disturbance_of(measurement)
    return found if found is not None and found.share > limit else None


class BlockLoad(NamedTuple):
    """Where trials are compared with each other: all arms of a block, at one workload and load."""

    block: int
    load: str


_LOAD: Final = re.compile(r"^.*?/threads=\d+(?:/rate=[^/]+)?(?=/)")
_AGAIN: Final = re.compile(r"/again=(\d{1,9})$")


def _place(block: int, cell_key: str) -> BlockLoad:
    found = _LOAD.match(cell_key)
    return BlockLoad(block, found[0] if found else cell_key)


def place_of(trial: Trial) -> BlockLoad:
    """Where a trial is compared with those of the other arms."""
    return _place(trial.block, trial.cell.key)


def repeats_max(blocks: int, loads: int) -> int:
    """How many times a run of so many blocks and loads may measure again, all places together."""
    return loads * max(REPEATS_MIN, blocks // REPEATS_SHARE)


def repeats_of(trials: Iterable[tuple[int, str, str]]) -> dict[BlockLoad, int]:
    """How often each place was measured again.

    Args:
        trials: block, key of the cell, and key of every trial that is stored.
    """
    latest: dict[BlockLoad, int] = {}
    for block, cell_key, key in trials:
        place, found = _place(block, cell_key), _AGAIN.search(key)
        latest[place] = max(latest.get(place, 0), int(found[1]) if found else 0)
    return latest


def repeats(measurements: Iterable[Measurement]) -> dict[BlockLoad, int]:
    """The same of measurements."""
    return repeats_of((m.trial.block, m.trial.cell.key, m.trial.key) for m in measurements)


def current(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Without what was measured again: only the last repeat of each place counts."""
    every = list(measurements)
    latest = repeats(every)
    return [m for m in every if m.trial.repeat == latest[place_of(m.trial)]]


def lost(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Those of the last repeats that lost a machine, and were not made good when resumed."""
    every = current(measurements)
    sound = {m.trial.key for m in every if m.failure is None}
    return [m for m in every if m.lost and m.trial.key not in sound]


def to_repeat(measurements: Iterable[Measurement], blocks: int, limit: float) -> list[BlockLoad]:
    """What is to be measured again by what is stored of a run, the first block's first.

    That is where others disturbed a trial, and where a machine that took part was lost. A pilot's
    trials belong to no block.
    """
    every = [m for m in measurements if m.trial.block >= 0]
    latest = repeats(every)
    repeats_left = repeats_max(blocks, len({place.load for place in latest})) - sum(latest.values())
    found = {
        place_of(m.trial)
        for m in [*lost(every), *(m for m in current(every) if disturbed(m, limit))]
    }
    due = sorted(place for place in found if latest[place] < REPEATS_OF_PLACE)
    return due[: max(0, repeats_left)]
