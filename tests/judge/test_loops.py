"""Do the counting checks keep quiet about honest closed loops, and speak up about broken ones?

The window cuts through events at both of its edges; slow events, stalls across an edge and restarts
make that worse. None of it may cost a trial.
"""

from __future__ import annotations

import itertools

import pytest

from dbdyno.judge.audit import GATES
from dbdyno.judge.checks.counts import little_law, statements_of_event
from dbdyno.measurement.measurement import Measurement
from support import making
from support.made_loops import Loop

PLAN = making.plan(threads=(1, 8, 64, 512))
STALLS = (None, (2.5, 4.2), (7.0, 8.0), (12.4, 13.6))
SHARES = (0.001, 0.01, 0.05, 0.2)
"""Mean event time as a share of the window of 10 s."""
EVENTS_MAX = 12_000


def fired(made: Measurement) -> list[str]:
    checks = (*GATES, little_law, statements_of_event)
    return [found.check for check in checks if (found := check(made, PLAN))]


@pytest.mark.parametrize("kind", ["equal", "exponential", "slow20"])
@pytest.mark.parametrize("threads", [1, 8, 64, 512])
def test_honest_loop_is_never_void(threads, kind):
    conditions = itertools.product(SHARES, STALLS, (0.0, 0.05))
    for seed, (share, stall_s, restarts) in enumerate(conditions):
        loop = Loop(threads, share * 10, kind, stall_s=stall_s, restarts=restarts)
        if threads / loop.mean_s * 13 <= EVENTS_MAX:
            assert fired(loop.measured(seed)) == [], loop


@pytest.mark.parametrize("threads", [1, 8, 64])
def test_idle_connections_and_lost_events_fire(threads):
    quick = {"threads": threads, "mean_s": threads / 1000, "window_s": 20}
    assert fired(Loop(**quick).measured(1)) == []
    assert fired(Loop(**quick, idle=0.03).measured(1)) == ["little-law"]
    assert fired(Loop(**quick, lost=0.05).measured(1)) == ["little-law", "statements-of-event"]


def test_with_many_slow_connections_only_gross_faults_fire():
    # 512 connections of 0.5 s events in 20 s: an edge is 2.5 % of the window
    slow = {"threads": 512, "mean_s": 0.5, "window_s": 20}
    assert fired(Loop(**slow, idle=0.02).measured(1)) == []
    assert fired(Loop(**slow, idle=0.1).measured(1)) == ["little-law"]
