"""The texts of a run, exactly as sysbench prints them: header, interval lines, report. Pure.

Counts, sums and times are of the measured time, including events that ended after ``--time``, as in
sysbench. Percentiles are read from the merged histograms.
"""

from __future__ import annotations

import math

from dbdyno._engine import Histogram
from dbdyno.sysbench.options.output import Percentile, decimals
from dbdyno.sysbench.request import General
from dbdyno.sysbench.totals import Totals, mean_ns
from dbdyno.sysbench.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_NS_PER_MS = 1e6
_LATENCY_WIDTH = 53


def header(general: General) -> str:
    """The head of a run in sysbench's words; ends before "Initializing worker threads..."."""
    seed = "current time" if general.seed is None else f"seed ({general.seed})."
    output = general.output
    lines = ["Running the test with following options:", f"Number of threads: {general.threads}"]
    if general.warmup_s:
        lines.append(f"Warmup time: {general.warmup_s}s")
    pace = general.pace
    if pace.rate_per_s:
        lines.append(f"Target transaction rate: {pace.rate_per_s}/sec")
    least_ms, most_ms = pace.think_time_ms
    if most_ms:
        pause = f"{most_ms:g}" if least_ms == most_ms else f"{least_ms:g}-{most_ms:g}"
        lines.append(f"Think time: {pause} ms")
    if output.report_interval_s:
        lines.append(f"Report intermediate results every {output.report_interval_s} second(s)")
    if output.checkpoints_s:
        times = ", ".join(str(time_s) for time_s in output.checkpoints_s)
        lines.append(f"Report checkpoint(s) at {times} seconds")
    if general.debug:
        lines.append("Debug mode enabled.\n")
    if general.validate:
        lines.append("Validation checks: on.\n")
    lines.append(f"Initializing random number generator from {seed}\n")
    if general.forced_shutdown_s is not None:
        in_s = general.warmup_s + general.time_s + general.forced_shutdown_s
        lines.append(f"Forcing shutdown in {in_s:g} seconds")
    return "\n".join(lines) + "\n"


class Ending(NamedTuple):
    """Figures of a report besides counts and latencies.

    Attributes:
        time_s: seconds since the measuring began; checkpoints do not set it back.
        fairness: of the connections; None if unknown.
        unfinished: events given up by a forced shutdown; None without a forced shutdown.
    """

    time_s: float
    fairness: Mapping[str, float] | None
    unfinished: int | None = None


def report(totals: Totals, general: General, ending: Ending, *, is_sql: bool = True) -> str:
    """A final or intermediate report, from the statements, if events have any, to the fairness."""
    lines = _statistics(totals) if is_sql else []
    if ending.unfinished is not None:
        lines += ["", f"Number of unfinished transactions on forced shutdown: {ending.unfinished}"]
    throughput = _throughput if general.compat == "1.1" else _general_statistics
    lines += ["", *throughput(totals, ending.time_s), ""]
    lines += _latency(totals, general.output.percentiles)
    if (fair := ending.fairness) is not None:
        lines += [
            "",
            "Threads fairness:",
            "    events (avg/stddev):           "
            f"{fair['events_mean']:.4f}/{fair['events_stddev']:3.2f}",
            "    execution time (avg/stddev):   "
            f"{fair['seconds_mean']:.4f}/{fair['seconds_stddev']:3.2f}",
        ]
    return "\n".join(lines) + "\n"


def _statistics(totals: Totals) -> list[str]:
    def counted(label: str, count: int) -> str:
        return f"    {label:<37}{count:<6} ({totals.per_s(count):.2f} per sec.)"

    performed = (
        ("read:", totals.reads),
        ("write:", totals.writes),
        ("other:", totals.others),
        ("total:", totals.queries),
    )
    return [
        "SQL statistics:",
        "    queries performed:",
        *(f"        {label:<33}{count}" for label, count in performed),
        counted("transactions:", totals.events),
        counted("queries:", totals.queries),
        counted("ignored errors:", sum(totals.errors.values())),
        counted("reconnects:", totals.reconnects),
    ]


def _general_statistics(totals: Totals, time_s: float) -> list[str]:
    return [
        "General statistics:",
        f"    total time:                          {time_s:.4f}s",
        f"    total number of events:              {totals.events}",
    ]


def _throughput(totals: Totals, time_s: float) -> list[str]:
    """The same in sysbench 1.1's words."""
    return [
        "Throughput:",
        f"    events/s (eps):                      {totals.per_s(totals.events):.4f}",
        f"    time elapsed:                        {time_s:.4f}s",
        f"    total number of events:              {totals.events}",
    ]


def _latency(totals: Totals, percentiles: tuple[Percentile, ...]) -> list[str]:
    def row(label: str, latency_ns: float) -> str:
        return f"         {label} {latency_ns / _NS_PER_MS:39.2f}"

    def quantile(percentile: Percentile) -> str:
        label = f"        {percentile.text:>3}th percentile:"
        return label + f" {totals.latency_ms(percentile):.2f}".rjust(_LATENCY_WIDTH - len(label))

    return [
        "Latency (ms):",
        row("min:", totals.latency_ns_min),
        row("avg:", totals.latency_ns_mean()),
        row("max:", totals.latency_ns_max),
        *(
            [quantile(percentile) for percentile in percentiles]
            or ["         percentile stats:               disabled"]
        ),
        row("sum:", totals.latency_ns_sum),
    ]


# Blocks that sysbench does not have, after "Threads fairness". They avoid the words of sysbench's
# lines (``max:``, ``95th percentile:``, ``queries:`` …), so that a script which searches the whole
# output for such a line finds only the one it means.

_NS_PER_S = 1e9


def is_behind(totals: Totals, unserved: int, connections: int) -> bool:
    """True if the server did not keep up with the rate.

    A few events always wait for a free connection, also at the end. A queue has grown if more
    events wait than connections plus 1 % of all events.
    """
    return unserved > max(connections, 0.01 * totals.arrivals)


def backlog(totals: Totals, record: Mapping[str, Any], rate_per_s: float) -> str:
    """The server's backlog at too high a rate."""
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
    """The generator's own lateness with due events."""
    return (
        f"Timer lag of the generator: 99 % of events sent within "
        f"{histogram.quantile(0.99) / _NS_PER_MS:.3f} ms of their moment, all within "
        f"{histogram.max() / _NS_PER_MS:.3f} ms\n"
    )


def stall(intervals: Sequence[Mapping[str, Any]], begin_s: float) -> str | None:
    """A sentence about the longest silence with events in flight, if it was above a second."""
    worst = max(intervals, key=lambda one: one["silence_ns_max"], default=None)
    if worst is None or worst["silence_ns_max"] <= _NS_PER_S:
        return None
    return (
        f"stall: for {worst['silence_ns_max'] / _NS_PER_S:.2f} s, until second "
        f"{worst['end_s'] - begin_s:.0f} or just before, no statement was answered although events"
        " were in flight"
    )


def detail(totals: Totals, record: Mapping[str, Any], percentiles: Sequence[Percentile]) -> str:
    """The addition by ``--detail``: statements by kind, errors by code, the generator's cost."""
    statements = _statements(totals, percentiles)
    return "\n".join([*statements, "", *_errors(totals), "", *_generator(totals, record), ""])


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
    """The engine's figures for ``--debug``: it keeps no statistics of single connections."""
    measured = record.get("measured", {})
    return [
        f"Engine {record.get('engine_version')}, {record.get('reactor')}, {record.get('threads')}"
        f" thread(s) for {record.get('connections')} connection(s)",
        f"Server {record.get('server_version') or 'none'}",
        f"CPU of the measured time: {measured.get('cpu_s', 0.0):.2f} s",
    ]


# Interval lines: sysbench's, and a second one where events have a rate.


class IntervalSummary(NamedTuple):
    """The figures of an interval line.

    Attributes:
        at_s: the interval's end, seconds of the measured time.
        backlog, in_flight: events due but not begun, and running, at its end.
    """

    at_s: float
    errors: int
    connections: int
    latencies_ms: tuple[float, ...]
    seconds: float
    events: int
    queries: int
    reads: int
    writes: int
    others: int
    reconnects: int
    backlog: int
    in_flight: int

    @classmethod
    def of_live(
        cls, live: Mapping[str, Any], at_s: float, percentiles: Sequence[Percentile]
    ) -> IntervalSummary:
        """An interval as the engine reports it during the run, without histograms."""
        latency_ms = live["latency_ms"]
        return cls(
            at_s=at_s,
            errors=live["errors"],
            connections=live["connections"],
            latencies_ms=tuple(latency_ms.get(one.text, 0.0) for one in percentiles),
            **{name: live[name] for name in _AS_IN_TOTALS},
        )

    @classmethod
    def of_totals(
        cls, totals: Totals, connections: int, at_s: float, percentiles: Sequence[Percentile]
    ) -> IntervalSummary:
        """Several recorded intervals merged."""
        return cls(
            at_s=at_s,
            errors=sum(totals.errors.values()),
            connections=connections,
            latencies_ms=tuple(totals.latency_ms(percentile) for percentile in percentiles),
            **{name: getattr(totals, name) for name in _AS_IN_TOTALS},
        )


_AS_IN_TOTALS = IntervalSummary._fields[4:]


def interval_line(
    interval: IntervalSummary,
    percentiles: Sequence[Percentile],
    interval_s: float,
    joined: Sequence[Percentile] = (),
    *,
    is_sql: bool = True,
) -> str:
    """A line of rates. Each percentile has sysbench's words, for searches.

    Args:
        joined: percentiles printed together instead, in this order, as in a fork.
        is_sql: events have statements.
    """

    def rate(count: int) -> str:
        return f"{count / interval.seconds:4.2f}"

    head = f"{time_label(interval.at_s, interval_s)} thds: {interval.connections}"
    latencies = _latencies(interval, percentiles, joined)
    if not is_sql:
        return f"{head} eps: {rate(interval.events)} {latencies}"
    return (
        f"{head} tps: {rate(interval.events)} qps: {rate(interval.queries)} "
        f"(r/w/o: {rate(interval.reads)}/{rate(interval.writes)}/{rate(interval.others)}) "
        f"{latencies} err/s: {rate(interval.errors)} reconn/s: {rate(interval.reconnects)}"
    )


def _latencies(
    interval: IntervalSummary, percentiles: Sequence[Percentile], joined: Sequence[Percentile]
) -> str:
    latencies = "lat (ms,0%): 0.00"
    pairs = dict(zip(percentiles, interval.latencies_ms, strict=True))
    if joined:
        named = ",".join(f"{one.text}%" for one in joined)
        latencies = f"lat (ms,{named}): " + "/".join(f"{pairs[one]:4.2f}" for one in joined)
    elif percentiles:
        latencies = " ".join(f"lat (ms,{one.text}%): {ms:4.2f}" for one, ms in pairs.items())
    return latencies


def queue_line(interval: IntervalSummary, interval_s: float, *, is_sql: bool = True) -> str:
    """Waiting and running events at the interval's end; only at a rate."""
    comma = "," if is_sql else ""
    return (
        f"{time_label(interval.at_s, interval_s)} "
        f"queue length: {interval.backlog}{comma} concurrency: {interval.in_flight}"
    )


def time_label(at_s: float, interval_s: float) -> str:
    """``[ 3s ]``, with the decimals of multiples of the interval."""
    return f"[ {at_s:.{decimals(interval_s)}f}s ]"


# sysbench's latency histogram: 1.8 % steps from 1 us on, a bar of at most 40 stars, a count. Rows
# are made from our finer counts. sysbench's own end at 100 s, and the last one counts all that is
# longer; here there are rows beyond.

_MS_MIN = 0.001
_STEP = math.log(1e8) / 1023
"""sysbench divides 0.001 ms to 100 s into 1024 rows whose logarithms are equally far apart."""
_BAR = 40


def histogram(latency: Histogram) -> str:
    """The histogram before the last report; ends with sysbench's line of a single blank."""
    rows: dict[int, int] = {}
    for middle_ns, count in latency.recorded():
        row = _row(middle_ns / _NS_PER_MS)
        rows[row] = rows.get(row, 0) + count
    most = max(rows.values(), default=0)
    lines = [
        "Latency histogram (values are in milliseconds)",
        "       value  ------------- distribution ------------- count",
    ]
    for row, count in sorted(rows.items()):
        bar = "*" * math.floor(_BAR * count / most + 0.5)
        lines.append(f"{_MS_MIN * math.exp(row * _STEP):12.3f} |{bar:<{_BAR}} {count}")
    return "\n".join([*lines, " "])


def _row(latency_ms: float) -> int:
    if latency_ms <= _MS_MIN:
        return 0
    return math.floor(math.log(latency_ms / _MS_MIN) / _STEP + 0.5)
