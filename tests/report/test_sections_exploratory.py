"""Cells worth measuring again as a person reads it: marked as no verdict, absent if none is."""

from __future__ import annotations

import numpy as np
from tests import making
from tests.report.made_run import Run, run

from dbdyno.report.parts import Items, Paragraph, Table
from dbdyno.report.sections_exploratory import exploratory
from dbdyno.report.story import tell
from dbdyno.words import Said

SHAPE = (-1.3, -0.3, 0.1, 0.5, 1.0)


def ladder(offs: dict[int, float]) -> Run:
    """Cells that lie so many standard errors off no difference."""
    shape = np.array(SHAPE) / np.std(SHAPE, ddof=1)
    trials = [
        trial
        for threads, off in offs.items()
        for trial in making.pairs(
            tuple(float(r) for r in np.exp(0.02 * (shape + off / np.sqrt(5)))),
            threads=threads,
            tps=20000.0,
        )
    ]
    return run(making.plan(threads=tuple(offs)), trials)


def test_undecided_cells_of_the_list_are_shown_with_the_interval_of_all_cells() -> None:
    section = exploratory(ladder({1: 30.0, 2: 3.3, 4: -3.4, 8: 0.2}).judgement)
    told, lists, table = section.parts
    assert section.heading == "Worth measuring again (exploratory)"
    assert isinstance(told, Paragraph)
    assert told.text.startswith("Exploratory: this is no verdict")
    assert isinstance(lists, Items)
    assert lists.items == (f"{making.B}: 2 cells undecided, in a list of 3 out of 4.",)
    assert isinstance(table, Table)
    assert table.caption == "Undecided cells that may differ: no verdicts"
    assert table.rows == (
        (making.B, "oltp_read_write, 2 threads", "better", "+3.0 % [−0.6, +6.7]", "0.0299"),
        (making.B, "oltp_read_write, 4 threads", "worse", "−3.0 % [−6.4, +0.5]", "0.0273"),
    )


def test_it_stands_below_all_cells_together() -> None:
    made = ladder({1: 30.0, 2: 3.3, 4: -3.4, 8: 0.2})
    story = tell(made.plan, made.measurements, made.judgement, made.facts)
    headings = [section.heading for section in story.sections]
    place = headings.index("All cells together")
    assert headings[place + 1] == "Worth measuring again (exploratory)"


def test_without_an_undecided_cell_in_a_list_there_is_no_section(made: Run, empty: Run) -> None:
    decided = ladder({1: 30.0, 2: 0.1}).judgement
    assert [one.cell.threads for one in decided.candidates] == [1]
    assert exploratory(decided).parts == ()
    assert exploratory(made.judgement).parts == ()
    assert exploratory(empty.judgement).parts == ()


def test_every_sentence_can_be_told_in_another_language() -> None:
    told, lists, table = exploratory(ladder({2: 3.3, 4: -3.4}).judgement).parts
    assert isinstance(told, Paragraph)
    assert isinstance(lists, Items)
    assert isinstance(table, Table)
    said = [told.text, *lists.items, table.caption, *(one.heading for one in table.columns)]
    assert all(isinstance(text, Said) for text in said)
