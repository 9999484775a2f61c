"""Each count that must agree with another: a trial where it does, and one where it does not."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest

from dbdyno.judge.audit import GATES
from dbdyno.judge.checks import counts
from dbdyno.judge.checks.counts import (
    commits_per_event,
    little_law,
    statements_of_event,
    statements_per_event,
)
from dbdyno.judge.finding import Finding, Level
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import Phase
from dbdyno.plan import template
from dbdyno.plan.workload import WorkloadPlan
from support import making
from support.made_loops import Loop

PLAN = making.plan()


def level(finding: Finding | None) -> Level | None:
    return None if finding is None else finding.level


def with_longest(made: Measurement, second: int, longest_s: float) -> Measurement:
    """The same trial with one measured second's greatest latency changed."""
    intervals = list(made.intervals)
    place = intervals.index(made.measured[second])
    longest = {"latency_ns_max": round(longest_s * 1e9)}
    intervals[place] = intervals[place].model_copy(update=longest)
    return making.changed(made, intervals=tuple(intervals))


@pytest.mark.parametrize(
    ("errors", "again", "expected", "failed"),
    [
        ({}, 0, None, 0),
        # 10 000 events of 20 statements: 200 of 200 200 is just below 0.1 %, 201 just above
        ({"1213": 10}, 0, Level.NOTE, 10),
        ({"1213": 200}, 0, Level.NOTE, 200),
        ({"1213": 201}, 0, Level.VOID, 201),
        # tried again after a deadlock, or counted by a script itself: not failed for good
        ({"1213": 2000}, 2000, Level.NOTE, 2000),
        ({"1213": 2000}, 1700, Level.VOID, 300),
        ({"script": 5000, "1205": 0}, 0, Level.NOTE, 5000),
        ({"script": 5000, "1205": 300}, 0, Level.VOID, 300),
    ],
)
def test_failures_for_good_void_above_a_thousandth_of_all_statements(
    errors, again, expected, failed
):
    found = counts.errors(making.measurement(errors=errors, restarts=again), PLAN)
    assert level(found) is expected
    if found:
        assert (found.values["failed"], found.values["codes"]) == (failed, errors)
        assert found.values["statements"] == 200_000 + sum(errors.values())


@pytest.mark.parametrize(
    ("off", "void"),
    [(0.0, False), (0.009, False), (-0.009, False), (0.02, True), (-0.02, True), (-0.5, True)],
)
def test_little_law_is_void_beyond_one_percent(off, void):
    found = counts.little_law(making.measurement(tps=1000, latency_ms=8 * (1 + off)), PLAN)
    assert level(found) is (Level.VOID if void else None)
    if found:
        assert found.values["connections"] == 8
        assert found.values["off"] == pytest.approx(off)


@pytest.mark.parametrize("off", [-0.5, 0.02])
@pytest.mark.parametrize("rests", [True, False])
def test_little_law_bears_rests_between_events_but_not_too_many_events(off, rests):
    script = f"local x\nlocal RESTS = {str(rests).lower()}\nfunction thread_run() end"
    resting = PLAN.workloads[0].model_copy(update={"script": script})
    plan = PLAN.model_copy(update={"workloads": (resting,)})
    found = counts.little_law(making.measurement(tps=1000, latency_ms=8 * (1 + off)), plan)
    assert level(found) is (None if rests and off < 0 else Level.VOID)


IDLE = making.measurement(tps=1000, latency_ms=8 * 0.96)
SLOW_DRAIN = IDLE.measured[-1].model_copy(
    update={"phase": Phase.DRAIN, "start_s": 12, "end_s": 12.5, "latency_ns_max": 500_000_000}
)


@pytest.mark.parametrize(
    ("made", "is_void"),
    [
        (IDLE, True),
        (with_longest(IDLE, 0, 0.5), False),
        (with_longest(IDLE, 5, 0.5), True),
        (making.changed(IDLE, intervals=(*IDLE.intervals, SLOW_DRAIN)), False),
        # ended in the window's third second and took 2.4 s: it was begun in the warm-up
        (with_longest(making.measurement(tps=1000, latency_ms=8 * 0.8), 2, 2.4), False),
    ],
)
def test_little_law_allows_for_events_across_the_windows_edges_only(made, is_void):
    assert level(counts.little_law(made, PLAN)) is (Level.VOID if is_void else None)


def test_statements_of_event_follow_the_workload():
    assert counts.statements_of_event(making.measurement(), PLAN) is None
    unknown = making.measurement(workload="mine", statements=(3, 3, 3))
    assert counts.statements_of_event(unknown, PLAN) is None
    found = counts.statements_of_event(making.measurement(statements=(13, 4, 2)), PLAN)
    assert level(found) is Level.VOID
    assert (found.values["per_event"], found.values["per_event_wanted"]) == (19, 20)
    assert found.values["off"] == -10_000


def test_statements_of_event_allow_restarts_and_errors():
    made = making.measurement()
    more = made.measured[0].model_copy(update={"reads": made.measured[0].reads + 1000})
    intervals = (*made.intervals[:2], more, *made.intervals[3:])
    found = counts.statements_of_event(making.changed(made, intervals=intervals), PLAN)
    assert level(found) is Level.VOID
    explained = more.model_copy(update={"restarts": 40})
    intervals = (*made.intervals[:2], explained, *made.intervals[3:])
    made = making.changed(made, intervals=intervals)
    assert counts.statements_of_event(made, PLAN) is None


TEMPLATE = """
events:
  look: {weight: 3, statements: [SELECT 1]}
  buy: {transaction: true, statements: [SELECT 2, {sql: SELECT 3, repeat: 2}]}
"""


def test_statements_of_a_template_follow_its_kinds_of_events():
    script = template.lua(template.read(TEMPLATE, "shop.yaml"), "shop.yaml")
    workload = WorkloadPlan(name="shop.yaml", script=script)
    plan = PLAN.model_copy(update={"workloads": (workload,)})
    plain = making.measurement(workload="shop", statements=(2, 0, 0))
    seen = making.with_kinds(plain, {"look": 0.75, "buy": 0.25})
    assert counts.statements_of_event(seen, plan) is None, "0.75 x 1 + 0.25 x 5 statements"
    fewer = making.measurement(workload="shop", statements=(1, 0, 0))
    found = counts.statements_of_event(making.with_kinds(fewer, {"look": 0.75, "buy": 0.25}), plan)
    assert (found.values["per_event"], found.values["per_event_wanted"]) == (1, 2)
    assert found.values["off"] == -10_000
    # Of events without names, or other names, nothing is known.
    assert counts.statements_of_event(plain, plan) is None
    assert counts.statements_of_event(making.with_kinds(fewer, {"else": 1.0}), plan) is None
    assert template.statement_counts("-- Statements of each event: {") == {}


@pytest.mark.parametrize("off", [-1500, 1500])
def test_commits_at_server_disagreeing_is_doubtful(off):
    # 10 000 events: 0.5 % are 50, half a second's skew 500, 8 connections at two edges 16
    found = counts.commits_at_server(making.measurement(status={"Com_commit": 10_000 + off}), PLAN)
    assert level(found) is Level.DOUBTFUL
    assert found.values["off"] == off
    assert round(found.values["tolerance"]) == 566


def test_commits_of_a_tidb_are_counted_by_its_summary():
    counts_of_tidb = {"Com_commit": math.nan, "statements_summary.Commit": 20_000}
    found = counts.commits_at_server(making.measurement(status=counts_of_tidb), PLAN)
    assert (found.values["counter"], found.values["off"]) == ("statements_summary.Commit", 10_000)


@pytest.mark.parametrize("seen", [10_000, 10_560, 9_440, math.nan])
def test_commits_at_server_agreeing_or_not_known(seen):
    made = making.measurement(status={"Com_commit": seen})
    assert counts.commits_at_server(made, PLAN) is None
    none = making.measurement(workload="oltp_point_select", status={"Com_commit": 5_000})
    assert counts.commits_at_server(none, PLAN) is None


def test_commits_between_two_readings_that_saw_no_event_are_somebody_elses():
    made = making.measurement(status={"Com_commit": 500})
    server = made.server.model_copy(update={"status_at_s": (1.0, 1.0, 1.0, 1.0)})
    found = counts.commits_at_server(making.changed(made, server=server), PLAN)
    assert level(found) is Level.DOUBTFUL
    assert (found.values["seen"], found.values["counted"]) == (500, 0)


def starved(seed: int, strangers: float = 0.0, *, noted: bool = True) -> Measurement:
    """A trial on a machine that lets the lab wait: rates vary, each reading is up to 4 s late.

    Args:
        strangers: commits of other programs, as a share of the load's.
        noted: whether the readings' times are stored.
    """
    chance = random.Random(seed)
    rates = [chance.uniform(20, 400) for _ in range(16)]  # 2 s of warm-up, 10 s, nothing after
    made = making.measurement(tps=rates[0], rates=tuple(rates[2:12]))
    begun_s = [2 + chance.choice((0.0, 4.0)) * chance.random() for _ in range(2)]
    asked_s = (begun_s[0], begun_s[1] + 10)
    answered_s = [at_s + chance.random() for at_s in asked_s]
    read_s = [chance.uniform(*times) for times in zip(asked_s, answered_s, strict=True)]
    ended = [
        one.start_s + chance.random() for one in made.intervals for _ in range(one.events)
    ]  # the load is over at 12 s
    commits = sum(read_s[0] <= at_s < read_s[1] for at_s in ended)
    times_s = (asked_s[0], answered_s[0], asked_s[1], answered_s[1])
    status = {**made.server.status, "Com_commit": commits * (1 + strangers)}
    server = {"status": status, "status_at_s": times_s if noted else ()}
    return making.changed(made, server=made.server.model_copy(update=server))


def alarms(**facts: Any) -> int:
    return sum(counts.commits_at_server(starved(seed, **facts), PLAN) is not None for seed in SEEDS)


SEEDS = range(60)


def test_commits_at_server_raises_no_alarm_on_a_starved_machine_and_still_sees_strangers():
    assert alarms(noted=False) > 15  # what late readings alone look like
    assert alarms() == 0
    assert alarms(strangers=0.3) > 55


# Statements of one event, against the counts that sysbench itself prints.


@pytest.mark.parametrize(
    ("workload", "options", "statements", "commits"),
    [
        ("oltp_read_write", {}, 20, 1),
        ("oltp_read_only", {}, 16, 1),
        ("oltp_write_only", {}, 6, 1),
        ("oltp_point_select", {}, 1, 0),
        ("oltp_point_select", {"point_selects": 10}, 1, 0),
        ("oltp_insert", {}, 1, 0),
        ("oltp_update_index", {}, 1, 0),
        ("oltp_update_index", {"index_updates": 3}, 3, 0),
        ("oltp_update_non_index", {}, 1, 0),
        ("select_random_ranges", {}, 1, 0),
        ("oltp_read_write", {"skip_trx": True}, 18, 0),
        ("oltp_read_write", {"skip-trx": "on"}, 18, 0),
        ("oltp_read_write", {"range_selects": False}, 16, 1),
        ("oltp_read_only", {"range_selects": "off", "skip_trx": "on"}, 10, 0),
        ("oltp_read_only", {"point_selects": 1, "sum_ranges": 0}, 6, 1),
        ("oltp_write_only", {"delete_inserts": 2}, 8, 1),
        ("mine", {}, None, 0),
    ],
)
def test_statements_and_commits(workload, options, statements, commits):
    plan = making.plan(workloads=(workload,), options=options)
    made = making.measurement(workload=workload)
    assert statements_per_event(made, plan) == statements
    assert commits_per_event(made, plan) == commits


def test_label_that_the_plan_does_not_have_is_taken_as_the_workloads_name():
    imported = making.measurement(workload="oltp_read_only")
    assert statements_per_event(imported, making.plan(workloads=("oltp_read_write",))) == 16


FOUR_LEVELS = making.plan(threads=(1, 8, 64, 512))
STALLS = (None, (2.5, 4.2), (7.0, 8.0), (12.4, 13.6))
SHARES = (0.001, 0.01, 0.05, 0.2)
"""Mean event time as a share of the window of 10 s."""
EVENTS_MAX = 12_000


def fired(made: Measurement) -> list[str]:
    checks = (*GATES, little_law, statements_of_event)
    return [found.check for check in checks if (found := check(made, FOUR_LEVELS))]


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


def test_events_that_the_server_did_not_commit_are_void() -> None:
    def found(commits: float, window_s: int = 10) -> Finding | None:
        status, workload = {"database.xact_commit": commits}, "oltp_update_index"
        made = making.measurement(workload=workload, status=status, window_s=window_s)
        return counts.uncommitted(made, making.plan(workloads=(workload,)))

    pooled = found(19)
    assert pooled is not None
    assert (pooled.level, pooled.values["seen"]) == (Level.VOID, 19)
    assert found(10_000) is found(19, window_s=2) is None
