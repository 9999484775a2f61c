"""The level at which a run until decided ends: workloads of many cells, or each cell."""

from __future__ import annotations

import pytest

from dbdyno.judge.judgement import enough
from support import making
from support.made_run import run

STEADY = (1.499, 1.5, 1.501, 1.5, 1.498)
SHAKEN = (0.7, 1.4, 1.0, 0.8, 1.3)
THREADS = (1, 2, 4, 8, 16, 32)


@pytest.mark.parametrize(("decide", "ends"), [(None, True), ("workload", True), ("cell", False)])
def test_many_cells_of_a_workload_are_decided_together(decide: str | None, ends: bool) -> None:
    design = {"stop": "decided", "decide": decide, "blocks": 12}
    plan = making.plan(threads=THREADS, design=design)
    trials = [
        trial
        for threads in THREADS
        for trial in making.pairs(STEADY if threads > 1 else SHAKEN, threads=threads)
    ]
    assert enough(trials, plan) is ends
    assert run(plan, trials).judgement.is_decided(plan.design) is ends


def test_workloads_of_one_cell_each_are_not_decided_by_their_mean() -> None:
    ratios = {f"oltp_{name}": STEADY for name in ("delete", "insert", "point_select", "read_only")}
    ratios["oltp_write_only"] = SHAKEN
    plan = making.plan(workloads=tuple(ratios), design={"stop": "decided", "blocks": 12})
    trials = [
        trial for workload, of in ratios.items() for trial in making.pairs(of, workload=workload)
    ]
    assert not enough(trials, plan)
