"""The parts of a measurement: seconds of load and of the machine, steps before it, evidence.

A field the machine does not report (no pressure files, a process of another user) is None, never
zero: unknown is not nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

SECRET: Final = re.compile(r".*password$")
"""Names of settings whose value is neither stored nor shown."""


class Noun(BaseModel):
    """A frozen value that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FiniteNoun(Noun):
    """A noun with finite numbers only, as JSON has no others."""

    model_config = ConfigDict(allow_inf_nan=False)


class Phase(StrEnum):
    """Phase of an interval; only MEASURED enters rates and percentiles."""

    WARMUP = "warmup"
    MEASURED = "measured"
    DRAIN = "drain"


class Interval(Noun):
    """A second of load seen by the engine, or the shorter rest at the end.

    Attributes:
        start_s, end_s: seconds since the load began.
        events: events completed; reads, writes, others: statements by effect.
        errors: failed statements by error code; errors counted by a script as `script`.
        restarts: events begun again after an ignorable error.
        reconnects: lost connections opened again.
        arrivals: events due by schedule; backlog: events due and not begun at its end.
        in_flight: events running at its end.
        silence_ns_max: longest stretch of running events without an answer on any connection, from
            the begin of its phase on, that ended in this second; 0 in an imported log.
        latency_ns_sum, latency_ns_min, latency_ns_max: exact, of completed events.
        histograms: HDR V2 blobs by name (EVENT, SERVICE, a statement kind).
    """

    phase: Phase
    start_s: float
    end_s: float
    events: int
    reads: int
    writes: int
    others: int
    errors: dict[str, int] = {}
    restarts: int = 0
    reconnects: int = 0
    arrivals: int = 0
    backlog: int = 0
    in_flight: int = 0
    silence_ns_max: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    latency_ns_sum: int = 0
    latency_ns_min: int = 0
    latency_ns_max: int = 0
    histograms: Annotated[dict[str, bytes], Field(exclude=True, repr=False)] = {}

    @property
    def queries(self) -> int:
        """Statements that got a reply without error."""
        return self.reads + self.writes + self.others


class Step(Noun):
    """A step of the procedure between two measured windows.

    Attributes:
        name: restore, drop caches, start, purge binary logs, settle, warm up.
        seconds: duration.
        done: False if the step could not be completed.
        detail: result, or reason of a failure.
    """

    name: str
    seconds: float
    done: bool = True
    detail: str = ""


class DiskSample(Noun):
    """A second of a disk; None without requests, or on an old kernel that does not count."""

    reads_per_s: float = Field(description="read requests completed")
    writes_per_s: float = Field(description="write requests completed")
    read_bytes_per_s: float = Field(description="bytes read")
    written_bytes_per_s: float = Field(description="bytes written")
    busy: float = Field(description="share of time in which a request was open, 0 to 1")
    read_ms_avg: float | None = Field(
        None, description="mean time of a read; empty if there was none"
    )
    write_ms_avg: float | None = Field(
        None, description="mean time of a write; empty if there was none"
    )
    flushes_per_s: float | None = Field(None, description="cache flush requests completed")


class NetworkSample(Noun):
    """A second of a network device."""

    received_bytes_per_s: float = Field(description="bytes received")
    sent_bytes_per_s: float = Field(description="bytes sent")
    received_packets_per_s: float = Field(description="packets received")
    sent_packets_per_s: float = Field(description="packets sent")
    dropped_per_s: float = Field(description="packets dropped or faulty, received and sent")


class WatchSample(Noun):
    """Host, server and generator in one second: CPU is in cores (seconds per second).

    A field's description is its column's in an export. A value the machine does not report is None.
    Disks are summed over whole disks, each counted once; `disks` and `networks` are by device.

    Attributes:
        at_s: middle of the second, counted from the load's begin.
    """

    at_s: float
    length_s: float = Field(
        1.0, description="actual length of this second; longer on a busy machine"
    )
    host_cpu_user: float = Field(description="CPU time in user mode, including nice")
    host_cpu_system: float = Field(description="CPU time in the kernel, including interrupts")
    host_cpu_irq: float = Field(
        0.0, description="CPU time of hardware interrupts, part of `host_cpu_system`"
    )
    host_cpu_softirq: float = Field(
        0.0, description="CPU time of software interrupts, part of `host_cpu_system`"
    )
    host_cpu_iowait: float = Field(description="idle time while a disk request was open")
    host_cpu_steal: float = Field(
        description="CPU time that the hypervisor gave to other virtual machines"
    )
    host_cpu_idle: float = Field(description="idle time")
    cpu_mhz: float | None = Field(None, description="mean clock rate of the cores")
    throttled_per_s: float | None = Field(
        None, description="periods in which a CPU quota held back server or load generator"
    )
    thermal_events_per_s: float | None = Field(
        None, description="times that a core was slowed down because it was hot"
    )
    swap_pages_per_s: float | None = Field(None, description="pages moved to or from swap")
    pressure_cpu_some: float | None = Field(
        None, description="share of time in which a task waited for a CPU"
    )
    pressure_io_some: float | None = Field(
        None, description="share of time in which a task waited for I/O"
    )
    pressure_io_full: float | None = Field(
        None, description="share of time in which all tasks waited for I/O"
    )
    pressure_memory_some: float | None = Field(
        None, description="share of time in which a task waited for memory"
    )
    pressure_memory_full: float | None = Field(
        None, description="share of time in which all tasks waited for memory"
    )
    memory_available_bytes: int = Field(description="available memory at the second's end")
    memory_cached_bytes: int | None = Field(None, description="size of the page cache")
    memory_dirty_bytes: int | None = Field(
        None, description="part of the page cache that is not yet written to disk"
    )
    swap_used_bytes: int | None = Field(None, description="swap in use")
    disk_read_bytes_per_s: float = Field(description="bytes read, sum over all disks")
    disk_written_bytes_per_s: float = Field(description="bytes written, sum over all disks")
    disk_writes_per_s: float = Field(description="write requests completed, all disks")
    disk_flushes_per_s: float | None = Field(
        None, description="cache flush requests completed, all disks"
    )
    server_cpu: float = Field(
        description="CPU time of the server's process, threads and child processes"
    )
    server_rss_bytes: int = Field(
        description="resident memory of the server, shared pages counted once"
    )
    server_threads: int | None = Field(None, description="number of the server's threads")
    server_read_bytes_per_s: float | None = Field(
        None, description="bytes that the server read from storage"
    )
    server_written_bytes_per_s: float | None = Field(
        None, description="bytes written to storage for the server"
    )
    server_switches_per_s: float | None = Field(
        None, description="context switches of the server; empty in seconds without a reading"
    )
    generator_cpu: float = Field(description="CPU time of the load generator")
    generator_rss_bytes: int | None = Field(
        None, description="resident memory of the load generator"
    )
    generator_switches_per_s: float | None = Field(
        None, description="context switches of the load generator"
    )
    replicas_cpu: float | None = Field(
        None, description="CPU time of replicas and simulated network; empty without replicas"
    )
    watch_cpu: float | None = Field(
        None, description="CPU time that dbdyno spent on these readings"
    )
    disks: dict[str, DiskSample] = {}
    networks: dict[str, NetworkSample] = {}

    def is_seen(self, process: Literal["server", "generator"]) -> bool:
        """True if the server's process was readable: alive and on this machine.

        Otherwise its other numbers are stored as zeros.
        """
        of = {"server": self.server_rss_bytes, "generator": self.generator_rss_bytes}
        return of[process] != 0


def mean_over_time(
    samples: Sequence[WatchSample], read: Callable[[WatchSample], float | None]
) -> float | None:
    """Mean of the known values, weighted by the samples' lengths; None without any.

    On a starved machine a sample can take ten seconds.
    """
    known = [(value, s.length_s) for s in samples if (value := read(s)) is not None]
    seconds = sum(length_s for _, length_s in known)
    return sum(value * length_s for value, length_s in known) / seconds if seconds > 0 else None


class ProcessWork(Noun):
    """Activity of the server's process in the measured window, besides CPU.

    Attributes:
        read_bytes, written_bytes: fetched from and sent to the storage, not to the page cache.
        switches_voluntary: context switches of all threads to wait for something;
            switches_involuntary: preemptions. None if threads cannot be read.
    """

    read_bytes: int | None = None
    written_bytes: int | None = None
    switches_voluntary: int | None = None
    switches_involuntary: int | None = None

    @property
    def switches(self) -> int | None:
        """Voluntary and involuntary switches; None if unknown."""
        if self.switches_voluntary is None or self.switches_involuntary is None:
            return None
        return self.switches_voluntary + self.switches_involuntary


CONNECTION: Final = "connection"
"""Group of the threads that serve connections: MySQL's own name of them."""
UNNAMED: Final = "unnamed"
"""Group of all threads that are named like their program."""


class ThreadWork(Noun):
    """CPU and queueing of a group of the server's threads in the measured window, in seconds.

    Attributes:
        user_s, system_s: CPU in user mode and in the kernel.
        queued_s: ready to run while others had the CPUs; None where the kernel does not count it.
    """

    user_s: float
    system_s: float
    queued_s: float | None = None


STACKS_MAX: Final = 100_000
STACK_LENGTH_MAX: Final = 20_000
STATES_MAX: Final = 1000
STATE_LENGTH_MAX: Final = 64
SAMPLES_MAX: Final = 10**12
"""Limits of a profile, far above those of real ones, since it may come from a stranger."""


class StackProfile(FiniteNoun):
    """Stacks of the server's threads, sampled in the measured window of a trial.

    Attributes:
        sampler: `perf` samples threads on a CPU, `gdb` all threads at moments.
        period_us: CPU time (`perf`) or time (`gdb`) for which a sample stands.
        window_s: length of the sampled part of the window; events: transactions within it.
        sampler_cpu_s: CPU seconds of the sampler itself.
        stacks: number of samples of each stack, folded: group of threads, then functions from the
            outermost to the innermost, joined by semicolons.
    """

    sampler: Literal["perf", "gdb"]
    period_us: Annotated[float, Field(gt=0, le=1e9)]
    window_s: Annotated[float, Field(ge=0)]
    events: Annotated[float, Field(ge=0)]
    sampler_cpu_s: Annotated[float, Field(ge=0)]
    stacks: Annotated[
        dict[
            Annotated[str, Field(max_length=STACK_LENGTH_MAX)],
            Annotated[int, Field(ge=0, le=SAMPLES_MAX)],
        ],
        Field(max_length=STACKS_MAX),
    ]


CLIENT, EXECUTING, COMMIT, ROW_LOCK = "client", "executing", "commit", "row lock"
"""States of connections that all products share; others go by the server's own name."""


class StateProfile(FiniteNoun):
    """States of the load's connections, sampled in the measured window of a trial.

    Attributes:
        samples: number of moments.
        connections: mean number of connections in each state, such as `commit`.
    """

    samples: Annotated[int, Field(ge=1)]
    connections: Annotated[
        dict[Annotated[str, Field(max_length=STATE_LENGTH_MAX)], Annotated[float, Field(ge=0)]],
        Field(max_length=STATES_MAX),
    ]


class StatusSeries(Noun):
    """The server's own counters, read once a second on an extra connection.

    Columns, not rows: `at_s`, `took_ms` and every list in `counters` have one entry a reading.

    Attributes:
        at_s: middle of the reading, counted from the load's begin.
        took_ms: duration of the answer; part of the cost of watching.
        server_cpu_ms: server CPU of one reading, measured before the load; None if unknown.
        counters: the server's values by name; None for a counter missing in a reading.
        trouble: reason for missing readings, else None.
    """

    at_s: tuple[float, ...] = ()
    took_ms: tuple[float, ...] = ()
    server_cpu_ms: float | None = None
    counters: dict[str, tuple[float | None, ...]] = {}
    trouble: str | None = None


class Probe(Noun):
    """The machine at rest, a moment before an arm.

    Attributes:
        cpu_ms: the shortest of several runs of the same piece of arithmetic.
        sync_ms: median time to write a page and sync it to disk; None if impossible.
    """

    cpu_ms: float
    sync_ms: float | None = None


class TrialEvidence(Noun):
    """Observations around a trial, stored so that doubts can be settled later from the store alone.

    Unobserved fields are empty; no value is a guess.

    Attributes:
        probe: of the trial's arm.
        ceiling_per_s: events/s of this workload reached by the same generator in the same run on a
            server that answers at once, with `ceiling_threads` connections.
        query_plans: execution plan of each kind of statement, by its name, on this system.
        rows_after: rows of each table after the system's last trial of the run.
        dataset_after: digest of those rows, comparable with `Measurement.dataset`.
        irq_apart: True if the kernel counts interrupts apart from the processes that they stop;
            None if unknown.
        script_check: result of the command `check` of the trial's script on the rows left by the
            trial: `holds`, `broken`, or the reason why it failed; empty without such a command.
    """

    probe: Probe | None = None
    ceiling_per_s: float | None = None
    ceiling_threads: int | None = None
    query_plans: dict[str, str] = {}
    rows_after: dict[str, int] = {}
    dataset_after: str = ""
    irq_apart: bool | None = None
    script_check: str = ""


class Kill(Noun):
    """A load of single commits, a kill -9 in the midst of it, and the rows left after the restart.

    Attributes:
        acknowledged: commits answered by the server; `kept`: acknowledged rows found afterwards.
        unanswered: rows found without an acknowledgement, at most one a connection.
        load_s, recovery_s: from the first commit to the kill; from the start to the first answer.
        counted: commits between the two readings of `server_flushes` and `disk_flushes`.
        server_flushes: the server's count of log syncs; None if not counted.
        disk_flushes: the machine's count of disk cache flushes; None if not counted.
    """

    acknowledged: int
    kept: int
    unanswered: int = 0
    load_s: float
    recovery_s: float
    counted: int = 0
    server_flushes: float | None = None
    disk_flushes: float | None = None


class KilledServer(Noun):
    """Commits of a system that survived kill -9 (`dbdyno prove-durability`).

    Attributes:
        settings: all effective variables, as in `ServerFacts`.
        connections: number of connections that sent commits at the same time.
    """

    system: str
    version: str
    settings: Annotated[dict[str, str], Field(repr=False)]
    connections: int
    kills: tuple[Kill, ...]
