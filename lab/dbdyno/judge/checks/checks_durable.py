"""Did commits reach the disk as the settings promise? (method.md 1.g, durability by behaviour)

A connection waits for its commit before it sends the next. So one flush of the log can answer one
commit of each connection at most, and a server that answers C commits over N connections and
flushes less than C / N times has answered some that were on no disk, whatever its settings say.
This holds with group commit, with and without a binary log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.judge.checks.counts import STATUS_SKEW_S
from dbdyno.judge.checks.invariant import always_writes
from dbdyno.judge.checks.promises import commit_is_waited_for
from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.language.words import say
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import Plan

SHARE_MIN: Final = 0.9
COMMITS_MIN: Final = 100
SEEN: Final = 0.5
UNSEEN: Final = 0.1
"""Flushes that the disks report for each sync of the log: from here on seen, below there unseen."""


def commits_unflushed(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: the settings promise a flush before each answer, and there were too few of them."""
    flushes = log_syncs(measurement)
    settings = measurement.server.settings
    if flushes is None or not commit_is_waited_for(settings):
        return None
    if not always_writes(measurement, plan) or measurement.events < COMMITS_MIN:
        return None
    connections = measurement.trial.cell.threads
    needed = measurement.events / connections
    if flushes >= needed * (SHARE_MIN - STATUS_SKEW_S / measurement.window_s):
        return None
    return on_trial(
        measurement,
        "commits-unflushed",
        Level.VOID,
        say(
            "{events} commits of {connections} connections need {needed:.0f} flushes of the log at "
            "least, the server made {flushes:.0f}: {share:.1%}",
            events=measurement.events,
            connections=connections,
            needed=needed,
            flushes=flushes,
            share=flushes / needed,
        ),
        say("look for what swallows syncs (nosync, eatmydata, tmpfs): this system does less work"),
    )


def unseen_flushes(measurements: Sequence[Measurement], plan: Plan) -> Iterator[Finding]:
    """Doubtful: one system's syncs reach the disks and another's do not; a note if no one's do."""
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
            evidence=say(
                "of the syncs that {system} made or promised the machine's disks saw {share:.0%}",
                system=system,
                share=share,
            ),
            advice=say(
                "put all systems on the same kind of disk; one without a cache that can lose "
                "(write through) reports none, and memory is no disk (tmpfs)"
            ),
            system=system,
        )


def _expected(measurement: Measurement, plan: Plan) -> float | None:
    """Syncs that the server counted; where it counts none, the least that its promise takes."""
    counted = log_syncs(measurement)
    promised = commit_is_waited_for(measurement.server.settings)
    if counted is not None or not promised or not always_writes(measurement, plan):
        return counted
    return measurement.events / measurement.trial.cell.threads


def log_syncs(measurement: Measurement) -> float | None:
    """How often the server had its log written to the disk in the window; None if nobody counted.

    Of a log that is opened with O_DSYNC every write is a sync.
    """
    status = measurement.server.status
    method = measurement.server.settings.get("innodb_flush_method", "").upper()
    if method == "O_DSYNC" and "Innodb_log_writes" in status:
        return status["Innodb_log_writes"]
    return status.get("Innodb_os_log_fsyncs")


def disk_flushes(measurement: Measurement) -> float | None:
    """Cache flushes of all disks of the machine in the window; None on an old kernel."""
    known = [s for s in measurement.watch_measured if s.disk_flushes_per_s is not None]
    if not known:
        return None
    return sum((s.disk_flushes_per_s or 0.0) * s.length_s for s in known)
