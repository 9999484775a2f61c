"""A trial becomes the rows of each table: column by column, since a long run has a million.

Every function gives the table's own columns as lists of one length; the keys, which are the same
for all rows of a trial, are added by `frames`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from dbdyno.export import tables
from dbdyno.export.columns import TableDefinition
from dbdyno.measurement.cost import COSTS, per_event, source_of
from dbdyno.measurement.measurement import Measurement, merge_histograms
from dbdyno.measurement.measurement_parts import Interval, Phase
from dbdyno.measurement.metric import BY_NAME, TABLE
from dbdyno.report.rows import Attempt
from dbdyno.report.settings import effective

Columns = Mapping[str, Sequence[Any]]
NANOSECONDS_PER_MS: Final = 1e6
PERCENTILES_OF_A_SECOND: Final = tuple(BY_NAME[f"latency_ms_{p}"] for p in ("p50", "p95", "p99"))


def trial(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """One row: the trial as a whole."""
    seen = attempt.measurement
    process, series = seen.server.process, seen.status_seconds
    warm_up = seen.until_steady
    row = {
        "why": attempt.why or None,
        "started_at": seen.started_at,
        "seed": seen.trial.seed,
        "warmup_s": seen.warmup_s,
        "window_s": seen.window_s,
        "events": seen.events,
        "queries": seen.queries,
        "errors": sum(seen.errors.values()),
        **{metric.name: seen.value(metric) for metric in TABLE},
        "server_version": seen.server.version,
        "server_cpu_s": seen.server.cpu_s,
        "server_read_bytes": process and process.read_bytes,
        "server_written_bytes": process and process.written_bytes,
        "server_switches_voluntary": process and process.switches_voluntary,
        "server_switches_involuntary": process and process.switches_involuntary,
        "engine_version": seen.engine.version,
        "engine_reactor": seen.engine.reactor,
        "engine_threads": seen.engine.threads,
        "engine_cpu_s": seen.engine.cpu_s,
        "engine_cpu_share_max": seen.engine.cpu_share_max,
        "status_cpu_ms": series and series.server_cpu_ms,
        "dataset": seen.dataset or None,
        "until_steady_s": warm_up and warm_up.seconds,
        "steady": warm_up and _yes(warm_up.steady),
    }
    return {name: [value] for name, value in row.items()}


def procedure(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """One row for each step that was taken before the trial."""
    rows = (
        {**step.model_dump(), "step": place, "done": _yes(step.done)}
        for place, step in enumerate(attempt.measurement.procedure)
    )
    return _columns(tables.PROCEDURE, rows)


def intervals(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """One row for each second of load."""
    return _columns(tables.INTERVALS, map(_interval, attempt.measurement.intervals))


def _interval(one: Interval) -> dict[str, Any]:
    counts = one.model_dump(include=set(tables.INTERVALS.schema) - {"phase", "errors"})
    return {
        **counts,
        "phase": one.phase.value,
        "errors": sum(one.errors.values()),
        "silence_ms_max": one.silence_ns_max / NANOSECONDS_PER_MS,
        **(_latencies(one) if one.events else {}),
    }


def _latencies(one: Interval) -> dict[str, float]:
    found = {
        "latency_ms_avg": one.latency_ns_sum / one.events / NANOSECONDS_PER_MS,
        "latency_ms_min": one.latency_ns_min / NANOSECONDS_PER_MS,
        "latency_ms_max": one.latency_ns_max / NANOSECONDS_PER_MS,
    }
    if "event" in one.histograms:
        histogram = merge_histograms([one.histograms["event"]])
        for metric in PERCENTILES_OF_A_SECOND:
            if metric.quantile is not None and one.events >= metric.requests_needed():
                latency_ns = min(histogram.quantile(metric.quantile), one.latency_ns_max)
                found[metric.name] = latency_ns / NANOSECONDS_PER_MS
    return found


def watch(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """One row for each second of the machine."""
    seen = attempt.measurement
    rows = (
        {**sample.model_dump(exclude={"disks", "networks"}), "phase": phase(seen, sample.at_s)}
        for sample in seen.watch
    )
    return _columns(tables.WATCH, rows)


def disks(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """One row for each disk and second."""
    return _columns(tables.DISKS, _devices(attempt.measurement, "disks"))


def networks(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """One row for each network device and second."""
    return _columns(tables.NETWORKS, _devices(attempt.measurement, "networks"))


def _devices(seen: Measurement, kind: str) -> Iterable[dict[str, Any]]:
    for sample in seen.watch:
        same = {"at_s": sample.at_s, "phase": phase(seen, sample.at_s)}
        for device, one in getattr(sample, kind).items():
            yield {**same, "device": device, **one.model_dump()}


def status(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """One row for each counter and reading, one counter after the other."""
    series = attempt.measurement.status_seconds
    made: dict[str, list[Any]] = {name: [] for name in tables.STATUS.schema}
    if series is None:
        return made
    phases = [phase(attempt.measurement, at_s) for at_s in series.at_s]
    for name, values in series.counters.items():
        made["phase"] += phases
        made["at_s"] += series.at_s
        made["took_ms"] += series.took_ms
        made["name"] += [name] * len(values)
        made["value"] += values
        made["per_s"] += growth(series.at_s, values)
    return made


def growth(at_s: Sequence[float], values: Sequence[float | None]) -> list[float | None]:
    """Growth a second since the entry before; None for the first and beside a gap."""
    grown: list[float | None] = [None] * min(1, len(values))
    for (before_s, before), (after_s, after) in pairwise(zip(at_s, values, strict=True)):
        known = before is not None and after is not None and after_s > before_s
        grown.append((after - before) / (after_s - before_s) if known else None)  # type: ignore[operator]
    return grown


def settings(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """One row for each variable in effect."""
    found = effective([attempt.measurement], attempt.system)
    return {"name": list(found), "value": list(found.values())}


def replication(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """One row for each number of a primary and its replicas; none without replicas."""
    found = attempt.measurement.server.replication
    return {"name": list(found), "value": list(found.values())}


def costs(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """One row for each cost that somebody counted, by a counter that all `peers` have."""
    seen = [attempt.measurement]
    rows = []
    for cost in COSTS:
        source = source_of(cost, peers) or source_of(cost, seen)
        value = per_event(source, seen) if source else None
        if source is not None and value is not None:
            row = {"cost": cost.name, "unit": cost.unit, "per_event": value}
            rows.append({**row, "counted_by": source.name})
    return _columns(tables.COSTS, rows)


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def phase(seen: Measurement, at_s: float) -> str:
    """The phase in which a moment of the load lies."""
    measured = seen.measured
    if not measured or at_s < measured[0].start_s:
        return Phase.WARMUP.value
    return (Phase.MEASURED if at_s <= measured[-1].end_s else Phase.DRAIN).value


def _columns(table: TableDefinition, rows: Iterable[Mapping[str, Any]]) -> Columns:
    made: dict[str, list[Any]] = {name: [] for name in table.schema}
    for row in rows:
        for name, values in made.items():
            values.append(row.get(name))
    return made


OF_TABLE: Final[Mapping[str, Callable[[Attempt, Sequence[Measurement]], Columns]]] = {
    tables.TRIALS.name: trial,
    tables.PROCEDURE.name: procedure,
    tables.INTERVALS.name: intervals,
    tables.WATCH.name: watch,
    tables.DISKS.name: disks,
    tables.NETWORKS.name: networks,
    tables.STATUS.name: status,
    tables.SETTINGS.name: settings,
    tables.REPLICATION.name: replication,
    tables.COSTS.name: costs,
}
"""Who makes the rows of which table; `peers` are all trials of the same cell."""
