"""Every change against the baseline in one table, as it is read with many tests or systems.

Several systems are the columns of a table of tests. A single system has the load levels as columns
and the workloads as rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dbdyno.judge.judgement import Judgement
from dbdyno.judge.verdict import Verdict
from dbdyno.language.words import Text, name, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.plan.plan import CELLS_FEW, Plan, one_baseline
from dbdyno.report.charts.vega import look_of
from dbdyno.report.numbers import NONE, decided
from dbdyno.report.parts import Column, Table, numeric
from dbdyno.report.rows import workload_name
from dbdyno.report.tell.measured import cell_title, load_words, metric_label
from dbdyno.report.tell.terms import term

LEVELS_MAX: Final = 8
"""Most load levels that fit beside each other as columns."""
Place = tuple[Text, Text]
"""Row and column of a verdict."""


def matrix(plan: Plan, judgement: Judgement) -> tuple[Table, ...]:
    """The changes of closed loops with more than a few verdicts against one baseline."""
    baseline = one_baseline(plan)
    closed = [one for one in judgement.verdicts if one.cell.rate_per_s is None]
    if baseline is None or len(closed) <= CELLS_FEW:
        return ()
    places = _places(closed)
    rows = list(dict.fromkeys(row for row, _ in places))
    columns = list(dict.fromkeys(column for _, column in places))
    caption = say(
        "Change of {metric} against {baseline}, with its interval",
        metric=metric_label(BY_NAME[closed[0].metric]),
        baseline=baseline,
    )
    return (
        Table(
            caption,
            (Column(say("Test")), *map(numeric, columns)),
            tuple((row, *(_shown(places.get((row, at))) for at in columns)) for row in rows),
            looks_of_cells=tuple(
                ("", *(_look(places.get((row, at))) for at in columns)) for row in rows
            ),
        ),
    )


def _places(verdicts: list[Verdict]) -> Mapping[Place, Verdict]:
    levels = {verdict.cell.threads for verdict in verdicts}
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
    if change is NONE:
        return term(verdict.word)
    if verdict.standstill is None:
        change = name(change.replace(", ", ",\u00a0"))  # no line ends within an interval
    return say("{sign} {change}", sign=look_of(verdict).sign, change=change)


def _look(verdict: Verdict | None) -> str:
    """The colour of a difference beyond the margin; of all other words none."""
    return verdict.word.value if verdict is not None and verdict.material else ""
