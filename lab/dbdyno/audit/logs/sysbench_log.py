"""Parser of logs of sysbench 0.4, 0.5, 1.0, 1.1 and forks of them; pure.

A text may hold several runs, of several versions, among lines of other programs (a shell script's
echo) and within wrappers (`wrappers`). A run begins with "Number of threads:", or with its first
line of rates or of a report if its head is missing; it ends with its report, or with the next run.
Without a report it has its interval lines only. Unreadable lines that begin like sysbench's are
kept with their number as its refusals, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Final, NamedTuple

from dbdyno.audit.logs.apart import Work
from dbdyno.audit.logs.wrappers import LogLine, Stream
from dbdyno.errors import UsageError

NUMBER: Final = r"(\d{1,12}(?:\.\d{1,12})?)"
WHOLE: Final = r"(\d{1,12})"
"""Longer numbers were not measured, and would overflow."""
RATE: Final = re.compile(NUMBER)
VERSION: Final = re.compile(r"\bsysbench (\d+\.\d+(?:\.\d+)?(?:-\w+)?)")
THREADS: Final = re.compile(rf"Number of threads: {WHOLE}$")
STARTED: Final = re.compile(r"Initializing |Threads started!")
NAMED_THREADS: Final = r"\s?(?:timestamp: \d{1,12}, )?th(?:ds|reads)"
INTERVAL: Final = re.compile(rf"\[\s*{NUMBER}s\s*\]{NAMED_THREADS}: {WHOLE},? (.*)$")
BEGUN_INTERVAL: Final = re.compile(rf"\[\s*\d+(?:\.\d+)?s\s*\]{NAMED_THREADS}")
WRAPPED: Final = re.compile(r"\d{16}")
"""A counter of 0.5 that fell below 0, as after a checkpoint; no rate has so many digits."""
PART: Final = re.compile(
    r"(tps|qps|eps|reads|writes|response time|lat|err/s|errors|reconn/s|reconnects)"
    r"\s*(?:\([^()]*\))?:\s*([0-9./]+(?:ms)?)\s*(?:\([^()]*\))?"
)
REPORT: Final = re.compile(r"(?:(?:SQL|OLTP test) statistics|queries performed):$")
COUNTED: Final = re.compile(rf"([a-z/][a-z/ ]*): +{WHOLE} +\({NUMBER} per sec\.\)$")
COUNT: Final = re.compile(rf"(read|write|other|total): +{WHOLE}$")
SECONDS: Final = re.compile(rf"(?:total time|time elapsed): +{NUMBER}s$")
EVENTS: Final = re.compile(rf"total number of events: +{WHOLE}$")
LATENCY: Final = re.compile(rf"(min|avg|max|sum): +{NUMBER}(ms|s)?$")
PERCENTILE: Final = re.compile(
    rf"(?:approx\. +)?{NUMBER}(?:th|st|nd|rd)? percentile: +{NUMBER}(ms|s)?$"
)
JOINED: Final = re.compile(rf"lat \(ms,([0-9%.,]+)\): ({NUMBER}(?:/{NUMBER})*)$")
BUCKET: Final = re.compile(rf"{NUMBER} \|[* ]* {WHOLE}$")
FAIRNESS: Final = re.compile(rf"events \(avg/stddev\): +{NUMBER}/{NUMBER}$")
ENDED: Final = re.compile(r"Threads fairness:")
CHECKPOINT: Final = re.compile(r"\[\s*\d+(?:\.\d+)?s\s*\] Checkpoint report:")
FATAL: Final = re.compile(r"FATAL: (.*)$|ALERT: (.*)$")
CONDITION: Final = re.compile(
    r"Target transaction rate: .+|Running \S+ OLTP test|Using \S+ distribution.*"
    r"|Using .+ for starting transactions|Doing read-only test|Skipping BEGIN/COMMIT"
)
"""Lines of a head that say what load it is."""
TESTS: Final = {
    "cpu": re.compile(r"CPU speed:|Prime numbers limit:|Maximum prime number checked|Doing CPU "),
    "memory": re.compile(r"Running memory speed|Memory (?:operations|transfer) |.* Mi?B trans"),
    "fileio": re.compile(r"File operations:|Extra file open flags|Read/Write ratio for combined"),
    "threads": re.compile(r"Doing threads? subsystem"),
    "mutex": re.compile(r"Doing mutex performance"),
}
"""Tests without a database, and lines that only they print."""
HEAD: Final = re.compile("|".join(one.pattern for one in (STARTED, CONDITION, *TESTS.values())))
COMMAND: Final = re.compile(r"(?:^|[\s/'\"])sysbench\s+(?P<words>(?:\S+\s+){0,99}?)run(?:\s|$)")
COMMAND_MAX: Final = 10_000
"""Signs of a command on several lines."""
NO_RUN: Final = re.compile(r"\b(?:prepare|prewarm|warm-?up|cleanup|help)\b", re.IGNORECASE)
OF_SERVER: Final = re.compile(
    r"db-driver|(?:my|pg)sql-(?:host|port|socket|db|storage-engine|table-engine)"
)
"""Options that name the system under test."""
OF_RUN: Final = re.compile(
    r"(?:my|pg)sql-.*|.*password.*|(?:num-)?threads|(?:max-)?time|events|max-requests|report-.*"
    r"|percentile|histogram|warmup.*|debug|verbosity|rand-seed|validate|thread-.*|config-file"
    r"|forced-shutdown|luajit-cmd"
)
"""Options that leave the work of an event as it is, or that may hold a password."""
MIXES: Final = (
    r"read[-_ /](?:and[-_ ])?write|(?:read|write)[-_ ]only|point[-_ ]selects?"
    r"|update[-_ ](?:non[-_ ])?index"
)
NAMED: Final = re.compile(
    rf"(?P<name>oltp[-_ ](?:{MIXES}|insert|delete)|select[-_ ]random[-_ ](?:points|ranges)"
    r"|bulk[-_ ]insert)(?![a-z])",
    re.IGNORECASE,
)
HEADING: Final = re.compile(
    rf"[\W_]*(?:(?:test|workload|running|run|starting)\b)?[\W_]*(?P<name>{MIXES})[\W_]*"
    r"(?:(?:test|workload|run|mode|with)\b)?[\W_\d]*(?:threads?|thds|clients|connections)?[\W_\d]*",
    re.IGNORECASE,
)
HEADING_MAX: Final = 120
PREPARED: Final = re.compile(
    r"Creating table '?\w+'?\.\.\.|Inserting \d+ records into '?\w+'?|Dropping table '?\w+'?\.\.\."
)
NO_SQL: Final = "without SQL"
COUNTS_KEPT: Final = 0.01
"""Share by which the events of all threads may differ from a whole multiple of a thread's."""


class LoggedInterval(NamedTuple):
    """An interval line: transactions, or events without a database, a second."""

    at_s: float
    tps: str


@dataclass(frozen=True)
class ScriptCommand:
    """A command of sysbench that a script printed, or the name of a test in its place.

    Attributes:
        test: name of the test; empty if unknown.
        options: options on the work; None without the command.
        server: host and port; empty if unknown.
        threads: 0 if unknown.
    """

    test: str = ""
    options: frozenset[str] | None = None
    server: str = ""
    threads: int = 0


class ScriptCommands:
    """Commands and headings of a script among the lines of a log."""

    def __init__(self) -> None:
        self._command: ScriptCommand | None = None
        self._heading = ""
        self._begun = ""

    def read(self, text: str) -> None:
        """Look at a line of another program; a command on several lines is searched as a whole."""
        text = f"{self._begun} {text}".strip() if self._begun else text
        is_begun = text.endswith("\\") and "sysbench" in text and len(text) <= COMMAND_MAX
        self._begun = text[:-1] if is_begun else ""
        if not is_begun:
            self._look(text)

    def _look(self, text: str) -> None:
        if match := COMMAND.search(text):
            self._command = command_of(match["words"].split())
        elif not NO_RUN.search(text):
            self._heading = workload_in(text) or self._heading

    def taken(self) -> ScriptCommand:
        """The command of the run that begins; a heading holds for all runs up to the next."""
        self._look(self._begun)
        command, self._command, self._begun = self._command or ScriptCommand(), None, ""
        return replace(command, test=command.test or self._heading)


def command_of(words: Sequence[str]) -> ScriptCommand:
    """Meaning of the words between `sysbench` and `run`."""
    test, options, server, threads = "", set[str](), list[str](), 0
    for word in words:
        name, is_given, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-").lower()
        if not word.startswith("-"):
            test = test or PurePath(word.strip("'\"")).stem.replace("sysbench", "")
        elif name == "test":
            test = PurePath(value.strip("'\"")).stem
        elif name in ("threads", "num-threads"):
            threads = int(value) if re.fullmatch(WHOLE, value) else 0
        elif OF_SERVER.fullmatch(name):
            server.append(value)
        elif not OF_RUN.fullmatch(name):
            options.add(f"--{name}={value}" if is_given else f"--{name}")
    return ScriptCommand(test, frozenset(options), " ".join(server), threads)


def workload_in(text: str) -> str:
    """Name of sysbench's workload in a heading or in the name of a file; empty if there is none."""
    match = NAMED.search(text) or HEADING.fullmatch(text[: HEADING_MAX + 1])
    if match is None or len(text) > HEADING_MAX:
        return ""
    name = re.sub(r"[-_ /]+(?:and[-_ ])?", "_", match["name"].lower()).replace("selects", "select")
    return name if name.startswith(("oltp", "select", "bulk")) else f"oltp_{name}"


@dataclass
class LoggedRun:
    """A run's output; numbers of the report keep their text, which shows their rounding.

    Attributes:
        first_line, last_line: its place, counted from 1.
        threads: 0 if no line tells them.
        version: of sysbench; empty without a banner.
        stream: name of its stream, if the log has several.
        command: the command before it.
        conditions: lines of its head on the load; None without a head.
        has_started: threads were started, as far as its lines tell.
        is_closed: its last lines were read.
        test: name of a test without a database; empty for all others.
        has_tps: its intervals have transactions.
        counts: reads, writes, others, total queries, by `read`, `write`, `other`, `total`.
        times, per_s: numbers and rates by the name of their line, such as `transactions`.
        histogram: (latency ms, events) of each printed size.
        checkpoints: announced checkpoints; each report starts after the previous checkpoint.
        reports: number of reports, at checkpoints too.
        failure: a FATAL line.
        refusals: its lines that cannot be read.
    """

    first_line: int
    threads: int
    version: str = ""
    last_line: int = 0
    stream: str = ""
    command: ScriptCommand = ScriptCommand()
    conditions: list[str] | None = None
    has_started: bool = False
    is_closed: bool = False
    test: str = ""
    has_tps: bool = False
    intervals: list[LoggedInterval] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    per_s: dict[str, str] = field(default_factory=dict)
    seconds: str = ""
    events: int | None = None
    latency_ms: dict[str, str] = field(default_factory=dict)
    histogram: list[tuple[float, int]] = field(default_factory=list)
    checkpoints: int = 0
    reports: int = 0
    failure: str = ""
    refusals: list[UsageError] = field(default_factory=list)

    @property
    def has_report(self) -> bool:
        """The run has its final report."""
        return self.reports > self.checkpoints and self.events is not None

    @property
    def is_whole(self) -> bool:
        """The run has its head and its report."""
        return self.conditions is not None and self.has_report

    @property
    def is_over(self) -> bool:
        """True if a further report or interval belongs to the next run."""
        return self.has_report or ("transactions" in self.per_s and not self.checkpoints)

    @property
    def is_empty(self) -> bool:
        """True for a line on threads that a script wrote, without any of sysbench's after it."""
        lines = (self.intervals, self.reports, self.per_s, self.counts, self.failure)
        return not (self.has_started or self.refusals or any(lines))

    @property
    def lacks(self) -> list[str]:
        """Lines of a report that are missing."""
        lines = {"transactions": self.per_s.get("transactions"), "total time": self.seconds}
        lines["total number of events"] = "" if self.events is None else str(self.events)
        return [name for name, text in lines.items() if not text]

    @property
    def test_without_sql(self) -> str:
        """Name of its test if it asks no database; empty for all others."""
        named = self.test or (self.command.test if self.command.test in TESTS else "")
        is_silent = self.has_report and not (self.per_s or self.counts or self.has_tps)
        return named or (NO_SQL if is_silent else "")

    @property
    def tps(self) -> str:
        """Transactions a second of the report; events where sysbench counted no transactions."""
        return self._filled("transactions", self.events or 0)

    @property
    def qps(self) -> str:
        """Queries a second; before 1.0 the sum of two lines."""
        if "queries" in self.per_s:
            return self._filled("queries", self.counts.get("total", 0))
        old = [self.per_s.get(name) for name in ("read/write requests", "other operations")]
        if old[0] is None or old[1] is None:
            return ""
        decimals = len(old[0].partition(".")[2])
        return f"{float(old[0]) + float(old[1]):.{decimals}f}"

    def _filled(self, name: str, times: int) -> str:
        """A printed rate; in place of the zero of an unused counter the rate of another, if any."""
        text, seconds = self.per_s.get(name, ""), float(self.seconds or 0)
        if not text or float(text) or not self.events or self.checkpoints:
            return text
        return f"{times / seconds:.2f}" if times and seconds else ""

    def latency(self, name: str) -> str:
        """A printed latency in ms; empty for the zero of an unused counter."""
        text = self.latency_ms.get(name, "")
        return text if text and float(text) else ""

    @property
    def work(self) -> Work:
        """Its statements, options and conditions."""
        failed = (self.times.get(name, 0) for name in ("ignored errors", "deadlocks"))
        return Work(
            reads=self.counts.get("read", 0),
            writes=self.counts.get("write", 0),
            others=self.counts.get("other", 0),
            events=self.events or 0,
            failed=sum(failed),
            options=self.command.options,
            conditions=None if self.conditions is None else frozenset(self.conditions),
        )


def runs_in(streams: Sequence[Stream], source: str) -> list[LoggedRun]:
    """Every run of a log, in order, each with the lines that cannot be read."""
    runs = [run for stream in streams for run in _runs_of(stream, source)]
    return sorted((run for run in runs if not run.is_empty), key=lambda run: run.first_line)


def _runs_of(stream: Stream, source: str) -> list[LoggedRun]:
    version, runs, commands = "", list[LoggedRun](), ScriptCommands()
    for line in stream.lines:
        if banner := VERSION.search(line.text):
            version = banner[1]
        head = THREADS.match(line.text)
        if head or (_is_of_run(line.text) and (not runs or _is_next(runs[-1], line.text))):
            run = LoggedRun(line.number, int(head[1]) if head else 0, version)
            run.stream, run.command = stream.name, commands.taken()
            run.conditions = [] if head else None
            runs.append(run)
        if runs and _take(runs[-1], line, source):
            runs[-1].last_line = line.number
        else:
            commands.read(line.text)
    for run in runs:
        _complete(run)
    return runs


def prepared_in(streams: Sequence[Stream]) -> int:
    """The first line of sysbench's `prepare` or `cleanup` in a log; 0 if there is none."""
    lines = (line for stream in streams for line in stream.lines)
    return next((line.number for line in lines if PREPARED.match(line.text)), 0)


def _complete(run: LoggedRun) -> None:
    """Fill in threads of its command, and a report without its section on time, which has the same
    numbers as transactions."""
    run.threads = run.threads or run.command.threads
    times, rate = run.times.get("transactions", 0), float(run.per_s.get("transactions", 0))
    if not (run.reports or run.checkpoints) and times and rate:
        run.events = run.events or times
        run.seconds, run.reports = f"{times / rate:.4f}", 1


def _is_of_run(text: str) -> bool:
    """Recognises the lines by which a run without its head begins."""
    if REPORT.match(text) or BEGUN_INTERVAL.match(text):
        return True
    counted = COUNTED.match(text)
    return counted is not None and counted[1] == "transactions"


def _is_next(run: LoggedRun, text: str) -> bool:
    """True if a line begins the run after this one."""
    interval = INTERVAL.match(text)
    is_earlier = interval and run.intervals and float(interval[1]) <= run.intervals[-1].at_s
    return run.is_over or bool(is_earlier)


def _take(run: LoggedRun, line: LogLine, source: str) -> bool:
    """Take a line; False for a line of another program."""
    if not run.is_over and (FATAL.match(line.text) or HEAD.match(line.text)):
        return _take_head(run, line.text)
    if not run.is_closed and _take_report(run, line.text):
        return True
    if BEGUN_INTERVAL.match(line.text) and not WRAPPED.search(line.text):
        match = INTERVAL.match(line.text)
        interval = _interval(match) if match else None
        if interval is None or match is None:
            run.refusals.append(_unreadable(line, source))
            return True
        run.threads = run.threads or int(match[2])
        run.has_tps = run.has_tps or " tps:" in line.text
        run.intervals.append(interval)
        return True
    return bool(THREADS.match(line.text) or ENDED.match(line.text))


def _unreadable(line: LogLine, source: str) -> UsageError:
    return UsageError(
        f"line {line.number} of {source} cannot be read",
        wanted="sysbench's line of rates",
        found=line.text[:120],
        hint="is it cut off, or of a fork that prints something else? correct or remove it",
    )


def _take_head(run: LoggedRun, text: str) -> bool:
    """Take a line of a head, or of an end in error."""
    if match := FATAL.match(text):
        run.failure = run.failure or match[1] or match[2] or ""
    elif CONDITION.match(text):
        run.conditions = run.conditions or []
        run.conditions.append(text)
    else:
        run.has_started = run.has_started or bool(STARTED.match(text))
        run.test = run.test or next((name for name, t in TESTS.items() if t.match(text)), "")
    return True


def _take_report(run: LoggedRun, text: str) -> bool:
    """Take a line of a report; False for any other line."""
    if match := COUNTED.match(text):
        run.times[match[1].strip()] = int(match[2])
        run.per_s[match[1].strip()] = match[3]
    elif not run.is_over and (match := COUNT.match(text)):
        run.counts[match[1]] = int(match[2])
    elif match := SECONDS.match(text):
        run.seconds = match[1]
        run.reports += 1
    elif match := EVENTS.match(text):
        run.events = int(match[1]) or run.times.get("transactions", 0)
    elif match := PERCENTILE.match(text):
        run.latency_ms[match[1].removesuffix(".0")] = _in_ms(match[2], match[3])
    elif match := LATENCY.match(text):
        run.latency_ms[match[1]] = _in_ms(match[2], match[3])
    elif match := JOINED.match(text):
        names = re.findall(r"([\d.]+)%", match[1])
        run.latency_ms.update(zip(names, match[2].split("/"), strict=False))
    elif match := BUCKET.match(text):
        run.histogram.append((float(match[1]), int(match[2])))
    elif match := FAIRNESS.match(text):
        run.threads = run.threads or _threads_of(run.events or 0, float(match[1]))
        run.is_closed = run.is_over
    elif CHECKPOINT.match(text):
        run.checkpoints += 1
    else:
        return bool(REPORT.match(text))
    return True


def _threads_of(events: int, per_thread: float) -> int:
    """Number of threads, from all events and those of a thread; 0 if they do not fit."""
    threads = events / per_thread if per_thread else 0.0
    return round(threads) if abs(threads - round(threads)) <= COUNTS_KEPT * threads else 0


def _interval(match: re.Match[str]) -> LoggedInterval | None:
    parts: dict[str, str] = dict(PART.findall(match[3]))
    rate = parts.get("tps") or parts.get("eps")
    numbers = [part for value in parts.values() for part in value.removesuffix("ms").split("/")]
    if rate is None or not all(RATE.fullmatch(one) for one in numbers):
        return None
    return LoggedInterval(float(match[1]), rate)


def _in_ms(text: str, unit: str | None) -> str:
    """0.4 prints seconds with four decimals: a thousandth of the unit, three decimals fewer."""
    if unit != "s":
        return text
    decimals = max(0, len(text.partition(".")[2]) - 3)
    return f"{float(text) * 1e3:.{decimals}f}"
