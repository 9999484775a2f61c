"""Sections with results: verdicts, numbers of every cell, server CPU, findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.judgement import Judgement, cells_of
from dbdyno.language.words import Text, capital, clauses, count, listed, name, phrase, say
from dbdyno.measurement.measurement import Cell, Measurement, kinds_of
from dbdyno.measurement.metric import NOPM, PRIMARY, TABLE, Metric, of_kind
from dbdyno.plan.known import Fact
from dbdyno.plan.plan import Plan, comparisons
from dbdyno.plan.settings import DEFAULT
from dbdyno.plan.systems import Comparison
from dbdyno.report.numbers import NONE, change_with_interval, metric_value, too_few
from dbdyno.report.parts import (
    Column,
    Entries,
    Entry,
    Items,
    Paragraph,
    Part,
    Section,
    Table,
    numeric,
)
from dbdyno.report.rows import (
    Ladder,
    ladders,
    level_of,
    systems_of,
)
from dbdyno.report.sections.conclusion import accounted, meaning
from dbdyno.report.tell import findings as tell
from dbdyno.report.tell.findings import check_name
from dbdyno.report.tell.measured import cell_title, metric_label
from dbdyno.report.tell.terms import Sentence, term
from dbdyno.report.tell.verdicts import reason, sentence, shared_reasons

EVIDENCE_MAX: Final = {Level.VOID: 6, Level.DOUBTFUL: 6, Level.NOTE: 2}
"""Lines of evidence shown of one kind of finding; report.json has them all."""
WEIGHT: Final = (Level.VOID, Level.DOUBTFUL, Level.NOTE)


def verdicts(judgement: Judgement) -> Section:
    """Every verdict as a sentence with its meaning and weaknesses; weaknesses of all once."""
    shared = shared_reasons(judgement.verdicts)
    entries = tuple(
        Entry(
            mark=term(verdict.word),
            heading=cell_title(verdict.cell),
            text=say("{sentence}.", sentence=sentence(verdict)),
            lines=(
                meaning(verdict),
                *accounted(judgement, verdict),
                *(capital(text) for why in verdict.reasons if (text := reason(why)) not in shared),
            ),
            kind=verdict.word,
        )
        for verdict in judgement.verdicts
    )
    of_all = Items(tuple(say("Every verdict: {reason}.", reason=text) for text in shared))
    parts: tuple[Part, ...] = (
        *([of_all] if shared else []),
        *([Entries(entries)] if entries else []),
    )
    return Section(say("Verdicts"), parts)


def _change_column(comparison: Comparison, among: Sequence[Comparison]) -> Column:
    baseline, arm = comparison.labels
    if len(among) == 1:
        return numeric(say("Change [95 %]"))
    if len({one.baseline for one in among}) == 1:
        return numeric(say("{system} change [95 %]", system=arm))
    return numeric(say("{system} against {baseline} [95 %]", system=arm, baseline=baseline))


def change_of(judgement: Judgement, cell: Cell, comparison: Comparison, metric: Metric) -> Text:
    """The ratio with its interval, and on how many blocks it rests if the verdict has others."""
    estimate = judgement.estimate(cell, *comparison.labels, metric.name)
    text = change_with_interval(estimate)
    primary = judgement.estimate(cell, *comparison.labels, PRIMARY.name)
    if estimate is None or primary is None:
        return text
    if estimate.blocks == 0:
        return too_few(judgement.known) if metric.quantile is not None and primary.blocks else text
    if estimate.blocks == primary.blocks:
        return text
    return say("{change} ({blocks})", change=text, blocks=count(estimate.blocks, "block"))


def findings(judgement: Judgement) -> Section:
    """Every kind of finding once, the gravest first, with evidence and advice."""
    if not judgement.findings:
        nothing = say("No check found anything to object to.")
        return Section(say("Findings"), (Paragraph(nothing),))
    by_weight = sorted(judgement.findings, key=lambda finding: WEIGHT.index(finding.level))
    lines = tell.together(by_weight, judgement.known)
    entries: dict[tuple[Level, str, str], list[list[Finding]]] = {}
    for first, *others in lines:
        advice = tell.advice(first, judgement.known)
        entries.setdefault((first.level, first.check, advice), []).append([first, *others])
    levels = [line[0].level for line in lines]
    head: Part = Paragraph(
        say(
            "{findings}: {void} void, {doubtful} doubtful, {note} note. A void trial does not "
            "count; a doubtful one counts and is named beside the verdict.",
            findings=count(len(levels), "finding"),
            **{level.value: levels.count(level) for level in WEIGHT},
        )
    )
    rows = Entries(tuple(_finding_entry(groups, judgement) for groups in entries.values()))
    return Section(say("Findings"), (head, rows))


def _finding_entry(groups: Sequence[Sequence[Finding]], judgement: Judgement) -> Entry:
    """Findings of a check with the same advice: a line for each group with the same evidence."""
    every = [finding for group in groups for finding in group]
    first = every[0]
    heading = check_name(first.check)
    place = tell.place_of_all(every, judgement.arms)
    if len(groups) > 1:
        times = say("{check} ({times}×)", check=heading, times=len(groups))
        heading = clauses([heading, place]) if place else times
    lines = [_evidence(group, judgement) for group in groups]
    most = EVIDENCE_MAX[first.level]
    if len(lines) > most + 1:
        more = say("and {count} more, all in {file}", count=len(lines) - most, file="report.json")
        lines = [*lines[:most], more]
    return Entry(
        mark=term(first.level),
        heading=heading,
        text=say("Advice: {advice}.", advice=tell.advice(first, judgement.known)),
        lines=tuple(lines),
    )


def _evidence(group: Sequence[Finding], judgement: Judgement) -> Text:
    place, evidence = tell.place_of_all(group, judgement.arms), tell.evidence(group[0])
    return say("{place}: {evidence}", place=place, evidence=evidence) if place else name(evidence)


# Tables as benchmarks publish them, a row for each load level and a column for each system, with
# the change and its interval.

MERGED: Final = Sentence(phrase("Values are merged over all sound trials."), Fact.HERE)
WITHOUT_INTERVAL: Final = "latency_ms_max"
"""One request of a trial makes it, so an interval over a few trials says nothing."""
PER_STATEMENT: Final = "queries_per_s"
SAME_STATEMENTS: Final = 0.01
"""Tolerated difference in statements per transaction, for retried transactions."""


def tables(plan: Plan, measurements: Sequence[Measurement], judgement: Judgement) -> Section:
    """A table for each ladder and metric, then each system over its settings.

    Empty without a usable trial.
    """
    systems = systems_of(plan, measurements)
    of_systems = [one for one in comparisons(plan) if one.settings is None]
    seen = {value.cell for value in judgement.values}
    every = [
        ladder
        for ladder in ladders(cells_of(plan, measurements))
        if any(cell in seen for cell in ladder.cells)
    ]
    tables = [
        table
        for ladder in every
        for table in (
            *(
                _table(ladder, metric, systems, of_systems, judgement)
                for metric in (*TABLE, NOPM)
                if _says_more(metric, ladder, judgement)
            ),
            *_of_kinds(ladder, systems, measurements, judgement),
        )
    ]
    heading = say("Numbers")
    if not tables:
        nothing = say("No trial is usable, so there are no numbers.")
        return Section(heading, (Paragraph(nothing),))
    head = say(
        "In the form of published reports: a row for each load level, a column for each system."
    )
    head = listed([head, *MERGED.of(judgement.known)], " ")
    against = say(
        "{head} A change is against {baseline}, each with a 95 % interval of its own.",
        head=head,
        baseline=listed(dict.fromkeys(one.baseline.label for one in of_systems), " / "),
    )
    over_settings = _over_settings(plan, every, systems, judgement)
    return Section(heading, (Paragraph(against if of_systems else head), *tables, *over_settings))


def _over_settings(
    plan: Plan, every: Sequence[Ladder], systems: Sequence[str], judgement: Judgement
) -> list[Table]:
    """Throughput of each system and workload, a column for each setting; empty for a single
    setting."""
    workloads: dict[tuple[str, bool], list[Ladder]] = {}
    for ladder in every:
        workloads.setdefault((ladder.workload, ladder.is_open), []).append(ladder)
    return [
        _settings_table(system, beside, _of_settings(plan, system), judgement)
        for (_, is_open), beside in workloads.items()
        if len(beside) > 1 and not is_open
        for system in systems
    ]


def _of_settings(plan: Plan, system: str) -> list[Comparison]:
    """Comparisons of two settings of a system, with no other axis varied."""
    return [
        one
        for one in comparisons(plan)
        if {one.baseline.system, one.arm.system} == {system}
        and set(one.settings or ()) == {DEFAULT}
    ]


def _settings_table(
    system: str, beside: Sequence[Ladder], compared: Sequence[Comparison], judgement: Judgement
) -> Table:
    workload = beside[0].workload
    cells = {(cell.setting, cell.threads): cell for ladder in beside for cell in ladder.cells}
    rows = tuple(
        (
            name(f"{threads}"),
            *(
                metric_value(judgement, cells[at], system, PRIMARY)
                if (at := (ladder.setting, threads)) in cells
                else NONE
                for ladder in beside
            ),
            *(
                change_of(judgement, Cell(workload=workload, threads=threads), one, PRIMARY)
                for one in compared
            ),
        )
        for threads in sorted({threads for _, threads in cells})
    )
    columns = (
        numeric(beside[0].load_title),
        *(numeric(name(ladder.setting)) for ladder in beside),
        *(_change_column(one, compared) for one in compared),
    )
    caption = say(
        "{metric}, {unit}: {system} over its settings, {workload}",
        metric=metric_label(PRIMARY),
        unit=PRIMARY.unit,
        system=system,
        workload=workload,
    )
    return Table(caption, columns, rows)


def _says_more(metric: Metric, ladder: Ladder, judgement: Judgement) -> bool:
    """True if a metric's table adds to the tables before it."""
    if metric == NOPM:
        return any(v.metric == NOPM.name and v.cell in ladder.cells for v in judgement.values)
    return metric.name != PER_STATEMENT or not _is_multiple(ladder, judgement)


def _of_kinds(
    ladder: Ladder,
    systems: Sequence[str],
    measurements: Sequence[Measurement],
    judgement: Judgement,
) -> Iterator[Table]:
    """A table by kind of event, as distinguished by a script; empty for a single kind."""
    kinds = kinds_of(one for one in measurements if one.trial.cell in ladder.cells)
    if len(kinds) < 2:
        return
    columns = (
        numeric(ladder.load_title),
        Column(say("Event")),
        *(
            numeric(heading)
            for system in systems
            for heading in (
                say("{system}, 1/s", system=system),
                say("{system}, {label} ms", system=system, label="p95"),
            )
        ),
    )
    rows = tuple(
        (
            level_of(cell),
            name(kind),
            *(
                metric_value(judgement, cell, system, metric)
                for system in systems
                for metric in of_kind(kind)
            ),
        )
        for cell in ladder.cells
        for kind in kinds
    )
    yield Table(say("Kinds of events: {ladder}", ladder=ladder.title), columns, rows)


def _is_multiple(ladder: Ladder, judgement: Judgement) -> bool:
    """True if every transaction has the same number of statements, so QPS repeats TPS."""
    values: dict[tuple[Cell, str], dict[str, float | None]] = {}
    for merged in judgement.values:
        if merged.cell in ladder.cells:
            values.setdefault((merged.cell, merged.system), {})[merged.metric] = merged.value
    each = [
        queries / events
        for value in values.values()
        if (events := value.get(PRIMARY.name)) and (queries := value.get(PER_STATEMENT))
    ]
    return not each or max(each) <= min(each) * (1 + SAME_STATEMENTS)


def _table(
    ladder: Ladder,
    metric: Metric,
    systems: Sequence[str],
    compared: Sequence[Comparison],
    judgement: Judgement,
) -> Table:
    compared = compared if metric.name != WITHOUT_INTERVAL else ()
    columns = (
        numeric(ladder.load_title),
        *(numeric(name(system)) for system in systems),
        *(_change_column(one, compared) for one in compared),
    )
    rows = tuple(
        (
            level_of(cell),
            *(metric_value(judgement, cell, system, metric) for system in systems),
            *(change_of(judgement, cell, one, metric) for one in compared),
        )
        for cell in ladder.cells
    )
    caption = say(
        "{metric}, {unit}: {ladder}",
        metric=metric_label(metric),
        unit=metric.unit,
        ladder=ladder.title,
    )
    return Table(caption, columns, rows)
