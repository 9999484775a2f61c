"""Live metrics of a run: for Prometheus a page of text on loopback (`--prometheus PORT`).

    load generator ── each second ──▶ LiveMetrics, in memory ◀── scrape ── Prometheus
                                                 └── push, cli/otlp.py ──▶ OpenTelemetry

The run's own thread adds up the seconds of load; a second thread answers scrapes from
memory. So a scrape asks neither the server nor the load generator. Host and server are read once a
second in every run, with metrics or without.

The page is in the text format OpenMetrics 1.0, which has histograms of fixed buckets only. Native
(exponential) histograms need OTLP, or Prometheus 3 makes them of these buckets
(docs/how-to/metrics.md).
"""

from __future__ import annotations

import base64
import math
import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from itertools import accumulate
from socketserver import TCPServer
from typing import Any, ClassVar, Final

from dbdyno._engine import Histogram
from dbdyno.errors import UsageError
from dbdyno.experiment.engine.process import Engine
from dbdyno.experiment.watch.host import Reading
from dbdyno.measurement.measurement import EVENT, Measurement, Trial
from dbdyno.serve.guard import allows_host
from dbdyno.servers.process import LOOPBACK

Labels = tuple[tuple[str, str], ...]
Samples = dict[tuple[str, Labels], float]
"""Values by family and labels."""

COUNTER, GAUGE, HISTOGRAM, UNKNOWN = "counter", "gauge", "histogram", "unknown"
LATENCY: Final = "dbdyno_transaction_latency_seconds"
LEFT: Final = "dbdyno_run_remaining_seconds"
FAMILIES: Final[Mapping[str, tuple[str, str]]] = {
    "dbdyno_transactions": (COUNTER, "Completed transactions."),
    LATENCY: (HISTOGRAM, "Latency of completed transactions; at a fixed rate from their due time."),
    "dbdyno_statements": (COUNTER, "Statements answered without error."),
    "dbdyno_errors": (COUNTER, "Statements that failed."),
    "dbdyno_reconnects": (COUNTER, "Lost connections opened again."),
    "dbdyno_transactions_in_flight": (GAUGE, "Transactions in progress."),
    "dbdyno_transactions_backlog": (GAUGE, "At a fixed rate: transactions due and not begun."),
    "dbdyno_trials": (COUNTER, "Trials (measurements) that ended, by outcome."),
    "dbdyno_trial_number": (GAUGE, "Number of the trial in progress, named by its labels."),
    "dbdyno_run_trials": (GAUGE, "Trials of the run."),
    LEFT: (GAUGE, "Estimated time until the last trial ends."),
    "dbdyno_server_cpu_seconds": (COUNTER, "CPU time of the server's process."),
    "dbdyno_server_resident_memory_bytes": (GAUGE, "Resident memory of the server."),
    "dbdyno_server_read_bytes": (COUNTER, "Bytes that the server read from storage."),
    "dbdyno_server_written_bytes": (COUNTER, "Bytes written to storage for the server."),
    "dbdyno_server_status": (UNKNOWN, "The server's own counters, by their names there."),
    "dbdyno_host_cpu_seconds": (COUNTER, "CPU time of all cores since boot, by mode."),
    "dbdyno_host_pressure_seconds": (COUNTER, "Time in which some or all tasks stood still."),
    "dbdyno_host_memory_available_bytes": (GAUGE, "Available memory."),
    "dbdyno_host_memory_dirty_bytes": (GAUGE, "Page cache not yet written to disk."),
    "dbdyno_host_disk_read_bytes": (COUNTER, "Bytes read, by disk."),
    "dbdyno_host_disk_written_bytes": (COUNTER, "Bytes written, by disk."),
    "dbdyno_host_disk_busy_seconds": (COUNTER, "Time in which a request was open, by disk."),
    "dbdyno_host_network_received_bytes": (COUNTER, "Bytes received, by device."),
    "dbdyno_host_network_sent_bytes": (COUNTER, "Bytes sent, by device."),
    "dbdyno_generator_cpu_seconds": (COUNTER, "CPU time of the load generator's process."),
    "dbdyno_lab_cpu_seconds": (COUNTER, "CPU time of dbdyno itself, this page included."),
}
"""Type and meaning of each family, in the order of the page."""
COUNTED: Final = {
    "dbdyno_transactions": "events",
    "dbdyno_statements": "queries",
    "dbdyno_errors": "errors",
    "dbdyno_reconnects": "reconnects",
}
"""Field of the engine's interval for each counter of the load."""

TEN_A_DECADE: Final = ("1", "1.25", "1.6", "2", "2.5", "3.15", "4", "5", "6.3", "8")
BOUNDS_S: Final = (*(float(f"{step}e{n}") for n in range(-5, 2) for step in TEN_A_DECADE), 100.0)
"""Upper ends of the buckets of latency, from 10 µs to 100 s; the last bucket has no end."""
BOUNDS_NS: Final = tuple(round(bound_s * 1e9) for bound_s in BOUNDS_S)
SCALE: Final = 3
"""Of exponential buckets: 2³ of them from a latency to its double, each 9 % wide."""


@dataclass(frozen=True)
class Latencies:
    """Latencies of one set of labels.

    Attributes:
        counts: by bucket of `BOUNDS_S`.
        exponential: by place of the exponential bucket, from 2^(place / 2^`SCALE`) s on.
    """

    labels: Labels
    counts: tuple[int, ...]
    exponential: Mapping[int, int]
    sum_s: float


class LiveMetrics:
    """The numbers of a run so far, and the page with them; a `Progress` of the run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: Counter[tuple[str, Labels]] = Counter()
        self._buckets: dict[Labels, list[int]] = {}
        self._exponential: defaultdict[Labels, Counter[int]] = defaultdict(Counter)
        self._latency_ns: Counter[Labels] = Counter()
        self._of_run: Samples = {}
        self._of_trial: Samples = {}
        self._of_second: Samples = {}

    def stage(self, text: str) -> None:
        """A step has no number."""

    def note(self, text: str) -> None:
        """A note has no number."""

    def begin(self, trial: Trial, number: int, total: int, seconds_left: float) -> None:
        """Show the trial in progress."""
        run, labels = run_of(trial), (*labels_of(trial), ("block", str(trial.block + 1)))
        with self._lock:
            self._of_run = {("dbdyno_run_trials", run): total, (LEFT, run): seconds_left}
            self._of_trial = {("dbdyno_trial_number", labels): number}

    def interval(self, trial: Trial, interval: Mapping[str, Any], seconds_left: float) -> None:
        """Add a second of load, and replace the readings of host and server."""
        run, labels, host = run_of(trial), labels_of(trial), interval["host"]
        phase = (*labels, ("phase", "pilot" if trial.is_pilot else str(interval["phase"])))
        second: Samples = {
            ("dbdyno_transactions_in_flight", labels): interval["in_flight"],
            ("dbdyno_transactions_backlog", labels): interval["backlog"],
        }
        for name, value in interval["status"].items():
            second["dbdyno_server_status", (*labels, ("name", name))] = value
        if host is not None:
            second |= _of_processes(labels, host) | _of_host(run, host)
        with self._lock:
            for family, field in COUNTED.items():
                self._totals[family, phase] += interval[field]
            self._add_latencies(phase, interval["record"])
            self._of_run[LEFT, run] = seconds_left
            self._of_second = second

    def end(self, trial: Trial, measurement: Measurement, seconds_left: float) -> None:
        """Count the trial, and take the readings off the page: the watch has ended."""
        outcome = "completed" if measurement.failure is None else "failed"
        with self._lock:
            self._totals["dbdyno_trials", (*labels_of(trial), ("outcome", outcome))] += 1
            self._of_run[LEFT, run_of(trial)] = seconds_left
            self._of_trial, self._of_second = {}, {}

    def numbers(self) -> tuple[Samples, list[Latencies]]:
        """All metrics at this moment, and the latencies."""
        with self._lock:
            samples: Samples = {**self._totals, **self._of_run, **self._of_trial, **self._of_second}
            latencies = [
                Latencies(
                    labels,
                    tuple(counts),
                    dict(self._exponential[labels]),
                    self._latency_ns[labels] / 1e9,
                )
                for labels, counts in self._buckets.items()
            ]
        samples["dbdyno_lab_cpu_seconds", ()] = time.process_time()
        return samples, latencies

    def page(self) -> str:
        """All metrics in the text format OpenMetrics 1.0."""
        samples, latencies = self.numbers()
        lines: dict[str, list[str]] = defaultdict(list)
        for (family, labels), value in samples.items():
            suffix = "_total" if FAMILIES[family][0] == COUNTER else ""
            lines[family].append(_sample(family + suffix, labels, value))
        for histogram in latencies:
            lines[LATENCY] += _histogram(histogram)
        text: list[str] = []
        for family, (kind, meaning) in FAMILIES.items():
            if family in lines:
                head = (f"# TYPE {family} {kind}", f"# HELP {family} {meaning}")
                text += [*head, *lines[family]]
        return "\n".join([*text, "# EOF\n"])

    def _add_latencies(self, labels: Labels, record: Mapping[str, Any]) -> None:
        counts = self._buckets.setdefault(labels, [0] * (len(BOUNDS_NS) + 1))
        exponential = self._exponential[labels]
        self._latency_ns[labels] += record["latency_ns_sum"]
        if encoded := record["histograms"].get(EVENT):
            for latency_ns, times in Histogram.decode(base64.b64decode(encoded)).recorded():
                counts[bisect_left(BOUNDS_NS, latency_ns)] += times
                exponential[_place(latency_ns)] += times


def _place(latency_ns: int) -> int:
    """Place of a latency's exponential bucket; a bucket includes its upper end."""
    return math.ceil(math.log2(max(1, latency_ns) / 1e9) * 2**SCALE) - 1


def run_of(trial: Trial) -> Labels:
    """The label of a trial's run."""
    return (("run", trial.run_id),)


def labels_of(trial: Trial) -> Labels:
    """The labels of a trial: run, system and cell."""
    cell = trial.cell
    rate: Labels = () if cell.rate_per_s is None else (("rate", f"{cell.rate_per_s:g}"),)
    return (
        *run_of(trial),
        ("system", trial.system),
        ("workload", cell.workload),
        ("threads", str(cell.threads)),
        ("settings", cell.setting),
        *rate,
    )


def _of_processes(labels: Labels, reading: Reading) -> Samples:
    """Server and load generator; an endpoint's process is unseen and has no samples."""
    server, generator = reading.server, reading.generator
    samples: Samples = {}
    if server.threads:
        samples["dbdyno_server_cpu_seconds", labels] = server.cpu_s
        samples["dbdyno_server_resident_memory_bytes", labels] = server.rss_bytes
    if server.read_bytes is not None and server.written_bytes is not None:
        samples["dbdyno_server_read_bytes", labels] = server.read_bytes
        samples["dbdyno_server_written_bytes", labels] = server.written_bytes
    if generator.threads:
        samples["dbdyno_generator_cpu_seconds", labels] = generator.cpu_s
    return samples


def _of_host(run: Labels, reading: Reading) -> Samples:
    cpu_s = {
        "user": reading.cpu_user_s,
        "system": reading.cpu_system_s,
        "iowait": reading.cpu_iowait_s,
        "steal": reading.cpu_steal_s,
        "idle": reading.cpu_idle_s,
    }
    samples: Samples = {
        ("dbdyno_host_cpu_seconds", (*run, ("mode", mode))): seconds
        for mode, seconds in cpu_s.items()
    }
    for name, stalled_s in reading.pressure_s.items():
        resource, _, tasks = name.partition("_")
        labels: Labels = (*run, ("resource", resource), ("tasks", tasks))
        samples["dbdyno_host_pressure_seconds", labels] = stalled_s
    for kind, row in (("available", "MemAvailable"), ("dirty", "Dirty")):
        if row in reading.memory_bytes:
            samples[f"dbdyno_host_memory_{kind}_bytes", run] = reading.memory_bytes[row]
    for device, disk in reading.disks.items():
        labels = (*run, ("device", device))
        samples["dbdyno_host_disk_read_bytes", labels] = disk.read_bytes
        samples["dbdyno_host_disk_written_bytes", labels] = disk.written_bytes
        samples["dbdyno_host_disk_busy_seconds", labels] = disk.busy_s
    for device, network in reading.networks.items():
        labels = (*run, ("device", device))
        samples["dbdyno_host_network_received_bytes", labels] = network.received_bytes
        samples["dbdyno_host_network_sent_bytes", labels] = network.sent_bytes
    return samples


# The text format: a line for each sample, labels in quotes, a family's lines together.


def _histogram(latencies: Latencies) -> Iterator[str]:
    """Lines of a histogram; each bucket counts all latencies up to its bound."""
    labels, ends = latencies.labels, (*map(str, BOUNDS_S), "+Inf")
    for end, count in zip(ends, accumulate(latencies.counts), strict=True):
        yield _sample(f"{LATENCY}_bucket", (*labels, ("le", end)), count)
    yield _sample(f"{LATENCY}_sum", labels, latencies.sum_s)
    yield _sample(f"{LATENCY}_count", labels, sum(latencies.counts))


def _sample(name: str, labels: Labels, value: float) -> str:
    quoted = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{quoted}}} {value}" if quoted else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


# The page over HTTP.

PATH: Final = "/metrics"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN: Final = "text/plain; charset=utf-8"
ANSWER_S: Final = 5.0
"""Longest silence of a client before its connection is closed."""
LOOK_S: Final = 0.1
"""Seconds between two looks of the thread for the end of the run."""


class Scrape(BaseHTTPRequestHandler):
    """An HTTP request, answered from memory."""

    server: MetricsServer
    timeout: ClassVar[float | None] = ANSWER_S
    server_version = "dbdyno"
    sys_version = ""

    def do_GET(self) -> None:
        """Send the page, if the request names loopback as its host."""
        if not allows_host(self.headers.get("Host", "")):
            text = "This page answers to 127.0.0.1 and localhost.\n"
            self._send(HTTPStatus.MISDIRECTED_REQUEST, text, PLAIN)
        elif self.path.partition("?")[0] != PATH:
            self._send(HTTPStatus.NOT_FOUND, f"The metrics are at {PATH}\n", PLAIN)
        else:
            self._send(HTTPStatus.OK, self.server.metrics.page(), OPENMETRICS)

    def _send(self, status: HTTPStatus, text: str, kind: str) -> None:
        content = text.encode(errors="replace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: stderr is for the run's progress."""


class MetricsServer(TCPServer):
    """Answers scrapes on loopback, one at a time."""

    allow_reuse_address = True

    def __init__(self, metrics: LiveMetrics, port: int) -> None:
        super().__init__((LOOPBACK, port), Scrape)
        self.metrics = metrics

    def handle_error(self, request: object, client_address: object) -> None:
        """Forget a client without a word: it went away."""


@contextmanager
def served(metrics: LiveMetrics, port: int) -> Iterator[str]:
    """Serve the page for the length of the block; yields its address.

    Args:
        port: 0 for any free one.

    Raises:
        UsageError: the port is taken, not for this user, or no port.
    """
    try:
        server = MetricsServer(metrics, port)
    except (OSError, OverflowError) as error:
        raise UsageError(
            "metrics cannot be served there",
            wanted=f"{LOOPBACK}, port {port}",
            found=getattr(error, "strerror", None) or str(error),
            hint="choose another port for --prometheus, or 0 for any that is free",
        ) from error
    thread = threading.Thread(target=server.serve_forever, args=(LOOK_S,), daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_address[1]}{PATH}"
    finally:
        # A client that dribbles must not hold the end of a run: the thread ends with the process.
        threading.Thread(target=server.shutdown, daemon=True).start()
        thread.join(ANSWER_S)
        if not thread.is_alive():
            server.server_close()


def with_records(engine: Callable[..., Engine]) -> Callable[..., Engine]:
    """Have a load's engine send the record of each second, which holds its histograms."""

    def begin(do: str, spec: Mapping[str, Any], **others: object) -> Engine:
        return engine(do, {**spec, "tell_records": True}, **others)

    return begin
