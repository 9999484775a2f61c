"""Sections with results: verdicts, numbers of every cell, server CPU, findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.judgement import Judgement
from dbdyno.judge.wording import sentence
from dbdyno.language.words import Text, capital, count, name, say
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.metric import PRIMARY, TABLE, Metric
from dbdyno.plan.plan import Plan
from dbdyno.report.numbers import TOO_FEW, change_with_interval, metric_value
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
    Ladder,
    cells_of,
    ladders,
    level_of,
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

WITHOUT_INTERVAL: Final = "latency_ms_max"
"""One request of a trial makes it, so an interval over a few trials says nothing."""
PER_STATEMENT: Final = "queries_per_s"
SAME_STATEMENTS: Final = 0.01
"""Statements of retried transactions may make that much of a difference."""


def tables(plan: Plan, measurements: Sequence[Measurement], judgement: Judgement) -> Section:
    """A table for each ladder and metric; empty without a usable trial."""
    systems = systems_of(plan, measurements)
    seen = {value.cell for value in judgement.values}
    made = [
        _table(ladder, metric, systems, judgement)
        for ladder in ladders(cells_of(plan, measurements))
        if any(cell in seen for cell in ladder.cells)
        for metric in TABLE
        if metric.name != PER_STATEMENT or not _is_multiple(ladder, judgement)
    ]
    heading = say("Numbers")
    if not made:
        nothing = say("No trial is usable, so there are no numbers.")
        return Section(heading, (Paragraph(nothing),))
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


def _is_multiple(ladder: Ladder, judgement: Judgement) -> bool:
    """Whether every transaction has the same number of statements: then QPS says what TPS says."""
    values: dict[tuple[Cell, str], dict[str, float | None]] = {}
    for one in judgement.values:
        if one.cell in ladder.cells:
            values.setdefault((one.cell, one.system), {})[one.metric] = one.value
    each = [
        queries / events
        for value in values.values()
        if (events := value.get(PRIMARY.name)) and (queries := value.get(PER_STATEMENT))
    ]
    return not each or max(each) <= min(each) * (1 + SAME_STATEMENTS)


def _table(ladder: Ladder, metric: Metric, systems: Sequence[str], judgement: Judgement) -> Table:
    others = systems[1:] if metric.name != WITHOUT_INTERVAL else ()
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
