"""The same work by every system, and rows that are all there afterwards."""

from __future__ import annotations

import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.checks import work
from dbdyno.judge.finding import Level
from dbdyno.measurement.parts import Evidence
from support import making
from support.making import A, B

PLAN = making.plan()
ROWS = PLAN.dataset.rows


@pytest.mark.parametrize(
    ("again", "level"), [(0, None), (1, Level.NOTE), (10, Level.NOTE), (11, Level.DOUBTFUL)]
)
def test_events_begun_again_are_doubtful_above_a_thousandth(again, level):
    finding = work.retries(making.measurement(restarts=again), PLAN)
    assert (finding and finding.level) == level


def planned(system, **ways):
    return making.changed(making.measurement(system), evidence=Evidence(query_plans=ways))


def test_another_way_through_the_tables_is_noted():
    trials = [
        planned(A, point_selects="const PRIMARY", order_ranges="range PRIMARY, Using filesort"),
        planned(B, point_selects="const PRIMARY", order_ranges="range PRIMARY"),
    ]
    (finding,) = work.unequal_plans(trials, PLAN)
    assert (finding.level, finding.system) == (Level.NOTE, B)
    assert finding.evidence == (
        "1 of 2 kinds of statements take another way: order_ranges: mysql:5.7.22 range PRIMARY, "
        "Using filesort; mysql:8.0.15 range PRIMARY"
    )


def test_equal_ways_and_unknown_ones_are_not_told():
    same = [planned(A, point_selects="const PRIMARY"), planned(B, point_selects="const PRIMARY")]
    assert list(work.unequal_plans(same, PLAN)) == []
    assert list(work.unequal_plans([same[0], planned(B)], PLAN)) == []


def left(system=A, rows=ROWS, digest="new", workload="oltp_read_write"):
    made = making.measurement(system, workload=workload)
    evidence = Evidence(rows_after={"sbtest1": rows, "sbtest2": ROWS}, dataset_after=digest)
    return making.changed(made, dataset="loaded", evidence=evidence)


@pytest.mark.parametrize(
    ("workload", "rows", "digest", "void"),
    [
        ("oltp_read_write", ROWS, "new", False),
        ("oltp_read_write", ROWS - 1, "new", True),
        ("oltp_read_only", ROWS, "loaded", False),
        ("oltp_read_only", ROWS, "new", True),
        ("oltp_update_index", ROWS + 1, "new", True),
        ("oltp_insert", ROWS + 7, "new", False),
        ("oltp_delete", ROWS - 7, "new", False),
    ],
)
def test_rows_are_those_that_the_workload_leaves(workload, rows, digest, void):
    plan = making.plan(workloads=(workload,))
    made = left(rows=rows, digest=digest, workload=workload)
    assert bool(list(work.rows_not_kept([made], plan))) == void


def test_a_system_that_lost_a_row_has_no_sound_trial():
    audited = audit([making.measurement(A), left(B, rows=ROWS - 1)], PLAN)
    assert {one.trial.system for one in audited.sound} == {A}
    (finding,) = (f for f in audited.findings if f.check == "rows-not-kept")
    assert finding.evidence == (
        f"its workloads leave {ROWS} rows in each table; at the run's end: sbtest1 has {ROWS - 1}"
    )
