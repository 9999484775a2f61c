"""The section on runs that lie apart, on restarts that could be bad, and on where noise comes from.

Nothing of it changes a number elsewhere: an outlying run counts in every mean and interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbdyno.judge import Judgement
from dbdyno.judge.checks_design import BLOCKS_FEW
from dbdyno.judge.outliers import BadRestarts, Outlier
from dbdyno.judge.within_run import WithinRun
from dbdyno.metric import BY_NAME
from dbdyno.report.numbers import NONE, change, number, percentage
from dbdyno.report.parts import Column, Items, Paragraph, Part, Section, Table
from dbdyno.words import Text, clauses, name, say

HEADING: Final = say("Outlying runs and noise")
RULE: Final = say(
    "Outlying runs are named here and stay in every number: those whose throughput (at a fixed"
    " rate: p99) lies apart from the same system's other runs of the cell (generalised extreme"
    " Studentised deviate, Rosner 1983, about 5 % false alarms) by more than the margin. It takes"
    " {least} runs to name one.",
    least=BLOCKS_FEW,
)
NOISE: Final = say(
    "The table is for planning; verdicts rest on blocks and never on seconds. Seconds are alike,"
    " so a window is worth fewer independent ones than it has. What differs between restarts is"
    " what is left beyond the scatter within windows, the machine's drift included. Windows longer"
    " than the best length buy less than more blocks do."
)
LONGER: Final = say("the longer the better")


def outliers(judgement: Judgement) -> Section:
    """What lies apart, what could be bad, and the two kinds of noise; empty without a trial."""
    if not judgement.values:
        return Section(HEADING, ())
    parts: list[Part] = [Paragraph(RULE), Items(_found(judgement))]
    if judgement.within_runs:
        parts += [Paragraph(NOISE), _noise(judgement.within_runs)]
    return Section(HEADING, tuple(parts))


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


def _noise(found: Sequence[WithinRun]) -> Table:
    columns = (
        Column(say("Cell")),
        Column(say("System")),
        Column(say("ρ1"), numeric=True),
        Column(say("Independent seconds"), numeric=True),
        Column(say("Scatter within a window"), numeric=True),
        Column(say("Scatter between restarts"), numeric=True),
        Column(say("Variance, restarts : window"), numeric=True),
        Column(say("Best window, s"), numeric=True),
    )
    rows = tuple(
        (
            name(one.cell.title),
            name(one.system),
            number(one.rho1),
            say(
                "{worth} of {seconds}",
                worth=number(one.seconds_effective, 1),
                seconds=number(one.seconds, 0),
            ),
            percentage(one.within_sd),
            percentage(one.restart_sd),
            number(one.variance_ratio, 1),
            _window(one),
        )
        for one in found
    )
    return Table(say("Noise within windows and between restarts"), columns, rows)


def _window(one: WithinRun) -> Text:
    if one.window_s_best is not None:
        return name(str(max(1, round(one.window_s_best))))
    return NONE if one.within_sd == 0 else LONGER
