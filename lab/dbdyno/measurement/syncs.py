"""Syncs of a log and flushes of disks, with one definition for all callers.

Costs count them per transaction, a check voids trials whose writes reached no disk, and a kill
shows the loss after a power failure.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import mean_over_time

Counters = Mapping[str, float]


def log_syncs(status: Counters, settings: Mapping[str, str]) -> float | None:
    """Syncs of the log alone, by the server's counters; None if not counted."""
    counted = innodb_log_syncs(status, settings)
    return postgres_syncs(status, of_log=True) if counted is None else counted


def innodb_log_syncs(status: Counters, settings: Mapping[str, str]) -> float | None:
    """Syncs of InnoDB's log. With O_DSYNC every write of the log is a sync."""
    method = settings.get("innodb_flush_method", "").upper()
    if method == "O_DSYNC" and "Innodb_log_writes" in status:
        return status["Innodb_log_writes"]
    return status.get("Innodb_os_log_fsyncs")


def postgres_syncs(status: Counters, *, of_log: bool = False) -> float | None:
    """Syncs of PostgreSQL's data and log files, or of the log's alone.

    PostgreSQL up to 17 counts log syncs in pg_stat_wal; from 18 on in pg_stat_io.
    """
    counts = [
        count
        for name, count in status.items()
        if name == "wal.wal_sync"
        or (name.startswith("io.") and name.endswith(".fsyncs") and (".wal." in name or not of_log))
    ]
    return sum(counts) if counts else None


def disk_flushes(measurement: Measurement) -> float | None:
    """Cache flushes of all disks of the machine in the window; None on an old kernel.

    None, too, where the server's process was not seen on that machine. Taken from the samples' mean
    rate: the window's edges are off by half a sample at most.
    """
    if not measurement.server.pid and not measurement.server.cpu_s:
        return None
    rate_per_s = mean_over_time(measurement.watch_measured, lambda s: s.disk_flushes_per_s)
    return None if rate_per_s is None else rate_per_s * measurement.window_s
