"""What a report says beyond sysbench's: blocks after "Threads fairness".

Their words avoid those of sysbench's lines (``max:``, ``95th percentile:``, ``queries:`` …), so
that a script which searches the whole output for such a line finds only the one it means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbdyno._engine import Histogram
from dbdyno.sysbench.options.telling import Percentile
from dbdyno.sysbench.totals import Totals, mean_ns

_NS_PER_MS = 1e6
_NS_PER_S = 1e9
_BEHIND = 0.01
_STALL_NS = 1_000_000_000


def is_behind(totals: Totals, unserved: int, connections: int) -> bool:
    """Whether the server did not keep up with the rate.

    A few events always wait for a free connection, and some do so when the time is over. More than
    one for each connection and 1 % of all are a queue that grew.
    """
    return unserved > max(connections, _BEHIND * totals.arrivals)


def backlog(totals: Totals, record: Mapping[str, Any], rate_per_s: float) -> str:
    """What a rate that was too high left undone."""
    unserved = record.get("unserved", 0)
    late_s = unserved / rate_per_s
    rows = (
        ("were asked for per second", f"{rate_per_s:g}"),
        ("were done per second", f"{totals.per_s(totals.events):.2f}"),
        ("fell due", f"{totals.arrivals}"),
        ("were done", f"{totals.events}"),
        ("were never begun", f"{unserved} (the backlog at the end: {late_s:.2f} s of the rate)"),
        ("were given up while they ran", f"{record.get('unfinished', 0)}"),
    )
    return "\n".join(
        [
            "The server did not keep up with the rate. Events that",
            *(f"    {label:<37}{text}" for label, text in rows),
            "    Latencies count from the moment an event was due, so they grow with the backlog.",
            "",
        ]
    )


def timer_lag(histogram: Histogram) -> str:
    """How exactly the generator itself kept the moments at which events were due."""
    return (
        f"Timer lag of the generator: 99 % of events sent within "
        f"{histogram.quantile(0.99) / _NS_PER_MS:.3f} ms of their moment, all within "
        f"{histogram.max() / _NS_PER_MS:.3f} ms\n"
    )


def stall(intervals: Sequence[Mapping[str, Any]], begin_s: float) -> str | None:
    """A sentence about the longest silence, if it was long and events were in flight."""
    told = [one for one in intervals if one.get("silence_ns_max", 0) > _STALL_NS]
    if not told:
        return None
    worst = max(told, key=lambda one: one["silence_ns_max"])
    return (
        f"stall: for {worst['silence_ns_max'] / _NS_PER_S:.2f} s, until second "
        f"{worst['end_s'] - begin_s:.0f} or just before, no statement was answered although events"
        " were in flight"
    )


def detail(totals: Totals, record: Mapping[str, Any], percentiles: Sequence[Percentile]) -> str:
    """What ``--detail`` adds: statements by kind, errors by code, what the generator cost."""
    return "\n".join(
        [
            *_statements(totals, percentiles),
            "",
            *_errors(totals),
            "",
            *_generator(totals, record),
            "",
        ]
    )


def _statements(totals: Totals, percentiles: Sequence[Percentile]) -> list[str]:
    heads = ["count", "per s", "mean ms", *(f"p{one.text} ms" for one in percentiles), "longest ms"]
    lines = [f"{'Statements by kind':<24}" + "".join(f"{head:>12}" for head in heads)]
    for name, histogram in totals.statements().items():
        longest_ns = histogram.max()
        latencies_ns = [
            mean_ns(histogram),
            *(min(histogram.quantile(one.percent / 100), longest_ns) for one in percentiles),
            longest_ns,
        ]
        cells = [
            str(histogram.count()),
            f"{totals.per_s(histogram.count()):.2f}",
            *(f"{latency_ns / _NS_PER_MS:.3f}" for latency_ns in latencies_ns),
        ]
        lines.append(f"    {name:<20}" + "".join(f"{cell:>12}" for cell in cells))
    return lines


def _errors(totals: Totals) -> list[str]:
    lines = [f"{'Errors by code':<24}{'count':>12}{'per s':>12}"]
    for code, count in totals.errors.items():
        lines.append(f"    {code:<20}{count:>12}{totals.per_s(count):>12.2f}")
    if not totals.errors:
        lines.append("    none")
    if totals.restarts:
        lines.append(f"    events begun again  {totals.restarts:>12}")
    return lines


def _generator(totals: Totals, record: Mapping[str, Any]) -> list[str]:
    measured = record.get("measured", {})
    cpu_s, share = measured.get("cpu_s", 0.0), measured.get("cpu_share_max", 0.0)
    per_query_us = cpu_s / totals.queries * 1e6 if totals.queries else 0.0
    rows = (
        ("engine", f"{record.get('engine_version')}, {record.get('reactor')}"),
        ("engine threads", f"{record.get('threads')}, the busiest {share:.0%} of a core"),
        ("CPU", f"{cpu_s:.2f} s, {per_query_us:.2f} us for each query"),
        ("bytes sent, received", f"{totals.bytes_sent}, {totals.bytes_received}"),
        ("server", f"{record.get('server_version') or 'none'}"),
    )
    return ["Generator", *(f"    {label:<37}{text}" for label, text in rows)]


def facts(record: Mapping[str, Any]) -> list[str]:
    """What ``--debug`` says of the engine: it keeps no statistics of single connections."""
    measured = record.get("measured", {})
    return [
        f"Engine {record.get('engine_version')}, {record.get('reactor')}, {record.get('threads')}"
        f" thread(s) for {record.get('connections')} connection(s)",
        f"Server {record.get('server_version') or 'none'}",
        f"CPU of the measured time: {measured.get('cpu_s', 0.0):.2f} s",
    ]
