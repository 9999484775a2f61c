"""How much of the noise lies within a window, and how much between restarts. For planning only.

The interval of a verdict comes from blocks, never from here: seconds of one window are alike, and
an interval made of them calls two equal systems different in more than half of all cases
(method.md 3.1). But knowing both kinds of noise says how long a window is worth measuring:
T* = √(overhead · σ²within / σ²restart), with σ²within of one second (Kalibera and Jones 2013;
method.md 1.a.5 and 1.a.6). Longer windows than that buy less than more blocks do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from dbdyno.judge.audit import Sound
from dbdyno.judge.checks_design import BLOCKS_MIN
from dbdyno.judge.seconds import SECONDS_MIN, effective_seconds, rates_of, rho1
from dbdyno.measurement import Cell, Measurement, Noun


class WithinRun(Noun):
    """Both kinds of noise of one system in one cell.

    Attributes:
        trials: that had ten seconds or more; at least three.
        seconds: median length of their windows.
        rho1: median correlation of neighbouring seconds.
        seconds_effective: independent seconds that a window is worth (median).
        within_sd: standard deviation of a window's mean from its own seconds, as a share.
        restart_sd: what blocks differ by beyond that, as a share; 0 if it does not show. The
            machine's drift is in it.
        overhead_s: what a trial costs besides its window: procedure and warm-up (mean).
        window_s_best: T*; None where one of both kinds does not show. Without differences between
            restarts longer windows are better however long they are.
    """

    cell: Cell
    system: str
    trials: int
    seconds: float
    rho1: float
    seconds_effective: float
    within_sd: float
    restart_sd: float
    overhead_s: float
    window_s_best: float | None

    @property
    def variance_ratio(self) -> float | None:
        """Variance between restarts over that within a window; None where there is none within."""
        return (self.restart_sd / self.within_sd) ** 2 if self.within_sd > 0 else None


def within_runs(sound: Iterable[Sound]) -> list[WithinRun]:
    """Every system and cell with three trials of ten seconds or more, in the order of trials."""
    groups: dict[tuple[Cell, str], list[Measurement]] = {}
    for one in sound:
        groups.setdefault((one.trial.cell, one.trial.system), []).append(one.condensed)
    made = (_of(cell, system, trials) for (cell, system), trials in groups.items())
    return [one for one in made if one is not None]


def _of(cell: Cell, system: str, trials: Sequence[Measurement]) -> WithinRun | None:
    usable = [(m, rates) for m in trials if len(rates := rates_of(m)) >= SECONDS_MIN]
    usable = [(m, rates) for m, rates in usable if rates.mean() > 0]
    if len(usable) < BLOCKS_MIN:
        return None
    rhos = [rho1(rates) or 0.0 for _, rates in usable]
    effective = [
        effective_seconds(len(rates), rho) for (_, rates), rho in zip(usable, rhos, strict=True)
    ]
    variances = [
        float(rates.var(ddof=1)) / float(rates.mean()) ** 2 / worth
        for (_, rates), worth in zip(usable, effective, strict=True)
    ]
    within = math.fsum(variances) / len(variances)
    between = float(np.var([math.log(m.events / m.window_s) for m, _ in usable], ddof=1))
    restart = max(0.0, between - within)
    window_s = float(np.median([m.window_s for m, _ in usable]))
    overhead_s = float(np.mean([_overhead_s(m) for m, _ in usable]))
    known = restart > 0 and within > 0
    best = math.sqrt(overhead_s * within * window_s / restart) if known else None
    return WithinRun(
        cell=cell,
        system=system,
        trials=len(usable),
        seconds=window_s,
        rho1=float(np.median(rhos)),
        seconds_effective=float(np.median(effective)),
        within_sd=math.sqrt(within),
        restart_sd=math.sqrt(restart),
        overhead_s=overhead_s,
        window_s_best=best,
    )


def _overhead_s(measurement: Measurement) -> float:
    """Seconds of the steps before the trial and of its own warm-up."""
    return math.fsum(step.seconds for step in measurement.procedure) + measurement.warmup_s
