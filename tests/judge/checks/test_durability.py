"""One word for what a kill proved, and no more than it proved."""

from __future__ import annotations

import pytest

from dbdyno.judge.audit import audit
from dbdyno.judge.checks import durability
from dbdyno.judge.checks.durability import Proof, verdict_of
from dbdyno.judge.finding import Level
from dbdyno.measurement.parts import Kill, KilledServer
from dbdyno.report.tell.durability import proof_reasons
from dbdyno.report.tell.findings import evidence
from support import making
from support.making import SETTINGS, A, B

# Commits that were answered from no disk are void; flushes that no disk saw are doubtful.


PLAN = making.plan()
SYNCS = "Innodb_os_log_fsyncs"
POSTGRES = {"synchronous_commit": "on", "fsync": "on"}


@pytest.mark.parametrize(("syncs", "void"), [(1250, False), (1065, False), (1060, True), (9, True)])
def test_eight_connections_need_a_flush_for_eight_commits(syncs, void):
    made = making.measurement(status={SYNCS: float(syncs)})  # 10 000 commits
    finding = durability.commits_unflushed(made, PLAN)
    assert (finding is not None) == void
    if finding:
        assert finding.level is Level.VOID
        assert evidence(finding).startswith(
            "10000 commits of 8 connections need at least 1250 flushes of the log, "
            f"but the server made {syncs}"
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
    ("first", "second", "expected"),
    [
        (400.0, 390.0, []),
        (400.0, 10.0, [(B, Level.DOUBTFUL)]),
        (0.0, 0.0, [(A, Level.NOTE), (B, Level.NOTE)]),
        (None, None, []),
    ],
)
def test_syncs_that_reach_the_disk_of_one_system_only_are_doubtful(first, second, expected):
    trials = [seen_by_disks(A, first), seen_by_disks(B, second)]
    found = list(durability.unseen_flushes(trials, PLAN))
    assert [(finding.system, finding.level) for finding in found] == expected


def test_a_server_that_counts_no_syncs_is_held_to_its_promise():
    def without_count(system, flushes_per_s):
        made = seen_by_disks(system, flushes_per_s)  # 10 000 commits of 8 connections in 10 s
        status = {name: v for name, v in made.server.status.items() if name != SYNCS}
        return making.changed(made, server=made.server.model_copy(update={"status": status}))

    honest, mute = without_count(A, 130.0), without_count(B, 5.0)
    found = list(durability.unseen_flushes([honest, mute], PLAN))
    assert [(finding.system, finding.level) for finding in found] == [(B, Level.DOUBTFUL)]


def test_what_postgres_counts_late_proves_nothing_of_a_window():
    late = making.measurement(status={SYNCS: float("nan"), "wal.wal_sync": 9.0})
    server = late.server.model_copy(update={"settings": POSTGRES})
    assert durability.commits_unflushed(making.changed(late, server=server), PLAN) is None
    assert durability.counted_syncs(making.measurement()) == 4000


def killed(
    kept=1000, server=400.0, disk=420.0, flush="1", kills=2, unanswered=3, settings=None
) -> KilledServer:
    """Two kills of four connections with 1000 acknowledged commits each."""
    one = Kill(
        acknowledged=1000,
        kept=kept,
        unanswered=unanswered,
        load_s=1.5,
        recovery_s=0.8,
        counted=800,
        server_flushes=server,
        disk_flushes=disk,
    )
    asked = {**SETTINGS, "innodb_flush_log_at_trx_commit": flush}
    return KilledServer(
        system="mysql:8.0.15",
        version="8.0.15",
        settings=asked if settings is None else settings,
        connections=4,
        kills=(one,) * kills,
    )


def reasons(seen):
    return proof_reasons(verdict_of(seen), seen)


@pytest.mark.parametrize(
    ("seen", "proof"),
    [
        (killed(), Proof.DURABLE),
        (killed(disk=None), Proof.DURABLE),
        (killed(server=None), Proof.DURABLE),
        (killed(server=181.0, disk=181.0), Proof.DURABLE),
        (killed(server=179.0), Proof.UNFLUSHED),
        (killed(flush="2"), Proof.UNFLUSHED),
        (killed(flush="2", server=None), Proof.UNFLUSHED),
        (killed(disk=0.0), Proof.UNPROVEN),
        (killed(server=None, disk=None), Proof.UNPROVEN),
        (killed(kept=999), Proof.LOST),
        (killed(kept=999, flush="0", server=None), Proof.LOST),
        (killed(settings={}), Proof.DURABLE),
        (killed(settings={}, server=179.0), Proof.UNFLUSHED),
        (killed(settings=POSTGRES, server=0.0), Proof.DURABLE),
        (killed(settings=POSTGRES, server=0.0, disk=0.0), Proof.UNPROVEN),
        (killed(settings=POSTGRES, server=0.0, disk=None), Proof.UNPROVEN),
        (killed(settings=POSTGRES, disk=None), Proof.DURABLE),
        (killed(settings={**POSTGRES, "fsync": "off"}), Proof.UNFLUSHED),
    ],
)
def test_the_word_and_the_loss_over_all_kills(seen, proof):
    verdict = verdict_of(seen)
    assert (verdict.proof, verdict.acknowledged) == (proof, 2000)
    assert verdict.missing == (2 if proof is Proof.LOST else 0)


def test_what_a_kill_does_not_prove_is_said():
    durable = reasons(killed())
    assert durable[0].startswith("its settings promise durable commits")
    assert "A power loss was not tested" in durable[-1]
    unflushed = reasons(killed(flush="2"))
    assert unflushed[0].startswith("its settings do not promise durable commits")
    assert "a power loss" in unflushed[-1]


def test_unknown_counts_are_said_to_be_unknown():
    promised, flushes, *_ = reasons(killed(server=None, disk=None, settings={}))
    assert promised == "what its settings promise is not known"
    assert flushes.count("unknown") == 2


@pytest.mark.parametrize(("unanswered", "unexplained"), [(4, 0), (5, 5)])
def test_rows_that_nobody_can_have_asked_for_are_reported(unanswered, unexplained):
    seen = killed(unanswered=unanswered)
    verdict = verdict_of(seen)
    assert verdict.rows_unexplained == unexplained
    assert any("never acknowledged" in r for r in proof_reasons(verdict, seen)) == bool(unexplained)
