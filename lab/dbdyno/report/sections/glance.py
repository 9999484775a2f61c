"""The first screen: verdicts, throughput, latency and costs in one grid, and the tested conditions.

It suffices for a reader who stops here: the results in absolute numbers too, the costs of a
transaction on each system, and the data, promises, machine and storage for which they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from dbdyno.judge.judgement import Judgement, cells_of
from dbdyno.judge.verdict import Verdict
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.cost import COSTS, Cost, per_event, source_of
from dbdyno.measurement.measurement import Cell, Measurement
from dbdyno.measurement.metric import BY_NAME, PRIMARY, Metric
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.plan import CELLS_FEW, Plan, latency_of, one_baseline
from dbdyno.report.numbers import NONE, decided, metric_value, number
from dbdyno.report.parts import Column, Figure, Items, Part, Section, Table, numeric, table
from dbdyno.report.rows import Attempt, compared_arms, sound, systems_of
from dbdyno.report.sections.conclusion import accounted
from dbdyno.report.sections.matrix import matrix
from dbdyno.report.sections.settings import tested
from dbdyno.report.tell.measured import cell_title, metric_label
from dbdyno.report.tell.plan import TOPICS
from dbdyno.report.tell.terms import term

ROWS_OPEN_MAX: Final = 24
"""A longer grid is folded."""
SHORT: Final[Mapping[str, Text]] = {
    "server_cpu_us": say("CPU, µs"),
    "storage_read_kb": say("read, KB"),
    "written_kb": say("written, KB"),
    "syncs": say("syncs"),
}
"""The costs of the grid, by their names in `COSTS`, and their headings."""


COST: Final[Mapping[str, Cost]] = {cost.name: cost for cost in COSTS}


class _Row(NamedTuple):
    cell: Cell
    system: str
    verdict: Verdict | None
    costs: tuple[Text, ...]


def glance(
    plan: Plan,
    attempts: Sequence[Attempt],
    judgement: Judgement,
    run: RunFacts,
    pictures: Sequence[Figure],
) -> Section:
    """Grid, explanations, tested conditions, then the pictures of the verdicts."""
    measurements = [attempt.measurement for attempt in attempts]
    box = table(
        say("What was tested"),
        list(tested(plan, measurements, run).items()),
        (say("What"), lambda row: TOPICS.get(row[0], name(row[0]))),
        (say("This run"), lambda row: row[1]),
    )
    changes = matrix(plan, judgement)
    parts: tuple[Part, ...] = (
        *changes,
        *(
            replace(one, folded=one.folded or bool(changes))
            for one in grid(plan, attempts, judgement)
        ),
        *_explained(judgement),
        box,
        *pictures,
    )
    return Section(say("At a glance"), parts)


def _explained(judgement: Judgement) -> tuple[Items, ...]:
    """Part of each difference due to CPU per transaction; the conclusion has it for one cell."""
    if not 1 < len(judgement.verdicts) <= CELLS_FEW:
        return ()
    rows = tuple(
        say("{system}, {cell}: {change}", system=one.system, cell=cell_title(one.cell), change=text)
        for one in judgement.verdicts
        for text in accounted(judgement, one)
    )
    return (Items(rows),) if rows else ()


def grid(plan: Plan, attempts: Sequence[Attempt], judgement: Judgement) -> tuple[Table, ...]:
    """A row for each system of each cell; no table without a measurement.

    Verdicts stand beside the numbers if all systems share one baseline, else in a table of their
    own. Rates chosen by the pilot to find a limit are left out.
    """
    baseline = one_baseline(plan)
    rows = _rows(plan, attempts, judgement)
    if not rows:
        return ()
    counted = [at for at in range(len(SHORT)) if any(row.costs[at] != NONE for row in rows)]
    latencies = [*([BY_NAME["latency_ms_p95"]] if plan.load.threads else [])]
    latencies += [latency_of(plan)] if plan.load.rates and latency_of(plan) not in latencies else []
    compared = baseline is not None and any(row.verdict for row in rows)
    beside = (Column(say("Verdict")), numeric(say("Change [95 %]"))) if compared else ()
    columns = (
        Column(say("Cell")),
        Column(say("System")),
        *(numeric(_heading(metric)) for metric in (PRIMARY, *latencies)),
        *beside,
        *(numeric(list(SHORT.values())[at]) for at in counted),
    )

    def shown(row: _Row) -> tuple[Text, ...]:
        values = (_value(judgement, row, metric) for metric in (PRIMARY, *latencies))
        words = _told(row.verdict) if compared else ()
        return (
            cell_title(row.cell),
            name(row.system),
            *values,
            *words,
            *(row.costs[at] for at in counted),
        )

    caption = say("Throughput, latency, and what one transaction took of server and storage")
    if compared:
        caption = say("{caption}, against {baseline}", caption=caption, baseline=baseline)
    lines = tuple(shown(row) for row in rows)
    numbers = Table(caption, columns, lines, len(rows) > ROWS_OPEN_MAX)
    if compared or not judgement.verdicts:
        return (replace(numbers, looks=tuple(_look(row.verdict) for row in rows)),)
    verdicts = replace(
        compared_arms(judgement.verdicts), looks=tuple(map(_look, judgement.verdicts))
    )
    return (verdicts, numbers)


def _look(verdict: Verdict | None) -> str:
    return verdict.word.replace(" ", "-") if verdict else ""


def _rows(plan: Plan, attempts: Sequence[Attempt], judgement: Judgement) -> list[_Row]:
    measurements = [attempt.measurement for attempt in attempts]
    systems = systems_of(plan, measurements)
    verdicts = {(one.cell, one.system): one for one in judgement.verdicts}
    seen = {value.cell for value in judgement.values}
    rows = []
    for cell in cells_of(plan, measurements):
        if cell not in seen or plan.load.is_rung(cell.rate_per_s):
            continue
        trials = [sound(attempts, cell, system) for system in systems]
        took = (_per_event(COST[key], trials) for key in SHORT)
        rows += [
            _Row(cell, system, verdicts.get((cell, system)), costs)
            for system, costs in zip(systems, zip(*took, strict=True), strict=True)
        ]
    return rows


def _per_event(cost: Cost, groups: Sequence[Sequence[Measurement]]) -> list[Text]:
    """The cost on each system by a counter common to all; dashes without such a counter."""
    source = source_of(cost, [measurement for group in groups for measurement in group])
    return [
        number(per_event(source, group), cost.decimals) if source and group else NONE
        for group in groups
    ]


def _heading(metric: Metric) -> Text:
    if metric is PRIMARY:
        return metric_label(metric)
    return say("{metric}, {unit}", metric=metric_label(metric), unit=metric.unit)


def _value(judgement: Judgement, row: _Row, metric: Metric) -> Text:
    return metric_value(judgement, row.cell, row.system, metric)


def _told(verdict: Verdict | None) -> tuple[Text, Text]:
    """Word and change, with the interval behind the word; "baseline" for the baseline."""
    if verdict is None:
        return (say("baseline"), NONE)
    change = decided(verdict)
    if verdict.metric == PRIMARY.name:
        return (term(verdict.word), change)
    metric = metric_label(BY_NAME[verdict.metric])
    return (term(verdict.word), say("{metric} {change}", metric=metric, change=change))
