"""The two parts of a difference in throughput: CPU per transaction, and CPU used.

Transactions/s are server cores used over server CPU per transaction, so for two systems

    ln(TPS ratio) = −ln(CPU per transaction ratio) + ln(CPU used ratio)

holds exactly. The first part is the systems' own work. The second is CPU which only one system had:
others took it from the other system, or it waited, or the load took the rest. An estimate has no
such parts where the server's CPU is unknown, where its metric is not throughput, or where its
ratio is of parts of the windows only: CPU was taken over whole windows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Final

from dbdyno.judge.audit import Sound
from dbdyno.judge.estimate import Estimate, Pairs
from dbdyno.measurement.disturbance import disturbance_of
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.metric import PRIMARY
from dbdyno.measurement.parts import CONNECTION, Noun

EFFECT_MIN: Final = 0.005
"""A smaller change of throughput by a part counts as no change."""
Parts = tuple[float, float]
"""Logarithms of the factors by work and by use."""
Both = Sequence[tuple[Measurement, Measurement]]
"""Trials of the baseline and of the system, a pair for each block."""
QUEUED_MOST: Final = 0.99
"""More than the whole of a transaction's time has no logarithm."""
TAKEN_MIN: Final = 0.01
"""Least excess share of the host's CPU taken by others for it to be named as a cause."""


class Accounting(Noun):
    """The parts of a throughput ratio; geometric means over the verdict's blocks.

    Attributes:
        ratio: of transactions/s, over whole windows: `by_work` × `by_use`.
        by_work: factor from CPU per transaction; below 1 the system needs more than the baseline.
        by_use: factor from CPU used: the server's cores in use over the baseline's.
        taken: share of the host's CPU taken by others, the system's less the baseline's; None if
            unobserved.
        blocks: number of sound pairs.
    """

    cell: Cell
    baseline: str
    system: str
    ratio: float
    by_work: float
    by_use: float
    taken: float | None
    blocks: int

    @property
    def directions(self) -> tuple[int, int]:
        """Signs of the changes by work and by use: 1 up, −1 down, 0 below `EFFECT_MIN`."""
        return _direction(self.by_work), _direction(self.by_use)

    @property
    def is_taken(self) -> bool:
        """True if the system used less CPU while others took more of it."""
        return self.directions[1] < 0 and (self.taken or 0.0) >= TAKEN_MIN


def _direction(part: float) -> int:
    if abs(math.log(part)) < EFFECT_MIN:
        return 0
    return 1 if part > 1 else -1


def accountings(pairs: Pairs, estimates: Iterable[Estimate]) -> Iterator[Accounting]:
    """Yield an accounting for each estimate of throughput with known server CPU."""
    yield from filter(None, (_accounting(pairs, estimate) for estimate in estimates))


def cpu_taken(pairs: Pairs, estimate: Estimate) -> float:
    """Share of the ratio, as a logarithm, that CPU taken by others may explain.

    A system that used less CPU while others took more beside it may have lost as much throughput as
    CPU: what others took over what the server used, or all of its lower use if that is less.

    Returns:
        Above 0 the system lost CPU and the true ratio may be higher by so much; below 0 the
        baseline did; 0 where neither is seen.
    """
    parts = _accounting(pairs, estimate)
    if parts is None or parts.taken is None or abs(parts.taken) < TAKEN_MIN:
        return 0.0
    sign = math.copysign(1.0, parts.taken)
    lost = -sign * math.log(parts.by_use)
    deprived = estimate.system if sign > 0 else estimate.baseline
    used = [
        _share_used(sound.measurement, seen.cores)
        for sound in pairs.arm(estimate.cell, deprived).values()
        if (seen := disturbance_of(sound.measurement)) is not None
    ]
    return sign * min(lost, math.log1p(abs(parts.taken) / fmean(used))) if lost > 0 else 0.0


def _share_used(measurement: Measurement, cores: float) -> float:
    """Share of the host's CPU that the server used."""
    return measurement.server.cpu_s / measurement.window_s / cores


def factor_logs(pairs: Pairs, estimate: Estimate) -> dict[str, list[float]]:
    """Logarithms of the ratio's factors in each block, with CPU used in up to two factors.

    Returns:
        `work`, by CPU per transaction; `taken`, by CPU that others took beside one of the systems;
        `waiting`, by the rest of CPU used. Empty without an `Accounting`; without `taken` where
        others took about the same beside both systems, or were not observed.
    """
    account, both = _accounting(pairs, estimate), paired(pairs, estimate)
    if account is None:
        return {}
    parts = [part for part in (_parts(*pair) for pair in both) if part is not None]
    work, use = [part[0] for part in parts], [part[1] for part in parts]
    if account.taken is None or abs(account.taken) < TAKEN_MIN:
        return {"work": work, "waiting": use}
    taken = [_taken_part(pair, log) for pair, log in zip(both, use, strict=True)]
    waiting = [log - part for log, part in zip(use, taken, strict=True)]
    return {"work": work, "taken": taken, "waiting": waiting}


def _taken_part(both: tuple[Sound, Sound], use: float) -> float:
    """Part of a block's factor by use, as a logarithm, that CPU taken by others explains.

    Others also use the CPU that a waiting server leaves. So they took no more than the time for
    which its threads were queued beyond those of the other system, where that is known.
    """
    below, above = (disturbance_of(sound.measurement) for sound in both)
    if below is None or above is None:
        return 0.0
    excess = above.share - below.share
    deprived, other = (sound.measurement for sound in (both[::-1] if excess > 0 else both))
    cores = (above if excess > 0 else below).cores
    most = math.log1p(abs(excess) / _share_used(deprived, cores))
    if (queued := _queued_longer(deprived, other)) is not None:
        most = min(most, -math.log1p(-queued))
    return max(-most, min(0.0, use)) if excess > 0 else min(most, max(0.0, use))


def _queued_longer(deprived: Measurement, other: Measurement) -> float | None:
    """Share of a transaction's time for which threads were queued beyond the other server's."""
    here_s, there_s, cell = queued_s_of(deprived), queued_s_of(other), deprived.trial.cell
    if here_s is None or there_s is None or cell.rate_per_s is not None:
        return None
    longer_s = here_s - there_s * deprived.events / other.events
    return min(max(0.0, longer_s / (cell.threads * deprived.window_s)), QUEUED_MOST)


def queued_s_of(measurement: Measurement) -> float | None:
    """Time for which the server's threads waited for a CPU, their sum; None if not observed."""
    groups = [work.queued_s for work in measurement.server.threads.values()]
    known = [queued_s for queued_s in groups if queued_s is not None]
    return math.fsum(known) if known and len(known) == len(groups) else None


def time_us(measurement: Measurement) -> float:
    """Time of a transaction: of a connection, or in an open loop from its intended start."""
    cell = measurement.trial.cell
    if cell.rate_per_s is None:
        return cell.threads * measurement.window_s * 1e6 / measurement.events
    latency_ns = sum(second.latency_ns_sum for second in measurement.measured)
    return latency_ns / measurement.events / 1e3


def serving_s(measurement: Measurement, *, named: bool) -> tuple[float, float | None]:
    """CPU and queueing of the threads that serve connections; of all threads unless `named`."""
    server = measurement.server
    if not named:
        return server.cpu_s, queued_s_of(measurement)
    work = server.threads[CONNECTION]
    return work.user_s + work.system_s, work.queued_s


def _accounting(pairs: Pairs, estimate: Estimate) -> Accounting | None:
    both = paired(pairs, estimate)
    if estimate.metric != PRIMARY.name or not both:
        return None
    parts = [_parts(*pair) for pair in both]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    by_work, by_use = (math.exp(fmean(logs)) for logs in zip(*known, strict=True))
    if abs(math.log(by_work * by_use / (estimate.ratio or 1.0))) > EFFECT_MIN:
        return None
    return Accounting(
        cell=estimate.cell,
        baseline=estimate.baseline,
        system=estimate.system,
        ratio=by_work * by_use,
        by_work=by_work,
        by_use=by_use,
        taken=_taken(both),
        blocks=len(both),
    )


def paired(pairs: Pairs, estimate: Estimate) -> list[tuple[Sound, Sound]]:
    """The baseline's and the system's trial of each block with both."""
    below, above = (pairs.arm(estimate.cell, x) for x in (estimate.baseline, estimate.system))
    return [(below[block], above[block]) for block in below if block in above]


def _parts(baseline: Sound, system: Sound) -> Parts | None:
    """Logarithms of both parts in a block; the server's CPU was taken over whole windows."""
    below, above = baseline.measurement, system.measurement
    counted = [(m.events, m.server.cpu_s, m.window_s) for m in (below, above)]
    if any(value <= 0 for trial in counted for value in trial):
        return None
    (events, cpu_s, window_s), (events_of, cpu_s_of, window_s_of) = counted
    work = math.log((cpu_s / events) / (cpu_s_of / events_of))
    use = math.log((cpu_s_of / window_s_of) / (cpu_s / window_s))
    return work, use


def _taken(both: Iterable[tuple[Sound, Sound]]) -> float | None:
    seen = [tuple(disturbance_of(one.measurement) for one in pair) for pair in both]
    shares = [above.share - below.share for below, above in seen if below and above]
    return fmean(shares) if len(shares) == len(seen) else None
