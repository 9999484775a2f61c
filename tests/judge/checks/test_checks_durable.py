"""Commits that were answered from no disk are void; flushes that no disk saw are told."""

from __future__ import annotations

import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.checks import durability
from dbdyno.judge.finding import Level
from support import making
from support.making import A, B

PLAN = making.plan()
SYNCS = "Innodb_os_log_fsyncs"


@pytest.mark.parametrize(("syncs", "void"), [(1250, False), (1065, False), (1060, True), (9, True)])
def test_eight_connections_need_a_flush_for_eight_commits(syncs, void):
    made = making.measurement(status={SYNCS: float(syncs)})  # 10 000 commits
    finding = durability.commits_unflushed(made, PLAN)
    assert (finding is not None) == void
    if finding:
        assert finding.level is Level.VOID
        assert finding.evidence.startswith(
            "10000 commits of 8 connections need 1250 flushes of the log at least, "
            f"the server made {syncs}"
        )


@pytest.mark.parametrize(
    "changed",
    [
        {"settings": {"innodb_flush_log_at_trx_commit": "0"}},
        {"settings": {"innodb_flush_log_at_trx_commit": "2"}},
        {"status": {SYNCS: float("nan")}},
        {"workload": "oltp_read_only"},
        {"tps": 5.0},
    ],
)
def test_nothing_is_claimed_without_promise_counter_writes_or_commits(changed):
    status = {SYNCS: 1.0, **changed.pop("status", {})}
    made = making.measurement(status=status, **changed)
    plan = making.plan(workloads=(made.trial.cell.workload,))
    assert durability.commits_unflushed(made, plan) is None


def test_of_a_log_opened_for_syncing_writes_count():
    asked = {"settings": {"innodb_flush_method": "O_DSYNC"}}
    few = {"status": {SYNCS: 3.0, "Innodb_log_writes": 9000.0}}
    assert durability.commits_unflushed(making.measurement(**asked, **few), PLAN) is None
    none = {"status": {SYNCS: 3.0, "Innodb_log_writes": 5.0}}
    assert durability.commits_unflushed(making.measurement(**asked, **none), PLAN) is not None


def test_the_trap_an_arm_without_syncs_reaches_no_verdict():
    honest = [making.measurement(A, block=block) for block in range(3)]
    fast = [
        making.measurement(B, block=block, tps=1500, status={SYNCS: 12.0}) for block in range(3)
    ]
    audited = audit([*honest, *fast], PLAN)
    assert {one.trial.system for one in audited.sound} == {A}


def seen_by_disks(system, flushes_per_s):
    made = making.measurement(system)  # 4000 syncs in 10 s
    samples = tuple(s.model_copy(update={"disk_flushes_per_s": flushes_per_s}) for s in made.watch)
    return making.changed(made, watch=samples)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (400.0, 390.0, []),
        (400.0, 10.0, [(B, Level.DOUBTFUL)]),
        (0.0, 0.0, [(A, Level.NOTE), (B, Level.NOTE)]),
        (None, None, []),
    ],
)
def test_syncs_that_reach_the_disk_of_one_system_only_are_doubtful(first, second, told):
    trials = [seen_by_disks(A, first), seen_by_disks(B, second)]
    found = list(durability.unseen_flushes(trials, PLAN))
    assert [(finding.system, finding.level) for finding in found] == told


def test_a_server_that_counts_no_syncs_is_held_to_its_promise():
    def without_count(system, flushes_per_s):
        made = seen_by_disks(system, flushes_per_s)  # 10 000 commits of 8 connections in 10 s
        status = {name: v for name, v in made.server.status.items() if name != SYNCS}
        return making.changed(made, server=made.server.model_copy(update={"status": status}))

    honest, mute = without_count(A, 130.0), without_count(B, 5.0)
    found = list(durability.unseen_flushes([honest, mute], PLAN))
    assert [(finding.system, finding.level) for finding in found] == [(B, Level.DOUBTFUL)]


def test_flushes_of_the_window_are_added_up():
    assert durability.disk_flushes(seen_by_disks(A, 20.0)) == 200
    assert durability.log_syncs(making.measurement()) == 4000
