"""Makes valid measurements with chosen throughput and latency, for the tests of every room.

A made trial is self-consistent as a real one is: latencies obey Little's law unless told otherwise,
statements follow the workload's invariant, the server's counters agree with the load. A test then
breaks just the one thing it is about.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from dbdyno.measurement.measurement import (
    EVENT,
    SERVICE,
    Cell,
    EngineFacts,
    Measurement,
    ServerFacts,
    Trial,
)
from dbdyno.measurement.metric import KIND
from dbdyno.measurement.parts import (
    DiskSample,
    Interval,
    NetworkSample,
    Phase,
    ProcessWork,
    StatusSeries,
    ThreadWork,
    WatchSample,
)
from dbdyno.plan.load import LoadPlan
from dbdyno.plan.plan import DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.plan.workload import WorkloadPlan
from support.fake_engine import STATEMENTS
from support.made_latencies import latencies

A = "mysql:5.7.22"
B = "mysql:8.0.15"
SETTINGS = {
    "innodb_flush_log_at_trx_commit": "1",
    "sync_binlog": "1",
    "log_bin": "OFF",
    "innodb_doublewrite": "ON",
    "innodb_flush_method": "O_DIRECT",
    "innodb_buffer_pool_size": "268435456",
    "performance_schema": "OFF",
}


def plan(
    systems: tuple[str, ...] = (A, B),
    workloads: tuple[str, ...] = ("oltp_read_write",),
    threads: tuple[int, ...] = (8,),
    blocks: int = 5,
    margin: float = 0.02,
    window_s: float = 10,
    warmup_s: float = 2,
    options: dict[str, bool | int | float | str] | None = None,
    **parts: Any,
) -> Plan:
    """A small plan over MySQL systems named by their references; `parts` as in `with_parts`."""
    made = Plan(
        title="made",
        systems=tuple(SystemPlan(label=s, reference=s) for s in systems),
        workloads=tuple(WorkloadPlan(name=w, label=w, options=options or {}) for w in workloads),
        load=LoadPlan(threads=threads),
        trial=TrialPlan(warmup_s=warmup_s, window_s=window_s),
        design=DesignPlan(blocks=blocks, margin=margin),
    )
    return with_parts(made, **parts)


def with_parts(made: Plan, **parts: Any) -> Plan:
    """The plan with other parts; of a part given as a dict only these fields are others."""
    update = {
        name: getattr(made, name).model_copy(update=part) if isinstance(part, dict) else part
        for name, part in parts.items()
    }
    return made.model_copy(update=update)


def measurement(
    system: str = A,
    block: int = 0,
    threads: int = 8,
    tps: float = 1000.0,
    *,
    workload: str = "oltp_read_write",
    setting: str = "default",
    latency_ms: float | None = None,
    spread: float = 0.3,
    window_s: int = 10,
    warmup_s: int = 2,
    sequence: int | None = None,
    position: int = 0,
    failure: str | None = None,
    errors: dict[str, int] | None = None,
    restarts: int = 0,
    statements: tuple[int, int, int] | None = None,
    settings: dict[str, str] | None = None,
    status: dict[str, float] | None = None,
    cpu_share_max: float = 0.2,
    server_cpu_s: float | None = None,
    steal: float = 0.0,
    other_cpu: float = 0.0,
    host_cores: int = 4,
    rates: tuple[float, ...] | None = None,
    histograms: bool = True,
) -> Measurement:
    """One trial with `tps` events a second and the latency Little's law then demands.

    Args:
        latency_ms: mean event latency; threads / tps unless given.
        spread: standard deviation of ln latency.
        errors: failed statements by code, all in the first measured second.
        statements: (reads, writes, others) an event; the workload's invariant unless given.
        settings, status: laid over the made ones; a status of NaN removes that counter.
        steal, other_cpu: host CPU stolen and taken by other processes, in cores.
        rates: events of each measured second; `tps` in each unless given.
    """
    per_event = statements or STATEMENTS.get(workload, (1, 0, 0))
    rates = rates or (tps,) * window_s
    mean_ms = latency_ms if latency_ms is not None else threads / (sum(rates) / len(rates)) * 1e3
    cell = Cell(workload=workload, threads=threads, setting=setting)
    counts = _whole_events((tps,) * warmup_s) + _whole_events(rates)
    intervals = tuple(
        _interval(second, warmup_s, events, mean_ms, spread, per_event, histograms)
        for second, events in enumerate(counts)
    )
    first = intervals[warmup_s].model_copy(update={"errors": errors or {}, "restarts": restarts})
    intervals = (*intervals[:warmup_s], first, *intervals[warmup_s + 1 :])
    events = sum(counts[warmup_s:])
    queries = events * sum(per_event)
    cpu_s = server_cpu_s if server_cpu_s is not None else queries * 40e-6
    return Measurement(
        trial=Trial(
            run_id="run-1",
            sequence=sequence if sequence is not None else block,
            block=block,
            position=position,
            system=system,
            cell=cell,
            seed=1 + block,
        ),
        started_at="2026-11-21T06:00:00+00:00",
        warmup_s=warmup_s,
        window_s=window_s,
        engine=EngineFacts(
            version="0.1.0",
            reactor="epoll",
            threads=1,
            cpu_s=cpu_share_max * window_s,
            cpu_share_max=cpu_share_max,
            distribution="uniform",
            prepared_statements=True,
        ),
        server=ServerFacts(
            version=system.partition(":")[2] or system,
            settings={**SETTINGS, **(settings or {})},
            status=_status(queries, events, window_s, threads, per_event[2] > 0, status or {}),
            cpu_s=cpu_s,
            pid=4000 + block,
            process=ProcessWork(
                read_bytes=0,
                written_bytes=events * 40_000,
                switches_voluntary=events * 30,
                switches_involuntary=events * 6,
            ),
        ),
        intervals=intervals,
        watch=tuple(
            watch_sample(
                second, host_cores, cpu_s / window_s, cpu_share_max, steal, other_cpu
            ).model_copy(update={"disk_flushes_per_s": 0.4 / threads * events / window_s})
            for second in range(len(counts))
        ),
        status_seconds=_status_seconds(len(counts), queries / window_s),
        failure=failure,
    )


def stood_still(system: str = B, block: int = 0, **named: Any) -> Measurement:
    """A trial in which eight events ran from beginning to end and nothing was ever answered."""
    made = measurement(system, block, tps=0, latency_ms=1, histograms=False, **named)
    silent = tuple(one.model_copy(update={"in_flight": 8}) for one in made.intervals)
    last = silent[-1]
    given_up = {"phase": Phase.DRAIN, "start_s": last.end_s, "end_s": last.end_s + 30}
    drain = last.model_copy(update={**given_up, "silence_ns_max": 42_000_000_000})
    return changed(made, intervals=(*silent, drain))


def pairs(
    ratios: tuple[float, ...],
    *,
    tps: float = 1000.0,
    systems: tuple[str, str] = (A, B),
    **same: object,
) -> list[Measurement]:
    """One block a ratio: the first system at `tps`, the second at `tps` times the ratio."""
    made = []
    for block, ratio in enumerate(ratios):
        for position, (system, rate) in enumerate(zip(systems, (tps, tps * ratio), strict=True)):
            place = {"block": block, "position": position, "sequence": 2 * block + position}
            made.append(measurement(system, tps=rate, **place, **same))  # type: ignore[arg-type]
    return made


def changed(made: Measurement, **fields: object) -> Measurement:
    """The same trial with other fields."""
    return made.model_copy(update=fields)


def unseen(made: Measurement, process: Literal["server", "generator"] = "server") -> Measurement:
    """The same trial where that process cannot be read, as an endpoint's or one of a fleet."""
    zeros: dict[str, Any] = {"server_read_bytes_per_s": None, "server_written_bytes_per_s": None}
    zeros |= {"server_cpu": 0.0, "server_rss_bytes": 0, "server_threads": 0}
    if process == "generator":
        zeros = {"generator_cpu": 0.0, "generator_rss_bytes": 0}
    watch = tuple(one.model_copy(update=zeros) for one in made.watch)
    if process == "generator":
        return changed(made, watch=watch)
    unread = {"pid": None, "cpu_s": 0.0, "process": None, "threads": {}}
    server = made.server.model_copy(update=unread)
    return changed(made, watch=watch, server=server)


def with_threads(made: Measurement, shares: dict[str, float]) -> Measurement:
    """The same trial whose server's CPU these groups of threads share; 70 % is in user mode."""
    threads = {}
    for group, share in shares.items():
        cpu_s = share * made.server.cpu_s
        threads[group] = ThreadWork(user_s=0.7 * cpu_s, system_s=0.3 * cpu_s, queued_s=0.1 * cpu_s)
    return changed(made, server=made.server.model_copy(update={"threads": threads}))


def with_kinds(made: Measurement, shares: dict[str, float]) -> Measurement:
    """The same measurement of a script that calls these shares of its events by these names."""
    intervals = []
    for one in made.intervals:
        mean_ns = one.latency_ns_sum // max(one.events, 1)
        kinds = {
            KIND + kind: latencies(round(one.events * share), mean_ns, 0.3)[0]
            for kind, share in shares.items()
        }
        intervals.append(one.model_copy(update={"histograms": {**one.histograms, **kinds}}))
    return changed(made, intervals=tuple(intervals))


def with_trial(made: Measurement, **fields: Any) -> Measurement:
    """The same measurement of a trial with other fields; `rate_per_s` is its cell's."""
    if "rate_per_s" in fields:
        rate = {"rate_per_s": fields.pop("rate_per_s")}
        fields["cell"] = made.trial.cell.model_copy(update=rate)
    return changed(made, trial=made.trial.model_copy(update=fields))


def _whole_events(rates: tuple[float, ...]) -> list[int]:
    ends = [round(sum(rates[: i + 1])) for i in range(len(rates))]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _interval(
    second: int,
    warmup_s: int,
    events: int,
    mean_ms: float,
    spread: float,
    per_event: tuple[int, int, int],
    histograms: bool,
) -> Interval:
    blob, total_ns, least_ns, most_ns = latencies(events, round(mean_ms * 1e6), spread)
    return Interval(
        phase=Phase.WARMUP if second < warmup_s else Phase.MEASURED,
        start_s=second,
        end_s=second + 1,
        events=events,
        reads=events * per_event[0],
        writes=events * per_event[1],
        others=events * per_event[2],
        bytes_received=events * 3000,
        bytes_sent=events * 900,
        latency_ns_sum=total_ns,
        latency_ns_min=least_ns,
        latency_ns_max=most_ns,
        histograms={EVENT: blob, SERVICE: blob} if histograms else {},
    )


def _status(
    queries: int,
    events: int,
    window_s: float,
    threads: int,
    transactions: bool,
    given: dict[str, float],
) -> dict[str, float]:
    made = {
        "Uptime": float(math.ceil(window_s)),
        "Questions": float(queries + 4),
        "Innodb_rows_read": events * 414.0,
        "Innodb_rows_inserted": events * 1.0,
        "Innodb_rows_updated": events * 2.0,
        "Innodb_rows_deleted": events * 1.0,
        "Innodb_data_read": 0.0,
        "Innodb_data_written": events * 9_000.0,
        "Innodb_data_fsyncs": events * 0.5,
        "Innodb_os_log_written": events * 2_000.0,
        "Innodb_os_log_fsyncs": events * max(0.4, 1 / threads),  # one answers all, at most
    }
    if transactions:
        made["Com_commit"] = float(events)
    return {name: v for name, v in {**made, **given}.items() if not math.isnan(v)}


def _status_seconds(seconds: int, queries_per_s: float) -> StatusSeries:
    return StatusSeries(
        at_s=tuple(second + 0.5 for second in range(seconds)),
        took_ms=(2.0,) * seconds,
        server_cpu_ms=0.4,
        counters={
            "Questions": tuple(queries_per_s * second for second in range(seconds)),
            "Threads_running": (4.0,) * seconds,
        },
    )


def with_replicas(measured: Measurement, cpu: float) -> Measurement:
    """The measurement with replicas that use `cpu` cores."""
    watch = tuple(s.model_copy(update={"replicas_cpu": cpu}) for s in measured.watch)
    return changed(measured, watch=watch)


def watch_sample(
    second: int, cores: int, server: float, generator: float, steal: float, other: float
) -> WatchSample:
    """A second of a host: its cores, and CPU of server, generator, hypervisor and others."""
    busy = server + generator + other
    return WatchSample(
        at_s=second + 0.5,
        host_cpu_user=busy * 0.7,
        host_cpu_system=busy * 0.3,
        host_cpu_iowait=0.0,
        host_cpu_steal=steal,
        host_cpu_idle=max(0.0, cores - busy - steal),
        memory_available_bytes=2_000_000_000,
        disk_read_bytes_per_s=0.0,
        disk_written_bytes_per_s=1_000_000.0,
        disk_writes_per_s=100.0,
        disk_flushes_per_s=50.0,
        pressure_cpu_some=0.2,
        pressure_io_some=0.1,
        pressure_memory_some=0.0,
        server_cpu=server,
        server_rss_bytes=500_000_000,
        generator_cpu=generator,
        watch_cpu=0.005,
        disks={"vda": _disk()},
        networks={"lo": _network()},
    )


def _disk() -> DiskSample:
    return DiskSample(
        reads_per_s=0.0,
        writes_per_s=100.0,
        read_bytes_per_s=0.0,
        written_bytes_per_s=1_000_000.0,
        busy=0.05,
        write_ms_avg=0.2,
        flushes_per_s=50.0,
    )


def _network() -> NetworkSample:
    return NetworkSample(
        received_bytes_per_s=4e6,
        sent_bytes_per_s=4e6,
        received_packets_per_s=2e4,
        sent_packets_per_s=2e4,
        dropped_per_s=0.0,
    )
