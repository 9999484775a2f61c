"""The section on undecided cells that are worth another run: exploratory, and marked as that.

Cells of the judge's list that have a verdict need no second look, so only the undecided are shown.
Being the list's weakest entries they are ties more often than the list as a whole: the text says
so, and the change carries the interval that holds together with those of all cells, never the
narrower one of a cell that was picked for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.judge import Candidate, Judgement, Word
from dbdyno.report.numbers import interval, number
from dbdyno.report.parts import Column, Items, Paragraph, Section, Table
from dbdyno.words import count, name, say

EXPLAINED = say(
    "Exploratory: this is no verdict, and not for quotation. These cells are undecided, but their"
    " own intervals point to a difference when all cells of a system are weighed as a list"
    " (Benjamini and Hochberg, 5 %). In a whole list, with the cells that have a verdict, at most"
    " 5 % have no true difference on average; those shown here are its weakest entries, and more of"
    " them have none. Where nothing differs anywhere, one list in twenty still has an entry. A new"
    " run of these cells alone can settle them: its verdicts share the 5 % among fewer cells."
)


def exploratory(judgement: Judgement) -> Section:
    """Undecided cells that may differ; empty where there is none."""
    found = judgement.candidates
    shown = [one for one in found if one.word is Word.UNDECIDED]
    heading = say("Worth measuring again (exploratory)")
    if not shown:
        return Section(heading, ())
    return Section(heading, (Paragraph(EXPLAINED), _lists(found, shown), _table(shown)))


def _lists(found: Sequence[Candidate], shown: Sequence[Candidate]) -> Items:
    """How long each list is, of which the shown ones are a part."""
    by_system = {one.system: [c for c in found if c.system == one.system] for one in shown}
    return Items(
        tuple(
            say(
                "{system}: {undecided} undecided, in a list of {listed} out of {cells}.",
                system=system,
                undecided=count(sum(one.word is Word.UNDECIDED for one in of_system), "cell"),
                listed=len(of_system),
                cells=of_system[0].cells,
            )
            for system, of_system in by_system.items()
        )
    )


def _table(shown: Sequence[Candidate]) -> Table:
    columns = (
        Column(say("System")),
        Column(say("Cell")),
        Column(say("Leans to")),
        Column(say("Change, together at 95 %"), numeric=True),
        Column(say("p, of the cell by itself"), numeric=True),
    )
    rows = tuple(
        (
            name(one.system),
            name(one.cell.title),
            one.leans.said,
            interval(one.ratio, one.low, one.high),
            number(one.p, 4),
        )
        for one in shown
    )
    return Table(say("Undecided cells that may differ: no verdicts"), columns, rows)
