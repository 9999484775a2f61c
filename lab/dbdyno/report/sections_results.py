"""Sections with results: verdicts, numbers of every cell, server CPU, findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.judge import Finding, Judgement, Level, sentence
from dbdyno.measurement import Cell, Measurement
from dbdyno.metric import PRIMARY, TABLE, Metric
from dbdyno.plan import Plan
from dbdyno.report.meaning import meaning
from dbdyno.report.numbers import NONE, TOO_FEW, change_with_interval, count, metric_value, number
from dbdyno.report.parts import Column, Entries, Entry, Paragraph, Part, Section, Table
from dbdyno.report.trials import Attempt, cells_of, sound, systems_of

CPU_METRIC: Final = "server_cpu_us_per_query"
EVIDENCE_MAX: Final = {Level.VOID: 6, Level.DOUBTFUL: 6, Level.NOTE: 2}
"""Lines of evidence shown of one kind of finding; report.json has them all."""
WEIGHT: Final = (Level.VOID, Level.DOUBTFUL, Level.NOTE)


def verdicts(judgement: Judgement) -> Section:
    """Every verdict as a sentence with its meaning and what weakens it."""
    entries = tuple(
        Entry(
            mark=verdict.word.value,
            heading=verdict.cell.title,
            text=f"{sentence(verdict)}.",
            lines=(meaning(verdict), *(f"{_capital(reason)}." for reason in verdict.reasons)),
        )
        for verdict in judgement.verdicts
    )
    return Section("Verdicts", (Entries(entries),) if entries else ())


def numbers(plan: Plan, measurements: Sequence[Measurement], judgement: Judgement) -> Section:
    """One table for each cell: every metric of every system, with ratios to the baseline."""
    systems = systems_of(plan, measurements)
    tables = [
        _cell_table(cell, systems, judgement)
        for cell in cells_of(plan, measurements)
        if any(value.cell == cell for value in judgement.values)
    ]
    if not tables:
        return Section("Numbers", (Paragraph("No trial is usable, so there are no numbers."),))
    explained = (
        "TPS and QPS are transactions and statements per second; the others are latencies of "
        "one transaction, and server CPU time. A value is merged over all sound trials"
    )
    if len(systems) > 1:
        explained += (
            f"; a change is against {systems[0]}, the geometric mean of the ratios within blocks, "
            f"with its 95 % interval in brackets, and “{TOO_FEW}” where no block by itself has "
            "them; it need not be the quotient of the two values, since each block weighs alike"
        )
    return Section("Numbers", (Paragraph(f"{explained}."), *tables))


def _cell_table(cell: Cell, systems: Sequence[str], judgement: Judgement) -> Table:
    baseline, *others = systems
    columns = [Column("Metric"), Column("Unit"), Column(baseline, numeric=True)]
    for system in others:
        change = "Change [95 %]" if len(others) == 1 else f"{system} change [95 %]"
        columns += [Column(system, numeric=True), Column(change, numeric=True)]
    rows = []
    for metric in TABLE:
        row = [metric.label, metric.unit]
        row.append(metric_value(judgement.value(cell, baseline, metric.name), metric))
        for system in others:
            row.append(metric_value(judgement.value(cell, system, metric.name), metric))
            row.append(change_of(judgement, cell, system, metric))
        rows.append(tuple(row))
    return Table(cell.title, tuple(columns), tuple(rows))


def change_of(judgement: Judgement, cell: Cell, system: str, metric: Metric) -> str:
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
    return f"{text} ({count(estimate.blocks, 'block')})"


def server_cpu(plan: Plan, attempts: Sequence[Attempt]) -> Section:
    """What the server paid in CPU time, beside what the load generator took."""
    measurements = [attempt.measurement for attempt in attempts]
    rows = [
        row
        for cell in cells_of(plan, measurements)
        for system in systems_of(plan, measurements)
        if (row := _cpu_row(cell, system, sound(attempts, cell, system)))
    ]
    columns = (
        Column("Cell"),
        Column("System"),
        Column("µs per query", numeric=True),
        Column("µs per transaction", numeric=True),
        Column("server, cores busy", numeric=True),
        Column("generator, cores busy", numeric=True),
    )
    caption = "CPU time of the server process in the measured window"
    return Section("Server CPU", (Table(caption, columns, tuple(rows)),) if rows else ())


def _cpu_row(cell: Cell, system: str, trials: Sequence[Measurement]) -> tuple[str, ...] | None:
    if not trials:
        return None
    server_s = sum(m.server.cpu_s for m in trials)
    window_s = sum(m.window_s for m in trials)
    events = sum(m.events for m in trials)
    queries = sum(m.queries for m in trials)
    generator_s = sum(m.engine.cpu_s for m in trials)
    return (
        cell.title,
        system,
        number(server_s * 1e6 / queries, 1) if queries else NONE,
        number(server_s * 1e6 / events, 1) if events else NONE,
        number(server_s / window_s) if window_s else NONE,
        number(generator_s / window_s) if window_s else NONE,
    )


def findings(judgement: Judgement) -> Section:
    """Every kind of finding once, the gravest first, with evidence and advice."""
    if not judgement.findings:
        return Section("Findings", (Paragraph("No check found anything to object to."),))
    groups: dict[tuple[Level, str, str], list[Finding]] = {}
    for level in WEIGHT:
        for finding in judgement.findings:
            if finding.level is level:
                groups.setdefault((level, finding.check, finding.advice), []).append(finding)
    entries = tuple(_finding_entry(group) for group in groups.values())
    levels = [finding.level for finding in judgement.findings]
    counts = ", ".join(f"{levels.count(level)} {level.value}" for level in WEIGHT)
    head: Part = Paragraph(
        f"{count(len(levels), 'finding')}: {counts}. A void trial does not count; "
        "a doubtful one counts and is named beside the verdict."
    )
    return Section("Findings", (head, Entries(entries)))


def _finding_entry(group: Sequence[Finding]) -> Entry:
    first = group[0]
    times = f" ({len(group)}×)" if len(group) > 1 else ""
    seen = (f"{finding.place}: {finding.evidence}".removeprefix(": ") for finding in group)
    lines = list(dict.fromkeys(seen))
    most = EVIDENCE_MAX[first.level]
    if len(lines) > most + 1:
        lines = [*lines[:most], f"and {len(lines) - most} more, all in report.json"]
    return Entry(
        mark=first.level.value,
        heading=f"{first.check}{times}",
        text=f"Advice: {first.advice}.",
        lines=tuple(lines),
    )


def _capital(clause: str) -> str:
    """A clause of the judge as a sentence's beginning."""
    return clause[:1].upper() + clause[1:]
