"""The texts of a run, to the blank: header and report. Pure: no stream, no clock.

Counts, sums and times are of the measured time, events that came home after ``--time`` included, as
in sysbench. Percentiles are read from the merged histograms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dbdyno.sysbench.general import General
from dbdyno.sysbench.options.telling import Percentile
from dbdyno.sysbench.report_histogram import histogram
from dbdyno.sysbench.totals import EVENT, Totals

_NS_PER_MS = 1e6
_LATENCY_WIDTH = 53


def header(general: General) -> str:
    """What is run, as far as sysbench says it; ends before "Initializing worker threads..."."""
    seed = "the system's entropy" if general.seed is None else f"seed ({general.seed})."
    telling = general.telling
    lines = ["Running the test with following options:", f"Number of threads: {general.threads}"]
    if general.warmup_s:
        lines.append(f"Warmup time: {general.warmup_s}s")
    lines += _pace(general)
    if telling.report_interval_s:
        lines.append(f"Report intermediate results every {telling.report_interval_s} second(s)")
    if telling.checkpoints_s:
        moments = ", ".join(str(moment_s) for moment_s in telling.checkpoints_s)
        lines.append(f"Report checkpoint(s) at {moments} seconds")
    if general.debug:
        lines.append("Debug mode enabled.\n")
    if general.validate:
        lines.append("Validation checks: on.\n")
    lines.append(f"Initializing random number generator from {seed}\n")
    if general.forced_shutdown_s is not None:
        in_s = general.warmup_s + general.time_s + general.forced_shutdown_s
        lines.append(f"Forcing shutdown in {in_s:g} seconds")
    return "\n".join(lines) + "\n"


def _pace(general: General) -> list[str]:
    lines = []
    if general.pace.rate_per_s:
        lines.append(f"Target transaction rate: {general.pace.rate_per_s}/sec")
    least_ms, most_ms = general.pace.think_time_ms
    if most_ms:
        pause = f"{most_ms:g}" if least_ms == most_ms else f"{least_ms:g}-{most_ms:g}"
        lines.append(f"Think time: {pause} ms")
    return lines


class Ending(NamedTuple):
    """What a report says besides counts and latencies.

    Attributes:
        time_s: seconds since the measuring began, which checkpoints do not set back.
        fairness: of the connections; None where it is not known.
        unfinished: events given up by a forced shutdown; None when there was none.
    """

    time_s: float
    fairness: Mapping[str, float] | None
    unfinished: int | None = None


def report(totals: Totals, general: General, ending: Ending) -> str:
    """A final report, or one in the middle, from the histogram to the fairness."""
    telling = general.telling
    lines = []
    if telling.histogram and EVENT in totals.histograms:
        lines.append(histogram(totals.histograms[EVENT]))
    lines += _statistics(totals)
    if ending.unfinished is not None:
        lines += ["", f"Number of unfinished transactions on forced shutdown: {ending.unfinished}"]
    throughput = _throughput if general.compat == "1.1" else _general_statistics
    lines += ["", *throughput(totals, ending.time_s), "", *_latency(totals, telling.percentiles)]
    if ending.fairness is not None:
        lines += ["", *_fairness(ending.fairness)]
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


def _fairness(fairness: Mapping[str, Any]) -> list[str]:
    return [
        "Threads fairness:",
        "    events (avg/stddev):           "
        f"{fairness['events_mean']:.4f}/{fairness['events_stddev']:3.2f}",
        "    execution time (avg/stddev):   "
        f"{fairness['seconds_mean']:.4f}/{fairness['seconds_stddev']:3.2f}",
    ]
