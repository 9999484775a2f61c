"""Consistency of a trial's own numbers (docs/reference/findings.md, self-consistency).

Every count is taken over a window, and every connection has an event in flight at each of its two
edges. So no identity holds exactly: the tolerance of each check is the effect of the edges or its
limit, whichever is larger. A short window makes checks less sharp, never wrong. Statements per
event are sysbench's counts (read_write 20 statements, read_only 16, write_only 6, point_select 1)
under the workload's options.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from dbdyno.judge.checks.standstill import LOCK_WAIT_TIMEOUT
from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.measurement.measurement import Measurement, events_between_readings, kinds_of
from dbdyno.measurement.metric import KIND
from dbdyno.measurement.parts import Phase
from dbdyno.plan.known import Fact, known_of_trial
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import OptionValue
from dbdyno.plan.template import TRANSACTION, statement_counts
from dbdyno.plan.workload import MIXES, RANGES, TRANSACTIONS, WRITES, WorkloadPlan

ERROR_SHARE_MAX: Final = 0.001
"""Failed statements of all statements (docs/reference/findings.md, same work)."""
COUNTED_BY_SCRIPT: Final = "script"
"""The engine's code for an error counted by a script itself (`SB_CNT_ERROR`)."""
LITTLE_SHARE_MAX: Final = 0.01
"""Tolerance of N = X·R (docs/reference/findings.md)."""
STATEMENT_SHARE_MAX: Final = 0.001
"""Tolerance of statements against their invariant (docs/reference/findings.md)."""
COMMITS: Final = ("Com_commit", "statements_summary.Commit")
"""Servers' counters of commits: MySQL's, and TiDB's for its whole cluster."""
COMMIT_SHARE_MAX: Final = 0.005
"""Tolerance of the server's count of commits against the load's."""
STATUS_SKEW_S: Final = 0.5
"""Both readings of the server's counters together may lie so far from the window's edges."""


def errors(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void above the limit, else a note: failed statements as a share of all statements.

    A failure followed by a retry of the event counts for the note alone: a retry is the system's
    way to work under contention, the rate counts successes, and `retries` doubts it. The same holds
    for errors counted by a script itself, such as TPC-C's rolled-back orders: no statement failed.
    """
    by_code = measurement.errors
    if measurement.events == 0:  # a result: a standing server answers with this code
        by_code.pop(LOCK_WAIT_TIMEOUT, None)
    failed = sum(by_code.values())
    if failed == 0:
        return None
    restarts = sum(one.restarts for one in measurement.measured)
    for_good = max(0, failed - by_code.get(COUNTED_BY_SCRIPT, 0) - restarts)
    is_void = for_good > ERROR_SHARE_MAX * (failed + measurement.queries)
    share = (for_good if is_void else failed) / (failed + measurement.queries)
    return on_trial(
        measurement,
        "errors",
        Level.VOID if is_void else Level.NOTE,
        failed=for_good if is_void else failed,
        statements=failed + measurement.queries,
        share=share,
        limit=ERROR_SHARE_MAX,
        codes=dict(by_code),
    )


def little_law(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: in a closed loop, connections = throughput × mean latency (N = X·R), within 1 %.

    X·R is the sum of the completed events' latencies over the window's length. A connection which
    is never idle fills the window with its events, but the first of them may have begun before the
    window (too much) and the last may end behind it (too little). Each connection has at most one
    event across each edge. So it is off by edge / window at most, edge being the longest event to
    straddle either, and the same bound holds for the mean over connections. With equal latencies
    the error is N·R / window connections of N; after a stall at an edge it is larger. An event
    which never ended may have filled its connection's whole window.

    In an open loop connections may well be idle, and latency counts from before they are used.
    Where connections may rest between events, only too large a sum is wrong.
    """
    if measurement.trial.cell.rate_per_s is not None:
        return None
    connections = measurement.trial.cell.threads
    tolerance = LITTLE_SHARE_MAX + _edge_s(measurement) / measurement.window_s
    tolerance += _unfinished(measurement) / connections
    busy = sum(i.latency_ns_sum for i in measurement.measured) / 1e9 / measurement.window_s
    off = busy / connections - 1
    is_resting = known_of_trial(measurement, plan).has(Fact.RESTING)
    if abs(off) <= tolerance or (off < 0 and is_resting):
        return None
    return on_trial(
        measurement,
        "little-law",
        Level.VOID,
        rate_per_s=measurement.events / measurement.window_s,
        latency_ms=busy * measurement.window_s / measurement.events * 1e3,
        busy=busy,
        connections=connections,
        off=off,
        tolerance=tolerance,
    )


def _unfinished(measurement: Measurement) -> int:
    """Events still running when the load was given up after its drain."""
    last = measurement.intervals[-1]
    return last.in_flight if last.phase is Phase.DRAIN else 0


def _edge_s(measurement: Measurement) -> float:
    """The longest event, in seconds, which may have straddled an edge of the window.

    At the start: an event which ended in the window and is longer than the window then was. At the
    end: an event which ended in the drain; without a record of the drain, the longest of the last
    interval.
    """
    measured = measurement.measured
    start_s = measured[0].start_s
    before = [
        longest_s
        for interval in measured
        if (longest_s := interval.latency_ns_max / 1e9) >= interval.start_s - start_s
    ]
    drain = [i.latency_ns_max / 1e9 for i in measurement.intervals if i.phase is Phase.DRAIN]
    return max([*before, *(drain or [measured[-1].latency_ns_max / 1e9])])


def statements_of_event(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: statements per event are the workload's.

    Tolerated besides the error share: at each edge a connection may be within an event, which moves
    the difference by its statements less one at most, and a restarted event repeats at most all its
    own.
    """
    wanted = _statements_wanted(measurement, plan)
    if wanted is None:
        return None
    expected, longest = wanted
    restarts = sum(i.restarts for i in measurement.measured)
    edge = measurement.trial.cell.threads * (longest - 1)
    tolerance = STATEMENT_SHARE_MAX * expected + edge + restarts * longest
    tolerance += sum(measurement.errors.values())
    off = measurement.queries - expected
    if abs(off) <= tolerance:
        return None
    return on_trial(
        measurement,
        "statements-of-event",
        Level.VOID,
        statements=measurement.queries,
        events=measurement.events,
        per_event=measurement.queries / measurement.events,
        per_event_wanted=expected / measurement.events,
        off=off,
        tolerance=tolerance,
    )


def commits_at_server(measurement: Measurement, plan: Plan) -> Finding | None:
    """Doubtful: the server counted other commits than the load did (docs/reference/findings.md).

    The load's commits are counted between the two readings of the server's counters, since on a
    starved machine a reading can be seconds late. The skew allows for the second of each reading:
    the times of events within it are unknown. An event in flight at a reading may have committed at
    the server before its reply was counted.
    """
    per_event = commits_per_event(measurement, plan)
    status = measurement.server.status
    counter = next((name for name in COMMITS if name in status), None)
    if per_event == 0 or counter is None:
        return None
    seen = status[counter]
    least, most = (events * per_event for events in events_between_readings(measurement))
    count = round(min(max(seen, least), most))
    restarts = sum(i.restarts for i in measurement.measured)
    skew = count / measurement.window_s * STATUS_SKEW_S
    tolerance = COMMIT_SHARE_MAX * count + skew + 2 * measurement.trial.cell.threads + restarts
    off = seen - count
    if abs(off) <= tolerance:
        return None
    return on_trial(
        measurement,
        "commits-at-server",
        Level.DOUBTFUL,
        counter=counter,
        seen=seen,
        counted=count,
        off=off,
        share=off / max(count, 1),
        tolerance=tolerance,
    )


COMMITS_OF_POSTGRES: Final = "database.xact_commit"
COUNTED_LATE_S: Final = 1.0
"""A session of PostgreSQL reports its transactions at most so late."""
COMMITTED_SHARE_MIN: Final = 0.1


def uncommitted(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: the server committed hardly any of the events that write.

    A pooler may begin a transaction of its own and keep it open over many events, whose rows are
    lost when it ends. Only PostgreSQL counts transactions apart from statements.
    """
    seen, events = measurement.server.status.get(COMMITS_OF_POSTGRES), measurement.events
    if seen is None or not always_writes(measurement, plan):
        return None
    if measurement.window_s <= 2 * COUNTED_LATE_S or seen >= COMMITTED_SHARE_MIN * events:
        return None
    return on_trial(
        measurement,
        "uncommitted",
        Level.VOID,
        counter=COMMITS_OF_POSTGRES,
        seen=seen,
        events=events,
        share=seen / events,
        limit=COMMITTED_SHARE_MIN,
    )


OFF: Final = ("off", "false", "no", "0")
UPDATES: Final = ("oltp_update_index", "oltp_update_non_index")
PAIRED: Final = frozenset({"deletes", "inserts"})
"""Counted by the same option, `delete_inserts`: each deleted row is inserted again."""


class Left(Enum):
    """State of the loaded rows after a plan's workloads."""

    ALL_ROWS = "the very rows that were loaded"
    AS_MANY = "as many rows as were loaded"
    UNKNOWN = "other rows"


def leaves(plan: Plan) -> Left:
    """State of each table when every event of all workloads was whole or undone."""
    left = Left.ALL_ROWS
    for workload in plan.workloads:
        kinds = MIXES.get(workload.name, {}).keys()
        if not kinds or (kinds & PAIRED and not _commits(workload.name, _options(workload))):
            return Left.UNKNOWN
        if kinds & WRITES.keys():
            left = Left.AS_MANY
    return left


def always_writes(measurement: Measurement, plan: Plan) -> bool:
    """True if every event of the workload changes a row, and so must reach the log."""
    name, options = _workload(measurement, plan)
    if name in ("oltp_insert", *UPDATES):
        return True
    return name in TRANSACTIONS and any(
        times > 0 for kind, times in _mix(name, options).items() if kind in WRITES
    )


def _statements_wanted(measurement: Measurement, plan: Plan) -> tuple[int, int] | None:
    """Statements of the window's events, and statements of the longest kind of event.

    None where no invariant is known, as for a script not made of a template.
    """
    per_event = statements_per_event(measurement, plan)
    if per_event is not None:
        return per_event * measurement.events, per_event
    label, kinds = measurement.trial.cell.workload, kinds_of([measurement])
    script = next((one.script for one in plan.workloads if one.label == label), None)
    counts = statement_counts(script or "")
    if not kinds or not counts.keys() >= set(kinds):
        return None
    events = {kind: measurement.histogram(KIND + kind).count() for kind in kinds}
    if sum(events.values()) != measurement.events:
        return None
    return sum(counts[kind] * times for kind, times in events.items()), max(counts.values())


def statements_per_event(measurement: Measurement, plan: Plan) -> int | None:
    """Statements per event of the measured workload; None where no invariant is known."""
    name, options = _workload(measurement, plan)
    if name not in MIXES:
        return None
    return sum(_mix(name, options).values()) + TRANSACTION * _commits(name, options)


def commits_per_event(measurement: Measurement, plan: Plan) -> int:
    """COMMIT statements per event: 1 for a workload with transactions, else 0."""
    return _commits(*_workload(measurement, plan))


def _commits(name: str, options: Mapping[str, OptionValue]) -> int:
    return int(name in TRANSACTIONS and not _is_on(options.get("skip_trx", False)))


def _mix(name: str, options: Mapping[str, OptionValue]) -> Mapping[str, int]:
    """Statements of each kind in an event of a known workload under these options."""
    if name not in (*TRANSACTIONS, *UPDATES):  # of the others no option counts
        return MIXES[name]
    with_ranges = _is_on(options.get("range_selects", True))
    return {
        kind: int(options.get("delete_inserts" if kind in PAIRED else kind, times))
        for kind, times in MIXES[name].items()
        if with_ranges or kind not in RANGES
    }


def _workload(measurement: Measurement, plan: Plan) -> tuple[str, dict[str, OptionValue]]:
    """Name and options; a label the plan does not have (an imported log) is taken as the name."""
    label = measurement.trial.cell.workload
    for workload in plan.workloads:
        if workload.label == label:
            return workload.name, _options(workload)
    return label, {}


def _options(workload: WorkloadPlan) -> dict[str, OptionValue]:
    return {key.replace("-", "_"): value for key, value in workload.options.items()}


def _is_on(value: OptionValue) -> bool:
    return str(value).lower() not in OFF
