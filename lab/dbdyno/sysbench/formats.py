"""``--output=json``: one document about a run, also about one that failed half-way or never began.

Units end the names. Passwords are not in it, and neither is the environment they came from.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from dbdyno import __version__
from dbdyno._engine import Histogram, version
from dbdyno.sysbench.ending import Run
from dbdyno.sysbench.options.table import GLOBAL_TABLE, of_test
from dbdyno.sysbench.options.telling import Percentile
from dbdyno.sysbench.options.values import Option, Values
from dbdyno.sysbench.request import Request
from dbdyno.sysbench.totals import SERVICE, TIMER_LAG, Totals, mean_ns

_NS_PER_MS = 1e6
_UNTOLD = ("help", "version")


def document(request: Request, seed: int, run: Run) -> str:
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
