"""Commits on the disk as promised by the settings, and the proof of a kill -9.
(docs/reference/findings.md, durability by behaviour)

A connection waits for its commit before it sends the next. So a flush of the log can answer at most
one commit of each connection: a server which answers C commits over N connections and flushes less
than C / N times has answered some before they were on a disk, whatever its settings say. This holds
with group commit, with and without a binary log.

A killed process loses the data not yet given to the operating system, which writes out the rest
later. So "every answered commit was there" alone does not prove survival of a loss of power; the
proof takes the flushes as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from dbdyno.judge.checks.counts import STATUS_SKEW_S, always_writes
from dbdyno.judge.checks.settings import commit_is_waited_for, durability, is_postgres
from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.measurement import replication
from dbdyno.measurement.measurement import Measurement, events_between_readings
from dbdyno.measurement.parts import Kill, KilledServer, Noun
from dbdyno.measurement.syncs import disk_flushes, innodb_log_syncs
from dbdyno.plan.plan import Plan
from dbdyno.plan.systems import TopologyPlan

SHARE_MIN: Final = 0.9
COMMITS_MIN: Final = 100
SEEN: Final = 0.5
UNSEEN: Final = 0.1
"""Disk flushes for each sync of the log: from `SEEN` on seen, below `UNSEEN` unseen."""


def commits_unflushed(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: the settings promise a flush before each answer, and there were too few of them."""
    flushes = counted_syncs(measurement)
    settings = measurement.server.settings
    if flushes is None or not commit_is_waited_for(settings):
        return None
    if not always_writes(measurement, plan) or measurement.events < COMMITS_MIN:
        return None
    connections = measurement.trial.cell.threads
    commits, _ = events_between_readings(measurement)
    needed = commits / connections
    if flushes >= needed * (SHARE_MIN - STATUS_SKEW_S / measurement.window_s):
        return None
    return on_trial(
        measurement,
        "commits-unflushed",
        Level.VOID,
        commits=round(commits),
        connections=connections,
        needed=needed,
        flushes=flushes,
        share=flushes / needed,
    )


def unseen_flushes(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: a system's syncs reach the disks and another's do not; a note if no system's do."""
    shares: dict[str, float] = {}
    for system in dict.fromkeys(m.trial.system for m in measurements):
        own = [m for m in measurements if m.trial.system == system and m.failure is None]
        both = [
            (syncs, flushes)
            for m in own
            if (syncs := _expected(m, plan)) and (flushes := disk_flushes(m)) is not None
        ]
        if sum(syncs for syncs, _ in both) >= COMMITS_MIN:
            shares[system] = sum(f for _, f in both) / sum(s for s, _ in both)
    unseen = {system: share for system, share in shares.items() if share < UNSEEN}
    some_are_seen = any(share >= SEEN for share in shares.values())
    for system, share in unseen.items():
        yield Finding(
            check="unseen-flushes",
            level=Level.DOUBTFUL if some_are_seen else Level.NOTE,
            values={"share": share},
            system=system,
        )


def _expected(measurement: Measurement, plan: Plan) -> float | None:
    """Syncs counted by the server; without a count, the least needed for its promise."""
    counted = counted_syncs(measurement)
    promised = commit_is_waited_for(measurement.server.settings)
    if counted is not None or not promised or not always_writes(measurement, plan):
        return counted
    return measurement.events / measurement.trial.cell.threads


def counted_syncs(measurement: Measurement) -> float | None:
    """Number of log syncs by the server in the window; None without a count.

    PostgreSQL's sessions report theirs up to a second late, so a window lacking some proves no
    fault.
    """
    return innodb_log_syncs(measurement.server.status, measurement.server.settings)


class Proof(StrEnum):
    """Degree of proof for a server's commits."""

    DURABLE = "durable"  # all were there, with flushes enough for each answer
    UNFLUSHED = "unflushed"  # all were there; a loss of power would take some
    UNPROVEN = "unproven"  # all were there; their flushes are not known
    LOST = "lost"  # answered commits were gone


class DurabilityVerdict(Noun):
    """The degree of proof, and the counts behind it.

    Attributes:
        acknowledged, missing: commits over all kills.
        server_flushes_per_commit, disk_flushes_per_commit: as counted; None without a count.
        flushes_needed_per_commit: the least which can answer each commit from the disk.
        rows_unexplained: the most unanswered rows found after a kill, if more than the connections
            can have had on their way; else 0.
    """

    proof: Proof
    acknowledged: int
    missing: int
    server_flushes_per_commit: float | None
    disk_flushes_per_commit: float | None
    flushes_needed_per_commit: float
    rows_unexplained: int


def verdict_of(killed: KilledServer) -> DurabilityVerdict:
    """Judge the kills of one server."""
    acknowledged = sum(kill.acknowledged for kill in killed.kills)
    missing = acknowledged - sum(kill.kept for kill in killed.kills)
    server = _per_commit(killed.kills, [kill.server_flushes for kill in killed.kills])
    disk = _per_commit(killed.kills, [kill.disk_flushes for kill in killed.kills])
    unanswered = max((kill.unanswered for kill in killed.kills), default=0)
    return DurabilityVerdict(
        proof=_proof(killed, missing, server, disk),
        acknowledged=acknowledged,
        missing=missing,
        server_flushes_per_commit=server,
        disk_flushes_per_commit=disk,
        flushes_needed_per_commit=1 / killed.connections,
        rows_unexplained=unanswered if unanswered > killed.connections else 0,
    )


def _proof(killed: KilledServer, missing: int, server: float | None, disk: float | None) -> Proof:
    """Weigh the server's count of flushes against the disks'.

    The disks' count is the whole machine's, and a disk which cannot lose data reports no flush. So
    it confirms the server's count, or stands in for it, and alone proves no flush against settings
    which do not promise any. PostgreSQL counts late, and with a log opened for syncing not at all:
    too few there prove no fault.
    """
    least = SHARE_MIN / killed.connections
    if missing > 0:
        return Proof.LOST
    if durability(killed.settings) and not commit_is_waited_for(killed.settings):
        return Proof.UNFLUSHED
    counted = server is not None and server >= least
    if server is not None and not counted and not is_postgres(killed.settings):
        return Proof.UNFLUSHED
    if disk is not None:
        return Proof.DURABLE if disk >= least else Proof.UNPROVEN
    return Proof.DURABLE if counted else Proof.UNPROVEN


def _per_commit(kills: Sequence[Kill], flushes: Sequence[float | None]) -> float | None:
    known = [one for one in flushes if one is not None]
    commits = sum(kill.counted for kill in kills)
    return sum(known) / commits if commits and len(known) == len(kills) else None


# Commits of a replicated system must wait as planned. If a primary stops waiting for its replicas,
# only a counter shows it; clients see faster commits. So a replicated trial without these counters
# is void.

BEHIND_S_MAX: Final = 1.0
"""Most seconds of commits for a replica to be behind and still keep up with the load."""


def replicas_missing(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: at an edge of the window not all replicas ran, or there is no evidence of them."""
    topology = _topology(measurement, plan)
    running = measurement.server.replication.get(replication.REPLICAS_RUNNING)
    if topology.replicas in (0, running):
        return None
    return on_trial(
        measurement,
        "replicas-missing",
        Level.VOID,
        running=running,
        replicas=topology.replicas,
        kind=topology.replication,
    )


def commits_not_waited(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: commits did not wait for a replica as planned, or there is no proof of it."""
    topology, seen = _topology(measurement, plan), measurement.server.replication
    if topology.replicas == 0 or topology.replication != "semisync":
        return None
    reasons = [
        reason
        for reason in (
            _went_on_alone(seen),
            _unproven(measurement),
            _wrong_wait_point(seen, topology),
        )
        if reason is not None
    ]
    if not reasons:
        return None
    return on_trial(measurement, "commits-not-waited", Level.VOID, reasons=reasons)


def _went_on_alone(seen: Mapping[str, float]) -> dict[str, Any] | None:
    """Commits of the window were acknowledged to clients although no replica had them."""
    alone = seen.get(replication.COMMITS_NOT_ACKNOWLEDGED, 0)
    ended = seen.get(replication.TIMES_OFF, 0)
    is_on = bool(seen.get(replication.SEMISYNC_ON, 0))
    if not alone and not ended and is_on:
        return None
    waited = seen.get(replication.COMMITS_ACKNOWLEDGED, 0)
    counts = {"alone": round(alone), "waited": waited, "ended": round(ended)}
    return {"case": "alone", **counts, "is_on": is_on}


def _unproven(measurement: Measurement) -> dict[str, Any] | None:
    """The window wrote, and a primary with a counter of acknowledged commits had counted zero."""
    seen = measurement.server.replication
    wrote = sum(interval.writes for interval in measurement.measured)
    proven = replication.waits_uncounted(seen) or seen.get(replication.COMMITS_ACKNOWLEDGED, 0) > 0
    return None if not wrote or proven else {"case": "unproven", "wrote": wrote}


def _wrong_wait_point(seen: Mapping[str, float], topology: TopologyPlan) -> dict[str, Any] | None:
    """Commits waited at another point than planned."""
    after_sync = seen.get(replication.AFTER_SYNC)
    at = "after_sync" if after_sync else "after_commit"
    if after_sync is None or at == topology.wait_point:
        return None
    return {"case": "wait-point", "at": at, "wanted": topology.wait_point}


def replica_lags(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: a replica was too far behind for this rate to go on."""
    behind = measurement.server.replication.get(replication.TRANSACTIONS_BEHIND, 0)
    if not measurement.window_s or not measurement.events:
        return None
    rate = measurement.events / measurement.window_s
    if behind <= BEHIND_S_MAX * rate:
        return None
    return on_trial(
        measurement,
        "replica-lags",
        Level.DOUBTFUL,
        behind=behind,
        behind_s=behind / rate,
        limit_s=BEHIND_S_MAX,
    )


def _topology(measurement: Measurement, plan: Plan) -> TopologyPlan:
    return plan.system(measurement.trial.system).topology
