"""The tables of an export and every column in them, in the order in which they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final, Literal, get_args

from dbdyno.judge.beside.grid import GridSummary
from dbdyno.judge.judgement import Judgement
from dbdyno.judge.verdict import Verdict, by_comparison
from dbdyno.measurement.cost import COSTS, per_event, source_of
from dbdyno.measurement.measurement import Measurement, kinds_of, merge_histograms
from dbdyno.measurement.metric import BY_NAME, KIND, TABLE, Metric, of_kind
from dbdyno.measurement.parts import DiskSample, Interval, NetworkSample, Noun, Phase, WatchSample
from dbdyno.report.rows import Attempt, effective
from dbdyno.report.tell.levels import levels_of
from dbdyno.report.tell.measured import counter, metric_label

# Definitions are data so that files, their docs and the tests are made from the same words:
# `reference` writes the tables of `docs/reference/export.md`.


class Kind(StrEnum):
    """Type of a column, as the docs name it."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"


@dataclass(frozen=True)
class ExportColumn:
    """A column; `meaning` gives the unit unless the name does."""

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True)
class TableDefinition:
    """A table, written to a file of its own.

    Attributes:
        name: the file's name without extension.
        row: the subject of a row.
        columns: its own columns, after the keys shared by all tables of trials.
        is_of_trials: True if rows are about a trial; such a table begins with the keys.
    """

    name: str
    row: str
    columns: tuple[ExportColumn, ...]
    is_of_trials: bool = True

    @property
    def schema(self) -> dict[str, Kind]:
        return {column.name: column.kind for column in self.columns}

    @property
    def keys(self) -> tuple[ExportColumn, ...]:
        return KEYS if self.is_of_trials else ()


def text(name: str, meaning: str) -> ExportColumn:
    """A column of words."""
    return ExportColumn(name, Kind.TEXT, meaning)


def integer(name: str, meaning: str) -> ExportColumn:
    """A column of whole numbers."""
    return ExportColumn(name, Kind.INTEGER, meaning)


def number(name: str, meaning: str) -> ExportColumn:
    """A column of numbers."""
    return ExportColumn(name, Kind.NUMBER, meaning)


def reference(keys: Iterable[ExportColumn], tables: Sequence[TableDefinition]) -> str:
    """Reference of every table and column, as Markdown for the docs."""
    of_readings = ", ".join(f"`{t.name}`" for t in tables if AT in t.columns)
    blocks = ["### Keys: in every table except `levels`\n\n" + _rows(keys)]
    blocks += [f"### Also in {of_readings}\n\n" + _rows(READING)]
    own = {t.name: [column for column in t.columns if column not in READING] for t in tables}
    blocks += [f"### `{t.name}`: {t.row}\n\n" + _rows(own[t.name]) for t in tables]
    return "\n".join(blocks)


def _rows(columns: Iterable[ExportColumn]) -> str:
    head = "| column | meaning |\n| --- | --- |\n"
    return head + "".join(f"| `{c.name}` | {c.meaning} |\n" for c in columns)


KEYS: Final = (
    text("run_id", "the run's id"),
    integer("sequence", "order of the trial in the run, from 0; negative in the pilot"),
    integer("attempt", "number of the attempt at this trial, from 0"),
    integer("block", "number of the block (repetition), from 0; -1: pilot"),
    integer("position", "order of the system and setting within the block, from 0"),
    text("system", "the system's label"),
    text("workload", "the workload's label"),
    integer("threads", "number of connections"),
    number("rate_per_s", "transactions due per second in an open loop; empty in a closed loop"),
    text("setting", "values of the varied settings; `default` if none is varied"),
    text("state", "`valid`: the attempt counts; `void`, `failed` or `repeated`: it does not count"),
)
"""Columns with which a table of trials begins; run_id, sequence and attempt name a trial."""
AT: Final = number("at_s", "middle of this second or reading, in seconds since the load began")
READING: Final = (
    text("phase", "`warmup`, `measured` or `drain`; verdicts use only `measured`"),
    AT,
)
"""Columns with which a table of readings begins."""


def _metric(metric: Metric) -> ExportColumn:
    latency = "latency " * metric.name.startswith("latency")
    least = f"; empty below {metric.requests_needed():,} transactions" * bool(metric.quantile)
    return number(metric.name, f"{latency}{metric_label(metric)}, {metric.unit}{least}")


def _fields(part: type[Noun]) -> Iterable[ExportColumn]:
    """A column for each described field of a part of a measurement."""
    for name, field in part.model_fields.items():
        if field.description:
            is_whole = int in (field.annotation, *get_args(field.annotation))
            yield (integer if is_whole else number)(name, field.description)


TRIALS: Final = TableDefinition(
    "trials",
    "one row per attempt at a trial",
    (
        text("why", "reason if the attempt does not count, else empty"),
        text("started_at", "start of the attempt, ISO 8601 with UTC offset"),
        integer("seed", "random seed of the requests; equal for all systems of a block"),
        number("warmup_s", "seconds of load before the measured window"),
        number("window_s", "actual length of the measured window, in seconds"),
        integer("events", "transactions completed in the window"),
        integer("queries", "statements answered without error"),
        integer("errors", "statements that failed"),
        *map(_metric, TABLE),
        text("server_version", "the version that the server reports"),
        number("server_cpu_s", "CPU time of the server's process in the window"),
        integer("server_read_bytes", "bytes that the server read from storage, not the page cache"),
        integer("server_written_bytes", "bytes that the server wrote, on storage now or later"),
        integer("server_switches_voluntary", "context switches because a thread waited"),
        integer("server_switches_involuntary", "context switches because a thread was preempted"),
        text("engine_version", "version of the load generator"),
        text("engine_reactor", "how the load generator waits for sockets: io_uring or epoll"),
        integer("engine_threads", "number of the load generator's threads"),
        number("engine_cpu_s", "CPU time of the load generator in the window"),
        number("engine_cpu_share_max", "CPU share of the load generator's busiest thread, 0 to 1"),
        number("status_cpu_ms", "the server's CPU time to report its counters, before the load"),
        text("dataset", "digest of the loaded rows; empty if not computed"),
        text("machine", "machine of the cluster; empty: the machine where dbdyno was started"),
        number(
            "counted_from_s",
            "moment from which verdicts count, in seconds since the load began; later than the "
            "window's start if throughput was still changing; empty if the attempt does not count",
        ),
    ),
)
EVENT_KINDS: Final = TableDefinition(
    "event_kinds",
    "one row per kind of transaction, if a script or template names kinds",
    (
        text(
            "kind",
            "kind of transaction, as the script or template names it, such as `new_order`",
        ),
        integer("events", "transactions of this kind"),
        number("per_s", "transactions of this kind completed per second"),
        number("latency_ms_p95", "latency p95, ms; empty below 2,000 transactions"),
    ),
)
PROCEDURE: Final = TableDefinition(
    "procedure",
    "one row per step before a trial",
    (
        integer("step", "number of the step, from 0"),
        text("name", "name of the step, such as `restore`, `start`, `settle`"),
        number("seconds", "time that the step took"),
        text("done", "`yes`, or `no` if the step was not done or not completed"),
        text("detail", "result of the step, or the reason why it was not done"),
    ),
)
INTERVALS: Final = TableDefinition(
    "intervals",
    "one row per second of load",
    (
        text(
            "phase",
            "`warmup`, `measured` or `drain` (last answers after the window); verdicts use only "
            "`measured`, from `counted_from_s` (in `trials`) on",
        ),
        number("start_s", "start of this second, in seconds since the load began"),
        number("end_s", "end of this second, in seconds since the load began"),
        integer("events", "transactions completed"),
        integer("reads", "statements that read rows"),
        integer("writes", "statements that write rows"),
        integer("others", "other statements, such as BEGIN and COMMIT"),
        integer("errors", "statements that failed"),
        integer("restarts", "transactions retried, such as after a deadlock"),
        integer("reconnects", "lost connections that were opened again"),
        integer("arrivals", "open loop: transactions that became due"),
        integer("backlog", "open loop: transactions due but not begun at the second's end"),
        integer("in_flight", "transactions in progress at the second's end"),
        number("silence_ms_max", "longest time in which no connection got an answer, ms"),
        integer("bytes_received", "bytes of replies"),
        integer("bytes_sent", "bytes of requests"),
        number("latency_ms_avg", "mean latency, ms"),
        number("latency_ms_min", "shortest latency, ms"),
        number("latency_ms_p50", "median latency, ms; empty below 200 transactions in the second"),
        number("latency_ms_p95", "p95, ms; empty below 2,000 transactions in the second"),
        number("latency_ms_p99", "p99, ms; empty below 10,000 transactions in the second"),
        number("latency_ms_max", "longest latency, ms"),
    ),
)
WATCH: Final = TableDefinition(
    "watch",
    "one row per second of the machine; CPU time is in cores (CPU seconds per second)",
    (*READING, *_fields(WatchSample)),
)
DISKS: Final = TableDefinition(
    "watch_disks",
    "one row per disk and second",
    (*READING, text("device", "the kernel's name of the disk"), *_fields(DiskSample)),
)
NETWORKS: Final = TableDefinition(
    "watch_networks",
    "one row per network device and second",
    (
        *READING,
        text("device", "the kernel's name of the network device; `lo` is loopback"),
        *_fields(NetworkSample),
    ),
)
STATUS: Final = TableDefinition(
    "status",
    "one row per counter of the server and reading",
    (
        *READING,
        number("took_ms", "time that the server took to answer the reading"),
        text("name", "the server's own name of the counter"),
        number("value", "the value that the server reported"),
        number("per_s", "increase per second since the previous reading; empty for the first"),
    ),
)
SETTINGS: Final = TableDefinition(
    "settings",
    "one row per server variable in effect, without passwords",
    (text("name", "name of the variable"), text("value", "the value that the server reported")),
)
REPLICATION: Final = TableDefinition(
    "replication",
    "one row per number about replication in the window",
    (
        text("name", "name of the number, such as `commits_acknowledged`"),
        number("value", "value of the number"),
    ),
)
THREAD_GROUPS: Final = TableDefinition(
    "thread_groups",
    "one row per group of the server's threads or processes, in the window",
    (
        text("name", "name of the group, such as `connection`; `unnamed`: without a name"),
        number("user_s", "CPU time in user mode"),
        number("system_s", "CPU time in the kernel"),
        number("queued_s", "time in which threads were ready while others had the CPUs"),
    ),
)
COST_TABLE: Final = TableDefinition(
    "costs",
    "one row per cost of a transaction",
    (
        text("cost", "name of the cost, such as `server_cpu_us`; [all costs](costs.md)"),
        text("unit", "unit of `per_event`"),
        number("per_event", "cost per transaction"),
        text(
            "counted_by", "the counter that was read, if possible the same in all trials of a cell"
        ),
    ),
)
LEVELS: Final = TableDefinition(
    "levels",
    "one row per verdict: on all cells, on a workload in a setting, or on a cell",
    (
        KEYS[0],
        text(
            "level",
            "`all` cells together, a `workload`, or a `cell`; for one pair of systems, all "
            "intervals of a level are correct together in 95 % of runs",
        ),
        text("baseline", "the baseline's label"),
        text("system", "the system's label"),
        text("metric", "the compared metric, such as `transactions_per_s`"),
        text("workload", "the workload's label; empty for all cells"),
        text("setting", "values of the varied settings; empty for all cells"),
        integer("threads", "number of connections of the cell"),
        number("rate_per_s", "transactions due per second in an open loop; empty in a closed loop"),
        integer("cells", "number of cells in the mean"),
        integer("blocks", "number of valid blocks"),
        number("ratio", "the system's metric / the baseline's, geometric mean; empty if unknown"),
        number("low", "lower end of the ratio's interval; empty below 3 blocks"),
        number("high", "upper end of the ratio's interval"),
        text("word", "the verdict, such as `better`"),
        text("beyond_margin", "`yes` if the whole interval lies beyond the margin, else `no`"),
        number("margin", "smallest difference that matters, 0.02 = 2 %"),
        integer("blocks_needed", "if `undecided`: number of blocks that would probably be enough"),
    ),
    is_of_trials=False,
)


# A trial becomes the rows of each table: column by column, since a long run has a million. Every
# function gives the table's own columns as lists of one length; `parts_of` adds the keys.

Columns = Mapping[str, Sequence[Any]]
Part = tuple[Mapping[str, Any], Columns]
"""Values of a table's key columns, the same in all rows, and of its own columns."""
NANOSECONDS_PER_MS: Final = 1e6
PROCESSES: Final[tuple[Literal["server", "generator"], ...]] = ("server", "generator")
PERCENTILES_OF_A_SECOND: Final = tuple(BY_NAME[f"latency_ms_{p}"] for p in ("p50", "p95", "p99"))


def trial(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """A single row: the trial as a whole."""
    seen = attempt.measurement
    process, series = seen.server.process, seen.status_seconds
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
        "server_cpu_s": seen.server.cpu_s or None,
        "server_read_bytes": process and process.read_bytes,
        "server_written_bytes": process and process.written_bytes,
        "server_switches_voluntary": process and process.switches_voluntary,
        "server_switches_involuntary": process and process.switches_involuntary,
        "engine_version": seen.engine.version,
        "engine_reactor": seen.engine.reactor,
        "engine_threads": seen.engine.threads,
        "engine_cpu_s": seen.engine.cpu_s or None,
        "engine_cpu_share_max": seen.engine.cpu_share_max or None,
        "status_cpu_ms": series and series.server_cpu_ms,
        "dataset": seen.dataset or None,
        "machine": seen.machine or None,
        "counted_from_s": attempt.counted_from_s,
    }
    return {name: [value] for name, value in row.items()}


def event_kinds(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """A row for each kind of event of a script; no rows for other workloads."""
    seen = attempt.measurement
    rows = []
    for kind in kinds_of([seen]):
        rate, p95 = map(seen.value, of_kind(kind))
        events = seen.histogram(KIND + kind).count()
        rows.append({"kind": kind, "events": events, "per_s": rate, "latency_ms_p95": p95})
    return _columns(EVENT_KINDS, rows)


def procedure(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """A row for each step before the trial."""
    rows = (
        {**step.model_dump(), "step": place, "done": "yes" if step.done else "no"}
        for place, step in enumerate(attempt.measurement.procedure)
    )
    return _columns(PROCEDURE, rows)


def intervals(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """A row for each second of load."""
    return _columns(INTERVALS, map(_interval, attempt.measurement.intervals))


def _interval(interval: Interval) -> dict[str, Any]:
    counts = interval.model_dump(include=set(INTERVALS.schema) - {"phase", "errors"})
    return {
        **counts,
        "phase": interval.phase.value,
        "errors": sum(interval.errors.values()),
        "silence_ms_max": interval.silence_ns_max / NANOSECONDS_PER_MS,
        **(_latencies(interval) if interval.events else {}),
    }


def _latencies(interval: Interval) -> dict[str, float]:
    latencies = {
        "latency_ms_avg": interval.latency_ns_sum / interval.events / NANOSECONDS_PER_MS,
        "latency_ms_min": interval.latency_ns_min / NANOSECONDS_PER_MS,
        "latency_ms_max": interval.latency_ns_max / NANOSECONDS_PER_MS,
    }
    if "event" in interval.histograms:
        histogram = merge_histograms([interval.histograms["event"]])
        for metric in PERCENTILES_OF_A_SECOND:
            if metric.quantile is not None and interval.events >= metric.requests_needed():
                latency_ns = min(histogram.quantile(metric.quantile), interval.latency_ns_max)
                latencies[metric.name] = latency_ns / NANOSECONDS_PER_MS
    return latencies


def watch(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """A row for each second of the machine."""
    seen = attempt.measurement
    phase = phase_in(seen)
    rows = ({**_known(sample), "phase": phase(sample.at_s)} for sample in seen.watch)
    return _columns(WATCH, rows)


def _known(sample: WatchSample) -> dict[str, Any]:
    """Drop the zeros of unreadable processes from a sample."""
    row = sample.model_dump(exclude={"disks", "networks"})
    for process in PROCESSES:
        if not sample.is_seen(process):
            row = {name: v for name, v in row.items() if not name.startswith(f"{process}_")}
    return row


def disks(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """A row for each disk and second."""
    return _columns(DISKS, _devices(attempt.measurement, "disks"))


def networks(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """A row for each network device and second."""
    return _columns(NETWORKS, _devices(attempt.measurement, "networks"))


def _devices(seen: Measurement, kind: str) -> Iterable[dict[str, Any]]:
    phase = phase_in(seen)
    for sample in seen.watch:
        same = {"at_s": sample.at_s, "phase": phase(sample.at_s)}
        for device, reading in getattr(sample, kind).items():
            yield {**same, "device": device, **reading.model_dump()}


def status(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """A row for each counter and reading, counter by counter."""
    series = attempt.measurement.status_seconds
    values_by_column: dict[str, list[Any]] = {name: [] for name in STATUS.schema}
    if series is None:
        return values_by_column
    phases = list(map(phase_in(attempt.measurement), series.at_s))
    for name, values in series.counters.items():
        values_by_column["phase"] += phases
        values_by_column["at_s"] += series.at_s
        values_by_column["took_ms"] += series.took_ms
        values_by_column["name"] += [name] * len(values)
        values_by_column["value"] += values
        values_by_column["per_s"] += growth(series.at_s, values)
    return values_by_column


def growth(at_s: Sequence[float], values: Sequence[float | None]) -> list[float | None]:
    """Growth a second since the previous entry; None for the first and beside a gap."""
    grown: list[float | None] = [None] * min(1, len(values))
    for (before_s, before), (after_s, after) in pairwise(zip(at_s, values, strict=True)):
        known = before is not None and after is not None and after_s > before_s
        grown.append((after - before) / (after_s - before_s) if known else None)  # type: ignore[operator]
    return grown


def settings(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """A row for each variable in effect."""
    variables = effective([attempt.measurement], attempt.system)
    return {"name": list(variables), "value": list(variables.values())}


def replication(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """A row for each number of a primary and its replicas; empty without replicas."""
    numbers = attempt.measurement.server.replication
    return {"name": list(numbers), "value": list(numbers.values())}


def thread_groups(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """A row for each group of the server's threads; empty if they were not read."""
    groups = attempt.measurement.server.threads
    return _columns(THREAD_GROUPS, ({"name": n, **work.model_dump()} for n, work in groups.items()))


def costs(attempt: Attempt, peers: Sequence[Measurement]) -> Columns:
    """A row for each counted cost, by a counter shared by all `peers` if possible."""
    seen = [attempt.measurement]
    rows = []
    for cost in COSTS:
        source = source_of(cost, peers) or source_of(cost, seen)
        value = per_event(source, seen) if source else None
        if source is not None and value is not None:
            row = {"cost": cost.name, "unit": cost.unit, "per_event": value}
            rows.append({**row, "counted_by": counter(source)})
    return _columns(COST_TABLE, rows)


def phase_in(seen: Measurement) -> Callable[[float], str]:
    """Function from a moment of the load to its phase."""
    measured = seen.measured

    def phase(at_s: float) -> str:
        if not measured or at_s < measured[0].start_s:
            return Phase.WARMUP.value
        return (Phase.MEASURED if at_s <= measured[-1].end_s else Phase.DRAIN).value

    return phase


def _columns(table: TableDefinition, rows: Iterable[Mapping[str, Any]]) -> Columns:
    values_by_column: dict[str, list[Any]] = {name: [] for name in table.schema}
    for row in rows:
        for name, values in values_by_column.items():
            values.append(row.get(name))
    return values_by_column


ROWS_BY_TABLE: Final[dict[TableDefinition, Callable[[Attempt, Sequence[Measurement]], Columns]]] = {
    TRIALS: trial,
    EVENT_KINDS: event_kinds,
    PROCEDURE: procedure,
    INTERVALS: intervals,
    WATCH: watch,
    DISKS: disks,
    NETWORKS: networks,
    STATUS: status,
    SETTINGS: settings,
    REPLICATION: replication,
    THREAD_GROUPS: thread_groups,
    COST_TABLE: costs,
}
"""Who makes the rows of which table; `peers` are all trials of the same cell."""
TABLES: Final = (*ROWS_BY_TABLE, LEVELS)


def parts_of(
    table: TableDefinition, attempts: Sequence[Attempt], judgement: Judgement
) -> Iterator[Part]:
    """The parts of a table: one for each attempt, or a single one."""
    if table.is_of_trials:
        for place in range(len(attempts)):
            yield keys(attempts, place), columns(table, attempts, place)
    elif attempts:
        run_id = attempts[0].measurement.trial.run_id
        yield {}, _columns(table, ({"run_id": run_id, **row} for row in levels(judgement)))


def levels(judgement: Judgement) -> Iterator[dict[str, Any]]:
    """A row for each verdict of each level, the widest level first."""
    of_comparisons = [
        levels_of(group, judgement.summaries).every for group in by_comparison(judgement.verdicts)
    ]
    for summary in (one for every in of_comparisons for one in every):
        level = "workload" if summary.workload else "all"
        yield {"level": level, **_answer(summary), "ratio": summary.ratio, "cells": summary.cells}
    for verdict in judgement.all_verdicts:
        of_cell = {**verdict.cell.model_dump(), "ratio": verdict.estimate.ratio, "cells": 1}
        yield {"level": "cell", **_answer(verdict), **of_cell}


def _answer(answer: GridSummary | Verdict) -> dict[str, Any]:
    own = answer.model_dump(include=LEVELS.schema.keys() - {"level", "word"})
    return {
        **{name: None if value == "" else value for name, value in own.items()},
        "blocks": answer.blocks,
        "word": answer.word.value,
        "beyond_margin": "yes" if answer.material else "no",
    }


def keys(attempts: Sequence[Attempt], place: int) -> dict[str, Any]:
    """Values of an attempt's key columns, in the order of `KEYS`."""
    attempt = attempts[place]
    trial = attempt.measurement.trial
    before = [other for other in attempts[:place] if other.measurement.trial.place == trial.place]
    values = {
        **trial.model_dump(include={"run_id", "sequence", "block", "position", "system"}),
        **trial.cell.model_dump(include={"workload", "threads", "rate_per_s", "setting"}),
        "attempt": len(before),
        "state": attempt.state.value,
    }
    return {column.name: values[column.name] for column in KEYS}


def columns(table: TableDefinition, attempts: Sequence[Attempt], place: int) -> Columns:
    """Values of an attempt in the table's own columns, in the order of its schema."""
    attempt = attempts[place]
    peers = [other.measurement for other in attempts if other.cell == attempt.cell]
    values = ROWS_BY_TABLE[table](attempt, peers)
    return {name: values[name] for name in table.schema}
