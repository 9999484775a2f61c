"""Did every commit of the window wait as the plan promised? (docs/reference/findings.md,
durability)

A primary that stops waiting for its replicas shows it in a counter only; clients see faster
commits. So a replicated trial without these counters is void.
"""

from __future__ import annotations

from typing import Final

from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.language.words import Said, count, say
from dbdyno.measurement import replication
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan
from dbdyno.plan.systems import TopologyPlan

BEHIND_S_MAX: Final = 1.0
"""Replicas that are that much of the window's commits behind do not keep up with the load."""


def replicas_missing(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: not all replicas ran at both edges of the window, or nothing says that they did."""
    topology = _topology(measurement, plan)
    running = measurement.server.replication.get(replication.REPLICAS_RUNNING)
    if topology.replicas in (0, running):
        return None
    unread = running is None
    seen = say("no reading of replication") if unread else say("{count:.0f} running", count=running)
    return on_trial(
        measurement,
        "replicas-missing",
        Level.VOID,
        say(
            "{seen}, the plan has {replicas} ({kind})",
            seen=seen,
            replicas=count(topology.replicas, "replica"),
            kind=_kind(topology),
        ),
        say("look into the replicas' error logs; the trial did less work than it was meant to"),
    )


def commits_not_waited(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: commits of the window were acknowledged to clients although no replica had them."""
    if not _semisync(_topology(measurement, plan)):
        return None
    seen = measurement.server.replication
    alone = seen.get(replication.COMMITS_NOT_ACKNOWLEDGED, 0)
    ended = seen.get(replication.TIMES_OFF, 0)
    on = seen.get(replication.SEMISYNC_ON, 0)
    if not alone and not ended and on:
        return None
    waited = seen.get(replication.COMMITS_ACKNOWLEDGED, 0)
    state = say("was on") if on else say("was off at an edge of the window")
    return on_trial(
        measurement,
        "commits-not-waited",
        Level.VOID,
        say(
            "{alone} did not wait for a replica and {waited:.0f} did; the primary "
            "ended waiting {ended}, semi-synchronous replication {state}",
            alone=count(round(alone), "commit"),
            waited=waited,
            ended=count(round(ended), "time"),
            state=state,
        ),
        say(
            "find out why the replica was slow or gone; a longer topology.timeout_s makes commits "
            "wait rather than go on alone"
        ),
    )


def commits_unproven(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: the window wrote, and a primary that counts them had not one acknowledged commit."""
    topology = _topology(measurement, plan)
    if not _semisync(topology):
        return None
    seen = measurement.server.replication
    wrote = sum(interval.writes for interval in measurement.measured)
    proven = replication.waits_uncounted(seen) or seen.get(replication.COMMITS_ACKNOWLEDGED, 0) > 0
    if not wrote or proven:
        return None
    return on_trial(
        measurement,
        "commits-unproven",
        Level.VOID,
        say(
            "{wrote} writing statements, and no commit that a replica acknowledged",
            wrote=wrote,
        ),
        say("see whether the load's tables are among what is replicated"),
    )


def wrong_wait_point(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: commits waited at another point than the plan says."""
    topology = _topology(measurement, plan)
    after_sync = measurement.server.replication.get(replication.AFTER_SYNC)
    if not _semisync(topology) or after_sync is None:
        return None
    found = "after_sync" if after_sync else "after_commit"
    if found == topology.wait_point:
        return None
    return on_trial(
        measurement,
        "wrong-wait-point",
        Level.VOID,
        say(
            "commits waited at {found}, the plan says {wanted}",
            found=found,
            wanted=topology.wait_point,
        ),
        say("let no setting of the system change the wait point"),
    )


def replica_lags(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: a replica was so far behind that this rate could not have gone on."""
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
        say(
            "the slowest replica was {behind:.0f} transactions behind at the end of the window, "
            "{seconds:.1f} s of the load (limit {limit:.0f} s)",
            behind=behind,
            seconds=behind / rate,
            limit=BEHIND_S_MAX,
        ),
        say(
            "let the replica apply in parallel, or lower the load: this rate is the primary's alone"
        ),
    )


def _topology(measurement: Measurement, plan: Plan) -> TopologyPlan:
    return plan.system(measurement.trial.system).topology


def _semisync(topology: TopologyPlan) -> bool:
    return topology.replicas > 0 and topology.replication == "semisync"


def _kind(topology: TopologyPlan) -> Said:
    return {
        "async": say("asynchronous"),
        "semisync": say("semi-synchronous"),
        "group": say("group"),
    }[topology.replication]
