"""Table of costs: resources a server used per transaction, independent of its throughput.

Example: 8.0.15 uses 2.5 times the CPU of 5.7.22 per write transaction. A throughput is true of one
machine; a cost explains it and carries over to others.

Each cost is total over total within the measured window, so merged trials are weighted by their
work. Counters are read at the window's edges. On a starved machine a reading comes seconds late;
then its counter is divided by the events between the two readings.

Several sources may count the same cost (InnoDB's rows, the handler's calls), and not every product
has all of them. Systems are compared by a source common to all, if there is any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dbdyno.measurement.measurement import (
    Measurement,
    events_between_readings,
    events_until,
)
from dbdyno.measurement.syncs import disk_flushes, postgres_syncs

Total = Callable[[Measurement], float | None]
PAGE_KB_POSTGRES: Final = 8.192
PROCESS: Final = "process"
BLOCKS: Final = {"writes": "write", "extends": "extend"}
"""Counters of `pg_stat_io`; from PostgreSQL 18 on it counts the bytes of each as well."""
IO_WRITTEN: Final = r"wal\.wal_bytes|io\..*\.(write|extend)(s|_bytes)"
EVENTS_UNSURE_MAX: Final = 0.1
"""Share of events of unknown side of a reading; the error of a cost is half of it."""
NO_COUNTERS: Final = re.compile(
    r"^(threads|open|key_blocks|ssl|innodb_(mem|num|undo))_|^(last|uptime)"
    r"|(^|_|\.)(age|available|avg|capacity|current|(?<!wait_)free|in_cache|length|limit|lsn|max"
    r"|memory|min|numbackends|pending|size|stmt_count|used)(_|$)"
    r"|(pages|bytes)_(data|dirty|misc|total)$|(session|active|idle_in_transaction|busy|cpu)_time$"
    r"|checkpoint(er)?[._](write|sync)_time$",
    re.IGNORECASE,
)
"""Names of values that rise and fall, and of times of whole sessions and checkpoints. A server's
list does not say which of its values are counters."""


def _in_window(measurement: Measurement) -> float:
    return measurement.events


def while_counted(measurement: Measurement) -> float | None:
    """Events between the readings of the server's counters; None if a reading took too long."""
    least, most = events_between_readings(measurement)
    return (least + most) / 2 if most - least <= EVENTS_UNSURE_MAX * most else None


def beside_process(measurement: Measurement) -> float:
    """Events between the readings of the server's process, each just before its counters'.

    Events that overlap either edge of the window cancel out.
    """
    times_s = measurement.server.status_at_s
    if len(times_s) != 4 or not (measured := measurement.measured):
        return measurement.events
    end_s = min(times_s[2], measured[-1].end_s)
    begun, ended = (events_until(measurement.intervals, at_s) for at_s in (times_s[0], end_s))
    return max(0.0, ended - begun)


@dataclass(frozen=True)
class CountedBy:
    """A source of a cost.

    Attributes:
        name: the server's own for the counter, or a key of `report/tell/measured.py`.
        total: sum within one measured window, in the cost's unit; None if unknown.
        events: events over which the total was counted; None if unknown.
        counters: regular expression of the names of the counters that it reads.
    """

    name: str
    total: Total
    events: Total = _in_window
    counters: str = ""


@dataclass(frozen=True)
class Cost:
    """A resource used by transactions.

    Attributes:
        name: key in tables, unit first, since "per event" is common to all.
        unit: of the total, per transaction.
        decimals: digits behind the point at most.
        sources: possible sources, the best first.
    """

    name: str
    unit: str
    decimals: int
    sources: tuple[CountedBy, ...]


def source_of(cost: Cost, measurements: Sequence[Measurement]) -> CountedBy | None:
    """The best source available in all measurements, else None."""
    for source in cost.sources:
        if measurements and all(source.total(m) is not None for m in measurements):
            return source
    return None


def sources_of(cost: Cost, groups: Sequence[Sequence[Measurement]]) -> list[CountedBy | None]:
    """Each group's source: a source common to all groups, or else each group's own."""
    common = source_of(cost, [measurement for group in groups for measurement in group])
    return [common or source_of(cost, group) for group in groups]


def per_event(source: CountedBy, measurements: Sequence[Measurement]) -> float | None:
    """Cost of a transaction over all measurements; None without transactions or a count.

    A measurement with counters of an unknown span is left out.
    """
    total = events = 0.0
    for measurement in measurements:
        counted, over = source.total(measurement), source.events(measurement)
        if counted is None:
            return None
        if over is not None:
            total, events = total + counted, events + over
    return total / events if events else None


def own_counters(
    measurements: Sequence[Measurement], counted: Iterable[CountedBy]
) -> list[CountedBy]:
    """The counters of the server that all measurements have, and none of these sources reads.

    A counter counts something in some measurement, and falls in none.
    """
    every = [measurement.server.status for measurement in measurements]
    common = [name for name in every[0] if all(name in status for status in every)]
    growth = {name: [status[name] for status in every] for name in common}
    read = re.compile("|".join(filter(None, (source.counters for source in counted))) or r"\b\B")
    return [
        _counted(name)
        for name, grown in growth.items()
        if min(grown) >= 0 < max(grown)
        and not read.fullmatch(name)
        and not NO_COUNTERS.search(name)
    ]


def _any_of(names: Sequence[str]) -> str:
    return "|".join(map(re.escape, names))


def _counted(*names: str, scale: float = 1.0, label: str = "") -> CountedBy:
    """The growth of the server's counters over the window, added up; all of them must be there."""

    def total(measurement: Measurement) -> float | None:
        status = measurement.server.status
        if not all(name in status for name in names):
            return None
        return sum(status[name] for name in names) * scale

    return CountedBy(label or " + ".join(names), total, while_counted, _any_of(names))


def _either(label: str, innodb: tuple[str, ...], mariadb: tuple[str, ...]) -> CountedBy:
    """InnoDB's counters; a new MariaDB lacks them, and its own say the same."""
    first, second = _counted(*innodb).total, _counted(*mariadb).total

    def total(measurement: Measurement) -> float | None:
        counted = first(measurement)
        if counted is None and "Handler_tmp_write" in measurement.server.status:
            return second(measurement)
        return counted

    return CountedBy(label, total, while_counted, _any_of(innodb + mariadb))


def _innodb_written_kb(measurement: Measurement) -> float | None:
    """Pages, doublewrite and log; without the log's syncs (MariaDB, new) its bytes are apart."""
    status = measurement.server.status
    if (written := status.get("Innodb_data_written")) is None:
        return None
    apart = "Innodb_os_log_fsyncs" not in status
    return (written + (status.get("Innodb_os_log_written", 0.0) if apart else 0.0)) / 1e3


def _postgres_written_kb(measurement: Measurement) -> float | None:
    """Blocks of tables, indexes and temporary files, and the log; from PostgreSQL 16 on."""
    status = measurement.server.status
    kept = [key.rpartition(".") for key in status if key.startswith("io.")]
    if not kept or (log := status.get("wal.wal_bytes")) is None:
        return None
    places = {(row, what) for row, _, how in kept if (what := BLOCKS.get(how))}
    blocks = sum(
        status.get(
            f"{row}.{what}_bytes", status.get(f"{row}.{what}s", 0.0) * PAGE_KB_POSTGRES * 1e3
        )
        for row, what in places
        if ".wal." not in row
    )
    return (blocks + log) / 1e3


def _cpu_us(measurement: Measurement) -> float | None:
    return measurement.server.cpu_s * 1e6 if measurement.server.cpu_s > 0 else None


def _process(field: str, scale: float = 1.0) -> CountedBy:
    def total(measurement: Measurement) -> float | None:
        process = measurement.server.process
        count = None if process is None else getattr(process, field)
        return None if count is None else count * scale

    return CountedBy(PROCESS, total, beside_process)


def _replies_kb(measurement: Measurement) -> float | None:
    return sum(interval.bytes_received for interval in measurement.measured) / 1e3 or None


HANDLER_READS: Final = tuple(
    f"Handler_read_{how}" for how in ("first", "key", "next", "prev", "rnd", "rnd_next")
)
INNODB_CHANGES: Final = ("Innodb_rows_inserted", "Innodb_rows_updated", "Innodb_rows_deleted")
MARIADB_CHANGES: Final = ("Handler_write", "Handler_update", "Handler_delete")
"""MySQL counts changes of temporary tables here, MariaDB apart."""
POSTGRES_CHANGES: Final = tuple(
    f"database.tup_{what}" for what in ("inserted", "updated", "deleted")
)

COSTS: Final[tuple[Cost, ...]] = (
    Cost("server_cpu_us", "µs", 1, (CountedBy(PROCESS, _cpu_us, beside_process),)),
    Cost(
        "rows_read",
        "rows",
        2,
        (
            _either("rows_read", ("Innodb_rows_read",), ("Rows_read",)),
            _counted(*HANDLER_READS, label="Handler_read_*"),
            _counted("database.tup_fetched"),
        ),
    ),
    Cost(
        "rows_changed",
        "rows",
        2,
        (
            _either("rows", INNODB_CHANGES, MARIADB_CHANGES),
            _counted(*POSTGRES_CHANGES, label="database.tup_inserted, _updated, _deleted"),
            _counted("statements_summary.affected_rows"),
        ),
    ),
    Cost(
        "read_kb",
        "KB",
        2,
        (
            _counted("Innodb_data_read", scale=1e-3),
            _counted("database.blks_read", scale=PAGE_KB_POSTGRES),
        ),
    ),
    Cost(
        "written_kb",
        "KB",
        2,
        (
            CountedBy("innodb", _innodb_written_kb, while_counted, "Innodb_data_written"),
            CountedBy("pg_stat_io", _postgres_written_kb, while_counted, IO_WRITTEN),
        ),
    ),
    Cost(
        "log_kb",
        "KB",
        2,
        (_counted("Innodb_os_log_written", scale=1e-3), _counted("wal.wal_bytes", scale=1e-3)),
    ),
    Cost("storage_read_kb", "KB", 2, (_process("read_bytes", 1e-3),)),
    Cost("storage_written_kb", "KB", 2, (_process("written_bytes", 1e-3),)),
    Cost(
        "syncs",
        "syncs",
        3,
        (
            _counted("Innodb_data_fsyncs"),
            CountedBy(
                "wal.wal_sync + io.*.fsyncs",
                lambda seen: postgres_syncs(seen.server.status),
                while_counted,
                r"wal\.wal_sync|io\..*\.fsyncs",
            ),
        ),
    ),
    Cost("disk_flushes", "flushes", 3, (CountedBy("disks", disk_flushes),)),
    Cost("switches", "switches", 2, (_process("switches"),)),
    Cost("replies_kb", "KB", 2, (CountedBy("engine", _replies_kb),)),
)
"""In the order of a report; docs/reference/costs.md defines each cost."""
