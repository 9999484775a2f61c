"""How often a log was synced and disks were flushed: the one count of those who ask.

Costs tell what a transaction took, a check voids what reached no disk, and a kill shows what a loss
of power would take. They must not differ in what a sync is.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import mean_over_time

Counters = Mapping[str, float]


def log_syncs(status: Counters, settings: Mapping[str, str]) -> float | None:
    """Syncs of the log alone, by the server's counters; None if it counts none."""
    counted = innodb_log_syncs(status, settings)
    return postgres_syncs(status, of_log=True) if counted is None else counted


def innodb_log_syncs(status: Counters, settings: Mapping[str, str]) -> float | None:
    """The same of InnoDB. Of a log that is opened with O_DSYNC every write is a sync."""
    method = settings.get("innodb_flush_method", "").upper()
    if method == "O_DSYNC" and "Innodb_log_writes" in status:
        return status["Innodb_log_writes"]
    return status.get("Innodb_os_log_fsyncs")


def postgres_syncs(status: Counters, *, of_log: bool = False) -> float | None:
    """Syncs of PostgreSQL's data and log files, or of the log's alone.

    Until PostgreSQL 17 pg_stat_wal counts those of the log; from 18 on pg_stat_io has them.
    """
    found = [
        count
        for name, count in status.items()
        if name == "wal.wal_sync"
        or (name.startswith("io.") and name.endswith(".fsyncs") and (".wal." in name or not of_log))
    ]
    return sum(found) if found else None


def disk_flushes(measurement: Measurement) -> float | None:
    """Cache flushes of all disks of the machine in the window; None on an old kernel.

    From the mean of the samples: their edges are off by half a sample at most.
    """
    rate_per_s = mean_over_time(measurement.watch_measured, lambda s: s.disk_flushes_per_s)
    return None if rate_per_s is None else rate_per_s * measurement.window_s
