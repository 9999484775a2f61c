"""Parser of logs of sysbench 0.4, 0.5, 1.0, 1.1 and forks of them; pure.

A text may hold several runs, of several versions, among lines of other programs (a shell script's
echo, time stamps at the beginning of lines). A run begins with "Number of threads:" and ends with
its report, or with the next run; without a report it has its interval lines only. Unreadable lines
that begin like sysbench's are refused with their number, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dbdyno.errors import UsageError

NUMBER: Final = r"(\d{1,12}(?:\.\d{1,12})?)"
WHOLE: Final = r"(\d{1,12})"
"""Longer numbers were not measured, and would overflow."""
VERSION: Final = re.compile(r"\bsysbench (\d+\.\d+(?:\.\d+)?(?:-\w+)?)")
THREADS: Final = re.compile(rf"^Number of threads: {WHOLE}\s*$")
INTERVAL: Final = re.compile(rf"^\[\s*{NUMBER}s\s*\] th(?:ds|reads): {WHOLE},? (.*)$")
BEGUN_INTERVAL: Final = re.compile(r"^\[\s*\d+(?:\.\d+)?s\s*\] th(?:ds|reads)")
PART: Final = re.compile(
    r"(tps|qps|eps|reads|writes|response time|lat|err/s|errors|reconn/s|reconnects)"
    r"\s*(?:\([^)]*\))?:\s*([0-9./]+(?:ms)?)\s*(?:\([^)]*\))?"
)
COUNTED: Final = re.compile(rf"^ +([a-z/][a-z/ ]*): +{WHOLE} +\({NUMBER} per sec\.\)\s*$")
COUNT: Final = re.compile(rf"^ +(read|write|other|total): +{WHOLE}\s*$")
SECONDS: Final = re.compile(rf"^ +(?:total time|time elapsed): +{NUMBER}s\s*$")
EVENTS: Final = re.compile(rf"^ +total number of events: +{WHOLE}\s*$")
LATENCY: Final = re.compile(rf"^ +(min|avg|max|sum): +{NUMBER}(ms|s)?\s*$")
PERCENTILE: Final = re.compile(
    rf"^ +(?:approx\. +)?{NUMBER}(?:th|st|nd|rd)? percentile: +{NUMBER}(ms|s)?\s*$"
)
JOINED: Final = re.compile(rf"^\s*lat \(ms,([0-9%.,]+)\): ({NUMBER}(?:/{NUMBER})*)\s*$")
BUCKET: Final = re.compile(rf"^ *{NUMBER} \|[* ]* {WHOLE}\s*$")
STAMP: Final = re.compile(r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*\s+")
ENDED: Final = re.compile(r"^Threads fairness:")
CHECKPOINT: Final = re.compile(r"^\[\s*\d+(?:\.\d+)?s\s*\] Checkpoint report:")
FATAL: Final = re.compile(r"^FATAL: (.*)$|^ALERT: (.*)$")


class LoggedInterval(NamedTuple):
    """An interval line: transactions, or events without a database, a second."""

    at_s: float
    tps: str


@dataclass
class LoggedRun:
    """A run's output; numbers of the report keep their text, which shows their rounding.

    Attributes:
        first_line, last_line: its place, counted from 1.
        version: of sysbench; empty without a banner.
        counts: reads, writes, others, total queries, by `read`, `write`, `other`, `total`.
        per_s: rates by the name of their line, such as `transactions`, `read/write requests`.
        latency_ms: `min`, `avg`, `max`, and percentiles by their number.
        histogram: (latency ms, events) of each printed size.
        checkpoints: announced checkpoints; each report starts after the previous checkpoint.
        reports: number of reports, at checkpoints too.
        failure: a FATAL line.
    """

    first_line: int
    threads: int
    version: str = ""
    last_line: int = 0
    intervals: list[LoggedInterval] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    per_s: dict[str, str] = field(default_factory=dict)
    seconds: str = ""
    events: int | None = None
    latency_ms: dict[str, str] = field(default_factory=dict)
    histogram: list[tuple[float, int]] = field(default_factory=list)
    checkpoints: int = 0
    reports: int = 0
    failure: str = ""

    @property
    def has_report(self) -> bool:
        """The run has its final report."""
        return self.reports > self.checkpoints and self.events is not None

    @property
    def tps(self) -> str:
        """Transactions a second of the report; of a run without a database its events."""
        return self.per_s.get("transactions", "")

    @property
    def qps(self) -> str:
        """Queries a second; before 1.0 the sum of two lines."""
        if "queries" in self.per_s:
            return self.per_s["queries"]
        old = [self.per_s.get(name) for name in ("read/write requests", "other operations")]
        if old[0] is None or old[1] is None:
            return ""
        decimals = len(old[0].partition(".")[2])
        return f"{float(old[0]) + float(old[1]):.{decimals}f}"


def runs_in(text: str, source: str) -> list[LoggedRun]:
    """Every run of a text, in order; UsageError with the number of an unreadable line."""
    version, runs = "", list[LoggedRun]()
    for number, whole in enumerate(text.splitlines(), 1):
        line = STAMP.sub("", whole.rstrip("\r\n").replace("\t", " "))
        if banner := VERSION.search(line):
            version = banner[1]
        if begun := THREADS.match(line):
            runs.append(LoggedRun(first_line=number, threads=int(begun[1]), version=version))
        if runs and _take(runs[-1], line, number, source):
            runs[-1].last_line = number
    return runs


def _take(run: LoggedRun, line: str, number: int, source: str) -> bool:
    """Take a line; False for a line of another program."""
    if _take_report(run, line):
        return True
    if BEGUN_INTERVAL.match(line):
        match = INTERVAL.match(line)
        interval = _interval(match) if match else None
        if interval is None:
            raise UsageError(
                f"line {number} of {source} cannot be read",
                wanted="sysbench's line of rates",
                found=line[:120],
                hint="is it cut off, or of a fork that prints something else? correct or remove it",
            )
        run.intervals.append(interval)
        return True
    return bool(THREADS.match(line) or ENDED.match(line))


def _take_report(run: LoggedRun, line: str) -> bool:
    """Take a line of a report; False for any other line."""
    if match := COUNTED.match(line):
        run.per_s[match[1].strip()] = match[3]
    elif match := COUNT.match(line):
        run.counts[match[1]] = int(match[2])
    elif match := SECONDS.match(line):
        run.seconds = match[1]
        run.reports += 1
    elif match := EVENTS.match(line):
        run.events = int(match[1])
    elif match := PERCENTILE.match(line):
        run.latency_ms[match[1].removesuffix(".0")] = _in_ms(match[2], match[3])
    elif match := LATENCY.match(line):
        run.latency_ms[match[1]] = _in_ms(match[2], match[3])
    elif match := JOINED.match(line):
        names = re.findall(r"([\d.]+)%", match[1])
        run.latency_ms.update(zip(names, match[2].split("/"), strict=False))
    elif match := BUCKET.match(line):
        run.histogram.append((float(match[1]), int(match[2])))
    elif CHECKPOINT.match(line):
        run.checkpoints += 1
    elif match := FATAL.match(line):
        run.failure = run.failure or match[1] or match[2] or ""
    else:
        return False
    return True


def _interval(match: re.Match[str]) -> LoggedInterval | None:
    parts: dict[str, str] = dict(PART.findall(match[3]))
    rate = parts.get("tps") or parts.get("eps")
    numbers = [part for value in parts.values() for part in value.removesuffix("ms").split("/")]
    if rate is None or not all(re.fullmatch(NUMBER, one) for one in numbers):
        return None
    return LoggedInterval(float(match[1]), rate)


def _in_ms(text: str, unit: str | None) -> str:
    """0.4 prints seconds with four decimals: a thousandth of the unit, three decimals fewer."""
    if unit != "s":
        return text
    decimals = max(0, len(text.partition(".")[2]) - 3)
    return f"{float(text) * 1e3:.{decimals}f}"
