"""The first screen: every change and the main numbers, the charts, and the tested conditions.

It suffices for a reader who stops here: the results in absolute numbers too, the costs of a
transaction on each system, and the data, promises, machine and storage for which they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dbdyno.judge.judgement import Judgement
from dbdyno.judge.verdict import Verdict
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.plan import CELLS_FEW, Plan, one_baseline
from dbdyno.report.charts.vega import look_of
from dbdyno.report.numbers import NONE, decided
from dbdyno.report.parts import Column, Figure, Section, Table, numeric, table
from dbdyno.report.rows import Attempt, compared_arms, workload_name
from dbdyno.report.sections.settings import tested
from dbdyno.report.sections.tables import main_tables
from dbdyno.report.tell.measured import cell_title, load_words, metric_label
from dbdyno.report.tell.plan import TOPICS
from dbdyno.report.tell.terms import term

ROWS_OPEN_MAX: Final = 24
"""A longer table is folded."""
LEVELS_MAX: Final = 8
"""Most load levels that fit beside each other as columns."""
Place = tuple[Text, Text]
"""Row and column of a verdict."""


def glance(
    plan: Plan,
    attempts: Sequence[Attempt],
    judgement: Judgement,
    run: RunFacts,
    pictures: Sequence[Figure],
) -> Section:
    """Changes, numbers, the tested conditions, then the pictures."""
    measurements = [attempt.measurement for attempt in attempts]
    conditions = table(
        say("What was tested"),
        list(tested(plan, measurements, run).items()),
        (say("What"), lambda row: TOPICS.get(row[0], name(row[0]))),
        (say("This run"), lambda row: row[1]),
    )
    changes = _changes(plan, judgement)
    numbers = main_tables(plan, attempts, judgement)
    are_long = sum(len(one.rows) for one in numbers) > ROWS_OPEN_MAX
    return Section(
        say("At a glance"),
        (
            *changes,
            *(replace(one, folded=are_long or bool(changes)) for one in numbers),
            conditions,
            *pictures,
        ),
    )


def _changes(plan: Plan, judgement: Judgement) -> tuple[Table, ...]:
    """All changes of more than a few verdicts, and of comparisons that are not of two systems."""
    if one_baseline(plan) is None and judgement.verdicts:
        looks = tuple(one.word.replace(" ", "-") for one in judgement.verdicts)
        return (replace(compared_arms(judgement.verdicts), looks=looks),)
    return matrices(plan, judgement)


# Every change against the baseline in one table, as it is read with many tests or systems. Several
# systems are the columns of a table of tests. A single system has the load levels as columns and
# the workloads as rows.


def matrices(plan: Plan, judgement: Judgement) -> tuple[Table, ...]:
    """The changes of each metric with more than a few verdicts against one baseline."""
    by_metric: dict[str, list[Verdict]] = {}
    for verdict in judgement.verdicts:
        by_metric.setdefault(verdict.metric, []).append(verdict)
    baseline = one_baseline(plan)
    if baseline is None or len(judgement.verdicts) <= CELLS_FEW:
        return ()
    return tuple(_matrix(metric, baseline, of) for metric, of in by_metric.items())


def _matrix(metric: str, baseline: str, verdicts: Sequence[Verdict]) -> Table:
    places = _places(verdicts)
    rows = list(dict.fromkeys(row for row, _ in places))
    columns = list(dict.fromkeys(column for _, column in places))
    return Table(
        say(
            "Change of {metric} against {baseline}, with its interval",
            metric=metric_label(BY_NAME[metric]),
            baseline=baseline,
        ),
        (Column(say("Test")), *map(numeric, columns)),
        tuple((row, *(_shown(places.get((row, at))) for at in columns)) for row in rows),
        looks_of_cells=tuple(
            ("", *(_look(places.get((row, at))) for at in columns)) for row in rows
        ),
    )


def _places(verdicts: Sequence[Verdict]) -> Mapping[Place, Verdict]:
    levels = {load_words(verdict.cell) for verdict in verdicts}
    if len({verdict.system for verdict in verdicts}) == 1 and 1 < len(levels) <= LEVELS_MAX:
        return {
            (name(workload_name(*one.cell.ladder)), load_words(one.cell)): one for one in verdicts
        }
    return {(cell_title(one.cell), name(one.system)): one for one in verdicts}


def _shown(verdict: Verdict | None) -> Text:
    """A change behind its verdict's sign, or the word where there is no ratio."""
    if verdict is None:
        return NONE
    change = decided(verdict)
    if change == NONE:
        return term(verdict.word)
    return say("{sign} {change}", sign=look_of(verdict).sign, change=change)


def _look(verdict: Verdict | None) -> str:
    """The colour of a difference beyond the margin; of all other words none."""
    return verdict.word.value if verdict is not None and verdict.material else ""
