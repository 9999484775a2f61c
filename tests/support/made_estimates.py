"""Estimates and findings made by hand, for the tests of verdicts and of their wording."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dbdyno.judge.estimate import Estimate, Sample, estimated
from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.interval import LEVEL, Held
from dbdyno.measurement.measurement import Cell
from dbdyno.measurement.metric import PRIMARY
from support.making import A, B

CELL = Cell(workload="oltp_read_write", threads=8)


def estimate(ratio, low, high, blocks=8, log_sd=0.02, metric=PRIMARY.name) -> Estimate:
    return Estimate(
        cell=CELL,
        metric=metric,
        baseline=A,
        system=B,
        ratio=ratio,
        low=low,
        high=high,
        blocks=blocks,
        log_sd=log_sd,
    )


def held(low, high, level=LEVEL, cells=1, sd=0.02, freedom=7.0) -> Held:
    """An interval among so many cells."""
    return Held(low, high, low, high, sd, freedom, level, cells)


def sample(logs, cell=CELL, metric=PRIMARY.name) -> Sample:
    """Blocks' logs, of which NaN stands for a missing block."""
    return Sample(cell, metric, A, B, {n: float(x) for n, x in enumerate(logs) if not np.isnan(x)})


def estimate_from(logs, cell=CELL, metric=PRIMARY.name) -> Estimate:
    """The estimate of a single cell with these logs, one for each block."""
    ((alone, _),) = estimated([sample(logs, cell, metric)])
    return alone


def shape(mean: float, sd: float, blocks: int) -> list[float]:
    """Blocks' logs of just that mean and standard deviation."""
    places = np.arange(blocks) - (blocks - 1) / 2
    return [float(x) for x in mean + places * (sd / places.std(ddof=1))]


def samples(*logs: Sequence[float], workload: str = "oltp_read_write") -> list[Sample]:
    """Samples of the cells of a workload, 1, 2, 3… threads."""
    return [
        sample(of_cell, Cell(workload=workload, threads=threads))
        for threads, of_cell in enumerate(logs, 1)
    ]


def finding(check: str, level: Level = Level.VOID, trial: str | None = "0/b/c") -> Finding:
    return Finding(check=check, level=level, system=B, trial=trial)
