"""The level at which a run until decided ends: workloads of many cells, or each cell."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from dbdyno.judge.judgement import enough, judge
from dbdyno.judge.verdict import Word
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import Plan
from support import making
from support.made_rates import at_rate
from support.making import A, B

BOTH = ("oltp_read_write", "oltp_read_only")
SWINGS = (0.06, -0.06, 0.05, -0.05)
"""Blocks move cells of even place up by so much, and those of odd place down: together not at all.
"""
FEW, MANY = (1, 2), (1, 2, 4, 8, 16, 32)


def until_decided(threads: tuple[int, ...] = MANY, **parts: object) -> Plan:
    return making.plan(threads=threads, blocks=12, design={"stop": "decided"}, **parts)


def swinging(sign: int, **cell: object) -> list[Measurement]:
    """Four blocks of an open cell."""
    ratios = tuple(0.95 * math.exp(sign * swing) for swing in SWINGS)
    return making.pairs(ratios, histograms=False, **cell)


def cells_of(
    threads: tuple[int, ...] = MANY, *, cancel: bool = True, **same: object
) -> list[Measurement]:
    """Open cells, which are decided together if their swings cancel."""
    return [
        trial
        for place, level in enumerate(threads)
        for trial in swinging((-1) ** (place * cancel), threads=level, **same)
    ]


@pytest.mark.parametrize(("decide", "ends"), [(None, True), ("workload", True), ("cell", False)])
def test_many_cells_of_a_workload_are_decided_together(decide: str | None, ends: bool) -> None:
    plan = making.with_parts(until_decided(), design={"decide": decide})
    judged = judge(cells_of(), plan)
    assert {verdict.word for verdict in judged.verdicts} == {Word.UNDECIDED}
    assert enough(cells_of(), plan) is judged.is_decided(plan.design) is ends
    answers = judged.answers(plan.design)
    assert ({answer.word for answer in answers} == {Word.WORSE}) is ends
    assert len(answers) == (1 if ends else len(MANY))
    assert not enough(cells_of(cancel=False), plan)


def test_a_run_of_few_cells_ends_by_cell_unless_asked_otherwise() -> None:
    assert not enough(cells_of(FEW), until_decided(FEW))
    by_workload = making.with_parts(until_decided(FEW), design={"decide": "workload"})
    assert enough(cells_of(FEW), by_workload)


def test_every_workload_must_be_decided() -> None:
    both = until_decided((1, 2, 4, 8), workloads=BOTH)
    decided = cells_of((1, 2, 4, 8), workload=BOTH[0])
    assert not enough(decided + cells_of((1, 2, 4, 8), workload=BOTH[1], cancel=False), both)
    assert enough(decided + cells_of((1, 2, 4, 8), workload=BOTH[1]), both)


def test_a_standstill_does_not_keep_a_run_going_and_a_cell_short_of_blocks_does() -> None:
    def void(one: Measurement) -> Measurement:
        return making.changed(one, engine=one.engine.model_copy(update={"cpu_share_max": 0.9}))

    def spoiled(blocks: int, spoil: Callable[[Measurement], Measurement]) -> list[Measurement]:
        """Other trials of B at 32 threads in so many blocks."""
        return [
            spoil(one)
            if (one.trial.system, one.trial.cell.threads) == (B, 32) and one.trial.block < blocks
            else one
            for one in cells_of()
        ]

    still = spoiled(1, lambda one: making.stood_still(B, one.trial.block, threads=32))
    assert enough(still, until_decided())
    assert not enough(spoiled(2, void), until_decided())


def test_rates_of_an_open_loop_are_decided_one_by_one() -> None:
    load = LoadPlan(threads=MANY, rates=("1000",))
    mixed = making.with_parts(until_decided(), load=load)

    def rated(*latencies_ms: float) -> list[Measurement]:
        return [
            at_rate(system, block, latency_ms=latency_ms)
            for block, of_b in enumerate(latencies_ms)
            for system, latency_ms in ((A, 10.0), (B, of_b))
        ]

    assert enough(cells_of() + rated(20.0, 20.1, 19.9, 20.0), mixed)
    assert not enough(cells_of() + rated(8.0, 12.0, 14.0, 9.0), mixed)


def test_workloads_of_one_cell_each_are_not_decided_by_their_mean() -> None:
    names = ("delete", "insert", "point_select", "read_only", "update_index", "write_only")
    workloads = tuple(f"oltp_{name}" for name in names)
    plan = until_decided((8,), workloads=workloads)
    trials = [
        trial
        for place, workload in enumerate(workloads)
        for trial in swinging((-1) ** place, workload=workload)
    ]
    (whole,) = judge(trials, plan).summaries
    assert whole.word is Word.WORSE
    assert not enough(trials, plan)
