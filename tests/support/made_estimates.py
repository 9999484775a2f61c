"""Estimates and findings made by hand, for the tests of verdicts and of their wording."""

from __future__ import annotations

from dbdyno.judge.estimate import Estimate
from dbdyno.judge.finding import Finding, Level
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


def finding(check: str, level: Level = Level.VOID, trial: str | None = "0/b/c") -> Finding:
    return Finding(check=check, level=level, system=B, trial=trial)
