"""The tables of an export and every column in them, in the order in which they are written."""

from __future__ import annotations

from typing import Final

from dbdyno.export.columns import Column, TableDefinition, integer, number, text
from dbdyno.measurement.metric import TABLE, Metric

KEYS: Final = (
    text("run_id", "the run"),
    integer("sequence", "the trial's place in the run, from 0"),
    integer("attempt", "0, or how often the trial had been tried before"),
    integer("block", "the block, from 0: systems are compared within one"),
    integer("position", "place of the system within the block, from 0"),
    text("system", "the system's label"),
    text("control", "`same`, `planted` (docs/how-it-works/controls.md), `pilot`; else empty"),
    text("workload", "the workload's label"),
    integer("threads", "connections of the load"),
    number("rate_per_s", "events due in a second of an open loop; none in a closed one"),
    text("setting", "the combination of settings; `default` without an axis"),
    text("state", "`sound`: it counts; `void`, `failed` or `repeated`: it does not"),
)
"""Columns with which every table begins; run_id, sequence and attempt name a trial."""
AT: Final = number("at_s", "seconds since the load began: the middle of what the row is about")
PHASE: Final = text("phase", "`warmup`, `measured` or `drain`: only `measured` is judged")


def _metric(metric: Metric) -> Column:
    return number(metric.name, f"{metric.label}, {metric.unit}; empty with too few requests")


TRIALS: Final = TableDefinition(
    "trials",
    "one attempt at a trial",
    (
        text("why", "why it does not count; empty if it does"),
        text("started_at", "ISO 8601 with offset"),
        integer("seed", "of the request stream; the same for all systems of a block"),
        number("warmup_s", "load before the window"),
        number("window_s", "the measured window as it was"),
        integer("events", "transactions completed in the window"),
        integer("queries", "statements answered without error"),
        integer("errors", "statements that failed"),
        *map(_metric, TABLE),
        text("server_version", "as the server says it"),
        number("server_cpu_s", "CPU of the server's process in the window"),
        integer("server_read_bytes", "fetched from storage for the process"),
        integer("server_written_bytes", "sent to storage by the process"),
        integer("server_switches_voluntary", "context switches to wait for something"),
        integer("server_switches_involuntary", "context switches by force"),
        text("engine_version", "the load generator"),
        text("engine_reactor", "io_uring or epoll"),
        integer("engine_threads", "threads of the generator"),
        number("engine_cpu_s", "CPU of the generator in the window"),
        number("engine_cpu_share_max", "of its busiest thread, 0 to 1"),
        number("status_cpu_ms", "server CPU of one reading of its counters, before the load"),
        text("dataset", "digest of the rows that were loaded; empty where nobody took it"),
        number("until_steady_s", "load that ran before the warm-up until it was steady"),
        text("steady", "`yes`, `no`, or empty without such a load"),
    ),
)
PROCEDURE: Final = TableDefinition(
    "procedure",
    "one thing done to the server before the trial",
    (
        integer("step", "its place, from 0"),
        text("name", "such as `restore`, `start`, `settle`"),
        number("seconds", "how long it took"),
        text("done", "`yes`, or `no` where it could not be done, or not to its end"),
        text("detail", "what it came to, or why it was not done"),
    ),
)
INTERVALS: Final = TableDefinition(
    "intervals",
    "one second of load",
    (
        PHASE,
        number("start_s", "seconds since the load began"),
        number("end_s", "seconds since the load began"),
        integer("events", "transactions completed"),
        integer("reads", "statements that read"),
        integer("writes", "statements that write"),
        integer("others", "BEGIN, COMMIT and the like"),
        integer("errors", "statements that failed"),
        integer("restarts", "transactions begun again"),
        integer("reconnects", "connections opened again"),
        integer("arrivals", "transactions that fell due by schedule"),
        integer("backlog", "due and not begun at the end"),
        integer("in_flight", "running at the end"),
        number("silence_ms_max", "longest stretch without any answer"),
        integer("bytes_received", "replies"),
        integer("bytes_sent", "requests"),
        number("latency_ms_avg", "mean latency of transactions"),
        number("latency_ms_min", "least"),
        number("latency_ms_p50", "median of this second; empty with too few requests"),
        number("latency_ms_p95", "as above: p95 takes 2000 transactions in the second"),
        number("latency_ms_p99", "as above: 10 000; never average percentiles"),
        number("latency_ms_max", "greatest"),
    ),
)
WATCH: Final = TableDefinition(
    "watch",
    "one second of the machine; CPU in cores (seconds per second)",
    (
        PHASE,
        AT,
        number("length_s", "how long the second was"),
        number("host_cpu_user", "nice included"),
        number("host_cpu_system", "interrupts included"),
        number("host_cpu_irq", "hardware interrupts, within system"),
        number("host_cpu_softirq", "software interrupts, within system"),
        number("host_cpu_iowait", "idle while a disk request was open"),
        number("host_cpu_steal", "given to others by the hypervisor"),
        number("host_cpu_idle", "idle"),
        number("cpu_mhz", "mean of the cores' clocks"),
        number("throttled_per_s", "periods in which a CPU quota held back server or generator"),
        number("thermal_events_per_s", "times that a core was slowed down because it was hot"),
        number("swap_pages_per_s", "pages moved to or from swap"),
        number("pressure_cpu_some", "share of time in which a task waited for a CPU"),
        number("pressure_io_some", "share in which a task waited for I/O"),
        number("pressure_io_full", "share in which all tasks waited for I/O"),
        number("pressure_memory_some", "share in which a task waited for memory"),
        number("pressure_memory_full", "share in which all tasks waited for memory"),
        integer("memory_available_bytes", "of the host, at the second's end"),
        integer("memory_cached_bytes", "page cache"),
        integer("memory_dirty_bytes", "page cache that waits to be written"),
        integer("swap_used_bytes", "swap in use"),
        number("disk_read_bytes_per_s", "all whole disks"),
        number("disk_written_bytes_per_s", "all whole disks"),
        number("disk_writes_per_s", "write requests completed"),
        number("disk_flushes_per_s", "flush requests completed"),
        number("server_cpu", "the server's process, all threads and forks"),
        integer("server_rss_bytes", "resident memory, shared pages once"),
        integer("server_threads", "threads"),
        number("server_read_bytes_per_s", "from storage"),
        number("server_written_bytes_per_s", "to storage"),
        number("server_switches_per_s", "context switches; empty where it was not time to count"),
        number("generator_cpu", "the load generator"),
        integer("generator_rss_bytes", "resident memory"),
        number("generator_switches_per_s", "context switches"),
        number("watch_cpu", "what these readings took"),
    ),
)
DISKS: Final = TableDefinition(
    "watch_disks",
    "one disk, one second",
    (
        PHASE,
        AT,
        text("device", "the kernel's name"),
        number("reads_per_s", "requests completed"),
        number("writes_per_s", "requests completed"),
        number("read_bytes_per_s", "bytes"),
        number("written_bytes_per_s", "bytes"),
        number("busy", "share of time with a request open"),
        number("read_ms_avg", "mean time of a read; empty without one"),
        number("write_ms_avg", "mean time of a write; empty without one"),
        number("flushes_per_s", "flush requests completed"),
    ),
)
NETWORKS: Final = TableDefinition(
    "watch_networks",
    "one network device, one second",
    (
        PHASE,
        AT,
        text("device", "the kernel's name; `lo` is loopback"),
        number("received_bytes_per_s", "bytes"),
        number("sent_bytes_per_s", "bytes"),
        number("received_packets_per_s", "packets"),
        number("sent_packets_per_s", "packets"),
        number("dropped_per_s", "dropped or faulty packets of both directions"),
    ),
)
STATUS: Final = TableDefinition(
    "status",
    "one counter of the server at one reading",
    (
        PHASE,
        AT,
        number("took_ms", "how long this reading's answer took"),
        text("name", "the server's own name of the counter"),
        number("value", "as the server told it"),
        number("per_s", "growth a second since the reading before; empty for the first"),
    ),
)
SETTINGS: Final = TableDefinition(
    "settings",
    "one variable in effect; secrets are left out",
    (text("name", "the variable"), text("value", "as the server told it")),
)
REPLICATION: Final = TableDefinition(
    "replication",
    "one number of a primary and its replicas over the window",
    (text("name", "such as `commits_acknowledged`"), number("value", "as its name says")),
)
COSTS: Final = TableDefinition(
    "costs",
    "one cost of a transaction",
    (
        text("cost", "such as `server_cpu_us`; [what each means](costs.md)"),
        text("unit", "of the value"),
        number("per_event", "per transaction"),
        text("counted_by", "the counter; the same for all trials of a cell where all have it"),
    ),
)
TABLES: Final = (
    TRIALS,
    PROCEDURE,
    INTERVALS,
    WATCH,
    DISKS,
    NETWORKS,
    STATUS,
    SETTINGS,
    REPLICATION,
    COSTS,
)
