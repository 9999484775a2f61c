"""A made run with a bit of everything: two cells, a void trial, a failed and repeated one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbdyno.judge.judgement import Judgement, judge
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.plan import Plan
from support import making

RATIOS = {1: (0.995, 1.004, 1.001, 0.998, 1.002), 8: (0.77, 0.76, 0.78, 0.765, 0.775)}
RATES = {1: 300.0, 8: 1000.0}


@dataclass(frozen=True)
class Run:
    plan: Plan
    measurements: list[Measurement]
    judgement: Judgement
    facts: RunFacts


def run(plan: Plan, measurements: list[Measurement], complete: bool = True) -> Run:
    return Run(plan, measurements, judge(measurements, plan), facts(plan, complete=complete))


def of_workloads(ratios: Mapping[str, tuple[float, ...]], threads: tuple[int, ...] = (8,)) -> Run:
    """A run of these workloads at each number of threads, with these ratios of its blocks."""
    blocks = len(next(iter(ratios.values())))
    plan = making.plan(workloads=tuple(ratios), threads=threads, blocks=blocks)
    trials = [
        trial
        for workload, of in ratios.items()
        for level in threads
        for trial in making.pairs(of, workload=workload, threads=level)
    ]
    return run(plan, trials)


def facts(
    plan: Plan, *, complete: bool = True, environment: dict[str, str] | None = None
) -> RunFacts:
    return RunFacts(
        run_id="20261121-060000-made",
        created_at="2026-11-21T06:00:00+00:00",
        dbdyno_version="0.1.0",
        plan_hash=plan.hash(),
        command="dbdyno compare mysql:5.7.22 mysql:8.0.15 --threads 1,8",
        environment=environment or {"processor": "made, 4 cores", "kernel": "6.1"},
        complete=complete,
        trials_planned=20,
    )


def whole() -> Run:
    plan = making.plan(threads=(1, 8))
    made = []
    for block in range(5):
        for position, system in enumerate((making.A, making.B)):
            for threads in (1, 8):
                made.append(_measurement(len(made), block, position, system, threads))
    made[6] = made[6].model_copy(update={"failure": "the server went away | <died>"})
    made.append(_measurement(6, 1, 1, making.B, 1))
    return run(plan, made)


def _measurement(
    sequence: int, block: int, position: int, system: str, threads: int
) -> Measurement:
    ratio = RATIOS[threads][block] if system == making.B else 1.0
    only = {"query_cache_type": "OFF"} if system == making.A else {"admin_port": "33062"}
    return making.measurement(
        system,
        block,
        threads,
        RATES[threads] * ratio,
        sequence=sequence,
        position=position,
        settings={"datadir": f"/data/{system}", "sql_mode": f"mode of {system}", **only},
        cpu_share_max=0.99 if sequence == 7 else 0.2,
    )
