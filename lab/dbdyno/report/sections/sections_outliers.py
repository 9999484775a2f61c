"""The section on runs that lie apart, and on restarts that could be bad.

Nothing of it changes a number elsewhere: an outlying run counts in every mean and interval.
"""

from __future__ import annotations

from typing import Final

from dbdyno.judge.beside.outliers import BadRestarts, Outlier
from dbdyno.judge.checks.design import BLOCKS_FEW
from dbdyno.judge.judgement import Judgement
from dbdyno.language.words import Text, clauses, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.report.numbers import change, percentage
from dbdyno.report.parts import Items, Paragraph, Section

HEADING: Final = say("Outlying runs")
RULE: Final = say(
    "Outlying runs are named here and stay in every number: those whose throughput (at a fixed"
    " rate: p99) lies apart from the same system's other runs of the cell (generalised extreme"
    " Studentised deviate, Rosner 1983, about 5 % false alarms) by more than the margin. It takes"
    " {least} runs to name one.",
    least=BLOCKS_FEW,
)


def outliers(judgement: Judgement) -> Section:
    """What lies apart and what could be bad; empty without a trial."""
    if not judgement.values:
        return Section(HEADING, ())
    return Section(HEADING, (Paragraph(RULE), Items(_found(judgement))))


def _found(judgement: Judgement) -> tuple[Text, ...]:
    listed = tuple(_outlier(one) for one in judgement.outliers)
    if not judgement.bad_restarts:
        return (*listed, say("There are too few runs to say how many restarts were bad."))
    if not listed:
        listed = (say("No run lies apart."),)
    return (*listed, *(_restarts(one) for one in judgement.bad_restarts))


def _outlier(one: Outlier) -> Text:
    return say(
        "{system}, {cell}, block {block}: {metric} {change} against its other {runs} runs.",
        system=one.system,
        cell=one.cell.title,
        block=one.block + 1,
        metric=BY_NAME[one.metric].label,
        change=change(one.ratio),
        runs=one.runs - 1,
    )


def _restarts(one: BadRestarts) -> Text:
    whose = [one.system] if one.setting == "default" else [one.system, one.setting]
    return say(
        "{system}: bad restarts {bad} of {restarts}; up to {share} of its restarts are not"
        " excluded.",
        system=clauses(whose),
        bad=one.bad,
        restarts=one.restarts,
        share=percentage(one.share_max),
    )
