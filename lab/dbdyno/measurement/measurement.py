"""A measurement: which trial it was, where it ran and what was observed.

Making (servers, experiment) and judging (judge, report) share only this and the store. So a verdict
can be made again years later from stored trials.

Every value is frozen and validates itself when it comes back from a store. Histograms are HDR V2
blobs; they travel beside the JSON, not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Annotated

from pydantic import Field

from dbdyno._engine import Histogram
from dbdyno.language.words import Said, count, name, say
from dbdyno.measurement.certificate import CertificateFacts
from dbdyno.measurement.metric import KIND, Merge, Metric
from dbdyno.measurement.parts import (
    Interval,
    Noun,
    Phase,
    ProcessWork,
    StatusSeries,
    Step,
    TrialEvidence,
    WatchSample,
)

EVENT = "event"
"""Name of the histogram of event latency from the intended start."""
SERVICE = "event_service"
"""Name of the histogram of event latency from the actual start."""


class Cell(Noun):
    """One combination that is compared: workload × load level × setting.

    Attributes:
        workload: the workload's label in the plan.
        threads: connections; alone they are the load level of a closed loop.
        setting: name of the settings bundle; ``default`` where the plan has no axis of settings.
        rate_per_s: events that fall due in a second whatever the server does; None in a closed
            loop.
    """

    workload: str
    threads: int
    setting: str = "default"
    rate_per_s: float | None = None

    @property
    def key(self) -> str:
        """Stable text that names the cell in stores and reports."""
        rate = "" if self.rate_per_s is None else f"/rate={self.rate_per_s:g}"
        return f"{self.workload}/threads={self.threads}{rate}/{self.setting}"

    @property
    def load(self) -> Said:
        """The load level in words."""
        threads = count(self.threads, "thread")
        if self.rate_per_s is None:
            return threads
        return say("{rate:g}/s over {threads}", rate=self.rate_per_s, threads=threads)

    @property
    def title(self) -> Said:
        """The words of a heading."""
        named = {"workload": self.workload, "load": self.load, "setting": self.setting}
        if self.setting == "default":
            return say("{workload}, {load}", **named)
        return say("{workload}, {load}, {setting}", **named)

    @property
    def ladder(self) -> tuple[str, str]:
        """Workload and setting, which its other load levels have too."""
        return self.workload, self.setting


class Trial(Noun):
    """One trial's place in the design, known before it runs.

    Attributes:
        sequence: position in the whole run, from 0; with run_id it names the trial.
        block: block number, from 0.
        position: place of this arm (its system with its setting) within the block, from 0.
        system: label of the system.
        is_pilot: a look for the rates of an open loop, no part of the comparison.
        cell: what is run.
        seed: seed of the request stream; the same for every system of a block (common draws).
        repeat: how often its block had been measured before (`disturbance`).
    """

    run_id: str
    sequence: int
    block: int
    position: int
    system: str
    cell: Cell
    seed: int
    is_pilot: bool = False
    repeat: Annotated[int, Field(ge=0)] = 0

    @property
    def arm(self) -> Said:
        """The system's label, marked in a pilot."""
        if self.is_pilot:
            return say("{system} (pilot)", system=self.system)
        return name(self.system)

    @property
    def key(self) -> str:
        """Stable text that names the trial in its run."""
        return self.place + (f"/again={self.repeat}" if self.repeat else "")

    @property
    def place(self) -> str:
        """Stable text that names its place in the plan, whichever repeat of its block it is of."""
        pilot = "/pilot" if self.is_pilot else ""
        return f"{self.block}/{self.system}{pilot}/{self.cell.key}"


def without_pilots(measurements: Iterable[Measurement]) -> list[Measurement]:
    """The trials of the comparison."""
    return [m for m in measurements if not m.trial.is_pilot]


class ThreadPlacement(Noun):
    """How one engine thread was scheduled beside the server, as the system told it.

    Attributes:
        policy: its scheduling policy: `normal` or `batch`.
        refused: what was asked for and was not so; empty if nothing.
    """

    policy: str
    refused: str = ""


class GeneratorFacts(Noun):
    """One generator that had a machine of its own.

    Attributes:
        machine: its number in the run, from 1.
        cpu_s, cpu_share_max: as of `EngineFacts`, of this one.
        clock_ms: how far its clock may have been from the others' when they began.
        clock_change_ms: by how much more or less it was ahead after the trial than before.
    """

    machine: int
    connections: int
    threads: int
    cpu_s: float
    cpu_share_max: float
    clock_ms: float
    clock_change_ms: float


class EngineFacts(Noun):
    """What drove the load, and how hard it had to work.

    Attributes:
        threads: of all generators.
        generators: processes that made the load together.
        placements: of each engine thread; empty in an imported run.
        apart: each generator that had a machine of its own.
        cpu_s: user + system seconds of the whole generator process within the measured window.
        cpu_share_max: the busiest engine thread's CPU seconds per second of the window (0 to 1).
    """

    version: str
    reactor: str
    threads: int
    cpu_s: float
    cpu_share_max: float
    distribution: str
    prepared_statements: bool
    generators: Annotated[int, Field(ge=1)] = 1
    placements: tuple[ThreadPlacement, ...] = ()
    apart: tuple[GeneratorFacts, ...] = ()


class ServerFacts(Noun):
    """The server as it really was, read back from itself.

    Attributes:
        version: as the server says it.
        settings: all effective global variables.
        status: global status counters at the end of the window minus those at its beginning.
        status_at_s: seconds of load at which the first reading of `status` was asked for and
            answered, then the second; empty in an imported run.
        waiting: of the load's statements that ran at the end of a window in whose last second
            nothing was answered, how many by kind and state; empty for all other windows.
        allocator: which malloc its process uses, or `unknown`; empty where nobody looked.
        cpu_s: server process CPU seconds within the measured window.
        pid: process id of the server that was started for this trial's arm.
        process: its reads, writes and context switches in the window; None if nobody looked.
        replication: what primary and replicas said over the window, by names of `replication`.
    """

    version: str
    settings: Annotated[dict[str, str], Field(repr=False)]
    status: Annotated[dict[str, float], Field(repr=False)]
    cpu_s: float
    pid: int | None = None
    process: ProcessWork | None = None
    replication: dict[str, float] = {}
    status_at_s: tuple[float, ...] = ()
    waiting: dict[str, int] = {}
    allocator: str = ""


class Measurement(Noun):
    """What one trial saw. A trial that could not be finished is a measurement too, with `failure`.

    Attributes:
        started_at: ISO 8601 time with offset.
        window_s: length of the measured window as it really was.
        intervals: one a second from the load's first moment, warm-up included.
        watch, status_seconds: the machine and the server's counters, one reading a second.
        failure: why the trial did not end as planned; None if it did.
        impossible: whether it would fail so again, as this system cannot bear this cell; then it
            is not tried again unless that is asked for.
        procedure: what was done before the trial and after the one before, in order.
        dataset: digest of the rows that were loaded; empty where nobody took it.
        load: name of the load that the data are a copy of, which other blocks may share; empty
            where there was but one, as on endpoints.
        evidence: what was found out around it, for the checks.
        certificate: what that of the machine said of the generator; None where nobody looked.
        reported: metrics as another tool printed them, which count in place of the intervals'.
        machine: name of the machine of a fleet that ran it; empty for the one that began the run.
        lost: whether it failed because a machine was lost; then its load is measured again.
    """

    trial: Trial
    started_at: str
    warmup_s: float
    window_s: float
    engine: EngineFacts
    server: ServerFacts
    intervals: tuple[Interval, ...]
    watch: tuple[WatchSample, ...] = ()
    status_seconds: StatusSeries | None = None
    failure: str | None = None
    impossible: bool = False
    procedure: tuple[Step, ...] = ()
    dataset: str = ""
    load: str = ""
    evidence: TrialEvidence = TrialEvidence()
    certificate: CertificateFacts | None = None
    reported: dict[str, float] = {}
    machine: str = ""
    lost: bool = False

    @property
    def started_s(self) -> float | None:
        """When it began, in seconds since 1970; None where nobody noted it (an imported log)."""
        try:
            return datetime.fromisoformat(self.started_at).timestamp()
        except ValueError:
            return None

    @property
    def load_s(self) -> float:
        """Seconds of load until the window's end, or until it broke off; 0 if it never began."""
        if self.window_s > 0:
            return self.warmup_s + self.window_s
        return self.intervals[-1].end_s if self.intervals else 0.0

    @property
    def measured(self) -> tuple[Interval, ...]:
        """The intervals of the measured window."""
        return tuple(i for i in self.intervals if i.phase is Phase.MEASURED)

    @property
    def watch_measured(self) -> tuple[WatchSample, ...]:
        """The watch samples of the measured window."""
        if not (measured := self.measured):
            return ()
        start_s, end_s = measured[0].start_s, measured[-1].end_s
        return tuple(s for s in self.watch if start_s <= s.at_s <= end_s)

    @property
    def events(self) -> int:
        """Events completed in the window."""
        return sum(i.events for i in self.measured)

    @property
    def queries(self) -> int:
        """Statements answered without error in the window."""
        return sum(i.queries for i in self.measured)

    @property
    def errors(self) -> dict[str, int]:
        """Failed statements of the window by error code."""
        total: dict[str, int] = {}
        for interval in self.measured:
            for code, times in interval.errors.items():
                total[code] = total.get(code, 0) + times
        return total

    @property
    def latency_ms_avg(self) -> float | None:
        """Mean event latency of the window in ms; None without events."""
        if self.events == 0:
            return None
        return sum(i.latency_ns_sum for i in self.measured) / self.events / 1e6

    def histogram(self, name: str = EVENT) -> Histogram:
        """Latency of the whole window in ns: the intervals' counts added up."""
        return merge_histograms(_stored([self], name))

    def value(self, metric: Metric) -> float | None:
        """Reads one metric off this measurement; None where it was not seen or too few requests."""
        return value_of([self], metric)


RATES = ("transactions_per_s", "queries_per_s")
"""Metrics that are 0, not unknown, where nothing was completed."""


def loads_of(measurements: Iterable[Measurement]) -> int:
    """On how many loads of its own each system's blocks rest: the fewest that one of them has."""
    loads: dict[str, set[str]] = {}
    for measurement in measurements:
        if measurement.failure is None:
            loads.setdefault(measurement.trial.system, set()).add(measurement.load)
    return min((len(names) for names in loads.values()), default=0)


def events_between_readings(measurement: Measurement) -> tuple[float, float]:
    """The least and the most events that can lie between the two readings of the counters.

    A reading was made at some moment between the question and the answer. Events lie evenly within
    an interval. Where nobody noted the times, the readings are taken to lie at the window's edges.
    """
    times_s = measurement.server.status_at_s
    if len(times_s) != 4:
        return measurement.events, measurement.events
    asked, answered, asked_again, answered_again = (
        events_until(measurement.intervals, at_s) for at_s in times_s
    )
    return max(0.0, asked_again - answered), answered_again - asked


def events_until(intervals: Iterable[Interval], at_s: float) -> float:
    """Events that ended within so many seconds of load."""
    return sum(
        one.events * min(1.0, max(0.0, at_s - one.start_s) / max(one.end_s - one.start_s, 1e-9))
        for one in intervals
    )


def merge_histograms(blobs: Iterable[bytes]) -> Histogram:
    """Adds the counts of HDR V2 blobs; an empty histogram for none."""
    merged = Histogram()
    for blob in blobs:
        merged.add(Histogram.decode(blob))
    return merged


def kinds_of(parts: Iterable[Measurement]) -> list[str]:
    """The names that a script gave to events of the window, sorted."""
    names = {name for part in parts for one in part.measured for name in one.histograms}
    return sorted(name.removeprefix(KIND) for name in names if name.startswith(KIND))


def _stored(parts: Iterable[Measurement], name: str) -> Iterator[bytes]:
    for measurement in parts:
        for interval in measurement.measured:
            if name in interval.histograms:
                yield interval.histograms[name]


def value_of(parts: Iterable[Measurement], metric: Metric) -> float | None:
    """The value of `metric` over several measurements, merged as the metric says.

    Returns None where nothing was seen, or a quantile has too few requests beyond it.
    """
    measurements = list(parts)
    if measurements and all(metric.name in m.reported for m in measurements):
        return sum(m.reported[metric.name] for m in measurements) / len(measurements)
    if metric.kind:
        return _of_kind(measurements, metric)
    events = sum(m.events for m in measurements)
    if not measurements or (events < metric.requests_needed() and metric.name not in RATES):
        return None
    if metric.merge is Merge.MAXIMUM:
        return _latency_ns_max(measurements) / 1e6 or None
    if metric.quantile is not None:
        merged = merge_histograms(_stored(measurements, EVENT))
        return _quantile_ms(merged, metric.quantile, measurements) if merged.count() else None
    numerator, denominator = _SIDES[metric.name](measurements)
    return numerator / denominator if denominator > 0 else None


def _of_kind(parts: list[Measurement], metric: Metric) -> float | None:
    seen = merge_histograms(_stored(parts, KIND + metric.kind))
    if seen.count() < metric.requests_needed():
        return None
    if metric.quantile is not None:
        return _quantile_ms(seen, metric.quantile, parts)
    return seen.count() / _window_s(parts) * (60 if metric.unit == "1/min" else 1)


def _quantile_ms(seen: Histogram, quantile: float, parts: list[Measurement]) -> float:
    """The upper edge of a size class can lie above the largest latency, which is kept exactly."""
    return min(seen.quantile(quantile), _latency_ns_max(parts)) / 1e6


def _latency_ns_max(parts: list[Measurement]) -> int:
    return max(interval.latency_ns_max for part in parts for interval in part.measured)


def _window_s(parts: list[Measurement]) -> float:
    return sum(m.window_s for m in parts)


_SIDES: Mapping[str, Callable[[list[Measurement]], tuple[float, float]]] = {
    "transactions_per_s": lambda parts: (sum(m.events for m in parts), _window_s(parts)),
    "queries_per_s": lambda parts: (sum(m.queries for m in parts), _window_s(parts)),
    "latency_ms_avg": lambda parts: (
        sum(i.latency_ns_sum for m in parts for i in m.measured) / 1e6,
        sum(m.events for m in parts),
    ),
    "server_cpu_us_per_query": lambda parts: (
        sum(m.server.cpu_s for m in parts) * 1e6,
        # No CPU at all means that nobody could look: servers on other machines.
        sum(m.queries for m in parts) if all(m.server.cpu_s for m in parts) else 0,
    ),
}
