"""The likeliest cause of a difference in a line.

    mysql:8.0.15 syncs files 96 times as often per transaction (0.960 against 0.0100 syncs); this
    can explain up to the whole difference

The subject is the system with more of it, whichever of the two is slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from dbdyno.judge.beside.causes import Causes, Factor, TimePart
from dbdyno.judge.beside.counters import CPU, Change
from dbdyno.judge.beside.functions import Functions
from dbdyno.judge.judgement import Judgement
from dbdyno.judge.verdict import Verdict, Word
from dbdyno.language.words import Said, count, listed, name, phrase, say
from dbdyno.measurement.cost import COSTS
from dbdyno.measurement.parts import CLIENT, COMMIT, CONNECTION, EXECUTING, ROW_LOCK, UNNAMED
from dbdyno.report.numbers import number, signed
from dbdyno.report.tell.measured import cell_title, cost_label, cost_unit

LINES_MAX: Final = 3
"""Most causes told on stdout; the report's section "Why" has them all."""
WHOLE_FROM: Final = 0.995
"""From this share on a counter can explain up to the whole difference."""
COST: Final = {cost.name: cost for cost in COSTS}

MORE: Final[Mapping[str, str]] = {
    "server_cpu_us": phrase("{system} uses {times} times the CPU per transaction"),
    "rows_read": phrase("{system} reads {times} times the rows per transaction"),
    "rows_changed": phrase("{system} changes {times} times the rows per transaction"),
    "read_kb": phrase("{system} reads {times} times the data per transaction"),
    "written_kb": phrase("{system} writes {times} times the data per transaction"),
    "log_kb": phrase("{system} writes {times} times the log per transaction"),
    "storage_read_kb": phrase("{system} reads {times} times the data from storage per transaction"),
    "storage_written_kb": phrase(
        "{system} hands {times} times the data to the kernel per transaction"
    ),
    "syncs": phrase("{system} syncs files {times} times as often per transaction"),
    "disk_flushes": phrase("{system} flushes disks {times} times as often per transaction"),
    "switches": phrase("{system} switches threads {times} times as often per transaction"),
    "replies_kb": phrase("{system} sends {times} times the data to the client per transaction"),
}
"""A cost by which the named system exceeds the other."""
COUNTS_MORE: Final = phrase("{system} has {times} times the {counter} per transaction")
ALONE: Final = phrase("{system} alone has {counter}")
WAITS: Final = phrase("{system} waits longer for locks, disks or the network")
LOST_CPU: Final = phrase("{system} lost CPU to other processes")
WHOLE: Final = phrase("{cause}; this can explain up to the whole difference")
PART: Final = phrase("{cause}; this can explain at most {share} of the difference")
THREADS: Final[Mapping[str, Said]] = {
    CONNECTION: say("connection threads"),
    UNNAMED: say("threads without a name"),
    "other": say("other threads"),
    "ib_log_writer": say("log writer"),
    "ib_log_wr_notif": say("log write notifier"),
    "ib_log_flush": say("log flusher"),
    "ib_log_fl_notif": say("log flush notifier"),
    "ib_log_checkpt": say("checkpoints"),
    "ib_pg_flush_co": say("page cleaner"),
    "ib_pg_flush": say("workers of the page cleaner"),
    "ib_io_rd": say("reads of pages"),
    "ib_io_wr": say("writes of pages"),
    "ib_src_main": say("main thread of InnoDB"),
    "ib_srv_purge": say("purge"),
    "ib_srv_wkr": say("workers of the purge"),
    "walwriter": say("WAL writer"),
    "checkpointer": say("checkpoints"),
    "autovacuum": say("autovacuum"),
}
"""Groups of threads of MySQL and PostgreSQL; others have only the server's own names."""
STATES: Final[Mapping[str, Said]] = {
    CLIENT: say("waiting for the next statement (network, load generator)"),
    EXECUTING: say("executing (CPU, pages, latches)"),
    COMMIT: say("committing"),
    ROW_LOCK: say("waiting for a row lock"),
    "other": say("other states"),
}
"""States of connections; others have the server's own names."""
UNEXPLAINED: Final[Mapping[str, str]] = {
    "work": phrase("{cause}; `dbdyno explain RUN` shows in which functions"),
    "taken": phrase("{cause}; measure again when the machine is quiet"),
    "waiting": phrase("{cause}; no counter explains half of it"),
}
"""A factor that no counter explains."""
SHARE_MOST: Final = 0.5
"""Above this share a group of threads has most of a difference."""
SAMPLED: Final = phrase("{cause}; “Functions” in the report has the functions that differ")


def different(judgement: Judgement) -> list[Verdict]:
    """Verdicts by which a system is faster or slower."""
    return [one for one in judgement.verdicts if one.word in (Word.BETTER, Word.WORSE)]


def of_differences(judgement: Judgement) -> list[Causes]:
    """Causes of the cells in which a system is faster or slower."""
    return [one for one in judgement.causes if one.is_different]


def likeliest(judgement: Judgement, most: int = LINES_MAX) -> list[Said]:
    """A line for each likeliest cause, cells with the same one together; the commonest first."""
    groups: dict[tuple[str, ...], list[Causes]] = {}
    for causes in of_differences(judgement):
        if (first := causes.first) is not None:
            kind = (type(first).__name__, first.name)
            way = (str(_is_more(first)), str(first.ratio is None))
            groups.setdefault((causes.baseline, causes.system, *kind, *way), []).append(causes)
    ordered = sorted(groups.values(), key=len, reverse=True)
    cells = len(different(judgement))
    is_sampled = bool(judgement.functions)
    return [
        _line(group, is_whole=len(group) == cells, is_sampled=is_sampled)
        for group in ordered[:most]
    ]


def _line(group: Sequence[Causes], *, is_whole: bool, is_sampled: bool) -> Said:
    cause = _likeliest_of(group, is_sampled=is_sampled)
    if is_whole:
        return say("Why: {cause}.", cause=cause)
    where = cell_title(group[0].cell) if len(group) == 1 else count(len(group), "cell")
    return say("Why, in {where}: {cause}.", where=where, cause=cause)


def _likeliest_of(group: Sequence[Causes], *, is_sampled: bool) -> Said:
    """The likeliest cause of cells that share it; `is_sampled` with functions of the servers."""
    baseline, system = group[0].baseline, group[0].system
    firsts = [one.first for one in group]
    changes = [one for one in firsts if isinstance(one, Change)]
    if changes and changes[0].name != CPU:
        return of_changes(baseline, system, changes)
    factors = [one for one in firsts if isinstance(one, Factor)]
    kind = factors[0].name if factors else "work"
    sentence = SAMPLED if is_sampled and kind == "work" else UNEXPLAINED[kind]
    if factors:
        cause = of_factors(baseline, system, factors)
    else:
        cause = _of_counts(baseline, system, changes)
    return say(sentence, cause=_with_threads(cause, group) if kind == "work" else cause)


def _with_threads(cause: Said, group: Sequence[Causes]) -> Said:
    """Add the group of threads with most of the difference in CPU, if all cells have the same."""
    largest = [max(one.threads, key=_sure_share, default=None) for one in group]
    parts = [part for part in largest if part is not None and _sure_share(part) > SHARE_MOST]
    if len(parts) < len(group) or len({part.name for part in parts}) > 1:
        return cause
    shares = sorted(min(1.0, _sure_share(part)) for part in parts)
    low, high = (number(share * 100, 0) for share in (shares[0], shares[-1]))
    return say(
        "{cause}, {share} % of the difference in {threads}",
        cause=cause,
        share=low if low == high else say("{low} to {high}", low=low, high=high),
        threads=group_name(parts[0], group[0].threads),
    )


def _sure_share(part: TimePart) -> float:
    """A part's share of the difference; 0 if it may not differ."""
    return part.share if part.is_sure and part.share is not None else 0.0


def group_name(part: TimePart, groups: Sequence[TimePart]) -> Said:
    """Words for a group of threads among the groups of a server."""
    if part.name == UNNAMED and any(one.name == CONNECTION for one in groups):
        return say("background threads")
    return THREADS.get(part.name, name(part.name))


def of_changes(baseline: str, system: str, changes: Sequence[Change]) -> Said:
    """The same counter of a cell or several, and how much of the difference it can explain."""
    shares = [one.explains for one in changes]
    return say(
        WHOLE if min(shares) >= WHOLE_FROM else PART,
        cause=_of_counts(baseline, system, changes),
        share=f"{max(shares) * 100:.0f} %",
    )


def _of_counts(baseline: str, system: str, changes: Sequence[Change]) -> Said:
    """The system that counts more; of a single cell with both counts."""
    first = changes[0]
    more = system if _is_more(first) else baseline
    factors = [max(one.ratio, 1 / one.ratio) for one in changes if one.ratio]
    if first.ratio is None:
        cause = say(ALONE, system=more, counter=counter_name(first))
    elif first.is_cost:
        cause = say(MORE[first.name], system=more, times=_times(factors))
    else:
        cause = say(COUNTS_MORE, system=more, times=_times(factors), counter=first.name)
    if len(changes) > 1:
        return cause
    low, high = (amount(value) for value in sorted((first.baseline, first.system)))
    if not first.is_cost:
        return say("{cause} ({high} against {low})", cause=cause, high=high, low=low)
    unit = cost_unit(COST[first.name])
    return say("{cause} ({high} against {low} {unit})", cause=cause, high=high, low=low, unit=unit)


def of_factors(baseline: str, system: str, factors: Sequence[Factor]) -> Said:
    """The same factor of one cell or several, told of the system that it slows down."""
    slowed = baseline if _is_more(factors[0]) else system
    if factors[0].name == "work":
        used = [max(one.ratio, 1 / one.ratio) for one in factors]
        return say(MORE["server_cpu_us"], system=slowed, times=_times(used))
    return say(LOST_CPU if factors[0].name == "taken" else WAITS, system=slowed)


def counter_name(change: Change) -> Said:
    """A cost's words, or the server's own name of a counter."""
    return cost_label(COST[change.name]) if change.is_cost else name(change.name)


def amount(value: float) -> Said:
    """Three significant digits, however small: "0.0104", "36.0", "2 000"."""
    decimals = 2 - math.floor(math.log10(abs(value))) if value else 0
    return number(value, max(decimals, 0))


def _is_more(first: Change | Factor) -> bool:
    """True if the system counts more than the baseline; of a factor, if it makes it faster."""
    if isinstance(first, Change):
        return first.system > first.baseline
    return first.ratio > 1


def _times(factors: Iterable[float]) -> Said:
    """How many times, or the range over several cells: "2.1", "1.9 to 2.3"."""
    ends = sorted(factors)
    low, high = (number(end, _decimals(end)) for end in (ends[0], ends[-1]))
    return low if low == high else say("{low} to {high}", low=low, high=high)


def _decimals(factor: float) -> int:
    """Decimals of a factor as people say it: "1.04", "2.1", "96"."""
    if factor < 2:
        return 2
    return 1 if factor < 10 else 0


# Functions, in a run with sampled stacks.

FUNCTIONS_MAX: Final = 3
"""Most functions or states told in a line; the report has more."""
SAMPLED_UNIT: Final = {
    "perf": say("CPU µs per transaction"),
    "gdb": say("µs of all threads per transaction"),
}


def of_samples(judgement: Judgement) -> list[Said]:
    """First lines of a run with samples: no measurement; functions and states that differ."""
    if all(finding.check != "sampled-stacks" for finding in judgement.findings):
        return []
    slowed = say(
        "Sampling stacks slowed the servers: this run shows which functions differ; take "
        "throughput and latency from another run."
    )
    sampled = [one for one in judgement.causes if any(part.is_sure for part in one.states)]
    return [slowed, *map(_of_functions, judgement.functions), *map(_of_states, sampled)]


def by_difference(parts: Sequence[TimePart]) -> list[TimePart]:
    """The parts in their order, the largest difference first."""
    return sorted(parts, key=lambda part: abs(part.difference_us), reverse=True)


def _of_states(causes: Causes) -> Said:
    """The states that differ most: "…: committing +212 (µs of a transaction's time)"."""
    sure = [part for part in by_difference(causes.states) if part.is_sure]
    return say(
        "{cell}, {compared}: {states} (µs of a transaction's time).",
        cell=cell_title(causes.cell),
        compared=against(causes),
        states=_largest((STATES.get(one.name, name(one.name)), one.difference_us) for one in sure),
    )


def _largest(differences: Iterable[tuple[Said, float]]) -> Said:
    """The first of these differences by name: "committing +212, executing −30"."""
    return listed(
        say("{name} {difference}", name=what, difference=signed(us))
        for what, us in islice(differences, FUNCTIONS_MAX)
    )


def _of_functions(of_cell: Functions) -> Said:
    """The functions that differ most: "…: row_search_mvcc +12.31, memcpy +4.02 (CPU µs …)"."""
    if not of_cell.functions:
        return alike(of_cell)
    return say(
        "{cell}, {compared}: {functions} ({unit}; more under “Functions” in the report).",
        cell=cell_title(of_cell.cell),
        compared=against(of_cell),
        functions=_largest((name(one.name), one.difference_us) for one in of_cell.functions),
        unit=SAMPLED_UNIT[of_cell.sampler],
    )


def alike(of_cell: Functions) -> Said:
    """That no function surely differs."""
    return say(
        "{cell}, {compared}: none of {functions} surely differs.",
        cell=cell_title(of_cell.cell),
        compared=against(of_cell),
        functions=count(of_cell.examined, "function"),
    )


def against(of_cell: Causes | Functions) -> Said:
    """The two systems: "mysql:9.7.1 against mysql:5.7.44"."""
    return say("{system} against {baseline}", system=of_cell.system, baseline=of_cell.baseline)
