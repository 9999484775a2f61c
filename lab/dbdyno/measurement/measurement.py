"""A measurement: which trial it was, where it ran and what was observed.

Making (servers, experiment) and judging (judge, report) share only this and the store. So a verdict
can be made again years later from stored trials.

Every value is frozen and validates itself when it comes back from a store. Histograms are HDR V2
blobs; they travel beside the JSON, not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from dbdyno._engine import Histogram
from dbdyno.measurement.certificate import CertificateFacts
from dbdyno.measurement.metric import KIND, Metric
from dbdyno.measurement.parts import (
    Interval,
    Noun,
    Phase,
    ProcessWork,
    StackProfile,
    StateProfile,
    StatusSeries,
    Step,
    ThreadWork,
    TrialEvidence,
    WatchSample,
)
from dbdyno.stats.open_loop import Growth, growth

EVENT = "event"
"""Name of the histogram of event latency from the intended start."""
SERVICE = "event_service"
"""Name of the histogram of event latency from the actual start."""


class Cell(Noun):
    """A combination under comparison: workload × load level × setting.

    Attributes:
        workload: the workload's label in the plan.
        threads: connections; alone they are the load level of a closed loop.
        setting: name of the settings bundle; ``default`` if the plan has no axis of settings.
        rate_per_s: events due in a second, whatever the server does; None in a closed loop.
    """

    workload: str
    threads: int
    setting: str = "default"
    rate_per_s: float | None = None

    @property
    def key(self) -> str:
        """Stable key of the cell in stores and reports."""
        rate = "" if self.rate_per_s is None else f"/rate={self.rate_per_s:g}"
        return f"{self.workload}/threads={self.threads}{rate}/{self.setting}"

    @property
    def ladder(self) -> tuple[str, str]:
        """Workload and setting, which its other load levels have too."""
        return self.workload, self.setting


NO_BLOCK: Final = -1
"""A pilot's trials belong to no block."""


class Trial(Noun):
    """A trial's place in the design, known before it runs.

    Attributes:
        sequence: position in the whole run, from 0; with run_id it names the trial.
        block: block number, from 0.
        position: place of this arm (its system with its setting) within the block, from 0.
        system: label of the system.
        is_pilot: True for a search for the rates of an open loop, outside the comparison.
        cell: the load to run.
        seed: seed of the request stream; the same for every system of a block (common draws).
        repeat: number of earlier measurements of its block (`disturbance`).
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
    def key(self) -> str:
        """Stable key of the trial in its run."""
        return self.place + (f"/again={self.repeat}" if self.repeat else "")

    @property
    def place(self) -> str:
        """Stable key of its place in the plan, the same for each repeat of its block."""
        pilot = "/pilot" if self.is_pilot else ""
        return f"{self.block}/{self.system}{pilot}/{self.cell.key}"


def without_pilots(measurements: Iterable[Measurement]) -> list[Measurement]:
    """The trials of the comparison."""
    return [m for m in measurements if not m.trial.is_pilot]


class GeneratorFacts(Noun):
    """A generator on a machine of its own.

    Attributes:
        machine: its number in the run, from 1.
        cpu_s, cpu_share_max: as in `EngineFacts`, for this generator.
        clock_ms: largest possible offset of its clock from the others' at the start.
        clock_change_ms: change of its clock's lead from before the trial to after it.
    """

    machine: int
    connections: int
    threads: int
    cpu_s: float
    cpu_share_max: float
    clock_ms: float
    clock_change_ms: float


class EngineFacts(Noun):
    """The load generator and its effort.

    Attributes:
        threads: of all generators.
        generators: number of processes that shared the load.
        apart: each generator on a machine of its own.
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
    apart: tuple[GeneratorFacts, ...] = ()


class ServerFacts(Noun):
    """The server's real state, read back from itself.

    Attributes:
        version: as reported by the server.
        settings: all effective global variables.
        status: global status counters at the end of the window minus those at its beginning.
        status_at_s: seconds of load at which the first reading of `status` was requested and
            answered, then the second; empty in an imported run.
        uptime_s: seconds since the server's start at the last reading; None if unknown.
        waiting: number of the load's statements still running at the end of a window without any
            answer in its last second, by kind and state; empty for all other windows.
        allocator: malloc library of its process, or `unknown`; empty if not looked up.
        cpu_s: server process CPU seconds within the measured window.
        pid: process id of the server, where it is seen on this machine.
        balanced: addresses of an endpoint that lead to several servers, whose counters are unknown.
        process: its reads, writes and context switches in the window; None if not read.
        replication: counters of primary and replicas over the window, by names of `replication`.
        threads: work of its threads by group, such as `connection`; threads without a name of their
            own are `unnamed`. Empty if not read.
    """

    version: str
    settings: Annotated[dict[str, str], Field(repr=False)]
    status: Annotated[dict[str, float], Field(repr=False)]
    cpu_s: float
    pid: int | None = None
    process: ProcessWork | None = None
    replication: dict[str, float] = {}
    status_at_s: tuple[float, ...] = ()
    uptime_s: float | None = None
    waiting: dict[str, int] = {}
    allocator: str = ""
    balanced: tuple[str, ...] = ()
    threads: dict[str, ThreadWork] = {}


class Measurement(Noun):
    """Observations of a trial. A trial that failed is a measurement too, with `failure`.

    Attributes:
        started_at: ISO 8601 time with offset.
        window_s: real length of the measured window.
        intervals: one for each second from the load's first moment, warm-up included.
        watch, status_seconds: the machine and the server's counters, one reading a second.
        failure: reason of an unplanned end, else None.
        impossible: True if this system can never complete this cell; the trial is not repeated
            unless the user asks for it.
        procedure: steps before this trial and after the previous one, in order.
        dataset: digest of the loaded rows; empty if not taken.
        rows_short: rows of each table with fewer than it was sent, after loading.
        load: name of the load from which the data were copied, shared with other blocks; empty for
            a single load, as on endpoints.
        evidence: observations around the trial, for the checks.
        certificate: the machine's certificate of the generator; None if not looked up.
        reported: metrics printed by another tool, which count in place of the intervals'.
        machine: name of the fleet's machine that ran it; empty for the machine of the command.
        lost: True if it failed because a machine was lost; then its load is measured again.
        profile, states: the server's sampled stacks, and the sampled states of its connections;
            None unless the plan asks for them.
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
    rows_short: dict[str, int] = {}
    load: str = ""
    evidence: TrialEvidence = TrialEvidence()
    certificate: CertificateFacts | None = None
    reported: dict[str, float] = {}
    machine: str = ""
    lost: bool = False
    profile: StackProfile | None = None
    states: StateProfile | None = None

    @property
    def started_s(self) -> float | None:
        """Start in seconds since 1970; None if not noted (an imported log)."""
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

    def histogram(self, name: str = EVENT) -> Histogram:
        """Latency of the whole window in ns: the intervals' counts added up."""
        return merge_histograms(_stored([self], name))

    def value(self, metric: Metric) -> float | None:
        """The value of a metric; None if not observed or with too few requests."""
        return value_of([self], metric)


RATES = ("transactions_per_s", "queries_per_s")
"""Metrics that are 0, not unknown, where nothing was completed."""


def loads_of(measurements: Iterable[Measurement]) -> int:
    """Number of independent loads under each system's blocks: the least over the systems."""
    loads: dict[str, set[str]] = {}
    for measurement in measurements:
        if measurement.failure is None:
            loads.setdefault(measurement.trial.system, set()).add(measurement.load)
    return min((len(names) for names in loads.values()), default=0)


def events_between_readings(measurement: Measurement) -> tuple[float, float]:
    """Least and greatest number of events between the two readings of the counters.

    A reading took place at some moment between the question and the answer. Events are taken as
    evenly spread within an interval. Without noted times the readings are taken at the window's
    edges.
    """
    times_s = measurement.server.status_at_s
    if len(times_s) != 4:
        return measurement.events, measurement.events
    first_asked, first_answered, last_asked, last_answered = (
        events_until(measurement.intervals, at_s) for at_s in times_s
    )
    return max(0.0, last_asked - first_answered), last_answered - first_asked


def events_until(intervals: Iterable[Interval], at_s: float) -> float:
    """Events completed by this second of load."""
    return sum(
        one.events * min(1.0, max(0.0, at_s - one.start_s) / max(one.end_s - one.start_s, 1e-9))
        for one in intervals
    )


def backlog_growth(measurement: Measurement) -> Growth | None:
    """Change of requests due and not begun; None in a closed loop, and with too few intervals."""
    rate, window = measurement.trial.cell.rate_per_s, measurement.measured
    return growth([i.end_s for i in window], [i.backlog for i in window], rate) if rate else None


def is_sustained(measurement: Measurement) -> bool:
    """True unless a growing backlog shows a rate above the server's capacity."""
    seen = backlog_growth(measurement)
    return seen is None or seen.sustained


def merge_histograms(blobs: Iterable[bytes]) -> Histogram:
    """Sum of the counts of HDR V2 blobs; an empty histogram without blobs."""
    merged = Histogram()
    for blob in blobs:
        merged.add(Histogram.decode(blob))
    return merged


def kinds_of(parts: Iterable[Measurement]) -> list[str]:
    """Sorted names given by a script to events of the window."""
    names = {name for part in parts for one in part.measured for name in one.histograms}
    return sorted(name.removeprefix(KIND) for name in names if name.startswith(KIND))


def _stored(parts: Iterable[Measurement], name: str) -> Iterator[bytes]:
    for measurement in parts:
        for interval in measurement.measured:
            if name in interval.histograms:
                yield interval.histograms[name]


def value_of(parts: Iterable[Measurement], metric: Metric) -> float | None:
    """The value of `metric` over several measurements, merged by the metric's rule.

    Returns None without observations, or for a quantile with too few requests beyond it.
    """
    measurements = list(parts)
    if measurements and all(metric.name in m.reported for m in measurements):
        return sum(m.reported[metric.name] for m in measurements) / len(measurements)
    if metric.kind:
        return _of_kind(measurements, metric)
    events = sum(m.events for m in measurements)
    if not measurements or (events < metric.requests_needed() and metric.name not in RATES):
        return None
    if metric.name == "latency_ms_max":
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
