"""Sections with results: verdicts, numbers of every cell, server CPU, findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.judgement import Judgement
from dbdyno.judge.wording import sentence
from dbdyno.language.words import Text, capital, count, name, say
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.metric import BY_NAME, PRIMARY, TABLE, Metric
from dbdyno.plan.plan import Plan
from dbdyno.report.numbers import NONE, TOO_FEW, change_with_interval, metric_value, number
from dbdyno.report.parts import (
    Column,
    Entries,
    Entry,
    Paragraph,
    Part,
    Section,
    Table,
    numeric,
)
from dbdyno.report.rows import (
    Attempt,
    Ladder,
    cells_of,
    ladders,
    level_of,
    sound_trials,
    systems_of,
)
from dbdyno.report.sections.conclusion import accounted, meaning

CPU_METRIC: Final = "server_cpu_us_per_query"
EVIDENCE_MAX: Final = {Level.VOID: 6, Level.DOUBTFUL: 6, Level.NOTE: 2}
"""Lines of evidence shown of one kind of finding; report.json has them all."""
WEIGHT: Final = (Level.VOID, Level.DOUBTFUL, Level.NOTE)


def verdicts(judgement: Judgement) -> Section:
    """Every verdict as a sentence with its meaning and what weakens it."""
    entries = tuple(
        Entry(
            mark=verdict.word.said,
            heading=name(verdict.cell.title),
            text=say("{sentence}.", sentence=sentence(verdict)),
            lines=(
                meaning(verdict),
                *accounted(judgement, verdict),
                *(capital(reason) for reason in verdict.reasons),
            ),
        )
        for verdict in judgement.verdicts
    )
    return Section(say("Verdicts"), (Entries(entries),) if entries else ())


def numbers(plan: Plan, measurements: Sequence[Measurement], judgement: Judgement) -> Section:
    """One table for each cell: every metric of every system, with ratios to the baseline."""
    systems = systems_of(plan, measurements)
    tables = [
        _cell_table(cell, systems, judgement)
        for cell in cells_of(plan, measurements)
        if any(value.cell == cell for value in judgement.values)
    ]
    if not tables:
        nothing = say("No trial is usable, so there are no numbers.")
        return Section(say("Numbers"), (Paragraph(nothing),))
    explained = say(
        "TPS and QPS are transactions and statements per second; the others are latencies of "
        "one transaction, and server CPU time. A value is merged over all sound trials{changes}.",
        changes=_changes(systems[0]) if len(systems) > 1 else name(""),
    )
    return Section(say("Numbers"), (Paragraph(explained), *tables))


def _changes(baseline: str) -> Text:
    return say(
        "; a change is against {baseline}, the geometric mean of the ratios within blocks, with "
        "its 95 % interval in brackets, and “{too_few}” where no block by itself has them; it need "
        "not be the quotient of the two values, since each block weighs alike",
        baseline=baseline,
        too_few=TOO_FEW,
    )


def _cell_table(cell: Cell, systems: Sequence[str], judgement: Judgement) -> Table:
    baseline, *others = systems
    columns = [Column(say("Metric")), Column(say("Unit")), numeric(name(baseline))]
    for system in others:
        columns += [numeric(name(system)), _change_column(system, others)]
    rows = []
    for metric in TABLE:
        row = [name(metric.label), name(metric.unit)]
        row.append(metric_value(judgement.value(cell, baseline, metric.name), metric))
        for system in others:
            row.append(metric_value(judgement.value(cell, system, metric.name), metric))
            row.append(change_of(judgement, cell, system, metric))
        rows.append(tuple(row))
    return Table(name(cell.title), tuple(columns), tuple(rows))


def _change_column(system: str, others: Sequence[str]) -> Column:
    if len(others) == 1:
        return numeric(say("Change [95 %]"))
    return numeric(say("{system} change [95 %]", system=system))


def change_of(judgement: Judgement, cell: Cell, system: str, metric: Metric) -> Text:
    """The ratio with its interval, and on how many blocks it rests if the verdict has others."""
    estimate = judgement.estimate(cell, system, metric.name)
    text = change_with_interval(estimate)
    primary = judgement.estimate(cell, system, PRIMARY.name)
    if estimate is None or primary is None:
        return text
    if estimate.blocks == 0:
        return TOO_FEW if metric.quantile is not None and primary.blocks else text
    if estimate.blocks == primary.blocks:
        return text
    return say("{change} ({blocks})", change=text, blocks=count(estimate.blocks, "block"))


def server_cpu(plan: Plan, attempts: Sequence[Attempt]) -> Section:
    """What the server paid in CPU time, beside what the load generator took."""
    rows = tuple(_cpu_row(*group) for group in sound_trials(plan, attempts))
    columns = (
        Column(say("Cell")),
        Column(say("System")),
        numeric(say("µs per query")),
        numeric(say("µs per transaction")),
        numeric(say("server, cores busy")),
        numeric(say("generator, cores busy")),
    )
    caption = say("CPU time of the server process in the measured window")
    return Section(say("Server CPU"), (Table(caption, columns, rows),) if rows else ())


def _cpu_row(cell: Cell, system: str, trials: Sequence[Measurement]) -> tuple[Text, ...]:
    server_s = sum(m.server.cpu_s for m in trials)
    window_s = sum(m.window_s for m in trials)
    events = sum(m.events for m in trials)
    queries = sum(m.queries for m in trials)
    generator_s = sum(m.engine.cpu_s for m in trials)
    return (
        name(cell.title),
        name(system),
        number(server_s * 1e6 / queries, 1) if queries else NONE,
        number(server_s * 1e6 / events, 1) if events else NONE,
        number(server_s / window_s) if window_s else NONE,
        number(generator_s / window_s) if window_s else NONE,
    )


def findings(judgement: Judgement) -> Section:
    """Every kind of finding once, the gravest first, with evidence and advice."""
    if not judgement.findings:
        nothing = say("No check found anything to object to.")
        return Section(say("Findings"), (Paragraph(nothing),))
    groups: dict[tuple[Level, str, str], list[Finding]] = {}
    for level in WEIGHT:
        for finding in judgement.findings:
            if finding.level is level:
                groups.setdefault((level, finding.check, finding.advice), []).append(finding)
    entries = tuple(_finding_entry(group) for group in groups.values())
    levels = [finding.level for finding in judgement.findings]
    head: Part = Paragraph(
        say(
            "{findings}: {void} void, {doubtful} doubtful, {note} note. A void trial does not "
            "count; a doubtful one counts and is named beside the verdict.",
            findings=count(len(levels), "finding"),
            **{level.value: levels.count(level) for level in WEIGHT},
        )
    )
    return Section(say("Findings"), (head, Entries(entries)))


def _finding_entry(group: Sequence[Finding]) -> Entry:
    first = group[0]
    times = f" ({len(group)}×)" if len(group) > 1 else ""
    lines = list(dict.fromkeys(map(_evidence, group)))
    most = EVIDENCE_MAX[first.level]
    if len(lines) > most + 1:
        more = say("and {count} more, all in {file}", count=len(lines) - most, file="report.json")
        lines = [*lines[:most], more]
    return Entry(
        mark=first.level.said,
        heading=name(f"{first.check}{times}"),
        text=say("Advice: {advice}.", advice=first.advice),
        lines=tuple(lines),
    )


def _evidence(finding: Finding) -> Text:
    if not finding.place:
        return name(finding.evidence)
    return say("{place}: {evidence}", place=finding.place, evidence=finding.evidence)


# Tables as benchmarks publish them, a row for each load level and a column for each system, with
# the change and its interval.

SHOWN: Final = tuple(
    BY_NAME[name]
    for name in (
        "transactions_per_s",
        "queries_per_s",
        "latency_ms_avg",
        "latency_ms_p95",
        "latency_ms_p99",
    )
)
"""What publications print; `numbers` has every metric."""


def tables(plan: Plan, measurements: Sequence[Measurement], judgement: Judgement) -> Section:
    """A table for each ladder and metric; empty without a usable trial."""
    systems = systems_of(plan, measurements)
    seen = {value.cell for value in judgement.values}
    made = [
        _table(ladder, metric, systems, judgement)
        for ladder in ladders(cells_of(plan, measurements))
        if any(cell in seen for cell in ladder.cells)
        for metric in SHOWN
    ]
    heading = say("Throughput and latency")
    if not made:
        return Section(heading, ())
    head = say(
        "In the form of published reports: a row for each load level, a column for each system. "
        "Values are merged over all sound trials."
    )
    against = say(
        "{head} A change is against {baseline}, each with a 95 % interval of its own.",
        head=head,
        baseline=systems[0],
    )
    return Section(heading, (Paragraph(against if len(systems) > 1 else head), *made))


def _table(ladder: Ladder, metric: Metric, systems: Sequence[str], judgement: Judgement) -> Table:
    others = systems[1:]
    columns = (
        numeric(ladder.load_title),
        *(numeric(name(system)) for system in systems),
        *(_change_column(system, others) for system in others),
    )
    rows = tuple(
        (
            level_of(cell),
            *(
                metric_value(judgement.value(cell, system, metric.name), metric)
                for system in systems
            ),
            *(change_of(judgement, cell, system, metric) for system in others),
        )
        for cell in ladder.cells
    )
    caption = say(
        "{metric}, {unit}: {ladder}", metric=metric.label, unit=metric.unit, ladder=ladder.title
    )
    return Table(caption, columns, rows)
