"""Results for machines: ``--output=json``, ``csv`` and ``hlog``.

The JSON document is written for runs too that failed half-way or never began. Names end with units.
Passwords are not in it, and neither is the environment they came from.
"""

from __future__ import annotations

import json
import math
import os
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from dbdyno import __version__
from dbdyno._engine import Histogram, IntervalLog, version
from dbdyno.sysbench.ending import SysbenchRun
from dbdyno.sysbench.options.output import Percentile
from dbdyno.sysbench.options.table import GLOBAL_TABLE
from dbdyno.sysbench.options.values import Option, Values
from dbdyno.sysbench.report import IntervalSummary
from dbdyno.sysbench.request import Request
from dbdyno.sysbench.totals import EVENT, SERVICE, TIMER_LAG, Totals, mean_ns, without_warmup

_NS_PER_MS = 1e6
_OTHER_COUNTS = (
    *("restarts", "reconnects", "bytes_sent", "bytes_received"),
    *("arrivals", "backlog", "in_flight"),
)


def document(request: Request, seed: int, run: SysbenchRun) -> str:
    """The whole document, with its last newline."""
    record, percentiles = run.record, request.general.output.percentiles
    begin_s = request.general.warmup_s
    intervals = without_warmup(record.get("intervals", []))
    totals = Totals.of(intervals)
    content = {
        "dbdyno": __version__,
        "test": request.test,
        "options": _options(request),
        "seed": seed,
        "environment": _environment(record),
        "begun_at": None if run.begun_at is None else _iso(run.begun_at),
        "warmup_s": begin_s,
        "totals": {
            **_counts(totals, percentiles),
            "unserved": record.get("unserved", 0),
            "unfinished": record.get("unfinished", 0),
            "fairness": record.get("fairness"),
        },
        "statements": {
            name: {"count": histogram.count(), "latency_ms": _latency(histogram, percentiles)}
            for name, histogram in totals.statements().items()
        },
        "intervals": [_interval(one, begin_s, percentiles) for one in intervals],
        "generator": record.get("measured"),
        "stopped_by": record.get("stopped_by"),
        "failure": run.failure,
        "exit_status": run.exit_status,
    }
    return json.dumps(content, indent=1) + "\n"


def _options(request: Request) -> dict[str, Any]:
    """Every option in effect for this run, without passwords."""
    tables = ((request.values, GLOBAL_TABLE.values()), (request.own, request.own.options()))
    return {
        option.name: _value(values, option)
        for values, options in tables
        for option in options
        if "password" not in option.name and option.name not in ("help", "version")
    }


def _value(values: Values, option: Option) -> bool | int | float | str | list[str] | None:
    name = option.name
    if option.kind == "BOOL":
        return values.flag(name)
    if option.kind == "INT":
        return values.integer(name)
    if option.kind == "DOUBLE" and math.isfinite(number := values.number(name)):
        return int(number) if number.is_integer() else number
    if option.kind == "LIST":
        return list(values.items(name))
    return values.raw(name)


def _environment(record: Mapping[str, Any]) -> dict[str, Any]:
    system = os.uname()
    names = ("reactor", "threads", "connections", "server_version", "distribution")
    return {
        "engine_version": record.get("engine_version", version()),
        **{name: record.get(name) for name in (*names, "prepared")},
        "system": f"{system.sysname} {system.release} {system.machine}",
    }


def _counts(totals: Totals, percentiles: Sequence[Percentile]) -> dict[str, Any]:
    return {
        "seconds": round(totals.seconds, 9),
        "events": totals.events,
        "events_per_s": totals.per_s(totals.events),
        "queries": totals.queries,
        "queries_per_s": totals.per_s(totals.queries),
        **{name: getattr(totals, name) for name in ("reads", "writes", "others")},
        "errors": sum(totals.errors.values()),
        "errors_by_code": totals.errors,
        **{name: getattr(totals, name) for name in _OTHER_COUNTS},
        "silence_ms_max": totals.silence_ns_max / _NS_PER_MS,
        "latency_ms": {
            "min": totals.latency_ns_min / _NS_PER_MS,
            "mean": totals.latency_ns_sum / totals.events / _NS_PER_MS if totals.events else 0.0,
            "max": totals.latency_ns_max / _NS_PER_MS,
            "sum": totals.latency_ns_sum / _NS_PER_MS,
            "percentiles": {one.text: totals.latency_ms(one) for one in percentiles},
        },
        **{
            f"{name}_ms": _latency(totals.histograms[name], percentiles)
            for name in (SERVICE, TIMER_LAG)
            if name in totals.histograms
        },
    }


def _latency(histogram: Histogram, percentiles: Sequence[Percentile]) -> dict[str, Any]:
    """A histogram's own figures, to three significant digits."""
    least_ns, greatest_ns = histogram.min(), histogram.max()
    return {
        "min": least_ns / _NS_PER_MS,
        "mean": mean_ns(histogram) / _NS_PER_MS,
        "max": greatest_ns / _NS_PER_MS,
        "percentiles": {
            one.text: min(max(histogram.quantile(one.percent / 100), least_ns), greatest_ns)
            / _NS_PER_MS
            for one in percentiles
        },
    }


def _interval(
    interval: Mapping[str, Any], begin_s: float, percentiles: Sequence[Percentile]
) -> dict[str, Any]:
    return {
        "phase": interval["phase"],
        "from_s": round(interval["start_s"] - begin_s, 9),
        "to_s": round(interval["end_s"] - begin_s, 9),
        **_counts(Totals.of([interval]), percentiles),
    }


def _iso(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


# ``--output=csv``: a line of names with their units, then a line for each of sysbench's interval
# lines, written as the interval ends.

_CSV_COLUMNS = (
    *("time_s", "interval_s", "threads", "transactions_per_s", "queries_per_s"),
    *("reads_per_s", "writes_per_s", "others_per_s", "errors_per_s", "reconnects_per_s"),
    *("restarts_per_s", "due_per_s", "backlog", "in_flight", "silence_ms_max"),
    *("latency_ms_min", "latency_ms_mean", "latency_ms_max"),
)


def head(percentiles: Sequence[Percentile]) -> str:
    """The names of the columns; the percentiles are the last ones, ``latency_ms_p99.9``."""
    return ",".join([*_CSV_COLUMNS, *(f"latency_ms_p{one.text}" for one in percentiles)]) + "\n"


def row(totals: Totals, interval: IntervalSummary) -> str:
    """The row of an interval."""
    rates = (
        *(totals.events, totals.queries, totals.reads, totals.writes, totals.others),
        *(sum(totals.errors.values()), totals.reconnects, totals.restarts, totals.arrivals),
    )
    latencies_ns = (totals.latency_ns_min, totals.latency_ns_mean(), totals.latency_ns_max)
    cells = [
        f"{interval.at_s:.6f}".rstrip("0").rstrip("."),
        f"{totals.seconds:.6f}",
        str(interval.connections),
        *(f"{totals.per_s(count):.3f}" for count in rates),
        str(totals.backlog),
        str(totals.in_flight),
        f"{totals.silence_ns_max / _NS_PER_MS:.3f}",
        *(f"{latency_ns / _NS_PER_MS:.6f}" for latency_ns in latencies_ns),
        *(f"{latency_ms:.6f}" for latency_ms in interval.latencies_ms),
    ]
    return ",".join(cells) + "\n"


# ``--output=hlog``: HdrHistogram's interval log. The events' latency has no tag; every other
# histogram (statements by kind, the events' latency from their real start, the generator's timer
# lag) has its name as tag.


def log(intervals: Sequence[Mapping[str, Any]], begun_at: float, begin_s: float) -> str:
    """The log of recorded intervals.

    Args:
        intervals: of a record, without the warm-up.
        begun_at: start of the load, s since 1970.
        begin_s: start of the measured time after it, second 0 of the log.
    """
    start_s = begun_at + begin_s
    log = IntervalLog(
        "dbdyno: latencies in ns; untagged: events from the moment they were due",
        start_time=f"{start_s:.3f} (seconds since epoch), {_iso(start_s)}",
        decimals=3,
    )
    for interval in intervals:
        at_s, length_s = interval["start_s"] - begin_s, interval["end_s"] - interval["start_s"]
        by_name = dict(interval["histograms"])
        if event := by_name.pop(EVENT, None):
            log.add(b64decode(event), at_s, length_s, max_ns=interval["latency_ns_max"])
        for name, text in by_name.items():
            log.add(b64decode(text), at_s, length_s, tag=name)
    return log.text()
