"""The section on all cells together: one ratio for each system, counts, crossovers, falling off.

It repeats no cell's number but those of the best and the worst, which are named as what they are:
picked for their result, with the interval that holds together with all others.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.judge.beside.grid import GridSummary
from dbdyno.judge.beside.ladder import Crossover, Regression
from dbdyno.judge.judgement import Judgement
from dbdyno.judge.verdict import Word
from dbdyno.language.words import Text, listed, name, say
from dbdyno.measurement.metric import BY_NAME
from dbdyno.report.numbers import NONE, interval
from dbdyno.report.parts import Column, Items, Paragraph, Part, Section, Table


def grid(judgement: Judgement) -> Section:
    """All cells together; empty where there is one cell only, or nothing to compare."""
    summaries = [one for one in judgement.summaries if one.cells + one.cells_left_out > 1]
    parts: list[Part] = []
    if summaries:
        parts += [_explained(summaries[0]), _counts(summaries), _together(summaries)]
    if judgement.crossovers:
        parts.append(Items(tuple(_crossover(one) for one in judgement.crossovers)))
    if judgement.regressions:
        parts.append(_regressions(judgement.regressions))
    return Section(say("All cells together"), tuple(parts))


def _explained(summary: GridSummary) -> Paragraph:
    return Paragraph(
        say(
            "The ratio over all cells is the geometric mean of {metric} ratios: each block gives "
            "one number, in which workloads weigh alike and so do the cells of a workload; its "
            "95 % interval is over blocks in which no cell is missing. Counts are of verdicts that "
            "hold together at 95 %, never of higher averages. The best and the worst cell are "
            "selected for their result, and carry the interval that allows for it.",
            metric=BY_NAME[summary.metric].label,
        )
    )


def _together(summaries: Sequence[GridSummary]) -> Table:
    columns = (
        Column(say("System")),
        Column(say("Cells"), numeric=True),
        Column(say("Blocks"), numeric=True),
        Column(say("Change over all cells [95 %]"), numeric=True),
        Column(say("In words")),
        Column(say("Best cell, selected")),
        Column(say("Worst cell, selected")),
    )
    rows = tuple(
        (
            name(one.system),
            name(f"{one.cells}"),
            name(f"{one.blocks}"),
            interval(one.ratio, one.low, one.high),
            one.word.said,
            _selected(one, best=True),
            _selected(one, best=False),
        )
        for one in summaries
    )
    return Table(say("All cells against {baseline}", baseline=summaries[0].baseline), columns, rows)


def _selected(summary: GridSummary, *, best: bool) -> Text:
    cell = summary.best if best else summary.worst
    if cell is None:
        return NONE
    told = interval(cell.ratio, cell.low, cell.high)
    return say("{cell}: {change}", cell=cell.cell.title, change=told)


def _counts(summaries: Sequence[GridSummary]) -> Table:
    columns = (
        Column(say("System")),
        *(Column(word.said, numeric=True) for word in Word),
    )
    rows = tuple(
        (name(one.system), *(name(f"{one.counts.get(word, 0)}") for word in Word))
        for one in summaries
    )
    return Table(say("Verdicts by word"), columns, rows)


def _crossover(found: Crossover) -> Text:
    values = {
        "workload": found.workload,
        "setting": "" if found.setting == "default" else f", {found.setting}",
        "system": found.system,
        "baseline": found.baseline,
    }
    if not found.proven:
        return say(
            "{workload}{setting}: no proven crossover of {system} and {baseline}: no two verdicts "
            "of this ladder have opposite signs.",
            **values,
        )
    return say(
        "{workload}{setting}: {system} and {baseline} cross between {places} threads: {system} is "
        "better at {better} and worse at {worse}.",
        **values,
        places=listed(
            (say("{lower} and {upper}", lower=low, upper=high) for low, high in found.between)
        ),
        better=listed(map(str, found.better)),
        worse=listed(map(str, found.worse)),
    )


def _regressions(found: Sequence[Regression]) -> Table:
    columns = (
        Column(say("System")),
        Column(say("Workload")),
        Column(say("From, threads"), numeric=True),
        Column(say("To, threads"), numeric=True),
        Column(say("Change of throughput, together at 95 %"), numeric=True),
        Column(say("In words")),
    )
    rows = tuple(
        (
            name(one.system),
            name(one.workload if one.setting == "default" else f"{one.workload}, {one.setting}"),
            name(f"{one.threads_reference}"),
            name(f"{one.threads_most}"),
            interval(one.ratio, one.low, one.high),
            _course(one),
        )
        for one in found
    )
    caption = say("From the middle of each ladder, fixed before the run, to its highest level")
    return Table(caption, columns, rows)


def _course(found: Regression) -> Text:
    words = {
        Word.BETTER: say("still rises"),
        Word.WORSE: say("falls, beyond the margin") if found.material else say("falls"),
        Word.EQUIVALENT: say("holds within the margin"),
        Word.UNDECIDED: say("undecided"),
    }
    return words.get(found.word, say("too few blocks"))
