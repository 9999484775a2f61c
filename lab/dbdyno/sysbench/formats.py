"""``--output=json``: one document about a run, also about one that failed half-way or never began.

Units end the names. Passwords are not in it, and neither is the environment they came from.
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
from dbdyno._engine import Histogram, version
from dbdyno.sysbench.ending import SysbenchRun
from dbdyno.sysbench.options.table import GLOBAL_TABLE, of_test
from dbdyno.sysbench.options.telling import Percentile
from dbdyno.sysbench.options.values import Option, Values
from dbdyno.sysbench.report import Stretch
from dbdyno.sysbench.request import Request
from dbdyno.sysbench.totals import EVENT, SERVICE, TIMER_LAG, Totals, mean_ns

_NS_PER_MS = 1e6
_UNTOLD = ("help", "version")


def document(request: Request, seed: int, run: SysbenchRun) -> str:
    """The whole document, with its last newline."""
    record, percentiles = run.record, request.general.telling.percentiles
    begin_s = request.general.warmup_s
    intervals = [one for one in record.get("intervals", []) if one["phase"] != "warmup"]
    totals = Totals.of(intervals)
    return (
        json.dumps(
            {
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
                "statements": _statements(totals, percentiles),
                "intervals": [_interval(one, begin_s, percentiles) for one in intervals],
                "generator": record.get("measured"),
                "stopped_by": record.get("stopped_by"),
                "failure": run.failure,
                "exit_status": run.exit_status,
            },
            indent=1,
        )
        + "\n"
    )


def _options(request: Request) -> dict[str, Any]:
    """Every option as it holds for this run, but those that carry a password."""
    tables = (
        (request.values, GLOBAL_TABLE.values()),
        (request.own, of_test(request.test)),
    )
    return {
        option.name: _value(values, option)
        for values, options in tables
        for option in options
        if "password" not in option.name and option.name not in _UNTOLD
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
    names = ("reactor", "threads", "connections", "server_version", "distribution", "prepared")
    return {
        "engine_version": record.get("engine_version", version()),
        **{name: record.get(name) for name in names},
        "system": f"{system.sysname} {system.release} {system.machine}",
    }


def _counts(totals: Totals, percentiles: Sequence[Percentile]) -> dict[str, Any]:
    return {
        "seconds": round(totals.seconds, 9),
        "events": totals.events,
        "events_per_s": totals.per_s(totals.events),
        "queries": totals.queries,
        "queries_per_s": totals.per_s(totals.queries),
        "reads": totals.reads,
        "writes": totals.writes,
        "others": totals.others,
        "errors": sum(totals.errors.values()),
        "errors_by_code": totals.errors,
        "restarts": totals.restarts,
        "reconnects": totals.reconnects,
        "bytes_sent": totals.bytes_sent,
        "bytes_received": totals.bytes_received,
        "arrivals": totals.arrivals,
        "backlog": totals.backlog,
        "in_flight": totals.in_flight,
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


def _statements(totals: Totals, percentiles: Sequence[Percentile]) -> dict[str, Any]:
    return {
        name: {"count": histogram.count(), "latency_ms": _latency(histogram, percentiles)}
        for name, histogram in totals.statements().items()
    }


def _latency(histogram: Histogram, percentiles: Sequence[Percentile]) -> dict[str, Any]:
    """What a histogram alone knows, to three significant digits."""
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


# ``--output=csv``: a line of names with their units, then a line for each whole interval.
#
# The rows are those of sysbench's interval lines, and are written as the intervals end.


_CSV_COLUMNS = (
    *("time_s", "interval_s", "threads", "transactions_per_s", "queries_per_s"),
    *("reads_per_s", "writes_per_s", "others_per_s", "errors_per_s", "reconnects_per_s"),
    *("restarts_per_s", "due_per_s", "backlog", "in_flight", "silence_ms_max"),
    *("latency_ms_min", "latency_ms_mean", "latency_ms_max"),
)


def head(percentiles: Sequence[Percentile]) -> str:
    """The names of the columns; the percentiles are the last ones, ``latency_ms_p99.9``."""
    return ",".join([*_CSV_COLUMNS, *(f"latency_ms_p{one.text}" for one in percentiles)]) + "\n"


def row(totals: Totals, stretch: Stretch) -> str:
    """One interval."""
    rates = (
        *(totals.events, totals.queries, totals.reads, totals.writes, totals.others),
        *(sum(totals.errors.values()), totals.reconnects, totals.restarts, totals.arrivals),
    )
    latencies_ns = (totals.latency_ns_min, totals.latency_ns_mean(), totals.latency_ns_max)
    cells = [
        f"{stretch.at_s:.6f}".rstrip("0").rstrip("."),
        f"{totals.seconds:.6f}",
        str(stretch.connections),
        *(f"{totals.per_s(count):.3f}" for count in rates),
        str(totals.backlog),
        str(totals.in_flight),
        f"{totals.silence_ns_max / _NS_PER_MS:.3f}",
        *(f"{latency_ns / _NS_PER_MS:.6f}" for latency_ns in latencies_ns),
        *(f"{latency_ms:.6f}" for latency_ms in stretch.latencies_ms),
    ]
    return ",".join(cells) + "\n"


# ``--output=hlog``: HdrHistogram's interval log, format 1.3, for the tools that read it.
#
# The events' latency has no tag; every other histogram (statements by kind, the events' latency
# from their real start, the generator's timer lag) has its name as tag. Values are ns; the column
# of greatest values is in ms, as those tools expect.


_HLOG_COLUMNS = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'


def log(intervals: Sequence[Mapping[str, Any]], begun_at: float, begin_s: float) -> str:
    """The log of recorded intervals.

    Args:
        intervals: as a record has them, without those of a warm-up.
        begun_at: when the load began, s since 1970.
        begin_s: how long after that the measuring began, which is moment 0 of the log.
    """
    start_s = begun_at + begin_s
    shown = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start_s))
    lines = [
        "#[dbdyno: latencies in ns; untagged: events from the moment they were due]",
        "#[Histogram log format version 1.3]",
        f"#[StartTime: {start_s:.3f} (seconds since epoch), {shown}]",
        _HLOG_COLUMNS,
    ]
    for interval in intervals:
        lines += _lines(interval, begin_s)
    return "\n".join(lines) + "\n"


def _lines(interval: Mapping[str, Any], begin_s: float) -> list[str]:
    at_s, length_s = interval["start_s"] - begin_s, interval["end_s"] - interval["start_s"]
    lines = []
    by_name = interval["histograms"].items()
    for name, text in sorted(by_name, key=lambda item: item[0] != EVENT):
        is_event = name == EVENT
        greatest_ns = interval["latency_ns_max"] if is_event else _greatest_ns(text)
        tag = "" if is_event else f"Tag={name},"
        lines.append(f"{tag}{at_s:.3f},{length_s:.3f},{greatest_ns / _NS_PER_MS:.3f},{text}")
    return lines


def _greatest_ns(text: str) -> int:
    return Histogram.decode(b64decode(text)).max()
