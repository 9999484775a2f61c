"""Runs of other tools, in dbdyno's terms.

Logs of sysbench and pgbench hold seconds and totals, and sysbench's a histogram on request; a
result in new orders and a row of a published table hold single numbers. A printed metric is taken
as printed; everything else stays unknown, a counter too that a version or script leaves at 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from dbdyno._engine import Histogram
from dbdyno.audit.logs.apart import SetUp, Work
from dbdyno.audit.logs.other_logs import MINUTE_S, LoggedRow, logs_in
from dbdyno.audit.logs.sysbench_log import LoggedRun
from dbdyno.audit.page import columns
from dbdyno.audit.page.page import page_of
from dbdyno.audit.read import YAML_SUFFIXES
from dbdyno.audit.tables import NOPM, QPS, TPS, Printed, PublishedTable, publication_of, quantile_of
from dbdyno.measurement.measurement import EVENT
from dbdyno.measurement.parts import Interval, Phase

COUNT_MAX: Final = 2**40
TABLE: Final = "a table, by a tool that it does not name"
LATENCIES: Final = ("avg", "p50", "p95", "p99", "p999", "max")
PRINTED: Final = {
    TPS: "transactions_per_s",
    QPS: "queries_per_s",
    **{name: name for name in (f"latency_ms_{part}" for part in LATENCIES)},
}
"""Metrics of tables and logs, under dbdyno's names."""


class Recorded(NamedTuple):
    """A run.

    Attributes:
        tool: its name, with its version if known.
        reported: metrics as they were printed, by dbdyno's names.
        seconds: its duration; 0 if unknown.
        intervals: its seconds, or a single interval of the whole run; empty for a row of a table.
        threads: 0 if the text leaves them out.
        system, workload: empty if the text leaves them out.
        failure: the reason of a premature end; None for a regular end.
        line: its first line, or that of its result; 0 in a table.
        server: server in the command before it; empty if unknown.
        test_without_sql: name of a test that asks no database; empty for all others.
        work: as far as it is known.
        set_up: as far as a script printed it between several runs of a log.
    """

    tool: str
    threads: int
    reported: dict[str, float]
    seconds: float = 0.0
    intervals: tuple[Interval, ...] = ()
    system: str = ""
    workload: str = ""
    failure: str | None = None
    line: int = 0
    server: str = ""
    test_without_sql: str = ""
    work: Work = Work()
    set_up: SetUp = SetUp()


def recorded_in(text: str, source: str, mapping: columns.Mapping) -> list[Recorded]:
    """Every run of a text, in order; empty for an unknown kind, UsageError as its parser."""
    if source.endswith(YAML_SUFFIXES):
        return _of_tables(publication_of(text, source).tables)
    log = logs_in(text, source)
    page = None if log.is_whole or log.prepared or log.begun else page_of(text, source, mapping)
    if page is None or not page.tables:
        if log.refusals:  # a part of a log would be taken for the whole
            raise log.refusals[0]
        if logged := [*map(_sysbench, log.runs), *map(_other, log.rows)]:
            every = (run._replace(set_up=log.set_up(run.line)) for run in logged)
            return sorted(every, key=lambda run: run.line)
        if log.prepared:
            return [Recorded("sysbench", 0, {}, line=log.prepared, test_without_sql="prepare")]
        if log.begun:
            return []
    if page is None:
        return []
    if page.refusals:  # a part of a page would be taken for the whole
        raise page.refusals[0]
    return _of_tables(page.tables)


def _sysbench(log: LoggedRun) -> Recorded:
    percentiles = {
        quantile_of(name): log.latency(name) for name in log.latency_ms if name[:1].isdigit()
    }
    printed = {
        "transactions_per_s": log.tps,
        "queries_per_s": log.qps,
        "latency_ms_avg": log.latency("avg"),
        "latency_ms_max": log.latency("max"),
        **percentiles,
    }
    reported = {name: float(text) for name, text in printed.items() if text}
    last = log.intervals[-1].at_s if log.intervals else 1.0
    seconds = float(log.seconds or last)
    cut = (
        None
        if log.has_report
        else (
            f"the log of the run ends at line {log.last_line}, before its report"
            f" ({', '.join(log.lacks)})"
        )
    )
    return Recorded(
        tool=f"sysbench {log.version}".strip(),
        threads=log.threads,
        reported=reported,
        seconds=seconds,
        intervals=tuple(_intervals(log, seconds, reported)),
        failure=log.failure or cut,
        system=log.stream,
        workload=log.command.test,
        line=log.first_line,
        server=log.command.server,
        test_without_sql=log.test_without_sql,
        work=log.work,
    )


def _intervals(log: LoggedRun, seconds: float, reported: dict[str, float]) -> Iterator[Interval]:
    """The printed lines as intervals that add up to the report's totals.

    After a checkpoint the report has the time of the whole run and the counts of the rest. The
    whole run then has the events of its lines, and statements of each kind in proportion.
    """
    ends = [*(one.at_s for one in log.intervals if one.at_s < seconds), seconds]
    spans = list(pairwise([0.0, *ends]))
    rates = [float(one.tps) for one in log.intervals] or [float(log.tps or 0)]
    after = [*rates, rates[-1]]  # the report's time is longer than that of its lines
    done = [(end - start) * rate for (start, end), rate in zip(spans, after, strict=False)]
    counted, of_lines = log.events, round(sum(done))
    is_part = log.checkpoints > 0 and of_lines > 0
    events = of_lines if counted is None or is_part else counted
    share = events / counted if counted else 1.0
    unnamed = 0 if log.counts else round(reported.get("queries_per_s", 0) * seconds)
    totals = {
        "events": events,
        "reads": round(share * log.counts.get("read", 0)),
        "writes": round(share * log.counts.get("write", 0)),
        "others": round(share * log.counts["other"]) if "other" in log.counts else unnamed,
        "latency_ns_sum": round(reported.get("latency_ms_avg", 0) * events * 1e6),
    }
    parts = {name: _dealt(total, done) for name, total in totals.items()}
    for number, (start, end) in enumerate(spans):
        yield Interval(
            phase=Phase.MEASURED,
            start_s=start,
            end_s=end,
            **{name: column[number] for name, column in parts.items()},
            latency_ns_min=_ns(log, "min"),
            latency_ns_max=_ns(log, "max"),
            histograms=_histograms(log) if number == len(spans) - 1 else {},
        )


def _dealt(total: int, shares: Sequence[float]) -> list[int]:
    """Split a whole number by shares without rounding losses."""
    whole = sum(shares)
    weights = [one / whole for one in shares] if whole > 0 else [1 / len(shares)] * len(shares)
    edges = [0, *(round(total * share) for share in accumulate(weights[:-1])), total]
    return [max(0, after - before) for before, after in pairwise(edges)]


def _ns(log: LoggedRun, name: str) -> int:
    text = log.latency_ms.get(name, "")
    return round(float(text) * 1e6) if text else 0


def _histograms(log: LoggedRun) -> dict[str, bytes]:
    """The printed histogram, if any; counts are added by doubling."""
    if not log.histogram:
        return {}
    histogram = Histogram()
    for ms, times in log.histogram:
        power = Histogram()
        power.record(round(ms * 1e6))
        for bit in bin(min(times, COUNT_MAX))[:1:-1]:
            if bit == "1":
                histogram.add(power)
            power.add(Histogram.decode(power.encode()))
    return {EVENT: histogram.encode()}


def _other(row: LoggedRow) -> Recorded:
    """A run of pgbench, or of a program that counts new orders: they are its transactions, as
    products count all others each in its own way."""
    reported = {PRINTED[name]: float(text) for name, text in row.values.items() if name in PRINTED}
    if is_of_orders := NOPM in row.values:
        reported[PRINTED[TPS]] = float(row.values[NOPM]) / MINUTE_S
    seconds = row.seconds if is_of_orders else row.seconds or 1.0
    events = round(reported["transactions_per_s"] * seconds)
    whole = Interval(
        phase=Phase.MEASURED,
        start_s=0,
        end_s=seconds,
        events=events,
        reads=0,
        writes=0,
        others=0,
        latency_ns_sum=round(reported.get("latency_ms_avg", 0) * events * 1e6),
    )
    return Recorded(
        row.tool,
        row.threads,
        reported,
        seconds,
        () if is_of_orders else (whole,),
        row.system,
        f"{row.workload} (new orders)" if is_of_orders else row.workload,
        line=row.line,
        work=row.work,
    )


def _of_tables(tables: Sequence[PublishedTable]) -> list[Recorded]:
    """The rows of tables; another table adds its metrics to a cell, and restates no numbers."""
    runs: list[Recorded] = []
    last: dict[tuple[str, str, int], tuple[int, str, dict[str, Printed]]] = {}
    for table in tables:
        for row, run in enumerate(_rows(table)):
            cell = run.system, run.workload, run.threads
            numbers = {metric: values[row] for metric, values in table.values.items()}
            place, before = last[cell][1:] if cell in last else ("", numbers)
            both = before.keys() & numbers.keys()
            is_restated = place != table.place and all(before[m].may_be(numbers[m]) for m in both)
            if cell in last and (is_restated or not both):
                number = last[cell][0]
                reported = {**run.reported, **runs[number].reported}
                runs[number] = runs[number]._replace(reported=reported)
                last[cell] = number, place, {**numbers, **before}
            else:
                last[cell] = len(runs), table.place, numbers
                runs.append(run)
    return runs


def _rows(table: PublishedTable) -> Iterator[Recorded]:
    """The rows of a table; its further conditions are added to the workload's name.

    New orders a minute are its transactions, as in a result of HammerDB.
    """
    at = ", ".join(f"{name} {value}" for name, value in table.at.items())
    workload = f"{table.workload}, {at}".strip(", ") if at else table.workload
    of_orders = NOPM in table.values and TPS not in table.values
    if of_orders:
        workload = f"{workload or 'TPC-C'} (new orders)"
    for place, threads in enumerate(table.threads):
        reported = {
            PRINTED[name]: values[place].value
            for name, values in table.values.items()
            if name in PRINTED
        }
        if of_orders:
            reported[PRINTED[TPS]] = table.values[NOPM][place].value / MINUTE_S
        if reported:
            yield Recorded(TABLE, threads, reported, system=table.system, workload=workload)
