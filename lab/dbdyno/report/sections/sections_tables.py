"""Tables in the form in which benchmarks are published: rows are load levels, columns are systems.

One table holds one metric of one workload and setting, so that it can be put beside a published one
as it stands. What published tables leave out stands in it too: the change with its interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import name, say
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.metric import BY_NAME, Metric
from dbdyno.plan.plan import Plan
from dbdyno.report.ladders import Ladder, ladders, level_of
from dbdyno.report.numbers import metric_value
from dbdyno.report.parts import Column, Paragraph, Section, Table
from dbdyno.report.rows import cells_of, systems_of
from dbdyno.report.sections.results import change_of

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
"""What publications print; `sections_results.numbers` has every metric."""


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
    changes = [
        Column(
            say("Change [95 %]")
            if len(systems) == 2
            else say("{system} change [95 %]", system=system),
            numeric=True,
        )
        for system in systems[1:]
    ]
    columns = (
        Column(ladder.load_title, numeric=True),
        *(Column(name(system), numeric=True) for system in systems),
        *changes,
    )
    rows = tuple(
        (
            level_of(cell),
            *(
                metric_value(judgement.value(cell, system, metric.name), metric)
                for system in systems
            ),
            *(change_of(judgement, cell, system, metric) for system in systems[1:]),
        )
        for cell in ladder.cells
    )
    caption = say(
        "{metric}, {unit}: {ladder}", metric=metric.label, unit=metric.unit, ladder=ladder.title
    )
    return Table(caption, columns, rows)
