"""How much others disturbed a trial, and which blocks are measured again because of it.

A trial is disturbed by other processes' CPU and by CPU time that the hypervisor gave to others.
Beyond the plan's `design.disturbance_max` it is void, and its block is measured again at once, all
systems of it, while repeats are left. Whether that happens follows from what others used, never
from a result. Making asks here whether to measure again, judging asks here which trials count, so
both apply one limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import WatchSample
from dbdyno.measurement.replication import REPLICAS_CPU_S

REPEATS_MIN: Final = 2
REPEATS_SHARE: Final = 4
"""So many blocks allow one repeat, and a run may have `REPEATS_MIN` in any case."""
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
    total = sum(map(host_cpu, samples))
    if total <= 0:
        return None
    apart = measurement.evidence.irq_apart
    others = sum(map(_not_own, samples)) - (sum(map(_interrupts, samples)) if apart else 0.0)
    others -= measurement.server.replication.get(REPLICAS_CPU_S, 0)  # a sample is of one second
    unclear = apart is None and not _are_charged(samples)
    return Disturbance(
        others=others / total,
        steal=sum(s.host_cpu_steal for s in samples) / total,
        waiting=_waiting(measurement, samples, total),
        cores=total / len(samples),
        is_attributed=any(sample.server_cpu > 0 for sample in samples),
        interrupts=sum(map(_interrupts, samples)) / total if unclear else 0.0,
    )


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
    measurement: Measurement, samples: Sequence[WatchSample], total: float
) -> float | None:
    """Others' part of the I/O wait, by bytes: those that the server asked for are not theirs."""
    if REPLICAS_CPU_S in measurement.server.replication:
        return None
    disks = servers = 0.0
    for s in samples:
        if s.server_read_bytes_per_s is None or s.server_written_bytes_per_s is None:
            return None
        disks += s.disk_read_bytes_per_s + s.disk_written_bytes_per_s
        servers += s.server_read_bytes_per_s + s.server_written_bytes_per_s
    if disks <= 0:
        return 0.0
    return max(0.0, 1 - servers / disks) * sum(s.host_cpu_iowait for s in samples) / total


def disturbed(measurement: Measurement, limit: float | None) -> Disturbance | None:
    """What disturbed a complete trial beyond the limit; None if nothing did, or nothing is."""
    if limit is None or measurement.failure is not None:
        return None
    found = disturbance_of(measurement)
    return found if found is not None and found.share > limit else None


def repeats_max(blocks: int) -> int:
    """How many times a run of so many blocks may measure a block again, all blocks together."""
    return max(REPEATS_MIN, blocks // REPEATS_SHARE)


_AGAIN: Final = re.compile(r"/again=(\d+)$")


def repeats_of(places: Iterable[tuple[int, str]]) -> dict[int, int]:
    """How often each block was begun again.

    Args:
        places: block and key of every trial that is stored.
    """
    latest: dict[int, int] = {}
    for block, key in places:
        found = _AGAIN.search(key)
        latest[block] = max(latest.get(block, 0), int(found[1]) if found else 0)
    return latest


def current(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Without those of blocks that were begun again: only a block's last repeat counts."""
    every = list(measurements)
    latest = repeats_of((m.trial.block, m.trial.key) for m in every)
    return [m for m in every if m.trial.repeat == latest[m.trial.block]]


def owed_again(measurements: Iterable[Measurement], blocks: int, limit: float | None) -> list[int]:
    """The blocks that are to be measured again by what is stored of a run, the first one first."""
    every = list(measurements)
    latest = repeats_of((m.trial.block, m.trial.key) for m in every)
    left = max(0, repeats_max(blocks) - sum(latest.values()))
    found = {m.trial.block for m in current(every) if m.trial.block >= 0 and disturbed(m, limit)}
    return sorted(found)[:left]
