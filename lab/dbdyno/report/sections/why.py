"""The section "Why": where the time of a transaction goes, counters, query plans and settings.

Only cells in which a system is faster or slower have causes. Query plans and settings are those of
the whole run, the ones that can matter for its load first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dbdyno.judge.beside.causes import Causes, TimePart
from dbdyno.judge.beside.counters import EXPLAINS_MIN, Change
from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, count, name, phrase, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.plan import CELLS_FEW, Plan
from dbdyno.plan.workload import MIXES
from dbdyno.report.numbers import NONE, difference, interval, number, percentage
from dbdyno.report.parts import Column, Items, Paragraph, Part, Section, Table, numeric, table
from dbdyno.report.rows import compare, systems_of
from dbdyno.report.sections.limits import pools_of
from dbdyno.report.sections.settings import DIFFERENCES
from dbdyno.report.tell.causes import (
    COST,
    STATES,
    against,
    amount,
    by_difference,
    counter_name,
    different,
    group_name,
    of_changes,
    of_differences,
    of_factors,
)
from dbdyno.report.tell.measured import cell_title, cost_unit

ROWS_MAX: Final = 10
"""Most groups of threads, query plans and settings shown."""
VALUE_MAX: Final = 80
"""A longer query plan or value of a setting is cut."""

PARTS: Final[Mapping[str, Text]] = {
    "cpu": say("CPU"),
    "queued": say("waiting for a CPU"),
    "waiting": say("waiting for locks, disks and network"),
    "user": say("in user mode"),
    "kernel": say("in the kernel"),
}
"""Parts of a transaction's time and of its CPU."""
UNSURE: Final[Mapping[str, str]] = {
    "work": phrase("CPU per transaction: no certain effect on throughput ({change})"),
    "taken": phrase("CPU of other processes: no certain effect on throughput ({change})"),
    "waiting": phrase(
        "Waiting for locks, disks and network: no certain effect on throughput ({change})"
    ),
}
"""Factors with an interval that includes 1."""
EXPLAINED: Final = say(
    "For each cell with a difference: the factors of throughput, the time of a transaction, and "
    "the counters that differ. A counter that differs need not be a cause. The column “Can explain "
    "at most” has the largest share of the difference in a transaction's time for which it can "
    "account."
)


def why(plan: Plan, measurements: Sequence[Measurement], judgement: Judgement) -> Section:
    """Causes of every difference, then query plans and settings; empty without a difference."""
    heading = say("Why")
    if not different(judgement):
        return Section(heading, ())
    every = of_differences(judgement)
    cells = [_cell(causes, folded=len(every) > CELLS_FEW) for causes in every]
    head = [Paragraph(EXPLAINED)] if cells else []
    plans = _plans(plan, measurements)
    settings = _settings(plan, measurements, plans_differ=bool(plans))
    return Section(heading, (*head, *cells, *plans, *settings))


def _cell(causes: Causes, *, folded: bool) -> Section:
    """The likeliest counter and each factor in a sentence, then the numbers in tables."""
    first, baseline, system = causes.first, causes.baseline, causes.system
    likely = [of_changes(baseline, system, [first])] if isinstance(first, Change) else []
    lines = tuple(
        say("{sentence}.", sentence=text) for text in (*likely, *_factor_sentences(causes))
    )
    threads, states = map(by_difference, (causes.threads, causes.states))
    of_parts: tuple[tuple[Text, Sequence[TimePart], Mapping[str, Text]], ...] = (
        (say("Time of a transaction, µs"), causes.time, PARTS),
        (say("CPU of a transaction in user mode and in the kernel, µs"), causes.cpu, PARTS),
        (
            say("CPU of a transaction by group of threads, µs"),
            threads[:ROWS_MAX],
            {part.name: group_name(part, threads) for part in threads},
        ),
        (say("Time of a transaction by state of its connection, sampled, µs"), states, STATES),
    )
    parts: list[Part] = [Items(lines)] if lines else []
    parts += [
        _parts(caption, rows, labels, causes, folded=folded)
        for caption, rows, labels in of_parts
        if rows
    ]
    if causes.changes:
        parts.append(_changes(causes, folded=folded))
    elif causes.examined:
        parts.append(
            Paragraph(
                say(
                    "Of {counters}, none surely differs and can explain {share} of the difference.",
                    counters=count(causes.examined, "counter"),
                    share=percentage(EXPLAINS_MIN),
                )
            )
        )
    heading = say("{cell}: {text}", cell=cell_title(causes.cell), text=against(causes))
    return Section(heading, tuple(parts))


def _factor_sentences(causes: Causes) -> Iterator[Text]:
    """The effect of each factor on throughput by itself, or that it is not certain."""
    for factor in causes.factors:
        change = interval(factor.ratio, factor.low, factor.high)
        if factor.low <= 1 <= factor.high:
            yield say(UNSURE[factor.name], change=change)
        else:
            yield say(
                "{cause}: by itself this changes throughput by {change}",
                cause=of_factors(causes.baseline, causes.system, [factor]),
                change=change,
            )


def _parts(
    caption: Text,
    parts: Sequence[TimePart],
    labels: Mapping[str, Text],
    causes: Causes,
    *,
    folded: bool,
) -> Table:
    return table(
        caption,
        parts,
        (say("What"), lambda part: labels.get(part.name, name(part.name))),
        (numeric(name(causes.baseline)), lambda part: number(part.baseline_us)),
        (numeric(name(causes.system)), lambda part: number(part.system_us)),
        (
            numeric(say("Difference [95 %]")),
            lambda part: difference(part.difference_us, part.low_us, part.high_us),
        ),
        (numeric(say("Share of the difference")), lambda part: percentage(part.share)),
        folded=folded,
    )


def _changes(causes: Causes, *, folded: bool) -> Table:
    return table(
        say(
            "Counts per transaction that differ, the likeliest cause first ({counters} compared)",
            counters=count(causes.examined, "counter"),
        ),
        causes.changes,
        (say("Counter"), _counter),
        (numeric(name(causes.baseline)), lambda change: amount(change.baseline)),
        (numeric(name(causes.system)), lambda change: amount(change.system)),
        (numeric(say("Ratio [95 %]")), _ratio),
        (numeric(say("Can explain at most")), lambda change: percentage(change.explains)),
        folded=folded,
    )


def _counter(change: Change) -> Text:
    label = counter_name(change)
    if not change.is_cost:
        return label
    return say("{metric}, {unit}", metric=label, unit=cost_unit(COST[change.name]))


def _ratio(change: Change) -> Text:
    """A ratio with its interval: "× 1.91 [1.82, 2.03]"; a dash without a ratio."""
    if change.ratio is None:
        return NONE
    ratio = f"× {amount(change.ratio)}"
    if change.low is None or change.high is None:
        return name(ratio)
    return name(f"{ratio} [{amount(change.low)}, {amount(change.high)}]")


# Query plans and settings. Each pattern has the settings that can matter for a kind of load.

MATTERING: Final[Mapping[str, re.Pattern[str]]] = {
    "plans": re.compile(
        r"optimizer_\w+|enable_\w+|\w+_page_cost|cpu_\w+_cost|jit\w*|join_\w+|sort_buffer_size"
        r"|work_mem|innodb_stats_\w+|default_statistics_target|eq_range_index_dive_limit"
    ),
    "writes": re.compile(
        r"fsync|synchronous_commit|full_page_writes|commit_delay|(?:max|min)_wal_size|log_bin"
        r"|(?:wal|checkpoint|bgwriter|autovacuum)_\w+|(?:sync_)?binlog\w*|innodb_use_fdatasync"
        r"|innodb_(?:flush|doublewrite|io_capacity|log|redo_log|page_cleaners|max_dirty_pages"
        r"|adaptive_flushing|change_buffer|purge)\w*"
    ),
    "beyond memory": re.compile(
        r"shared_buffers|effective_cache_size|effective_io_concurrency|io_\w+|huge_pages"
        r"|innodb_(?:buffer_pool|read|random_read|lru|old_blocks)\w*"
    ),
    "any": re.compile(
        r"performance_schema|thread_\w+|query_cache_\w+|max_connections|table_open_cache\w*"
        r"|innodb_(?:thread|spin|sync|adaptive_hash|concurrency)\w*|general_log|slow_query_log"
    ),
}
"""Names of settings by the load for which they matter."""


def _plans(plan: Plan, measurements: Sequence[Measurement]) -> list[Table]:
    """Statements with another query plan on some system, the most frequent first."""
    ways = {
        m.trial.system: m.evidence.query_plans
        for m in measurements
        if m.failure is None and m.evidence.query_plans
    }
    systems = [label for label in systems_of(plan, measurements) if label in ways]
    kinds = dict.fromkeys(kind for label in systems for kind in ways[label])
    differing = sorted(
        (kind for kind in kinds if len({way[kind] for way in ways.values() if kind in way}) > 1),
        key=lambda kind: sum(MIXES.get(one.name, {}).get(kind, 0) for one in plan.workloads),
        reverse=True,
    )
    if not differing:
        return []
    columns = (Column(say("Statement")), *(Column(name(label)) for label in systems))
    rows = [
        (name(kind), *(_cut(name(ways[label].get(kind, NONE))) for label in systems))
        for kind in differing[:ROWS_MAX]
    ]
    return [Table(say("Query plans that differ"), columns, tuple(rows))]


def _settings(
    plan: Plan, measurements: Sequence[Measurement], *, plans_differ: bool
) -> tuple[Part, ...]:
    """Settings that differ and matter for the load; the section of settings has all."""
    compared, pools = compare(measurements, systems_of(plan, measurements)), pools_of(measurements)
    loads = {
        "plans": plans_differ,
        "writes": any(second.writes for m in measurements for second in m.measured),
        "beyond memory": bool(pools) and plan.dataset.bytes_about >= pools[0],
        "any": True,
    }
    patterns = [pattern for load, pattern in MATTERING.items() if loads[load]]
    rows = [row for one in patterns for row in compared.differing if one.fullmatch(row[0])]
    if not rows:
        return ()
    columns = (Column(say("Variable")), *(Column(name(system)) for system in compared.systems))
    shown = tuple((row[0], *_unlike(row[1:])) for row in rows[:ROWS_MAX])
    return (
        Table(say("Settings that can matter for this load, and differ"), columns, shown),
        Paragraph(say("All settings are compared under “{section}”.", section=DIFFERENCES)),
    )


def _unlike(values: Sequence[Text]) -> list[Text]:
    """Values side by side; of lists, such as `optimizer_switch`, only the items not on all."""
    lists = [value.split(",") for value in values]
    shared = set.intersection(*map(set, lists))
    if not shared:
        return [_cut(value) for value in values]
    unlike = (", ".join(item for item in items if item not in shared) for items in lists)
    return [_cut(name(text or NONE)) for text in unlike]


def _cut(value: Text) -> Text:
    return value if len(value) <= VALUE_MAX else name(f"{value[:VALUE_MAX].rstrip()}…")
