"""One run as a tool recorded it, in dbdyno's terms, from any text that is known.

Logs of sysbench and pgbench hold seconds and totals, and sysbench's a histogram if it was asked
for; a result of HammerDB and a row of a published table hold single numbers; what `dbdyno sysbench`
writes for machines (JSON, CSV, hlog) holds what each kind can. A metric that was printed counts as
printed; what a text does not hold stays unknown.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple, TypeVar

from dbdyno._engine import Histogram
from dbdyno.audit.publication import PublishedTable, publication_of
from dbdyno.errors import UsageError
from dbdyno.intake import columns
from dbdyno.intake.grids import grids_in
from dbdyno.intake.other_logs import LoggedRow, rows_in
from dbdyno.intake.read import YAML_SUFFIXES
from dbdyno.intake.sysbench_log import LoggedRun, runs_in
from dbdyno.measurement.measurement import EVENT
from dbdyno.measurement.parts import Interval, Phase

Raw = TypeVar("Raw")
Read = TypeVar("Read")

COUNT_MAX: Final = 2**40
DIGITS_MAX: Final = 20  # of a seed, which has 64 bits
HAMMERDB: Final = "hammerdb_tprocc"
TABLE: Final = "a table, by a tool that it does not name"
LATENCIES: Final = ("avg", "p50", "p95", "p99", "p999", "max")
PRINTED: Final = {
    "tps": "transactions_per_s",
    "qps": "queries_per_s",
    **{name: name for name in (f"latency_ms_{part}" for part in LATENCIES)},
}
"""Metrics of tables and logs, under dbdyno's names."""
OWN_CSV: Final = "time_s,interval_s,threads,transactions_per_s,"
CSV_COLUMNS: Final = {
    *("time_s", "interval_s", "threads", "transactions_per_s"),
    *("reads_per_s", "writes_per_s", "others_per_s"),
    *("latency_ms_min", "latency_ms_mean", "latency_ms_max"),
}
OWN_HLOG: Final = "#[dbdyno: latencies in ns"
HLOG_LINE: Final = re.compile(
    r"(?:Tag=(?P<tag>\w+),)?(?P<start>{0}),(?P<length>{0}),(?P<max>{0}),(?P<blob>HIST\S+)".format(
        r"\d{1,12}(?:\.\d{1,12})?"
    )
)
NO_STATEMENT: Final = ("event_", "timer_lag")
"""How names of histograms begin that are not those of a kind of statement."""


class Recorded(NamedTuple):
    """One run.

    Attributes:
        tool: by its name, with its version where that is known.
        threads: connections; 0 where the text does not say.
        reported: metrics as they were printed, by dbdyno's names.
        seconds: how long it ran; 0 where that is unknown.
        intervals: what is known of its course, or of its whole; none of a row of a table.
        system, workload: empty where the text does not say.
        failure: why it did not end as planned; None if it did, as far as the text says.
    """

    tool: str
    threads: int
    reported: dict[str, float]
    seconds: float = 0.0
    intervals: tuple[Interval, ...] = ()
    system: str = ""
    workload: str = ""
    failure: str | None = None


def recorded_in(text: str, source: str, mapping: columns.Mapping) -> list[Recorded]:
    """Every run of a text, in its order; none if nothing in it is known.

    Raises:
        UsageError: something that cannot be read, in a text of a known kind; with its line.
    """
    if source.endswith(YAML_SUFFIXES):
        return [one for table in publication_of(text, source).tables for one in _rows(table)]
    own = (("{", _document), (OWN_HLOG, _hlog), (OWN_CSV, _seconds_of_csv))
    for sign, read in own:
        if text.lstrip().startswith(sign):
            return [read(text, source)]
    if runs := runs_in(text, source):
        return [_sysbench(run) for run in runs]
    if rows := rows_in(text, source):
        return [one for row in rows if (one := _other(row)) is not None]
    grids = grids_in(text, source, columns.is_heading)
    tables = [table for one in grids for table in columns.published(one, mapping, source).tables]
    return [one for table in tables for one in _rows(table)]


# Logs of sysbench and pgbench.


def _sysbench(log: LoggedRun) -> Recorded:
    percentiles = {
        f"latency_ms_p{name.replace('.', '')}": text
        for name, text in log.latency_ms.items()
        if name[:1].isdigit()
    }
    printed = {
        "transactions_per_s": log.tps,
        "queries_per_s": log.qps,
        "latency_ms_avg": log.latency_ms.get("avg", ""),
        "latency_ms_max": log.latency_ms.get("max", ""),
        **percentiles,
    }
    reported = {name: float(text) for name, text in printed.items() if text}
    last = log.intervals[-1].at_s if log.intervals else 1.0
    seconds = float(log.seconds or last)
    cut = None if log.has_report else "the log ends before its report"
    return Recorded(
        tool=f"sysbench {log.version}".strip(),
        threads=log.threads,
        reported=reported,
        seconds=seconds,
        intervals=tuple(_intervals(log, seconds, reported)),
        failure=log.failure or cut,
    )


def _intervals(log: LoggedRun, seconds: float, reported: dict[str, float]) -> Iterator[Interval]:
    """What each printed line says, so that all of them come to the report's totals.

    After a checkpoint the report's time is that of the whole run and its counts are of the rest:
    the whole run has as many events as its lines say, and statements of each kind in proportion.
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
    """A whole number dealt out by shares, none of it lost to rounding."""
    whole = sum(shares)
    weights = [one / whole for one in shares] if whole > 0 else [1 / len(shares)] * len(shares)
    edges = [0, *(round(total * share) for share in accumulate(weights[:-1])), total]
    return [max(0, after - before) for before, after in pairwise(edges)]


def _ns(log: LoggedRun, name: str) -> int:
    text = log.latency_ms.get(name, "")
    return round(float(text) * 1e6) if text else 0


def _histograms(log: LoggedRun) -> dict[str, bytes]:
    """The printed histogram, if there is one: counts are added up by doubling."""
    if not log.histogram:
        return {}
    made = Histogram()
    for ms, times in log.histogram:
        power = Histogram()
        power.record(round(ms * 1e6))
        for bit in bin(min(times, COUNT_MAX))[:1:-1]:
            if bit == "1":
                made.add(power)
            power.add(Histogram.decode(power.encode()))
    return {EVENT: made.encode()}


def _other(row: LoggedRow) -> Recorded | None:
    """A run of pgbench, or of HammerDB: there new orders are the transactions, as products count
    others each in its own way."""
    if row.workload == HAMMERDB:
        orders = {"transactions_per_s": float(row.values["nopm"]) / 60}
        workload = f"{HAMMERDB} (new orders)"
        return Recorded("HammerDB", row.threads, orders, workload=workload)
    if "tps" not in row.values:
        return None
    names = {"tps": "transactions_per_s", "latency_ms_avg": "latency_ms_avg"}
    reported = {to: float(row.values[one]) for one, to in names.items() if one in row.values}
    seconds = row.seconds or 1.0
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
    return Recorded("pgbench", row.threads, reported, seconds, (whole,), workload=row.workload)


def _rows(table: PublishedTable) -> Iterator[Recorded]:
    """The rows of a table; what else was the same for all of them stands beside the workload."""
    at = ", ".join(f"{name} {value}" for name, value in table.at.items())
    workload = f"{table.workload}, {at}".strip(", ") if at else table.workload
    for place, threads in enumerate(table.threads):
        reported = {
            PRINTED[name]: float(values[place].value)
            for name, values in table.values.items()
            if name in PRINTED
        }
        if reported:
            yield Recorded(TABLE, threads, reported, system=table.system, workload=workload)


# What `dbdyno sysbench --output=json|csv|hlog` writes.


def _document(text: str, source: str) -> Recorded:
    """A whole run, second by second; its percentiles are those that were asked for."""
    read = partial(json.loads, parse_int=_whole, parse_float=_finite, parse_constant=_finite)
    document = _parsed(read, text, source, 1)
    try:
        totals = document["totals"]
        printed = totals["latency_ms"]["percentiles"]
        reported = {
            "transactions_per_s": totals["events_per_s"],
            "queries_per_s": totals["queries_per_s"],
            "latency_ms_avg": totals["latency_ms"]["mean"],
            "latency_ms_max": totals["latency_ms"]["max"],
            **{f"latency_ms_p{name.replace('.', '')}": ms for name, ms in printed.items()},
        }
        failure = document["failure"]
        return Recorded(
            tool=f"dbdyno {document['dbdyno']}",
            threads=int(document["options"]["threads"]),
            reported={name: float(value) for name, value in reported.items()},
            seconds=float(totals["seconds"]),
            intervals=tuple(map(_interval, document["intervals"])),
            workload=str(document["test"] or ""),
            failure=str(failure.get("message")) if failure else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UsageError(
            f"{source} is JSON, but not what `dbdyno sysbench --output=json` writes",
            found=f"{type(error).__name__}: {error}",
            hint="give its log, or write the numbers into a CSV file",
        ) from error


def _interval(one: Mapping[str, Any]) -> Interval:
    latency = {name: round(one["latency_ms"][name] * 1e6) for name in ("sum", "min", "max")}
    same = ("events", "reads", "writes", "others", "restarts", "reconnects", "arrivals", "backlog")
    return Interval(
        phase=one["phase"],
        start_s=one["from_s"],
        end_s=one["to_s"],
        errors=one["errors_by_code"],
        **{name: one[name] for name in (*same, "in_flight", "bytes_received", "bytes_sent")},
        silence_ns_max=round(one["silence_ms_max"] * 1e6),
        **{f"latency_ns_{name}": ns for name, ns in latency.items()},
    )


def _seconds_of_csv(text: str, source: str) -> Recorded:
    """The lines of a run; its percentiles cannot be had from those of its seconds."""
    heading, *lines = text.split()
    names = heading.split(",")
    if missing := CSV_COLUMNS - {*names}:
        raise UsageError(
            f"line 1 of {source}: columns of `dbdyno sysbench --output=csv` are missing",
            wanted=", ".join(sorted(missing)),
            found=heading,
        )
    intervals, threads = [], 0
    for number, line in enumerate(lines, 2):
        cells = _parsed(lambda row: list(map(_finite, row.split(","))), line, source, number)
        if len(cells) != len(names):
            raise UsageError(
                f"line {number} of {source}: a row of another length than its heading",
                wanted=f"{len(names)} cells",
                found=str(len(cells)),
            )
        row = dict(zip(names, cells, strict=True))
        threads = int(row["threads"])
        intervals.append(_parsed(_second, row, source, number))
    return Recorded("dbdyno", threads, {}, _length_s(intervals), tuple(intervals))


def _second(row: Mapping[str, float]) -> Interval:
    seconds = row["interval_s"]
    events = round(row["transactions_per_s"] * seconds)
    kinds = ("reads", "writes", "others")
    return Interval(
        phase=Phase.MEASURED,
        start_s=max(0.0, row["time_s"] - seconds),
        end_s=row["time_s"],
        events=events,
        **{kind: round(row[f"{kind}_per_s"] * seconds) for kind in kinds},
        latency_ns_sum=round(row["latency_ms_mean"] * events * 1e6),
        latency_ns_min=round(row["latency_ms_min"] * 1e6),
        latency_ns_max=round(row["latency_ms_max"] * 1e6),
    )


def _hlog(text: str, source: str) -> Recorded:
    """Latencies of each interval; events, statements and the mean are counted off them."""
    slices: dict[tuple[float, float], dict[str, bytes]] = {}
    most_ms: dict[tuple[float, float], float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line[0] in '#"':
            continue
        if not (found := HLOG_LINE.fullmatch(line)):
            raise UsageError(
                f"line {number} of {source}: no line of an interval log",
                wanted="[Tag=NAME,]start,length,greatest value,histogram",
                found=line[:60],
                hint="was the run cut off? remove the line",
            )
        place = float(found["start"]), float(found["length"])
        blob = _parsed(b64decode, found["blob"], source, number)
        _parsed(Histogram.decode, blob, source, number)
        slices.setdefault(place, {})[found["tag"] or EVENT] = blob
        if not found["tag"]:
            most_ms[place] = float(found["max"])
    intervals = []
    for (start_s, length_s), histograms in slices.items():
        counts = {name: Histogram.decode(blob) for name, blob in histograms.items()}
        events = counts.pop(EVENT, Histogram())
        statements = sum(
            one.count() for name, one in counts.items() if not name.startswith(NO_STATEMENT)
        )
        intervals.append(
            Interval(
                phase=Phase.MEASURED,
                start_s=start_s,
                end_s=start_s + length_s,
                events=events.count(),
                reads=0,
                writes=0,
                others=statements,
                latency_ns_sum=sum(ns * times for ns, times in events.recorded()),
                latency_ns_min=events.min() if events.count() else 0,
                latency_ns_max=round(most_ms.get((start_s, length_s), 0) * 1e6),
                histograms=histograms,
            )
        )
    return Recorded("dbdyno", 0, {}, _length_s(intervals), tuple(intervals))


def _length_s(intervals: Sequence[Interval]) -> float:
    return intervals[-1].end_s - intervals[0].start_s if intervals else 0.0


def _finite(text: str) -> float:
    """A number; ValueError for one that is none, or beyond all others."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]!r} is no number that was measured")
    return number


def _whole(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise ValueError(f"a number of {len(text)} digits was not measured")
    return int(text)


def _parsed(read: Callable[[Raw], Read], raw: Raw, source: str, line: int) -> Read:
    try:
        return read(raw)
    except (ValueError, OverflowError, RecursionError) as error:
        raise UsageError(
            f"line {line} of {source} cannot be read",
            found=str(error)[:200],
            hint="was the file cut off, or changed by hand?",
        ) from error
