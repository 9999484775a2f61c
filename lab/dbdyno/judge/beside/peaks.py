"""Two systems by where they peak and how high: N* and X(N*), within blocks as everything is.

λ, σ and κ of one fit hang together, so that two systems may differ in each of them and in nothing
a user would notice; the peak is what matters, and its ratio has an interval (method.md 1.d).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dbdyno.judge.beside.scalability import Scalability
from dbdyno.judge.typical import Typical, typical_of_logs
from dbdyno.measurement.measurement_parts import Noun
from dbdyno.plan.plan import DesignPlan


class PeakRatio(Noun):
    """Two systems' peaks: the system's over the baseline's, within blocks."""

    workload: str
    setting: str
    baseline: str
    system: str
    threads: Typical
    per_s: Typical


def peak_ratios(found: Sequence[Scalability], baseline: str, design: DesignPlan) -> list[PeakRatio]:
    """Peaks against the baseline's, wherever both have one."""
    of_baseline = {(s.workload, s.setting): s for s in found if s.system == baseline and s.peak}
    made = []
    for other in found:
        base = of_baseline.get((other.workload, other.setting))
        if base is None or other.peak is None or other.system == baseline:
            continue
        threads, per_s = _log_ratios(base, other)
        at, high = typical_of_logs(threads, design), typical_of_logs(per_s, design)
        if at and high:
            made.append(
                PeakRatio(
                    workload=other.workload,
                    setting=other.setting,
                    baseline=baseline,
                    system=other.system,
                    threads=at,
                    per_s=high,
                )
            )
    return made


def _log_ratios(base: Scalability, other: Scalability) -> tuple[list[float], list[float]]:
    """ln ratios of N* and X(N*) in every block that both have."""
    below = {law.block: law for law in base.law.blocks} if base.law else {}
    above = {law.block: law for law in other.law.blocks} if other.law else {}
    threads, per_s = [], []
    for block in sorted(below.keys() & above.keys()):
        one, two = below[block], above[block]
        if one.peak_threads and two.peak_threads and one.peak_per_s and two.peak_per_s:
            threads.append(math.log(two.peak_threads / one.peak_threads))
            per_s.append(math.log(two.peak_per_s / one.peak_per_s))
    return threads, per_s
